# SPDX-License-Identifier: GPL-2.0
"""IOPS over the poll interval, the timer alone and with cooperation (the paper's figure 9), on
hiops_ram.

Runs in a guest whose clock counts instructions (ci/vm --icount).
"""

import os
import subprocess
import sys

import fio
import record

INTERVALS = (8, 16, 32, 64, 128, 256)
DISK, SWITCHES = "/dev/hiops_ram0", "/sys/block/hiops_ram0/hiops/"
LOAD = ("hiops ram_disks=1 ram_size_mb=64 ram_latency_us=20 ram_channels=16 ram_queues=2 mode=1 "
        "lazy=0")
JOBS, IOS = 128, 32768


def put(name, value):
    with open(SWITCHES + name, "w") as switch:
        switch.write(str(value))


def iops(jobs, ios):
    """IOPS of 512-byte random reads, psync."""
    job = fio.section("i", DISK, verify_state_save=0, direct=1, ioengine="psync", rw="randread",
                      bs=512, thread=True, numjobs=jobs, number_ios=ios // jobs,
                      norandommap=True, group_reporting=True)
    return fio.iops(fio.run(fio.command(job), DISK))


def options(parser):
    parser.add_argument("--json", required=True)


def run(args):
    subprocess.run(["modprobe", *LOAD.split()], check=True)
    iops(JOBS, JOBS)
    rows = []
    for coop in (0, 1):
        put("coop", coop)
        for interval in INTERVALS:
            put("poll_interval_us", interval)
            rows.append({"coop": coop, "interval_us": interval, "iops": iops(JOBS, IOS)})
            print(f"hiops: {rows[-1]}", file=sys.stderr)
    record.save(args.json, jobs=JOBS, disk=LOAD, rows=rows)
    print(f"{os.cpu_count()} vCPU, {JOBS} jobs, 512-byte reads on hiops_ram, mode poll: IOPS")
    print(f"{'interval, us':>14}" + "".join(f"{i:>9}" for i in INTERVALS))
    for coop, name in ((0, "timer alone"), (1, "with coop")):
        cells = "".join(f"{r['iops']:>9.0f}" for r in rows if r["coop"] == coop)
        print(f"{name:>14}{cells}")
