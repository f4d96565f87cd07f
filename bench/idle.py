# SPDX-License-Identifier: GPL-2.0
"""What an idle hiops disk costs I/O that is none of its own.

512-byte random reads by one process of in-tree disks, in rounds that alternate: no hiops, and a
hiops RAM disk that nobody uses. Beside the instructions per I/O stands the wait hook's own part of
them, by function.
"""

import os
import statistics
import subprocess
import sys

import counting
import functions
import record
from points import Point

DISK = "hiops ram_disks=1 ram_size_mb=8"
POINT = Point(jobs=1)
# The I/Os of the two runs that are subtracted: fewer than elsewhere, as there are so many runs.
SHORT, LONG = 2048, 10240


def hiops(there):
    """Loads the module with a disk of its own, or unloads it."""
    command = ["modprobe", *DISK.split()] if there else ["rmmod", "hiops"]
    subprocess.run(command, check=True)


def reads(counter, drive):
    """(instructions per I/O, the plugin's block lines of the short and of the long run)"""
    short, long = (counting.counted(counter, drive, POINT, ios) for ios in (SHORT, LONG))
    more = long[0]["instructions"] - short[0]["instructions"]
    return more / (LONG - SHORT), (short[2], long[2])


def hook(runs):
    """{function: [instructions, calls]} per I/O of the hook and of what leads to it."""
    symbols = functions.Symbols()
    short, long = (functions.by_function(functions.by_block(symbols, lines)) for lines in runs)
    return {name: [(b - a) / (LONG - SHORT) for a, b in zip(short.get(name, (0, 0)), long[name])]
            for name in long if "[hiops]" in name or name.startswith("ftrace_")}


def options(parser):
    counting.options(parser)
    parser.add_argument("--rounds", type=int, default=5)


def one_round(counter, drives, rounds, parts):
    """Each drive without hiops, and with its idle disk."""
    for there in (0, 1):
        if there:
            hiops(True)
        for drive in drives:
            instructions, blocks = reads(counter, drive)
            rounds[drive.driver][there].append(instructions)
            if there:
                parts[drive.driver] = hook(blocks)
        if there:
            hiops(False)


def run(args):
    counter, drives = counting.prepare(args)
    rounds = {d.driver: ([], []) for d in drives}
    parts = {}
    for n in range(args.rounds):
        one_round(counter, drives, rounds, parts)
        told = ", ".join(f"{d}: {a[-1]:.0f} and {b[-1]:.0f}" for d, (a, b) in rounds.items())
        print(f"hiops: round {n + 1} of {args.rounds}: {told}", file=sys.stderr)
    rows = [{"driver": d, "without": statistics.median(a), "with": statistics.median(b),
             "rounds": [a, b], "hook": parts[d]} for d, (a, b) in rounds.items()]
    record.save(args.json, rows=rows)
    print(f"{os.cpu_count()} vCPU, 1 job: instructions per read, median of {args.rounds}; "
          "with an idle hiops disk, and its hook's own part")
    print(f"{'driver':<12}{'without':>10}{'with':>10}{'ratio':>8}{'hook':>8}")
    for r in rows:
        own = sum(i for i, _ in r["hook"].values())
        print(f"{r['driver']:<12}{r['without']:>10.0f}{r['with']:>10.0f}"
              f"{r['with'] / r['without']:>8.3f}{own:>8.0f}")
        by_cost = sorted(r["hook"].items(), key=lambda item: -item[1][0])
        for name, (instructions, calls) in by_cost:
            if instructions >= 0.5:
                print(f"{'':<12}{instructions:>10.1f} in {calls:.2f} calls of {name}")
