#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How the latencies of 512-byte random reads are distributed at depths 1, 16 and 64 (io_uring), each drive as its driver brings it.

Runs in a guest whose clock counts instructions (ci/vm --icount), or, with the disks by name, on a real machine.
"""

import json
import os
import subprocess
import sys

import counting
import drives
from drives import Failed

DEPTHS = (1, 16, 64)
PERCENTILES = ("50.000000", "99.000000", "99.900000")
IOS = 20000


def completion(drive, depth):
    """fio's completion latencies in ns: {percentile: ns}."""
    command = ["fio", "--name=l", "--verify_state_save=0", "--filename=/dev/" + drive.disk, "--direct=1", "--ioengine=io_uring", "--rw=randread", "--bs=512",
               "--readonly", "--norandommap", f"--iodepth={depth}", f"--number_ios={IOS}", "--output-format=json", "--percentile_list=50:99:99.9"]
    done = subprocess.run(command, cwd="/tmp", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"fio on {drive.disk}: {done.stderr.strip()[-300:]}")
    read = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]["read"]
    return {p: read["clat_ns"]["percentile"][p] for p in PERCENTILES}


def main():
    args = counting.arguments(__doc__).parse_args()
    try:
        found = [drives.find(*d.split("=")) for d in args.drives.split(",")]
        rows = []
        for depth in DEPTHS:
            for drive in found:
                rows.append({"driver": drive.driver, "depth": depth, **completion(drive, depth)})
    except (Failed, OSError) as why:
        print(f"hiops: error: {why}", file=sys.stderr)
        return 1
    with open(args.json, "w") as out:
        json.dump({"cpus": os.cpu_count(), "kernel": os.uname().release, "rows": rows}, out, indent=1)
    print(f"{os.cpu_count()} vCPU, io_uring, 512-byte random reads: completion latency, us")
    print(f"{'depth':>5}  {'driver':<12}{'p50':>9}{'p99':>9}{'p99.9':>9}")
    for r in rows:
        print(f"{r['depth']:>5}  {r['driver']:<12}" + "".join(f"{r[p] / 1000:>9.1f}" for p in PERCENTILES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
