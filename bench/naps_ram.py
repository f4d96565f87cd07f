# SPDX-License-Identifier: GPL-2.0
"""What precompletion is worth on hiops_ram, whose time for a command is exact: as `naps` tells it.

Runs in a guest that keeps time (ci/vm --timed), and so at a quarter of a machine's speed. fio says
what reads of 512 bytes take, and the CPU time is its thread's own: an interrupt that finds the CPU
idle is nobody's.
"""

import contextlib
import subprocess
import sys

import counting
import fio
import naps
import naps_classes
import record
import sides
from models import SCALE

DEVICES_US = 40, 80, 352
DISK, SWITCHES = "/dev/hiops_ram0", "/sys/block/hiops_ram0/hiops/"
LOAD = "modprobe hiops ram_disks=1 ram_size_mb=64 ram_queues=2 poll_queues=1"
READS = 3000
# The ways of which naps_classes tells.
TOLD_OF_CLASSES = naps.ASLEEP, "naps"


def put(switches):
    """Sets the disk's."""
    for name, value in switches.items():
        sides.put(SWITCHES + name, value, value)


def row(load, driver, reads=READS, **options):
    """A cell, as the timed matrix has them."""
    # So many, however large: fio ends else when it has read as much as there is.
    section = fio.section("n", DISK, direct=1, rw="randread", number_ios=reads, io_size="4g",
                          norandommap=True, clat_percentiles=0, lat_percentiles=1,
                          percentile_list="99", **options)
    job, = fio.run(fio.command(section), f"{load} {driver}")
    took = job["read"]["lat_ns"]
    busy = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["read"]["runtime"] * 1e6
    cell = {"load": load, "driver": driver, "mean_us": took["mean"] / 1000,
            "p99_us": fio.percentiles(job["read"], [99], "lat_ns")[0] / 1000,
            "cpu_ns_per_io": busy / job["read"]["total_ios"],
            "switches": job["ctx"] / job["read"]["total_ios"], "neighbour": None}
    print(f"hiops: {cell}", file=sys.stderr)
    return cell


@contextlib.contextmanager
def disk(**parameters):
    """There is one, with these of the module's parameters."""
    words = (f"{key}={value}" for key, value in parameters.items())
    subprocess.run([*LOAD.split(), *words], check=True)
    yield
    subprocess.run(["rmmod", "hiops"], check=True)


def counts():
    """hiops' of the disk."""
    with open(SWITCHES + "stats") as text:
        return {key: int(value) for key, value in map(str.split, text)}


def classes(ways):
    """The rows of what the forecast tells apart."""
    rows = []
    for mix in naps_classes.MIXES:
        for way in TOLD_OF_CLASSES:
            with disk(**mix.device):
                put(ways[way])
                options = {**mix.reads, "ioengine": "psync"}
                row("learning", f"{mix.name}, {way}", naps_classes.LEARNING, **options)
                sides.put(SWITCHES + "stats", "reset", "naps")
                cell = row("psync-1", f"{mix.name}, {way}", naps_classes.READS, **options)
                rows.append(naps_classes.row(mix, way, cell, counts(), SCALE))
    return rows


def result(device_us, ways):
    """All ways to wait for a device that takes so long."""
    with disk(ram_latency_us=device_us * SCALE):
        return {"latency_ns": device_us * 1000, "scale": SCALE, "rows": waits(ways)}


def waits(ways):
    """The cells of all ways to wait for the disk."""
    rows = []
    for way, switches in ways.items():
        put(switches)
        rows.append(row("psync-1", f"hiops_ram {way}", bs=512, ioengine="psync"))
    put(ways[naps.ASLEEP])
    rows.append(row(naps.POLLED, "hiops_ram", bs=512, ioengine="io_uring", hipri=1))
    return rows


def options(parser):
    parser.add_argument("--ways", required=True,
                        help="'asleep: KEY=VALUE ...; NAME: ...': switches of the disk by turns")
    parser.add_argument("--json", required=True,
                        help="where results go: the beginning of their names")


def run(args):
    counting.quiet()
    ways = sides.ways_of(args.ways)
    results = {us: result(us, ways) for us in DEVICES_US}
    for us, told in results.items():
        record.save(f"{args.json}-{us}.json", **told)
    told = classes(ways)
    record.save(f"{args.json}-classes.json", rows=told)
    print(naps.table_of(results.values()), naps_classes.table_of(told), sep="\n", end="")
