# SPDX-License-Identifier: GPL-2.0
"""The guest's side of a drive under measurement: which driver has it, which disk it is."""

import os
import subprocess
import time

from errors import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(HERE)


def hiops_is_loaded():
    """Whether the module is, and with it its hook of every sleep for I/O."""
    return os.path.exists("/sys/module/hiops")


def find(where, name):
    """The drive at PCI address `where`, handed to driver `name`; or the disk /dev/..., which goes
    by that name."""
    return Disk(os.path.basename(where), name) if where.startswith("/dev/") else Drive(where, name)


class Disk:
    """A disk that is there already, and no PCI function's."""

    def __init__(self, disk, name):
        self.disk, self.driver = disk, name
        self.disks = [disk]
        if not os.path.exists("/dev/" + disk):
            raise Failed(f"there is no /dev/{disk}")

    def interrupts(self):
        """It has none of its own."""
        return 0


class Drive:
    """One PCI function, the driver that serves it, and its disks."""

    def __init__(self, address, driver):
        self.address = address
        self.driver = driver
        self.path = "/sys/bus/pci/devices/" + address
        if not os.path.isdir(self.path):
            raise Failed(f"there is no PCI function {address} in this machine")
        if self.bound_to() != driver:
            bind = os.path.join(REPO, "tools", "hiops-bind")
            done = subprocess.run([bind, address, driver], stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                raise Failed(f"{driver} was not bound to {address}: {done.stderr.strip()}")
        if driver == "ahci":
            # What udev would load for its disks.
            subprocess.run(["modprobe", "sd_mod"], check=True)
        self.disks = self.find_disks()
        self.disk = self.disks[0]

    def bound_to(self):
        link = os.path.join(self.path, "driver")
        return os.path.basename(os.readlink(link)) if os.path.islink(link) else None

    def find_disks(self, limit=20):
        """The whole disks under this function, by name; waits until there are some, and no more
        come."""
        home = os.path.realpath(self.path) + "/"
        end = time.monotonic() + limit
        seen = []
        while True:
            disks = [d for d in sorted(os.listdir("/sys/block"))
                     if os.path.realpath("/sys/block/" + d).startswith(home)
                     and os.path.exists("/dev/" + d)]
            if disks and disks == seen:
                return disks
            if time.monotonic() > end:
                raise Failed(f"{self.address} ({self.driver}) has no disk after {limit} s")
            seen = disks
            time.sleep(0.5)

    def interrupts(self, table=None):
        """Interrupts of this function so far, or in the `table`, a text of /proc/interrupts; its
        address is in their chip's name."""
        if table is None:
            with open("/proc/interrupts") as now:
                table = now.read()
        total = 0
        for line in table.splitlines():
            if f"-{self.address} " in line:
                for word in line.split()[1:]:
                    if not word.isdigit():
                        break
                    total += int(word)
        return total
