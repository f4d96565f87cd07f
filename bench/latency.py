# SPDX-License-Identifier: GPL-2.0
"""How the latencies of 512-byte random reads are distributed at depths 1, 16 and 64 (io_uring),
each drive as its driver brings it.

Runs in a guest whose clock counts instructions (ci/vm --icount), or, with the disks by name, on a
real machine.
"""

import os

import counting
import drives
import fio
import record

DEPTHS = (1, 16, 64)
PERCENTS = (50, 99, 99.9)
# What they are called in the JSON.
KEYS = [f"{percent:.6f}" for percent in PERCENTS]
IOS = 20000


def completion(drive, depth):
    """fio's completion latencies: {percent: ns}."""
    job = fio.section("l", "/dev/" + drive.disk, verify_state_save=0, direct=1,
                      ioengine="io_uring", rw="randread", bs=512, readonly=True, norandommap=True,
                      iodepth=depth, number_ios=IOS, percentile_list=fio.percent_list(PERCENTS))
    read = fio.run(fio.command(job), drive.disk)[0]["read"]
    return dict(zip(KEYS, fio.percentiles(read, PERCENTS)))


def options(parser):
    counting.options(parser)


def run(args):
    found = [drives.find(*d.split("=")) for d in args.drives.split(",")]
    rows = [{"driver": drive.driver, "depth": depth, **completion(drive, depth)}
            for depth in DEPTHS for drive in found]
    record.save(args.json, rows=rows)
    print(f"{os.cpu_count()} vCPU, io_uring, 512-byte random reads: completion latency, us")
    print(f"{'depth':>5}  {'driver':<12}{'p50':>9}{'p99':>9}{'p99.9':>9}")
    for r in rows:
        print(f"{r['depth']:>5}  {r['driver']:<12}" + "".join(f"{r[p] / 1000:>9.1f}" for p in KEYS))
