# SPDX-License-Identifier: GPL-2.0
"""The loads of the timed matrix: what each is called, and what fio and the neighbours are told.

A *load* is what fio does to one driver's disks. A *neighbour* is a thread that computes meanwhile
(bench/hog.c). A load's name is stable, as results are compared by it: psync-16 is sixteen jobs that
read and wait, uring-32 one job with 32 reads in flight, and "+hog" one neighbour beside it.

Some are not of the matrix, but to compare with, and run where they are asked for: threads that poll
the device themselves by io_uring, on a queue for that (iopoll-1, and hybrid-1 half of the time),
and readers that the scheduler gives short slices ("+shorthog": so beside a neighbour).
"""

import dataclasses
import mmap
import os

import fio
import places
import window
from errors import Wrong

BLOCK = 4096  # bytes of each read and write
SECTOR = 512  # bytes, the unit of a disk's counts
# I/Os that every job does at least while all the others run too.
LEAST = 500
# The share of all I/Os at which the window of a measurement begins, and ends.
WINDOW = (0.15, 0.8)
# I/Os of a job beyond the LEAST: the window has not all of them, and jobs are not equally fast.
MARGIN = 1.75
# I/Os of all jobs together, by how many are in flight at least: enough for the rare slow ones to
# show, and for a window that is long beside a scheduler's slice. Many in flight are over sooner.
TOTAL = {1: 8000, 8: 32000}
# Pages that are made dirty: 256 MiB.
DIRTY = 65_536
# Reads in order, which are in memory before they are asked for.
IN_ORDER = 100_000
# A slice that is shorter than a neighbour's: the shortest that there is.
SLICE_NS = 100_000
# Bytes of memory of a program that reads a file eight times as large.
MEMORY = 128 << 20
# Memory of a program that touches pages of four times as much, which is all that it has.
SWAPPING = 64 << 20
# Pages that it touches, of all jobs together.
TOUCHES = 32_000
# Buffered writes between two fsync.
WRITES_A_SYNC = 16
# The neighbours that a suffix of a name stands for; bench/hog knows the classes.
NEIGHBOURS = {"": (), "hog": ("normal",), "hog2": ("normal",) * 2, "hog3": ("normal",) * 3,
              "idlehog": ("idle",), "nicehog": ("nice",), "shorthog": ("normal",)}


def size_of(disk):
    """Its bytes."""
    with open(f"/sys/block/{disk}/size", encoding="ascii") as text:
        return int(text.read()) * SECTOR


