# SPDX-License-Identifier: GPL-2.0
"""What becomes of naps when what a drive takes changes at run time.

Runs in a guest that keeps time (ci/vm --timed), on one NVMe drive with two namespaces that take
different times, as its queues, and so what they foretell, are for both: who reads the one and then
the other has a drive whose time jumps. A table in real time.
"""

import mmap
import os
import sys
import time

import counting
import drives
import record
import sides
import table
from models import SCALE

# Microseconds of the namespaces, in their order: as bench/run makes them.
DEVICES_US = 80, 300
# Reads before a jump, and after it; what was foretold is to be right again after the first so many.
LEARNING, READS, SETTLED = 1000, 1000, 100
BYTES = 512
# Who waits so much longer than the drive takes waited for what it took before.
LONG_US = 16
PART = "mean above it", f"by more than {LONG_US} µs"
HEADER = ["from, µs", "to, µs", "reader", f"hits, first {SETTLED}", *PART, "hits, then", *PART]


class Namespace:
    """One of the drive's disks."""

    def __init__(self, disk, device_us):
        self.switches = f"/sys/block/{disk}/hiops/"
        self.device_us = device_us
        self.fd = os.open("/dev/" + disk, os.O_RDONLY | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, BYTES)

    def put(self, switches):
        for name, value in switches.items():
            sides.put(self.switches + name, value, value)

    def hits(self):
        """Naps so far after which the read was found."""
        with open(self.switches + "stats") as text:
            return next(int(line.split()[1]) for line in text if line.startswith("naps_hit "))

    def read(self):
        """(nanoseconds by this machine's clock, whether a nap found it)"""
        before = self.hits()
        begin = time.monotonic_ns()
        os.preadv(self.fd, [self.buffer], 0)
        took = time.monotonic_ns() - begin
        return took, self.hits() > before


def told(end, reads):
    """Hits and the mean above what the device takes, of each read, and the number of long waits."""
    above = [took / SCALE / 1000 - end.device_us for took, _ in reads]
    return {"hits": sum(hit for _, hit in reads) / len(reads), "mean_us": sum(above) / len(above),
            "long": sum(us > LONG_US for us in above)}


def row(way, begin, end, reads):
    """One of the table, of what each of the `reads` of `end` took and whether a nap found it."""
    return {"from_us": begin.device_us, "to_us": end.device_us, "way": way,
            "first": told(end, reads[:SETTLED]), "then": told(end, reads[SETTLED:])}


def jump(way, begin, end):
    """The row of a drive that takes at once what `end` takes."""
    for _ in range(LEARNING):
        begin.read()
    found = row(way, begin, end, [end.read() for _ in range(READS)])
    print(f"hiops: {found}", file=sys.stderr)
    return found


def table_of(rows):
    """All of them."""
    def part(of):
        return [f"{of['hits']:.2f}", f"{of['mean_us']:.1f}", str(of["long"])]

    def line(one):
        return [str(one["from_us"]), str(one["to_us"]), one["way"], *part(one["first"]),
                *part(one["then"])]

    return table.markdown(HEADER, map(line, rows))


def options(parser):
    parser.add_argument("--drive", required=True, help="ADDRESS=DRIVER")
    parser.add_argument("--ways", required=True,
                        help="'NAME: KEY=VALUE ...; ...': switches of the disks by turns")
    parser.add_argument("--json", required=True, help="where the results go")


def run(args):
    counting.quiet()
    drive = drives.find(*args.drive.split("="))
    spaces = [Namespace(disk, us) for disk, us in zip(drive.disks, DEVICES_US, strict=True)]
    rows = []
    for way, switches in sides.ways_of(args.ways).items():
        for space in spaces:
            space.put(switches)
        rows += [jump(way, *spaces), jump(way, *reversed(spaces))]
    record.save(args.json, rows=rows)
    print(table_of(rows), end="")
