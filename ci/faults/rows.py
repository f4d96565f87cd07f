# SPDX-License-Identifier: GPL-2.0
"""Rows of a fault matrix: a load that knows what it has written, a fault, and what must come of it.

Tells a result for each (REPORT), and the table on stderr: I/Os done, tried again, failed by right,
lost. HIOPS_FAULTS=all: every row; without it a few of the twelve ways of a
disk; HIOPS_FAULTS=TEXT: the rows with TEXT in their names.
"""

import itertools
import os
import sys

from load import Load
from machine import PATIENCE, until

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from report import Report  # noqa: E402

REPORT = Report()

ALL = [dict(mode=mode, lazy=lazy, coop=coop)
       for mode, lazy, coop in itertools.product(("irq", "poll", "hybrid"), (0, 1), (0, 1))]
# Each mode once, each switch on and off.
FEW = ALL[::5]
CHOICE = os.environ.get("HIOPS_FAULTS", "")
WAYS = ALL if CHOICE else FEW
# I/Os before a fault and after what follows it.
ENOUGH = 60
AT = 32 << 20


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
        # The fault itself keeps the drive from interrupting.
        self.may_miss = False

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
        missed = self.more("missed_interrupts")
        wanted(missed <= 0 or self.may_miss, f"{missed} I/Os were noticed only at their deadline")

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


def given_up(row, fault, mend=lambda: None):
    """A fault after which all fails, and soon. It comes back when it is bound anew."""
    fault()
    wanted(until(lambda: row.load.failed), "nothing fails")
    row.load.stop(PATIENCE)
    row.right = row.load.failed
    row.disk.unbind()
    mend()
    row.disk.bind()


def rows(disk, faults, ways=None):
    """Each fault in each of `ways`."""
    for fault in faults:
        for way in ways or WAYS:
            name = "-".join([disk.driver, fault.__name__, *map(str, way.values())])
            if CHOICE in ("", "all") or CHOICE in name:
                yield name, Row(disk, fault, way)


def turns(disk, faults):
    """Each fault in one of the few ways, the next one's turn each time; or in all."""
    for fault, way in zip(faults, itertools.cycle(FEW)):
        yield from rows(disk, [fault], WAYS if CHOICE else [way])


def head():
    """Of the table."""
    print("| row | done | tried again | failed | lost |\n| --- | --- | --- | --- | --- |",
          file=sys.stderr)


def told(name, what):
    """Does it, and tells how that went; True: well."""
    try:
        what()
        REPORT.ok(name)
        return True
    except (Wrong, OSError) as why:
        REPORT.not_ok(name, str(why))
        return False


def run(named_rows):
    for name, row in named_rows:
        if told(name, row.run):
            tell(name, row)


def tell(name, row):
    """The row of the table. The counts of a disk that is bound anew begin anew."""
    print(f"| {name} | {row.load.done} | {max(0, row.more('retried'))} | {row.load.failed} "
          f"| {row.left()} |", file=sys.stderr, flush=True)