@dataclasses.dataclass(frozen=True)
class Load:
    """`jobs` jobs of fio, each with `depth` I/Os in flight, on so many `disks` each."""

    name: str
    jobs: int = 1
    depth: int = 1
    engine: str = "psync"
    rw: str = "randread"
    disks: int = 1
    beside: str = ""
    block: int = BLOCK  # bytes of each read and write
    bytes: bool = False  # of hiops' disks, their bytes are used, past the block layer
    of: int = 0  # then each is of a block of so many bytes, which other drivers read whole
    cached: bool = False  # through the page cache
    memory: int = 0  # bytes that the program has with its page cache, which is full before; 0: all
    region: int = 0  # bytes of the disk that it uses; 0: all
    reads: int = 70  # per cent, of what reads and writes
    on: str = ""  # what of bench/places.py it is on, made of its disks
    elevator: str = ""  # that of its disks; none without
    syncs_after: int = WRITES_A_SYNC  # buffered writes of a job; 0: all of them
    passthru: bool = False  # then nvme's own passthrough is what it is compared with
    registered: bool = False  # io_uring knows buffers and files beforehand
    polls: str = ""  # "all the time" or "hybrid": the thread itself, on a queue for that

    @property
    def neighbours(self):
        """The scheduling class of each neighbour."""
        return NEIGHBOURS[self.beside]

    @property
    def writes(self):
        """Whether the disk has something to flush afterwards."""
        return not self.rw.endswith("read")

    @property
    def apart(self):
        """Whether each job goes from one end to the other, of a part of the disk to itself."""
        return not self.rw.startswith("rand")

    @property
    def counted(self):
        """The bytes of each I/O as the disk counts them."""
        return self.of or self.block

    @property
    def syncs(self):
        """Writes go through the page cache, and an fsync is what waits."""
        return self.cached and self.rw.endswith("write")

    @property
    def dirties(self):
        """Nothing waits before all is written, each page once."""
        return self.syncs and not self.syncs_after

    @property
    def targets(self):
        """How many devices it uses, each in a section of its own."""
        return 1 if self.on else self.disks

    @property
    def files(self):
        """Whether it is on files, whose file system writes more than they have."""
        return self.on in places.SYSTEMS

    @property
    def swaps(self):
        """Whether what it reads is memory, of which most is on the disk."""
        return self.on == "swap"

    @property
    def paced(self):
        """Whether its I/Os are counted at the pace of the whole run, as the disk moves more."""
        return self.files or self.swaps

    @property
    def ios(self):
        """I/Os of each job; of a job that writes and syncs, its writes."""
        if self.dirties:
            return DIRTY
        if self.syncs:
            # Twice: it is one job's fsyncs, each as long as its writes.
            return 2 * int(LEAST * MARGIN) * self.syncs_after // self.jobs
        if self.rw == "read":
            return IN_ORDER
        if self.swaps:
            return TOUCHES // self.jobs
        total = TOTAL[max(n for n in TOTAL if n <= self.jobs * self.depth)]
        return max(int(LEAST * MARGIN), -(-total // self.jobs))

    @property
    def window(self):
        """Sectors moved, on all the disks, from which and to which it is measured. What the page
        cache has of them is not moved."""
        total = self.ios * self.jobs * self.targets * self.counted // SECTOR
        if self.swaps:
            # For each that comes in one goes out; what is read along comes on top.
            total = 2 * total * (self.region - self.memory) // self.region
        elif self.memory and not self.apart:
            total = total * (self.region - MEMORY) // self.region
        return tuple(int(total * share) for share in WINDOW)

    def command(self, disks, folder, where=()):
        """What is run; the programs of bench/build lie in `folder`, and fio's files begin with io
        there. `where` it is, if not on the disks, is told as by places.place()."""
        words = self.fio(disks, f"{folder}/io", where)
        if self.polls == "hybrid":
            words = ["env", f"LD_PRELOAD={folder}/hybrid.so", *words]
        if self.beside == "shorthog":
            words = [f"{folder}/slice", str(SLICE_NS), *words]
        return words

    def named(self, beside):
        """The same beside those neighbours."""
        return dataclasses.replace(self, name=f"{self.name}+{beside}", beside=beside)

    def fio(self, disks, log, where=()):
        """fio's arguments; each I/O goes into files that begin with the path `log`; `where` as
        above.

        Slices of latency that the matrix does not use are not measured, as that costs CPU time.
        """
        options = dict(
            randrepeat=1, norandommap=not self.dirties, group_reporting=True,
            thread=True, bs=self.block, rw=self.rw, ioengine=self.engine,
            direct=int(not self.cached), numjobs=self.jobs,
            number_ios=self.ios, disable_slat=1,
            iodepth=self.depth if self.engine == "io_uring" else None, hipri=bool(self.polls),
            fixedbufs=int(self.registered) or None, registerfiles=int(self.registered) or None,
            rwmixread=self.reads if self.rw in ("rw", "randrw") else None,
            size=self.region or None,
            # What was read before, to fill the memory that it has, stays there.
            invalidate=0 if self.memory else None)
        if self.syncs:
            # What waits is the fsync, and that is in fio's result, not in its log.
            options.update(fsync=self.syncs_after or None,
                           end_fsync=int(self.dirties) or None,
                           percentile_list=fio.percent_list(window.PERCENTS))
        else:
            # Whole, as a log that grows stops its job; in the time that the window is told in.
            options.update(disable_clat=1, write_lat_log=log,
                           log_entries=max(1024, self.ios + 1), log_alternate_epoch=1,
                           log_alternate_epoch_clock_id=1)
        if self.files:
            # They grow with each write.
            options.update(fallocate="none", size=self.ios * self.block)
        disks = disks[:self.disks]
        sections = zip(disks, where or [{}] * len(disks))
        return fio.command(*(self.section(n, disk, {**options, **told})
                             for n, (disk, told) in enumerate(sections)))

    def section(self, number, disk, options, size=size_of, has=os.path.exists):
        """What fio does to that disk."""
        options = dict(options)
        file = options.pop("filename", f"/dev/{disk}")
        if self.apart and not self.files and self.jobs > 1:
            part = (self.region or size(disk)) // self.jobs
            options = {**options, "size": part, "offset_increment": part}
        if self.bytes:
            # It asks a character device for no size.
            options = {**options, "size": size(disk)}
            if has(file + "_bytes"):
                file += "_bytes"
            else:
                options["bs"] = self.counted
                if self.passthru:
                    file = "/dev/" + disk.replace("nvme", "ng", 1)
                    # There is no page cache to be kept away from.
                    options |= {"ioengine": "io_uring_cmd", "cmd_type": "nvme", "direct": None}
        return fio.section(f"disk{number}", file, **options)


def _all():
    """Every load, in the order of the table."""
    psync = {n: Load(f"psync-{n}", jobs=n) for n in (1, 2, 3, 4, 8, 16, 32, 64, 256)}
    uring = {n: Load(f"uring-{n}", depth=n, engine="io_uring")
             for n in (1, 2, 4, 5, 6, 8, 32, 64, 128)}
    mix = Load("mix-16", jobs=16, rw="randrw")
    write = Load("write-fsync", rw="write", cached=True)
    yield from psync.values()
    yield from uring.values()
    yield Load("uring-4x32", jobs=4, depth=32, engine="io_uring")
    yield from (mix, write)
    for load in (*(psync[n] for n in (1, 4, 16, 64)), *(uring[n] for n in (1, 32, 64)), mix, write):
        yield load.named("hog")
    for beside in ("hog2", "idlehog", "nicehog"):
        for load in (psync[1], psync[16], psync[64], uring[32]):
            yield load.named(beside)
    yield uring[64].named("hog2")
    yield psync[8].named("hog3")
    yield Load("two-disks-16", jobs=16, disks=2)


def _up_the_stack():
    """What programs do that don't read and write 4 KiB past the page cache."""
    cold = Load("cold", cached=True, memory=MEMORY, region=8 * MEMORY)
    for jobs in (1, 16, 64):
        yield dataclasses.replace(cold, name=f"cold-{jobs}", jobs=jobs)
    for jobs in (16, 64):
        # Each job maps the whole, and has page tables of its own, which are memory, too.
        tables = jobs * cold.region // mmap.PAGESIZE * 8
        yield dataclasses.replace(cold, name=f"fault-{jobs}", jobs=jobs, engine="mmap",
                                  memory=MEMORY + tables)
    yield dataclasses.replace(cold, name="cold-in-order", rw="read")
    yield Load("dirty", rw="randwrite", cached=True, syncs_after=0, region=DIRTY * BLOCK)
    for system in places.SYSTEMS:
        # A drive that keeps what is written: --set store=1.
        for jobs in (1, 16):
            yield Load(f"fsync-{system}-{jobs}", jobs=jobs, rw="write", cached=True, on=system,
                       syncs_after=1)
    for jobs in (1, 16):
        yield Load(f"swap-{jobs}", jobs=jobs, engine="mmap", cached=True, on="swap",
                   memory=SWAPPING, region=4 * SWAPPING)
    for kind in (*places.TARGETS, *places.RAIDS):
        for jobs in (16, 64):
            yield Load(f"{kind}-{jobs}", jobs=jobs, on=kind, disks=2 if kind in places.RAIDS else 1)
    for jobs in (1, 16, 64):
        yield from _services(jobs)
    for elevator in ("mq-deadline", "kyber", "bfq"):
        for load in _services(16):
            yield dataclasses.replace(load, name=f"{load.name}-{elevator}", elevator=elevator)
    # For a drive with 256 channels: --set channels=256,write_latency_ns=400000.
    for depth in (31, 256):
        yield Load(f"deep-{depth}", depth=depth, engine="io_uring", rw="randwrite")


def _services(jobs):
    """Table 1 of "Fine Grained Linux I/O Subsystem Enhancements to Harness Solid State Storage".
    For DB-OLTP it has 7 per cent of reads; usual are 70."""
    yield Load(f"oltp7-{jobs}", jobs=jobs, rw="randrw", block=8192, reads=7)
    yield Load(f"oltp70-{jobs}", jobs=jobs, rw="randrw", block=8192)
    yield Load(f"messaging-{jobs}", jobs=jobs, rw="randrw", reads=67)
    yield Load(f"paging-{jobs}", jobs=jobs, rw="rw", block=65536, reads=90)
    yield Load(f"log-{jobs}", jobs=jobs, rw="write", block=65536)


def _beside_it():
    """What is not of the matrix."""
    for load in (Load("iopoll-1", engine="io_uring", polls="all the time"),
                 Load("hybrid-1", engine="io_uring", polls="hybrid")):
        yield load
        yield from (load.named(beside) for beside in ("hog", "idlehog", "shorthog"))
    yield Load("psync-1").named("shorthog")
    for block in (512, 4096):
        for jobs in (1, 16, 64):
            # With --hiops bytes=1.
            read = Load(f"bytes-{block}-{jobs}", jobs=jobs, block=block, bytes=True)
            yield read
            yield dataclasses.replace(read, name=f"bytes-write-{block}-{jobs}", rw="randwrite")
        uring = Load(f"bytes-uring-{block}-128", depth=128, engine="io_uring", block=block,
                     bytes=True)
        yield uring
        fixed = dataclasses.replace(uring, name=f"bytes-fixed-{block}-128", registered=True)
        yield fixed
        yield dataclasses.replace(fixed, name=f"bytes-passthru-{block}-128", passthru=True)
        yield Load(f"bytes-{block}-16", jobs=16, block=block, bytes=True).named("hog")
    yield from _up_the_stack()
    for jobs in (1, 16):
        # A drive with blocks of 4096 bytes: --set block_bytes=4096.
        yield Load(f"bytes-128of4096-{jobs}", jobs=jobs, block=128, bytes=True, of=4096)


LOADS = {load.name: load for load in _all()}
KNOWN = {**LOADS, **{load.name: load for load in _beside_it()}}
# What stands for several loads of the matrix. "few": at most eight reads in flight and no
# neighbours, where a fast drive and the driver's path are of one length.
SETS = {"few": [name for name, load in LOADS.items()
                if load.jobs * load.depth <= 8 and not load.beside and not load.writes]}


def chosen(text):
    """The loads that a text like "psync-1,psync-16+hog" names, or "few,psync-16", which has a set
    of SETS in it; the matrix's without a text."""
    names = [name for word in text.split(",") if word for name in SETS.get(word, [word])]
    unknown = [n for n in names if n not in KNOWN]
    if unknown:
        raise Wrong(f"there is no load {', '.join(unknown)}; the loads are {', '.join(KNOWN)}, "
                    f"and for several of them {', '.join(SETS)}")
    return [KNOWN[n] for n in names] or list(LOADS.values())
