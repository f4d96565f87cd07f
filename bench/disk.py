#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The loads of the other jobs on a real disk, in real time: IOPS and latencies. It only reads, unless it is told --write; then the disk's content is lost."""

import argparse
import json
import os
import subprocess
import sys

# (name, fio's options)
LOADS = [(f"psync, {jobs} jobs, {bs} B", ["--ioengine=psync", f"--numjobs={jobs}", f"--bs={bs}"]) for jobs in (1, 16, 64, 128) for bs in (512, 4096, 32768)]
LOADS += [(f"io_uring, depth {depth}, 512 B", ["--ioengine=io_uring", f"--iodepth={depth}", "--bs=512"]) for depth in (1, 16, 64, 128)]


def driver(disk):
    """Who serves it."""
    path = os.path.realpath(f"/sys/block/{disk}")
    while path != "/":
        path = os.path.dirname(path)
        if os.path.islink(path + "/driver"):
            return os.path.basename(os.readlink(path + "/driver"))
    return "?"


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("disk", help="/dev/NAME, a whole disk")
    args.add_argument("--json", required=True)
    args.add_argument("--seconds", type=int, default=10, help="for each load")
    args.add_argument("--write", action="store_true", help="random writes instead: all data on the disk is lost")
    args = args.parse_args()
    disk = os.path.basename(os.path.realpath(args.disk))
    if not os.path.isdir(f"/sys/block/{disk}"):
        print(f"hiops: error: {args.disk} is no whole disk; lsblk shows which there are", file=sys.stderr)
        return 1
    try:
        # A disk that somebody uses can't be had so.
        os.close(os.open(args.disk, (os.O_RDWR if args.write else os.O_RDONLY) | (os.O_EXCL if args.write else 0)))
    except OSError as why:
        print(f"hiops: error: {args.disk}: {why.strerror}; is it mounted, or are you not root?", file=sys.stderr)
        return 1
    with open(f"/sys/block/{disk}/queue/logical_block_size") as text:
        smallest = int(text.read())
    rows = []
    print(f"{args.disk}, served by {driver(disk)}, {'random writes' if args.write else 'random reads'}, {args.seconds} s each")
    print(f"{'load':<32}{'IOPS':>10}{'p50, us':>10}{'p99, us':>10}{'p99.9, us':>10}")
    for name, options in LOADS:
        if f"--bs={smallest}" != options[-1] and int(options[-1].split("=")[1]) < smallest:
            continue
        command = ["fio", "--name=d", "--filename=" + args.disk, "--direct=1", "--norandommap", "--group_reporting", "--thread", "--verify_state_save=0",
                   "--time_based", f"--runtime={args.seconds}", "--output-format=json", "--percentile_list=50:99:99.9", *options]
        command += ["--rw=randwrite"] if args.write else ["--rw=randread", "--readonly"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            print(f"hiops: error: fio: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return 1
        result = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]["write" if args.write else "read"]
        latency = [v / 1000 for _, v in sorted(result["clat_ns"]["percentile"].items(), key=lambda p: float(p[0]))]
        rows.append({"load": name, "iops": result["iops"], "p50_us": latency[0], "p99_us": latency[1], "p999_us": latency[2]})
        print(f"{name:<32}{result['iops']:>10.0f}" + "".join(f"{v:>10.1f}" for v in latency), flush=True)
    with open(args.json, "w") as out:
        json.dump({"disk": disk, "driver": driver(disk), "kernel": os.uname().release, "write": args.write, "rows": rows}, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
