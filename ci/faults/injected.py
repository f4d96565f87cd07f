# SPDX-License-Identifier: GPL-2.0
"""The fault matrix of hiops' own switches (debugfs), in a debug kernel's guest: NVMe and SATA.

rows.py says what a row is. Without HIOPS_FAULTS each fault comes in one way of a disk, so that the
faults together come in three, each mode and each value of a switch among them.
"""

import errno
import functools
import os
import subprocess
import sys

from machine import DEBUG, Disk, module, until
from rows import CHOICE, REPORT, given_up, head, recovered, run, told, turns, wanted

# The kernel's checks make it slow, so what is late here is late by much.
LIMIT_MS = 3000
LATE_US = 4 * LIMIT_MS * 1000
SWITCHES = dict(drop=0, delay_us=0, duplicate=0, fail_nth=0, fail_as="medium", deaf=0, cfs=0,
                all_ones=0)


def unharmed(row):
    row.goes_on()
    wanted(row.more("errors") == 0, f"{row.more('errors')} errors")


def unnoticed(row):
    unharmed(row)
    for name in ("timeouts", "resets", "retried", "missed_interrupts"):
        wanted(row.more(name) == 0, f"{row.more(name)} {name}")


def drop(row):
    """Completions that get lost: their time is up, there is a reset, they are tried again."""
    recovered(row, lambda: row.disk.set_fault(drop=3))
    wanted(row.disk.fault("drop") == "0", "not all of them got lost")
    wanted(row.more("timeouts") > 0, "no time was up")
    wanted(row.more("retried") >= 3, f"{row.more('retried')} are tried again")


def delay(row):
    """Completions that come late, but in time."""
    row.disk.set_fault(delay_us=20000)
    row.goes_on()
    row.disk.set_fault(delay_us=0)
    unnoticed(row)


def delay_beyond(row):
    """Completions that come when their time was up: they are taken for nobody else's."""
    resets = row.more("resets")
    row.disk.set_fault(delay_us=LATE_US)
    wanted(until(lambda: row.more("timeouts")), "nothing is late")
    row.disk.set_fault(delay_us=0)
    wanted(until(lambda: row.more("resets") > resets), "it is not reset")
    unharmed(row)


def duplicate(row):
    """Completions that come twice: more than a few are a reason to reset."""
    recovered(row, lambda: row.disk.set_fault(duplicate=40))


def fail_again(row):
    """Failures that another try mends."""
    for number, kind in enumerate(("link", "aborted", "busy"), 1):
        row.disk.set_fault(fail_as=kind, fail_nth=5)
        wanted(until(lambda: row.disk.fault("fail_nth") == "0"), "nothing failed")
        wanted(until(lambda: row.more("retried") >= number), f"{kind} is not tried again")
    unharmed(row)
    wanted(row.more("resets") == 0, "it was reset")


def fail_medium(row):
    """One that another try does not mend: that I/O fails, and no other."""
    row.disk.set_fault(fail_as="medium", fail_nth=5)
    wanted(until(lambda: row.load.failed), "nothing failed")
    row.right = 1
    row.goes_on()
    wanted(row.more("errors") == 1, f"{row.more('errors')} errors")
    wanted(row.more("retried") == 0, "it was tried again")


def deaf(row):
    """What it was told while it heard nothing is told again after a reset."""
    def until_silent():
        row.disk.set_fault(deaf=1)
        wanted(until(lambda: row.left() and not row.load.wait(1, 0.5)), "it hears")
        row.disk.set_fault(deaf=0)
    recovered(row, until_silent)
    wanted(row.more("retried") > 0, "nothing was tried again")


def cfs(row):
    """A fatal status, until it is reset."""
    row.disk.set_fault(cfs=1)
    wanted(until(lambda: row.disk.fault("cfs") == "0"), "it is not reset")
    unharmed(row)


def all_ones(row):
    """Pulled, or powered down."""
    given_up(row, lambda: row.disk.set_fault(all_ones=1))
    wanted(row.disk.fault("all_ones") == "0", "the switch is as it was")


def deaf_for_good(row):
    """One that does not come back is given up."""
    given_up(row, lambda: row.disk.set_fault(deaf=1))


def once(fault):
    """It, and nothing of it left for the next row."""
    @functools.wraps(fault)
    def switched(row):
        try:
            fault(row)
        finally:
            row.disk.set_fault(**SWITCHES)
    return switched


def refused(disk, name, value):
    try:
        disk.set_fault(**{name: value})
        return False
    except OSError as why:
        return why.errno == errno.EINVAL


def files(disk):
    """The switches: which there are, what they take, and that they go with the device."""
    folder = set(os.listdir(disk.faults))
    wanted(folder == set(SWITCHES), f"there are {sorted(folder)}")
    for name, value in SWITCHES.items():
        wanted(disk.fault(name) == str(value), f"{name} is {disk.fault(name)} at first")
        for bad in ("-1", "nonsense", "1 1", "4294967296", "1" * 40):
            wanted(refused(disk, name, bad), f"{name} takes '{bad}'")
        wanted(disk.fault(name) == str(value), f"{name} has changed")
    for name in ("deaf", "cfs", "all_ones"):
        wanted(refused(disk, name, 2), f"{name} takes 2")
    disk.unbind()
    wanted(not os.path.exists(disk.faults), "they are there without the device")
    disk.bind()


FAULTS = [once(fault) for fault in (delay, drop, delay_beyond, duplicate, fail_again, fail_medium,
                                    deaf, cfs, all_ones)]
FOR_GOOD = [once(deaf_for_good)]


def main():
    if not os.path.ismount(DEBUG):
        subprocess.run(["mount", "-t", "debugfs", "debugfs", DEBUG], check=True)
    module("hiops")
    nvme = Disk("hiops0n1", "hiops_nvme", "0000:00:04.0")
    sata = Disk("hiops1d0", "hiops_ahci", "0000:00:05.0")
    for disk in (nvme, sata):
        disk.unbind()
        disk.bind()
        disk.time_out(LIMIT_MS)
    head()
    for disk in (nvme, sata):
        told(f"{disk.driver}-switches", lambda: files(disk))
        run(turns(disk, FAULTS))
    # NVMe's has a minute for its first command.
    run(turns(sata, FOR_GOOD))
    if CHOICE:
        run(turns(nvme, FOR_GOOD))
    for disk in (nvme, sata):
        disk.unbind()
    module("-r", "hiops")
    told("no-module", lambda: wanted(not os.path.exists(f"{DEBUG}/hiops"), "its folder is there"))
    sys.exit(0 if REPORT.plan() else 1)


main()
