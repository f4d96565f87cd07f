# SPDX-License-Identifier: GPL-2.0
"""How long hiops says that reads take (`latency_read`), beside what fio measures at the same time,
inside the guest that bench/run histograms boots.
"""

import os

import counting
import fio
import loads
import record
import sides
from errors import Failed

PERCENTS = (50, 90, 99, 99.9)


def histogram(text):
    """[(ns below which, reads)] of `latency_read`."""
    lines = (line.split() for line in text.splitlines()[1:])
    return [(float(end), sum(map(int, counts))) for end, *counts in lines if end != "sum_ns"]


def below(buckets, percent):
    """The end of the bucket that has the percentile, in ns."""
    left = sum(count for _, count in buckets) * percent / 100
    for end, count in buckets:
        left -= count
        if left <= 0:
            return end
    raise Failed("the histogram is empty")


def command(load, disk):
    """The load on that disk, whole."""
    return fio.command(fio.section(
        "load", f"/dev/{disk}", thread=True, group_reporting=True, direct=1, bs=load.block,
        rw=load.rw, ioengine=load.engine, numjobs=load.jobs, iodepth=load.depth,
        norandommap=True, number_ios=load.ios, lat_percentiles=1, clat_percentiles=0,
        percentile_list=fio.percent_list(PERCENTS)))


def compared(load, disk):
    """A row for each percentile."""
    switches = f"/sys/block/{disk}/hiops"
    sides.put(f"{switches}/latency", "1", "1")
    with open(f"{switches}/latency_read", "w", encoding="ascii") as file:
        file.write("reset")
    told = fio.run(command(load, disk), load.name)[0]["read"]
    with open(f"{switches}/latency_read", encoding="ascii") as file:
        buckets = histogram(file.read())
    counted = sum(count for _, count in buckets)
    if counted != told["total_ios"]:
        raise Failed(f"{load.name}: {counted} in the histogram, of {told['total_ios']} reads")
    by_fio = fio.percentiles(told, PERCENTS, "lat_ns")
    return [{"load": load.name, "percent": percent, "fio_ns": ns,
             "below_ns": below(buckets, percent)} for percent, ns in zip(PERCENTS, by_fio)]


def options(parser):
    parser.add_argument("--side", required=True, help="ADDRESS=DRIVER: the drive")
    parser.add_argument("--loads", required=True)
    parser.add_argument("--json", required=True, help="where the results go")


def run(args):
    counting.quiet()
    disk = sides.Side(args.side, "hiops", {}).disks[0]
    os.chdir("/dev/shm")
    record.save(args.json, rows=[row for load in loads.chosen(args.loads)
                                 for row in compared(load, disk)])
