# SPDX-License-Identifier: GPL-2.0
"""The two sides of a comparison inside a guest: a driver with drives of its own, set up alike."""

import sys

import drives
from errors import Failed

# Times that binding is tried: hiops-bind has a limit, and its files come from a shared folder.
TRIES = 3


class Side:
    """A driver and its drives: no scheduler between them and the load, switches set."""

    def __init__(self, text, name, switches):
        """`text` is ADDRESS=DRIVER,...; the `switches` {name: value} are for hiops' disks alone."""
        self.name = name
        self.drives = [bind(*one.split("=")) for one in text.split(",")]
        self.disks = [d.disk for d in self.drives]
        ours = self.drives[0].driver.startswith("hiops_")
        for disk in self.disks:
            # With one CPU the kernel gives nvme mq-deadline, as on no machine with several queues.
            put(f"/sys/block/{disk}/queue/scheduler", "none", "[none]")
            for key, value in switches.items() if ours else ():
                put(f"/sys/block/{disk}/hiops/{key}", value, value)

    def interrupts(self, table):
        """Of all its drives, in a text of /proc/interrupts."""
        return sum(d.interrupts(table) for d in self.drives)


def both(text, switches):
    """The sides that ADDRESS=DRIVER,...;ADDRESS=DRIVER,... names, by their drivers."""
    sides = []
    for n, one in enumerate(text.split(";")):
        driver = one.split(",")[0].split("=")[1]
        taken = [side.name for side in sides]
        sides.append(Side(one, f"{driver}-{n + 1}" if driver in taken else driver, switches))
    return sides


def bind(address, driver):
    """The drive, bound; see TRIES."""
    for n in range(TRIES):
        try:
            return drives.find(address, driver)
        except Failed as why:
            if n == TRIES - 1:
                raise
            print(f"hiops: {why}; tried once more", file=sys.stderr)


def put(path, value, want):
    """Writes `value` to the kernel's file, which must then have the word `want`."""
    try:
        with open(path, "w") as knob:
            knob.write(value)
        with open(path) as knob:
            got = knob.read()
    except OSError as why:
        raise Failed(f"{path} does not take {value}: {why.strerror}") from why
    if want not in got.split():
        raise Failed(f"{path} was told {value} and says {got.strip()}")
