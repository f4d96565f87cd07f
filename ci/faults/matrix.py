# SPDX-License-Identifier: GPL-2.0
"""The fault matrix, in the guest: fault x (irq, poll, hybrid) x (lazy, coop) x drive.

Each row: a load that knows what it has written, a fault, and what must come of it. Prints a line
"ok NAME" or "not ok NAME: why" for each, and the table on stderr: I/Os done, tried again, failed by
right, lost. HIOPS_FAULTS=all: every row; without it three of the twelve ways of a disk, each mode
once and each switch on and off; HIOPS_FAULTS=TEXT: the rows with TEXT in their names.
"""

import itertools
import mmap
import os
import sys

from load import Load
from machine import BUS_MASTER, MEMORY, PATIENCE, Disk, module, until

ALL = [dict(mode=mode, lazy=lazy, coop=coop)
       for mode, lazy, coop in itertools.product(("irq", "poll", "hybrid"), (0, 1), (0, 1))]
# Each mode once, each switch on and off.
FEW = ALL[::5]
CHOICE = os.environ.get("HIOPS_FAULTS", "")
WAYS = ALL if CHOICE else FEW
# I/Os before a fault and after what follows it.
ENOUGH = 60
AT = 32 << 20
# bad-sectors.conf: a block that can't be read, for as long as it is not written.
BAD = 20480 * 512


class Wrong(Exception):
    """What came of a fault is not what must."""


def wanted(true, why):
    if not true:
        raise Wrong(why)


class Row:
    """A fault under load, on a disk set one way."""

    def __init__(self, disk, fault, way):
        self.disk, self.fault, self.way = disk, fault, way
        self.before, self.load, self.right = {}, None, 0

    def more(self, name):
        """How much the counter has grown."""
        return self.disk.stats()[name] - self.before[name]

    def goes_on(self):
        wanted(self.load.wait(ENOUGH, PATIENCE), "the load does not go on")

    def run(self):
        self.disk.switch(**self.way)
        self.before = self.disk.stats()
        self.load = Load(self.disk.name, AT)
        try:
            self.goes_on()
            self.fault(self)
        finally:
            ended = self.load.stop(PATIENCE)
        wanted(ended, "a thread waits for ever")
        wanted(self.load.wrong == 0, f"{self.load.wrong} reads were wrong")
        wanted(self.load.failed == self.right, f"{self.load.failed} failed, not {self.right}")
        wanted(until(lambda: self.left() == 0), f"{self.left()} I/Os are lost")

    def left(self):
        """I/Os that have no end yet."""
        now = self.disk.stats()
        return now["submitted"] - now["completed"]


def none(row):
    row.goes_on()


def recovered(row, fault):
    """A fault that leads to a reset, after which nothing is missing."""
    resets = row.more("resets")
    fault()
    wanted(until(lambda: row.more("resets") > resets), "it is not reset")
    row.goes_on()
    wanted(row.more("errors") == 0, f"{row.more('errors')} errors")


def function_reset(row):
    row.disk.reset()
    row.goes_on()
    wanted(row.more("errors") + row.more("timeouts") == 0, "it was noticed")


def bus_master_off(row):
    recovered(row, lambda: row.disk.command(clear=BUS_MASTER))


def counted(*names):
    """A fault of the RAM disk, which is there all the time; these counters tell of it."""
    def fault(row):
        wanted(until(lambda: all(row.more(name) for name in names)), f"no {' or '.join(names)}")
        row.goes_on()
        wanted(row.more("errors") == 0, f"{row.more('errors')} errors")
    return fault


def unreadable(row):
    """One that fails by right, tried in vain, and no other."""
    fd = os.open(f"/dev/{row.disk.name}", os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    try:
        os.preadv(fd, [page], BAD)
        raise Wrong("the bad block was read")
    except OSError:
        pass
    finally:
        os.close(fd)
    wanted(row.more("errors") == 1, f"{row.more('errors')} errors instead of 1")
    row.goes_on()


def gone(row):
    """Its registers are out of reach (QEMU's read as zero): all fails, and soon. It comes back when
    it is bound anew."""
    row.disk.command(clear=MEMORY)
    wanted(until(lambda: row.load.failed), "nothing fails")
    row.load.stop(PATIENCE)
    row.right = row.load.failed
    row.disk.unbind()
    row.disk.command(set=MEMORY)
    row.disk.bind()
    row.disk.time_out(1000)


def rows(disk, faults, ways=None):
    for fault in faults:
        for way in ways or WAYS:
            name = "-".join([disk.driver, fault.__name__, *map(str, way.values())])
            if CHOICE in ("", "all") or CHOICE in name:
                yield name, Row(disk, fault, way)


def run(named_rows):
    for name, row in named_rows:
        try:
            row.run()
            print(f"ok {name}", flush=True)
            tell(name, row)
        except (Wrong, OSError) as why:
            print(f"not ok {name}: {why}", flush=True)


def tell(name, row):
    """The row of the table. The counts of a disk that is bound anew begin anew."""
    print(f"| {name} | {row.load.done} | {max(0, row.more('retried'))} | {row.load.failed} "
          f"| {row.left()} |", file=sys.stderr, flush=True)


def ram():
    disk = Disk("hiops_ram0", "hiops_ram")
    common = ["hiops", "ram_disks=1", "ram_size_mb=48", "ram_latency_us=50", "ram_timeout_ms=1000"]
    for name, arguments, fault in (
            ("drop", ["ram_drop=100"], counted("timeouts", "resets", "retried")),
            ("stick", ["ram_stick=100"], counted("timeouts", "aborts", "retried")),
            ("duplicate", ["ram_duplicate=20", "ram_reorder=3"], none),
            ("lie", ["ram_lie=20"], counted("resets")),
            ("fail", ["ram_fail=7"], counted("retried"))):
        fault.__name__ = name
        module(*common, *arguments)
        run(rows(disk, [fault]))
        module("-r", "hiops")


def drives():
    module("hiops")
    nvme = Disk("hiops0n1", "hiops_nvme", "0000:00:04.0")
    sata = Disk("hiops1d0", "hiops_ahci", "0000:00:05.0")
    for disk in (nvme, sata):
        disk.unbind()
        disk.bind()
        disk.time_out(1000)
    run(rows(nvme, [unreadable, function_reset, bus_master_off]))
    run(rows(sata, [unreadable, bus_master_off]))
    for disk in (nvme, sata):
        run(rows(disk, [gone], WAYS[:2]))


print("| row | done | tried again | failed | lost |\n| --- | --- | --- | --- | --- |",
      file=sys.stderr)
ram()
drives()
