# SPDX-License-Identifier: GPL-2.0
"""memcached's extstore on drives of the timed machine, inside the guest that bench/run memcached
boots: gets, what one costs, how long it takes, and what the page cache has of it.

Rows go to the JSON, by the machine's clock; progress goes to stderr. A *side* is what memcached
keeps its values on: "memory" none, all values are in memory; "tmpfs" a file in memory, so extstore
itself; "nvme" and "hiops" the block device, "ext4" a file on nvme's, "bytes" hiops' bytes.
"""

import contextlib
import ctypes
import itertools
import mmap
import os
import socket
import subprocess
import sys
import time

import boot
import client
import models
import record
import sides
from errors import Failed
from group import Group
from stage import WORK

# Values of so many bytes: how many there are. Some 5 to 12 MB of them, and as much again of others;
# memcached has SLABS MiB for what it finds them by, and for what is not yet on the drive.
KEYS = {100: 30_000, 400: 20_000, 2000: 6_000}
THREADS = (1, 16, 64)
SIDES = ("memory", "tmpfs", "nvme", "ext4", "hiops", "bytes")
# Sides that are measured with values of one size only.
SOME, SOME_BYTES = ("ext4", "hiops"), 400
SLABS = "24"
# The drives' size as memcached is told it.
STORE = "128m"
# Gets before the page cache is limited, and again before the window; and of them all that are sets.
WARM = 3000
SETS = 1 / 30
# Bytes that memcached has of a value at least, beside it; and that it takes at a time.
ITEM = 60
SLAB = 1 << 20
# The part of the values that there is memory for, so that nine of ten gets go to the drive: the
# page cache has it, or where there is none, memcached, with the values that were set last.
CACHED = 10
OWN = ("bytes",)
# Seconds of the machine's until memcached's flusher, which has nothing to do any more, looks for
# work some 300 times a second only.
SETTLE = 5
SOCKET = f"{WORK}/memcached.sock"
# cachestat(2) on x86-64.
CACHESTAT = 451


class Memcached:
    """Debian's program; `store` is where its extstore keeps values, or None."""

    def __init__(self, group, store, threads):
        options = ["-o", f"ext_page_size=8,ext_threads={threads},ext_item_size=120"
                   f",ext_item_age=0,ext_path={store}:{STORE}"] if store else []
        command = ["memcached", "-u", "root", "-s", SOCKET, "-m", SLABS if store else "256",
                   *options]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
        self.process = subprocess.Popen(command, preexec_fn=group.join,
                                        env={**os.environ, "LD_PRELOAD": f"{WORK}/device.so"})
        self.connection = socket.socket(socket.AF_UNIX)
        client.until("memcached's answer", lambda: self.process.poll() or self.connects())
        self.answers = self.connection.makefile()

    def connects(self):
        """Whether it takes connections; its socket is there before it does."""
        try:
            self.connection.connect(SOCKET)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def keep(self):
        """What is set from now on stays in memory as long as there is some."""
        self.connection.sendall(b"extstore item_age 1000000\r\n")
        answer = self.answers.readline().strip()
        if answer != "OK":
            raise Failed(f"memcached answers {answer}")

    def stats(self, what=""):
        """{name: value} of its own counts, as text."""
        self.connection.sendall(f"stats {what}\r\n".encode())
        lines = iter(lambda: self.answers.readline().strip(), "END")
        return {name: value for _, name, value in map(str.split, lines)}

    def reserve(self, value, count):
        """Has memory at hand for so many values more, of so many bytes, by setting others until it
        has, or takes no more: it takes a MiB at a time, which the page cache would have less
        then."""
        more = itertools.count()
        while has_less(self.stats("slabs"), value, count):
            self.connection.sendall(b"".join(
                f"set more-{next(more)} 0 0 {value} noreply\r\n{'x' * value}\r\n".encode()
                for _ in range(50)))

    def end(self):
        self.connection.close()
        self.process.terminate()
        if self.process.wait():
            raise Failed(f"memcached ended with status {self.process.returncode}")


def has_less(slabs, value, count):
    """Whether its memory is for less than so many values of so many bytes, and grows; by its own
    counts."""
    sizes = {int(size): name.partition(":")[0] for name, size in slabs.items()
             if name.endswith(":chunk_size") and int(size) >= value + ITEM}
    free = int(slabs[f"{sizes[min(sizes)]}:free_chunks"]) if sizes else 0
    return free < count and int(slabs["total_malloced"]) + SLAB <= int(SLABS) << 20


def asker(value, connections, last):
    """bench/asker, which fills memcached; of the keys the `last` ones when it is told to."""
    path = client.counter("gets")
    return client.Client(["asker", SOCKET, str(KEYS[value]), str(value), str(connections), path,
                          str(last)], path)


def cache_of(path):
    """Bytes of page cache of the file or block device."""
    told, whole = (ctypes.c_uint64 * 5)(), (ctypes.c_uint64 * 2)(0, 0)
    file = os.open(path, os.O_RDONLY)
    done = ctypes.CDLL(None).syscall(CACHESTAT, file, whole, told, 0)
    os.close(file)
    if done:
        raise Failed(f"cachestat(2) of {path} fails")
    return told[0] * mmap.PAGESIZE


