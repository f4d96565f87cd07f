# SPDX-License-Identifier: GPL-2.0
"""Key-value reads (the paper's figure 10): RocksDB's db_bench with direct reads on ext4, by 8 to
256 threads; instructions per read, counted exactly."""

import os
import re
import statistics
import subprocess
import sys

import counting
import record
from errors import Failed

THREADS = (8, 32, 64, 128, 256)
KEYS = 200_000
# Reads in all of the two runs: opening and closing are in both.
SHORT, LONG = 8192, 24576
COMMON = ("db_bench", "--compression_type=none", f"--num={KEYS}", "--value_size=400",
          "--key_size=16", "--open_files=-1", "--bloom_bits=10")
READ = ("--benchmarks=readrandom", "--use_existing_db=true", "--readonly=true",
        "--use_direct_reads=true", "--cache_size=1048576", "--seed=7")


def mounted(drive):
    """A database on a new ext4 on the drive: its folder."""
    where = f"/run/kv-{drive.disk}"
    os.makedirs(where)
    for command in (["mkfs.ext4", "-qF", "/dev/" + drive.disk],
                    ["mount", "-o", "noatime", "/dev/" + drive.disk, where],
                    [*COMMON, "--benchmarks=fillseq,compact", "--disable_wal=true",
                     f"--db={where}/db", "--seed=1"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {done.stdout.strip()[-300:]}")
    return where


def reads(counter, where, threads, count):
    """(instructions, context switches, operations a second) of `count` random reads."""
    command = " ".join([*COMMON, *READ, f"--threads={threads}", f"--reads={count // threads}",
                        f"--db={where}/db"])
    marked = f'"$MARK" start "$REGION"; {command}; "$MARK" stop "$REGION"'
    switches = counting.proc_value("/proc/stat", "ctxt")
    out, words, _ = counter.run(["sh", "-c", marked], {})
    switches = counting.proc_value("/proc/stat", "ctxt") - switches
    # Before it stands the limit, "Read rate: 0 ops/second".
    rate = re.search(r"micros/op (\d+) ops/sec", out)
    if not rate:
        raise Failed(f"db_bench told no rate: {out.strip()[-300:]}")
    return int(words["kernel"]) + int(words["user"]), switches, int(rate[1])


def one(counter, where, threads):
    """Per read: instructions and context switches; and the rate."""
    short, long = (reads(counter, where, threads, count) for count in (SHORT, LONG))
    return {"instructions": (long[0] - short[0]) / (LONG - SHORT),
            "switches": (long[1] - short[1]) / (LONG - SHORT), "rate": long[2]}


def options(parser):
    counting.options(parser)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default=",".join(map(str, THREADS)))


def run(args):
    counter, drives = counting.prepare(args)
    places = [mounted(d) for d in drives]
    rows = []
    for threads in map(int, args.threads.split(",")):
        rounds = []
        for n in range(args.rounds):
            order = (0, 1) if n % 2 == 0 else (1, 0)
            done = {i: one(counter, places[i], threads) for i in order}
            rounds.append([done[0], done[1]])
            print(f"hiops: {threads} threads: {rounds[-1]}", file=sys.stderr)
        median = [{k: statistics.median(r[i][k] for r in rounds) for k in rounds[0][i]}
                  for i in (0, 1)]
        ratios = [r[1]["instructions"] / r[0]["instructions"] for r in rounds]
        rows.append({"threads": threads, "drivers": [d.driver for d in drives],
                     "per_read": median, "ratio": statistics.median(ratios)})
    record.save(args.json, rows=rows)
    print(f"{os.cpu_count()} vCPU, db_bench readrandom, direct reads: per read, "
          f"median of {args.rounds}")
    print(f"{'threads':>7}  {'driver':<12}{'instructions':>13}{'switches':>10}{'reads/s':>9}"
          f"{'ratio':>8}")
    for r in rows:
        for i, (driver, c) in enumerate(zip(r["drivers"], r["per_read"])):
            print(f"{r['threads'] if i == 0 else '':>7}  {driver:<12}{c['instructions']:>13.0f}"
                  f"{c['switches']:>10.2f}{c['rate']:>9.0f}"
                  + (f"{r['ratio']:>8.3f}" if i else ""))
