# SPDX-License-Identifier: GPL-2.0
"""A key-value store of values of 400 bytes (bench/kvstore.c) on drives of the timed machine, inside
the guest that bench/run kv-bytes boots: operations, what one costs, how long a get takes.

Rows go to the JSON, by the machine's clock; progress goes to stderr. A *side* is what the store
keeps its log on: "nvme" and "hiops" the block device, by O_DIRECT and padded, "bytes" hiops' bytes,
packed, "bytes-padded" those with records as on a block device.
"""

import sys

import boot
import client
import models
import record
import sides
from errors import Failed
from stage import flush

# {side: (driver, layout)}
SIDES = {"nvme": ("nvme", "padded"), "hiops": ("hiops_nvme", "padded"),
         "bytes-padded": ("hiops_nvme", "padded"), "bytes": ("hiops_nvme", "packed")}
# Values: 21 MB of them packed, and a whole number of the store's buffers.
KEYS = 51_200
THREADS = (1, 16, 64)
# Gets for each set; 0: nothing is set.
MIXES = (0, 30)
# Gets before the window: at first all sleep, and the strategy has to learn the load.
WARM = 12000
# And some more, by whose pace the window's length is told.
PACE = 4000
COUNTERS = "gets", "sets"


class Place:
    """A side's drive, with a log of all keys; its driver is bound for each cell anew, so that none
    has learnt anything of the fill, or of another load."""

    def __init__(self, name, address, switches):
        self.name, self.address, self.switches = name, address, switches
        self.driver, self.layout = SIDES[name]
        self.bind()
        counters = [client.counter(name) for name in COUNTERS]
        fill = self.store(0, 0, counters, 0)
        fill.filled()
        fill.go_on()
        fill.end()

    def bind(self):
        """Its disk, and the path that the store is given."""
        self.side = sides.Side(f"{self.address}={self.driver}", self.name, self.switches)
        self.disk = self.side.disks[0]
        self.path = f"/dev/{self.disk}"
        if self.name.startswith("bytes"):
            sides.put(f"/sys/block/{self.disk}/hiops/bytes", "1", "1")
            self.path += "_bytes"

    def bind_anew(self):
        flush(self.disk)
        with open(f"/sys/bus/pci/devices/{self.address}/driver/unbind", "w") as unbind:
            unbind.write(self.address)
        self.bind()

    def store(self, threads, mix, counters, seed):
        """bench/kvstore with these threads, `mix` gets for each set; 0 threads: it fills."""
        return client.Client(["kvstore", self.path, self.layout, str(KEYS), str(threads),
                              str(mix + 1 if mix else 0), *counters, str(seed)], counters[0])


def cell(stage, place, threads, mix, seed, args):
    """One row: so many threads, `mix` gets for each set; the window as `args` tell."""
    place.bind_anew()
    counters = [client.counter(name) for name in COUNTERS]
    store = place.store(threads, mix, counters, seed)
    store.filled()
    store.go_on()
    store.wait(args.warm)
    pace = store.wait(PACE)
    before = place.side.stats()
    options = [word for path in counters for word in ("-c", path)]
    meter = stage.meter([*client.window(store, pace * args.gets), *options],
                        ("/proc/interrupts", "/proc/stat", "/proc/diskstats"))
    if meter.wait():
        raise Failed(f"bench/meter ended with status {meter.returncode}")
    after, seen = place.side.stats(), stage.window()
    # It ends with another status if a value was wrong.
    told = store.end()
    return row(place, threads, mix, seen, told, grown(before, after, seen.rounds))


def grown(before, after, operations):
    """What hiops' counts grew by, for each operation, and a little more: they are read before and
    after the window."""
    return {key: (after[key] - before[key]) / operations for key in after
            if after[key] != before[key]}


def row(place, threads, mix, seen, told, stats):
    """What all of that says, in the machine's units."""
    operations = seen.rounds
    gets = seen.end.rounds[0] - seen.begin.rounds[0]
    return {"side": place.name, "threads": threads, "mix": mix, "operations": operations,
            "operations_s": operations * 1e9 / seen.elapsed, "gets": gets,
            "cpu_ns": seen.for_io(0) / operations, "p50_ns": told["p50"], "p99_ns": told["p99"],
            "p999_ns": told["p999"], "elapsed_ns": seen.elapsed, "busy_ns": seen.busy,
            "space": told["space"] / told["records"],
            "reads": seen.between(lambda text: client.reads_of(place.disk, text)) / gets,
            "from_memory": told["memory"] / told["gets"],
            "switches": seen.switches / operations,
            "interrupts": seen.all_interrupts / operations,
            **{name: told[name] for name in ("records", "wrong")}, "stats": stats}


def told_of(new):
    """A row in a line of progress, in real units."""
    return (f"{new['side']}, {new['threads']}, {new['mix']}: "
            f"{new['operations_s'] * models.SCALE:.0f} operations/s, "
            f"CPU {new['cpu_ns'] / models.SCALE:.0f} ns, "
            f"p99 {new['p99_ns'] / models.SCALE / 1000:.0f} us, reads {new['reads']:.3f}, "
            f"switches {new['switches']:.2f}, space {new['space']:.0f}, wrong {new['wrong']}, "
            f"by waiters {new['stats'].get('completed_coop', 0):.2f}")


def options(parser):
    boot.guest_options(parser)
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--mixes", default=",".join(map(str, MIXES)))
    parser.add_argument("--threads", default=",".join(map(str, THREADS)))
    parser.add_argument("--gets", type=int, default=48000, help="in each window")
    parser.add_argument("--warm", type=int, default=WARM, help="gets before it")
    parser.add_argument("--hiops", default="", help="'KEY=VALUE ...': switches of its disks")


def run(args):
    stage, addresses = boot.prepared(args)
    switches = dict(word.split("=", 1) for word in args.hiops.split())
    places = [Place(name, addresses[name], switches) for name in args.sides.split(",")]
    cells = [(place, threads, mix) for mix in map(int, args.mixes.split(","))
             for threads in map(int, args.threads.split(",")) for place in places]
    rows = []
    for seed, (place, threads, mix) in enumerate(cells, 1):
        rows.append(cell(stage, place, threads, mix, seed, args))
        print(f"hiops: {told_of(rows[-1])}", file=sys.stderr, flush=True)
        # As they come: what is there counts, if the machine is ended.
        record.save(args.json, hiops=switches, rows=rows)