class Place:
    """A side's store: its path, the disk that it is on, and what the page cache has pages of."""

    def __init__(self, name, addresses):
        self.name, self.path, self.disk, self.cached = name, None, None, None
        driver = {"ext4": "nvme", "hiops": "hiops_nvme", "bytes": "hiops_nvme"}.get(name, name)
        if name in addresses:
            side = sides.Side(f"{addresses[name]}={driver}", name, {})
            self.disk = side.disks[0]
            self.path = self.cached = f"/dev/{self.disk}"
        if name == "bytes":
            sides.put(f"/sys/block/{self.disk}/hiops/bytes", "1", "1")
            self.path += "_bytes"
        elif name == "tmpfs":
            self.path = self.cached = f"{WORK}/store"
        elif name == "ext4":
            folder = f"/run/{name}"
            os.makedirs(folder)
            for command in (["mkfs.ext4", "-qF", self.path],
                            ["mount", "-o", "noatime", self.path, folder]):
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self.path = self.cached = f"{folder}/store"

    def cache(self):
        """Bytes of page cache that there are of it."""
        return cache_of(self.cached) if self.cached else 0

    def leave(self):
        """Nothing of it is in memory afterwards."""
        if self.name in ("ext4", "tmpfs"):
            os.unlink(self.path)
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3")


def fill(memcached, asks, place):
    """All values are where they belong: the bytes of those on the drive, or in memory."""
    stored = asks.filled()
    if place.path:
        client.until("memcached's flush",
                     lambda: int(memcached.stats()["extstore_objects_written"]) >= stored)
        memcached.keep()
        os.sync()
    asks.go_on()
    stored += asks.filled()
    time.sleep(SETTLE)
    return int(memcached.stats()["bytes"]) // stored


def cell(stage, place, value, threads, gets):
    """One row: values of so many bytes, as many threads and connections, so many gets."""
    group = Group("memcached")
    memcached = Memcached(group, place.path, threads)
    asks = asker(value, threads, KEYS[value] // CACHED if place.name in OWN else 0)
    values = fill(memcached, asks, place) * KEYS[value]
    filled = place.cache()
    asks.go_on()
    asks.wait(WARM)
    if place.disk and place.name not in OWN:
        memcached.reserve(value, (WARM + 2 * gets) * SETS)
        group.limit(values // CACHED)
    pace = asks.wait(WARM)
    before = memcached.stats()
    meter = stage.meter([*client.window(asks, pace * gets), "-c", f"{WORK}/gets"],
                        ("/proc/interrupts", "/proc/stat", "/proc/diskstats"))
    if meter.wait():
        raise Failed(f"bench/meter ended with status {meter.returncode}")
    after, cached = memcached.stats(), place.cache()
    told, seen = asks.end(), stage.window()
    group.write("memory.high", "max")
    memcached.end()
    place.leave()
    return row(place, value, threads, seen, told, before, after,
               {"values": values, "cache_filled": filled, "cache": cached})


def row(place, value, threads, seen, told, before, after, memory):
    """What all of that says, in the machine's units; `memory` in bytes."""
    grown = {name: int(after.get(name, 0)) - int(before.get(name, 0))
             for name in ("cmd_get", "get_extstore")}
    gets = seen.rounds
    return {"side": place.name, "value": value, "threads": threads,
            "gets": gets, "gets_s": gets * 1e9 / seen.elapsed,
            "cpu_ns": seen.for_io(0) / gets, "p50_ns": told["p50"], "p99_ns": told["p99"],
            "p999_ns": told["p999"], "elapsed_ns": seen.elapsed, "busy_ns": seen.busy,
            "from_store": grown["get_extstore"] / grown["cmd_get"],
            "reads": seen.between(lambda text: client.reads_of(place.disk, text)) / gets,
            "switches": seen.switches / gets, "interrupts": seen.all_interrupts / gets,
            **memory, "evictions": int(after["evictions"]),
            "badcrc": int(after.get("badcrc_from_extstore", 0)),
            **{name: told[name] for name in ("missed", "wrong", "sets")}}


def told_of(new):
    """A row in a line of progress, in real units."""
    return (f"{new['side']}, {new['value']} bytes, {new['threads']}: "
            f"{new['gets_s'] * models.SCALE:.0f} gets/s, CPU {new['cpu_ns'] / models.SCALE:.0f} "
            f"ns, p99 {new['p99_ns'] / models.SCALE / 1000:.0f} us, reads {new['reads']:.2f}, "
            f"page cache {new['cache'] >> 10} of {new['values'] >> 10} KiB, "
            f"missed {new['missed']}, wrong {new['wrong']}")


def options(parser):
    boot.guest_options(parser)
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--values", default=",".join(map(str, KEYS)))
    parser.add_argument("--threads", default=",".join(map(str, THREADS)))
    parser.add_argument("--gets", type=int, default=16000, help="in each window")


def run(args):
    stage, addresses = boot.prepared(args)
    places = [Place(name, addresses) for name in args.sides.split(",")]
    rows = []
    for value in map(int, args.values.split(",")):
        for threads in map(int, args.threads.split(",")):
            for place in places:
                if place.name in SOME and value != SOME_BYTES:
                    continue
                rows.append(cell(stage, place, value, threads, args.gets))
                print(f"hiops: {told_of(rows[-1])}", file=sys.stderr, flush=True)
                # As they come: what is there counts, if the machine is ended.
                record.save(args.json, rows=rows)
