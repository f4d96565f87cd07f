# SPDX-License-Identifier: GPL-2.0
"""Is the timed machine right? Known lengths, measured in the guest before anything else is, and
known data.

On the host, arguments() gives QEMU what the yardsticks are held against: drives of their own, in
one slot. In the guest, readings() measures with the in-tree drivers, gives the drives back to no
driver and returns a Reading for each yardstick; hold() fails unless all are right.
"""

import collections
import fcntl
import mmap
import os
import random
import shutil
import struct
import subprocess
import tempfile
import time

import counting
import drives
import fio
import models
from drives import HERE
from errors import Failed
from neighbours import Neighbours

SLOT = 0x18
# The drives: two equal ones of the model for each driver, and four for reference, without spread or
# tail: one with the model's latency, one with twice that, one that keeps data, one behind a link.
FUNCTIONS = {"nvme": 0, "nvme twin": 1, "reference": 2, "reference twice": 3, "ahci": 4,
             "ahci twin": 5, "reference stored": 6, "reference linked": 7}
# A device that answers sooner is not waited for: the path behind it would be another one.
LEAST_NS = 10_000
# Registers that can be read, or written with 0, without an effect: (resource, version, write-1).
REGISTERS = {"nvme": (0, 0x08, 0x0c), "ahci": (5, 0x10, 0x08)}
BLOCK = 4096
# The link, by the machine's clock: 20,480 ns a block.
LINK_MB_S = 200
# ioctl() of a disk, <linux/fs.h>: each takes where a range begins and its bytes.
BLKDISCARD, BLKZEROOUT = 0x1277, 0x127f
# Runs of fio for the pairs: (name, its options). 200 ms each at least: fio's clock has whole ms.
LOADS = (("psync 1", dict(ioengine="psync", number_ios=4000)),
         ("psync 16", dict(ioengine="psync", numjobs=16, thread=True, number_ios=1000)),
         ("io_uring 32", dict(ioengine="io_uring", iodepth=32, number_ios=16000)))

Reading = collections.namedtuple("Reading", "name measured wanted within unit")


def right(reading):
    """Whether what was measured is what was wanted, within so much (a part of it; or a unit of
    the least that counts, where nothing was wanted)."""
    slack = max(reading.wanted * reading.within, 20 if reading.unit == "ns" else 0)
    return abs(reading.measured - reading.wanted) <= slack


def line(reading):
    """One reading for people."""
    off = (f"{100 * (reading.measured / reading.wanted - 1):+.2f} %" if reading.wanted else "")
    return (f"{'ok ' if right(reading) else 'OFF'} {reading.name:<44} {reading.measured:>12,.0f} "
            f"{reading.unit:<6} wanted {reading.wanted:>10,.0f} {off}")


def hold(readings):
    """Fails unless all `readings` are right."""
    off = [r for r in readings if not right(r)]
    if off:
        raise Failed("the timed machine is not right: " + "; ".join(
            f"{r.name}: {r.measured:,.0f} {r.unit} instead of {r.wanted:,.0f}" for r in off))


def plain(model, times, **more):
    """The model's drive without spread, tail, link and store, with small blocks and no bit buckets,
    `times` as long, with `more`."""
    ns = times * reference_ns(model) // models.SCALE
    values = dict(latency_ns=ns, spread_percent=0, tail_permille=0, tail_ns=0, link_mb_s=0, store=0,
                  block_bytes=512, bit_buckets=0)
    return model.changed(**values | more)


def reference_ns(model):
    """What a read from the reference takes by the guest's clock."""
    return models.SCALE * max(model.latency_ns, LEAST_NS)


def arguments(model):
    """QEMU's arguments for the drives of FUNCTIONS."""
    args = []
    media = {"reference": plain(model, 1), "reference twice": plain(model, 2),
             "reference stored": plain(model, 1, store=1),
             "reference linked": plain(model, 1, link_mb_s=models.SCALE * LINK_MB_S, channels=0)}
    for name, function in FUNCTIONS.items():
        at = f"addr={SLOT:x}.{function},multifunction=on"
        args += ["-drive", media.get(name, model).drive(f"y{function}")]
        if name.startswith("ahci"):
            args += ["-device", f"ich9-ahci,id=yh{function},{at}", "-device",
                     f"ide-hd,serial=y{function},drive=y{function},bus=yh{function}.0"]
        else:
            args += ["-device", f"nvme,serial=y{function},drive=y{function},"
                                f"{plain(model, 1).nvme()},{at}"]
    return args


