# SPDX-License-Identifier: GPL-2.0
"""The loads of the other jobs on a real disk, in real time: IOPS and latencies. It only reads,
unless it is told --write; then the disk's content is lost."""

import os

import fio
import record
from errors import Failed

# (name, fio's options)
LOADS = [(f"psync, {jobs} jobs, {bs} B", dict(ioengine="psync", numjobs=jobs, bs=bs))
         for jobs in (1, 16, 64, 128) for bs in (512, 4096, 32768)]
LOADS += [(f"io_uring, depth {depth}, 512 B", dict(ioengine="io_uring", iodepth=depth, bs=512))
          for depth in (1, 16, 64, 128)]
PERCENTS = (50, 99, 99.9)


def driver(disk):
    """Who serves it."""
    path = os.path.realpath(f"/sys/block/{disk}")
    while path != "/":
        path = os.path.dirname(path)
        if os.path.islink(path + "/driver"):
            return os.path.basename(os.readlink(path + "/driver"))
    return "?"


def options(parser):
    parser.add_argument("disk", help="/dev/NAME, a whole disk")
    parser.add_argument("--json", required=True)
    parser.add_argument("--seconds", type=int, default=10, help="for each load")
    parser.add_argument("--write", action="store_true",
                        help="random writes instead: all data on the disk is lost")


def claim(path, write):
    """Its name, when it is a whole disk that can be had: one that somebody uses can't, to write."""
    disk = os.path.basename(os.path.realpath(path))
    if not os.path.isdir(f"/sys/block/{disk}"):
        raise Failed(f"{path} is no whole disk; lsblk shows which there are")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_EXCL if write else os.O_RDONLY))
    except OSError as why:
        raise Failed(f"{path}: {why.strerror}; is it mounted, or are you not root?") from why
    return disk


def measured(args, load):
    """(IOPS, the latencies in us at PERCENTS) of a load."""
    job = fio.section("d", args.disk, direct=1, norandommap=True, group_reporting=True, thread=True,
                      verify_state_save=0, time_based=True, runtime=args.seconds,
                      percentile_list=fio.percent_list(PERCENTS), **load,
                      rw="randwrite" if args.write else "randread", readonly=not args.write)
    way = fio.run(fio.command(job), args.disk)[0]["write" if args.write else "read"]
    return way["iops"], [ns / 1000 for ns in fio.percentiles(way, PERCENTS)]


def run(args):
    disk = claim(args.disk, args.write)
    with open(f"/sys/block/{disk}/queue/logical_block_size") as text:
        smallest = int(text.read())
    rows = []
    what = "random writes" if args.write else "random reads"
    print(f"{args.disk}, served by {driver(disk)}, {what}, {args.seconds} s each")
    print(f"{'load':<32}{'IOPS':>10}{'p50, us':>10}{'p99, us':>10}{'p99.9, us':>10}")
    for name, load in LOADS:
        if load["bs"] < smallest:
            continue
        iops, latency = measured(args, load)
        rows.append({"load": name, "iops": iops, "p50_us": latency[0], "p99_us": latency[1],
                     "p999_us": latency[2]})
        print(f"{name:<32}{iops:>10.0f}" + "".join(f"{v:>10.1f}" for v in latency), flush=True)
    record.save(args.json, disk=disk, driver=driver(disk), write=args.write, rows=rows)
