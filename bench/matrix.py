# SPDX-License-Identifier: GPL-2.0
"""The timed matrix, inside the guest that bench/timed starts: each load on each side's disks.

Before that, with --yardsticks, known lengths are held against the machine (bench/yardstick.py).

Rows go to the JSON, by the machine's clock; progress goes to stderr.
"""

import sys

import account
import counting
import drives
import fio
import loads
import models
import neighbours
import record
import sides
import table
import window
import yardstick
from stage import Stage, latencies

# In the order of account.Costs.
COSTS = "register_read_ns", "register_write_ns", "interrupt_ns"
KEYS = {"p50_us": 50, "p99_us": 99, "p999_us": 99.9, "p9999_us": 99.99}


def row(stage, load, side, name):
    """One cell of the matrix: the side, by that name."""
    if load.passthru and not side.is_ours:
        for disk in side.disks:
            # Else the disk does not count it.
            sides.put(f"/sys/block/{disk}/queue/iostats_passthrough", "1", "1")
    before = side.stats()
    seen, jobs = stage.run(load, side.disks)
    after = side.stats()
    took = latencies(load, seen, jobs)
    ios = seen.sectors * loads.SECTOR / load.counted
    if load.paced:
        ios = fio.iops(jobs, "write" if load.writes else "read") * seen.elapsed / 1e9
    cell = {"load": load.name, "driver": name, "iops": ios * 1e9 / seen.elapsed,
            "mean_us": took.mean / 1000}
    for key, percent in KEYS.items():
        cell[key] = window.at(took.told, percent) / 1000
    beside = None
    if load.neighbours:
        beside = neighbours.share(seen.rounds, seen.elapsed, stage.alone_ns)
    return {**cell,
            "cpu_ns_per_io": seen.for_io(stage.alone_ns) / ios,
            "neighbour": beside,
            "interrupts": seen.between(side.interrupts) / ios,
            "switches": seen.switches / ios,
            "registers": sum(seen.registers) / ios,
            "ios": ios, "least": took.least, "throughout": took.throughout,
            "elapsed_ns": seen.elapsed, "busy_ns": seen.busy,
            "stats": per_io(before, after),
            "cdf_us": [[percent, ns / 1000] for percent, ns in took.told]}


def per_io(before, after):
    """What counts have grown by, over those completed: of the whole run, not of the window."""
    grown = {key: value - before.get(key, 0) for key, value in after.items()}
    # What is no count of I/O: the longest of something.
    grown = {key: value for key, value in grown.items() if value and not key.startswith("max_")}
    ios = grown.get("completed")
    return {key: value / ios for key, value in grown.items()} if ios else {}


def told(cell):
    """A cell in a line of progress, in real units."""
    cell = table.real_cell(cell, models.SCALE)
    return (f"{cell['driver']} {cell['iops']:.0f} IOPS, p50 {cell['p50_us']:.1f}, "
            f"p99 {cell['p99_us']:.1f} us")


def doubt(cell):
    """Why a cell is not what it should be, or nothing."""
    if not cell["throughout"]:
        return "not all jobs ran through the window"
    if cell["least"] < loads.LEAST:
        return f"a job did {cell['least']} I/Os in the window, not {loads.LEAST}"
    return ""


def tell_reading(reading):
    print(f"hiops: yardstick: {yardstick.line(reading)}", file=sys.stderr)


def rows(stage, load, pair, ways):
    """The load's cells: one of each side; of hiops' one for each of the `ways`, if any. They are
    all one to who polls on a queue of its own, which no way changes: it has the first."""
    for side in pair:
        if not (side.is_ours and ways):
            yield row(stage, load, side, side.name)
            continue
        for name, switches in list(ways.items())[:1 if load.polls else None]:
            side.set(switches)
            yield row(stage, load, side, f"{side.name} {name}")


def measure(args, switches, ways):
    """The rows."""
    counting.quiet()
    model = models.varied(models.load(args.model), args.set)
    if args.yardsticks:
        yardstick.hold(yardstick.readings(model, tell=tell_reading))
    if any(load.polls for load in loads.chosen(args.loads)):
        sides.load_polled()
    pair = sides.both(args.sides, switches, bool(model.store))
    stage = Stage(args.counts, account.Costs(*(model.guest_ns(key) for key in COSTS)))
    for side in pair:  # fio and its files are read from the share once, before anything counts
        stage.run(loads.LOADS["psync-2"], side.disks)
    alone = stage.pace()
    print(f"hiops: a neighbour alone: {stage.alone_ns:.1f} ns a round; "
          f"CPU time {alone.busy} of {alone.elapsed} ns", file=sys.stderr)
    cells = []
    for load in loads.chosen(args.loads):
        new = list(rows(stage, load, pair, ways))
        cells += new
        print(f"hiops: {load.name}: " + "; ".join(map(told, new)), file=sys.stderr)
        for cell in filter(doubt, new):
            print(f"hiops: warning: {load.name}, {cell['driver']}: {doubt(cell)}", file=sys.stderr)
    return cells


def options(parser):
    parser.add_argument("--counts", required=True, help="the plugin's out= file")
    parser.add_argument("--sides", required=True,
                        help="ADDRESS=DRIVER,...;ADDRESS=DRIVER,...: the drives of each side")
    parser.add_argument("--loads", default="", help="A,B,...; all of bench/loads.py")
    parser.add_argument("--hiops", default="", help="'mode=irq coop=0 ...': switches of its disks")
    parser.add_argument("--ways", default="",
                        help="'NAME: KEY=VALUE ...; ...': switches that hiops has by turns")
    parser.add_argument("--model", required=True, help="the device model that QEMU was told of")
    parser.add_argument("--set", default="", help="KEY=NUMBER,...: other values of the model's")
    parser.add_argument("--yardsticks", action="store_true",
                        help="hold known lengths against it first")
    parser.add_argument("--json", required=True, help="where the results go")


def run(args):
    switches = dict(word.split("=", 1) for word in args.hiops.split())
    ways = sides.ways_of(args.ways)
    rows_of_all = measure(args, switches, ways)
    record.save(args.json, hiops=switches, ways=ways, hiops_is_loaded=drives.hiops_is_loaded(),
                rows=rows_of_all)
