# SPDX-License-Identifier: GPL-2.0
"""What precompletion is worth on hiops_ram, whose time for a command is exact: as `naps` tells it.

Runs in a guest that keeps time (ci/vm --timed), and so at a quarter of a machine's speed. fio says
what reads of 512 bytes take, and the CPU time is its thread's own: an interrupt that finds the CPU
idle is nobody's.
"""

import subprocess
import sys

import fio
import naps
import record
import sides
from models import SCALE

DEVICES_US = 40, 80, 352
DISK, SWITCHES = "/dev/hiops_ram0", "/sys/block/hiops_ram0/hiops/"
LOAD = "modprobe hiops ram_disks=1 ram_size_mb=8 ram_queues=2 poll_queues=1"
READS = 3000


def put(switches):
    """Sets the disk's."""
    for name, value in switches.items():
        sides.put(SWITCHES + name, value, value)


def row(load, driver, **options):
    """A cell, as the timed matrix has them."""
    section = fio.section("n", DISK, direct=1, rw="randread", bs=512, number_ios=READS,
                          norandommap=True, clat_percentiles=0, lat_percentiles=1,
                          percentile_list="99", **options)
    job, = fio.run(fio.command(section), f"{load} {driver}")
    took = job["read"]["lat_ns"]
    busy = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["read"]["runtime"] * 1e6
    cell = {"load": load, "driver": driver, "mean_us": took["mean"] / 1000,
            "p99_us": fio.percentiles(job["read"], [99], "lat_ns")[0] / 1000,
            "cpu_ns_per_io": busy / READS, "neighbour": None}
    print(f"hiops: {cell}", file=sys.stderr)
    return cell


def result(device_us, ways):
    """All ways to wait for a device that takes so long."""
    subprocess.run([*LOAD.split(), f"ram_latency_us={device_us * SCALE}"], check=True)
    rows = []
    for way, switches in ways.items():
        put(switches)
        rows.append(row("psync-1", f"hiops_ram {way}", ioengine="psync"))
    put(ways[naps.ASLEEP])
    rows.append(row(naps.POLLED, "hiops_ram", ioengine="io_uring", hipri=1))
    subprocess.run(["rmmod", "hiops"], check=True)
    return {"latency_ns": device_us * 1000, "scale": SCALE, "rows": rows}


def options(parser):
    parser.add_argument("--ways", required=True,
                        help="'asleep: KEY=VALUE ...; NAME: ...': switches of the disk by turns")
    parser.add_argument("--json", required=True,
                        help="where results go: the beginning of their names")


def run(args):
    ways = sides.ways_of(args.ways)
    results = {us: result(us, ways) for us in DEVICES_US}
    for us, told in results.items():
        record.save(f"{args.json}-{us}.json", **told)
    print(naps.table_of(results.values()), end="")
