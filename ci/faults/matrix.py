# SPDX-License-Identifier: GPL-2.0
"""The fault matrix, in the guest: fault x (irq, poll, hybrid) x (lazy, coop) x drive.

The faults come from outside (rows.py says what a row is). Without HIOPS_FAULTS each comes in three
of the twelve ways of a disk, each mode once and each switch on and off.
"""

import mmap
import os
import sys

from machine import BUS_MASTER, MEMORY, Disk, module, until
from rows import REPORT, WAYS, Wrong, given_up, head, none, recovered, rows, run, wanted

# bad-sectors.conf: a block that can't be read, for as long as it is not written.
BAD = 20480 * 512


def function_reset(row):
    row.disk.reset()
    row.goes_on()
    wanted(row.more("errors") + row.more("timeouts") == 0, "it was noticed")


def bus_master_off(row):
    """What an HBA is at then it still finishes (QEMU has its FIS area mapped), but its message gets
    lost: where a disk interrupts, that is noticed at the deadline, whatever the driver does."""
    row.may_miss = row.disk.driver == "hiops_ahci" and row.way["mode"] != "poll"
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
    """Its registers are out of reach (QEMU's read as zero)."""
    given_up(row, lambda: row.disk.command(clear=MEMORY), lambda: row.disk.command(set=MEMORY))


def throttled(row):
    """A slow drive, which takes an eighth of its time for what it has: nothing is noticed."""
    row.goes_on()
    for name in ("errors", "timeouts", "resets", "retried"):
        wanted(row.more(name) == 0, f"{row.more(name)} {name}")


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
    slow = Disk("hiops2n1", "hiops_nvme", "0000:00:06.0")
    for disk in (nvme, sata, slow):
        disk.unbind()
        disk.bind()
        disk.time_out(1000)
    run(rows(nvme, [unreadable, function_reset, bus_master_off]))
    run(rows(sata, [unreadable, bus_master_off]))
    for disk in (nvme, sata):
        run(rows(disk, [gone], WAYS[:2]))
    run(rows(slow, [throttled]))


head()
ram()
drives()
sys.exit(0 if REPORT.plan() else 1)
