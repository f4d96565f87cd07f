# SPDX-License-Identifier: GPL-2.0
"""The two sides of a comparison inside a guest: a driver with drives of its own, set up alike."""

import os
import random
import subprocess
import sys

import drives
from errors import Failed, Wrong

# Times that binding is tried: hiops-bind has a limit, and its files come from a shared folder.
TRIES = 3
# Bytes that a drive has from the start, if it keeps data.
FIRST = 64 << 10


class Side:
    """A driver and its drives: no scheduler between them and the load, switches set."""

    def __init__(self, text, name, switches, keeps=False):
        """`text` is ADDRESS=DRIVER,...; the `switches` {name: value} are for hiops' disks alone.
        Drives that keep data (`keeps`) have some before they are set."""
        self.name = name
        self.drives = [bind(*one.split("=")) for one in text.split(",")]
        self.disks = [d.disk for d in self.drives]
        self.is_ours = self.drives[0].driver.startswith("hiops_")
        for disk in self.disks:
            # With one CPU the kernel gives nvme mq-deadline, as on no machine with several queues.
            put(f"/sys/block/{disk}/queue/scheduler", "none", "[none]")
            if keeps:
                begin(disk)
        if self.is_ours:
            self.set(switches)

    def set(self, switches):
        """Sets the switches of all its disks, which are hiops'."""
        for disk in self.disks:
            for key, value in switches.items():
                put(f"/sys/block/{disk}/hiops/{key}", value, value)

    def stats(self):
        """hiops' counts of its disks, added up; those of another driver's are none."""
        counts = {}
        for disk in self.disks if self.is_ours else ():
            with open(f"/sys/block/{disk}/hiops/stats") as text:
                for key, value in map(str.split, text):
                    counts[key] = counts.get(key, 0) + int(value)
        return counts

    def interrupts(self, table):
        """Of all its drives, in a text of /proc/interrupts."""
        return sum(d.interrupts(table) for d in self.drives)


def load_polled():
    """Loads both NVMe drivers with a queue that a thread polls itself."""
    for words in (["-r", "nvme"], ["nvme", "poll_queues=1"], ["hiops", "poll_queues=1"]):
        done = subprocess.run(["modprobe", *words], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failed(f"modprobe {' '.join(words)}: {done.stderr.strip()}")


def ways_of(text):
    """{name: {switch: value}} of a text like "asleep: mode=irq; awake: mode=poll coop=0"."""
    ways = {}
    for way in filter(str.strip, text.split(";")):
        name, told, words = way.partition(":")
        words = words.split()
        if not told or not name.strip() or any("=" not in word for word in words):
            raise Wrong(f"--ways takes NAME: KEY=VALUE...; NAME: ..., not {way.strip()}")
        ways[name.strip()] = dict(word.split("=", 1) for word in words)
    return ways


def begin(disk):
    """Writes FIRST bytes of which no two parts are alike to the disk: hiops tries with them whether
    the drive leaves out the right bytes of a read."""
    with open(f"/dev/{disk}", "wb") as drive:
        drive.write(random.Random(1).randbytes(FIRST))
        drive.flush()
        os.fsync(drive.fileno())


def both(text, switches, keeps=False):
    """The sides that ADDRESS=DRIVER,...;ADDRESS=DRIVER,... names, by their drivers."""
    sides = []
    for n, one in enumerate(text.split(";")):
        driver = one.split(",")[0].split("=")[1]
        taken = [side.name for side in sides]
        name = f"{driver}-{n + 1}" if driver in taken else driver
        sides.append(Side(one, name, switches, keeps))
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
