# SPDX-License-Identifier: GPL-2.0
"""Where the instructions of an I/O go, by kernel function, for two drives side by side.

Runs inside the guest that bench/compare --profile starts: the plugin counts by translated block,
this adds the blocks up to the functions of /proc/kallsyms of the same boot.
"""

import bisect
import collections
import os
import subprocess

import barriers
import counting
import points
import record
from errors import Failed


class Symbols:
    """The kernel's functions by address, modules included."""

    def __init__(self):
        found = {}
        with open("/proc/kallsyms") as table:
            for line in table:
                addr, kind, name, *module = line.split()
                if kind in "tTwW":
                    found[int(addr, 16)] = (name, module[0].strip("[]") if module else "")
        if not any(found):
            raise Failed("/proc/kallsyms shows no addresses: kernel.kptr_restrict?")
        self.addrs = sorted(found)
        names = [found[a][0] for a in self.addrs]
        # binutils knows Rust's v0 names.
        plain = subprocess.run(["c++filt", "-s", "rust"], input="\n".join(names), text=True,
                               stdout=subprocess.PIPE, check=True).stdout.split("\n")
        modules = [f" [{found[a][1]}]" if found[a][1] else "" for a in self.addrs]
        self.names = [name + module for name, module in zip(plain, modules)]

    def at(self, addr):
        """(function, offset in it)"""
        i = bisect.bisect_right(self.addrs, addr) - 1
        return (self.names[i], addr - self.addrs[i]) if i >= 0 else ("?", addr)


# What the plugin counts of each block.
COUNTS = ("insns", "runs", *barriers.COUNTS)
NONE = (0,) * len(COUNTS)


def by_block(symbols, lines):
    """{(function, offset): its COUNTS} of a region's block lines."""
    blocks = {}
    for line in lines:
        words = dict(w.split("=") for w in line.split()[1:])
        blocks[symbols.at(int(words["addr"], 16))] = tuple(int(words[key]) for key in COUNTS)
    return blocks


def profile(counter, symbols, drive, point):
    """Per I/O: {(function, offset): its COUNTS}; user space as one."""
    runs = []
    for ios in (counting.SHORT, counting.LONG):
        counts, _, lines = counting.counted(counter, drive, point, ios)
        user = (counts["user"], *NONE[1:])
        runs.append({**by_block(symbols, lines), ("(user space)", 0): user})
    n = counting.LONG - counting.SHORT
    short, long = runs
    return {k: tuple((b - a) / n for a, b in zip(short.get(k, NONE), long[k])) for k in long}


def by_function(blocks):
    """{function: [instructions, calls]}"""
    total = collections.defaultdict(lambda: [0, 0])
    for (name, offset), (insns, runs, *_) in blocks.items():
        total[name][0] += insns
        total[name][1] += runs if offset == 0 else 0
    return total


def barriers_of(blocks):
    """[[function, its barriers.COUNTS...]], of the functions that have any."""
    total = collections.defaultdict(lambda: [0] * len(barriers.COUNTS))
    for (name, _), (_, _, *counts) in blocks.items():
        total[name] = [a + b for a, b in zip(total[name], counts)]
    return [[name, *counts] for name, counts in sorted(total.items())
            if max(counts) >= barriers.FEW]


def options(parser):
    counting.options(parser)
    parser.add_argument("--load", type=points.one, default="16",
                        help="a number of jobs; or SET:N, the N-th point of a set of "
                        "bench/points.py")


def run(args):
    counter, drives = counting.prepare(args)
    symbols = Symbols()
    blocks = [profile(counter, symbols, d, args.load) for d in drives]
    profiles = [by_function(b) for b in blocks]
    names = sorted(set(profiles[0]) | set(profiles[1]),
                   key=lambda n: -max(p.get(n, (0, 0))[0] for p in profiles))
    rows = [[n] + [v for p in profiles for v in p.get(n, (0, 0))] for n in names]
    record.save(args.json, indent=0, load=str(args.load), drivers=[d.driver for d in drives],
                 columns=["function", "insns", "calls", "insns", "calls"], rows=rows,
                 barriers=[barriers_of(b) for b in blocks],
                 # Modules by block, to lay beside their disassembly.
                 blocks=[[*k, *v[:2]] for b in blocks for k, v in sorted(b.items())
                         if "]" in k[0]])
    print(f"{os.cpu_count()} vCPU, {args.load}: instructions and calls per I/O")
    print("".join(f"{d.driver:>20}" for d in drives) + f"{'difference':>12}  function")
    everything = ["(all)"] + [sum(r[i] for r in rows) if i % 2 else 0 for i in range(1, 5)]
    for name, a, calls_a, b, calls_b in [everything] + rows:
        if max(a, b) >= 10:
            print(f"{a:>11.0f} {calls_a:>8.2f}{b:>11.0f} {calls_b:>8.2f}{b - a:>12.0f}  {name}")