def address(name):
    return f"0000:00:{SLOT:x}.{FUNCTIONS[name]}"


def release(name):
    """Takes the function from whatever driver has it."""
    bind = os.path.join(drives.REPO, "tools", "hiops-bind")
    done = subprocess.run([bind, address(name), "none"], stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"{name}: {done.stderr.strip()}")


def disk(name, driver):
    """The disk of the function, bound to `driver`, with the scheduler `none`."""
    found = drives.Drive(address(name), driver).disk
    path = f"/sys/block/{found}/queue/scheduler"
    with open(path, "w") as knob:
        knob.write("none")
    with open(path) as knob:
        if "[none]" not in knob.read():
            raise Failed(f"{path} does not take none")
    return found


def accesses(view, at, write, times):
    """ns that so many accesses of the word `at` take."""
    if write:
        start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        for _ in range(times):
            view[at] = 0
    else:
        start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        for _ in range(times):
            view[at]
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start


def registers(model, name, times=100):
    """A read and a write of a register cost what the model says: the same loop on RAM, subtracted.

    The function has no driver: nobody else is at its registers. Of several short runs the one
    that no tick came into counts.
    """
    home = f"/sys/bus/pci/devices/{address(name)}"
    resource, version, clear = REGISTERS[name]
    with open(f"{home}/enable", "w") as enable:
        enable.write("1")
    file = os.open(f"{home}/resource{resource}", os.O_RDWR | os.O_SYNC)
    with mmap.mmap(file, BLOCK) as device, mmap.mmap(-1, BLOCK) as ram:
        os.close(file)
        with memoryview(device) as whole, whole.cast("I") as view:
            value = view[version // 4]
        for what, at, write in (("read", version, False), ("write", clear, True)):
            took = []
            for memory in (ram, device):
                with memoryview(memory) as whole, whole.cast("I") as view:
                    # The same number in RAM: Python keeps small ones ready and makes others.
                    if memory is ram:
                        view[version // 4] = value
                    took.append(min(accesses(view, at // 4, write, times) for _ in range(20)))
            yield Reading(f"a register {what} ({name})", (took[1] - took[0]) / times,
                          model.guest_ns(f"register_{what}_ns"), 0.02, "ns")
    with open(f"{home}/enable", "w") as enable:
        enable.write("0")


def settle():
    """What was started is over: an idle guest's clock jumps, so it costs nothing to wait."""
    time.sleep(20)


def computed(ns=400_000_000):
    """Rounds that a thread computes in `ns` of the guest's clock (bench/hog.c)."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        shutil.copy2(os.path.join(HERE, ".build", "hog"), folder)
        with Neighbours(("normal",), folder) as hogs, open(hogs.counters[0], "rb", 0) as counter:
            edges = []
            for _ in range(2):
                time.sleep(ns / 1e9)
                counter.seek(0)
                rounds = int.from_bytes(counter.read(8), "little")
                edges.append((rounds, time.clock_gettime_ns(time.CLOCK_MONOTONIC)))
    (before, start), (after, end) = edges
    return (after - before) * ns / (end - start)


def neighbour(driver):
    """A hog does as much beside idle disks of `driver` as alone."""
    first = "ahci" if driver.endswith("ahci") else "nvme"
    settle()
    alone = computed()
    # Both, so that their random numbers stay equally far.
    names = (first, first + " twin")
    for name in names:
        disk(name, driver)
    settle()
    yield Reading(f"a hog beside idle {driver}", computed(), alone, 0.01, "rounds")
    for name in names:
        release(name)


def depth_one(disk, times):
    """ns of a direct read of one block, one after the other, on average."""
    file = os.open("/dev/" + disk, os.O_RDONLY | os.O_DIRECT)
    blocks = os.lseek(file, 0, os.SEEK_END) // BLOCK
    with mmap.mmap(-1, BLOCK) as buffer:
        into = [buffer]
        place = 1
        for n in range(-10, times):
            if n == 0:
                start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            # Any order without repetition does: the medium doesn't care.
            place = (place * 1_103_515_245 + 12_345) % blocks
            os.preadv(file, into, place * BLOCK)
        took = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start
    os.close(file)
    return took / times


def latencies(model):
    """Depth 1 takes the model's time and the driver's path, which the reference tells."""
    wanted = reference_ns(model)
    once = depth_one(disk("reference", "nvme"), 1000)
    twice = depth_one(disk("reference twice", "nvme"), 1000)
    yield Reading("twice the latency, less once", twice - once, wanted, 0.02, "ns")
    if model.latency_ns < LEAST_NS:
        return  # the way to sleep is not behind the device's time then: the path is longer
    # So many reads that a tail of some in a thousand is met on average.
    took = depth_one(disk("nvme", "nvme"), 6000)
    yield Reading("depth 1: model and path", took, model.mean_ns() + once - wanted, 0.02, "ns")


def iops(disk, options):
    """IOPS of a run of fio: of jobs that are no group, so that one that ends late by a slow read
    does not count for all."""
    job = fio.section("y", "/dev/" + disk, direct=1, rw="randread", bs=BLOCK, **options)
    return fio.iops(fio.run(fio.command(job), disk))


def pairs(driver):
    """Two equal drives of one driver do the same."""
    both = [disk(name, driver) for name in (driver, driver + " twin")]
    iops(both[0], LOADS[0][1])  # fio comes from the share once, before anything counts
    iops(both[1], LOADS[0][1])
    for name, options in LOADS:
        one, other = (iops(d, options) for d in both)
        yield Reading(f"two {driver}, {name}", other, one, 0.02, "IOPS")


def lost(disk):
    """Sectors, of those tried, that a disk gives back otherwise than they were written, or that
    are not zero after they were discarded or zeroed."""
    size, sector = 256 * BLOCK, 512
    file = os.open("/dev/" + disk, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, size) as buffer:
        buffer[:] = wanted = bytearray(random.Random(1).randbytes(size))
        os.pwritev(file, [buffer], 0)
        # No range begins or ends with a page of memory.
        for what, start, length in ((BLKDISCARD, 3 * sector, 64 * BLOCK + sector),
                                    (BLKZEROOUT, 128 * BLOCK - sector, 64 * BLOCK - sector)):
            fcntl.ioctl(file, what, struct.pack("QQ", start, length))
            wanted[start:start + length] = bytes(length)
        os.fsync(file)
        buffer[:] = bytes(size)
        os.preadv(file, [buffer], 0)
        os.close(file)
        return sum(buffer[at:at + sector] != wanted[at:at + sector]
                   for at in range(0, size, sector))


def medium(model):
    """A drive that keeps data takes the time of one that doesn't, and one behind a link as much
    longer as its data takes there."""
    names = ("reference", "reference stored", "reference linked")
    reference, stored, linked = (disk(name, "nvme") for name in names)
    # Of several runs the one in which the kernel had least else to do.
    alone, took = (min(depth_one(one, 1000) for _ in range(4)) for one in (reference, stored))
    yield Reading("a drive that keeps data, depth 1", took, alone, 0.001, "ns")
    yield Reading("what a drive that keeps data lost", lost(stored), 0, 0, "sectors")
    turn = BLOCK * 1000 / LINK_MB_S
    yield Reading("a block's turn on the link", depth_one(linked, 1000) - alone, turn, 0.02, "ns")
    if reference_ns(model) < 24 * turn:  # else 32 are not enough to keep the link busy
        yield Reading("a link, io_uring 32", iops(linked, LOADS[2][1]), 1e9 / turn, 0.02, "IOPS")


def readings(model, idle=("nvme", "ahci"), tell=lambda reading: None):
    """All Readings for `model`; each is told as it comes. `idle`: drivers a hog computes beside."""
    found = []

    def keep(more):
        for reading in more:
            found.append(reading)
            tell(reading)

    counting.quiet()
    for module in ("nvme", "ahci", "sd_mod"):
        subprocess.run(["modprobe", module], check=True)
    for name in FUNCTIONS:
        release(name)
    settle()
    keep(registers(model, "nvme"))
    keep(registers(model, "ahci"))
    computed()  # the first one meets what is left of the boot
    for driver in idle:
        keep(neighbour(driver))
    # First of all that reads: drives whose random numbers are equally far.
    keep(pairs("nvme"))
    keep(pairs("ahci"))
    keep(latencies(model))
    keep(medium(model))
    for name in FUNCTIONS:
        release(name)
    return found


def options(parser):
    parser.add_argument("--model", required=True)
    parser.add_argument("--idle", default="nvme,ahci", help="drivers beside which a hog computes")


def run(args):
    hold(readings(models.load(args.model), args.idle.split(","),
                  lambda reading: print(line(reading), flush=True)))
