# SPDX-License-Identifier: GPL-2.0
"""The guest as the fault matrix sees it: disks of hiops, their drivers, files in sysfs."""

import os
import subprocess
import time

PCI = "/sys/bus/pci/devices"
DEBUG = "/sys/kernel/debug"
COMMAND = 4  # byte of the configuration space (PCI 3.0, section 6.2.2)
MEMORY, BUS_MASTER = 2, 4
# Seconds for whatever is waited for; emulated machines are slow.
PATIENCE = 90


def put(value, path):
    with open(path, "w") as file:
        file.write(str(value))


def until(true):
    """Waits for it."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Disk:
    """A disk of hiops, with the driver and, if there is one, the PCI function behind it."""

    def __init__(self, name, driver, function=None):
        self.name, self.driver, self.function = name, driver, function
        self.limit_ms = None

    def stats(self):
        with open(f"/sys/block/{self.name}/hiops/stats") as file:
            return {key: int(value) for key, value in map(str.split, file)}

    def switch(self, **switches):
        for key, value in switches.items():
            put(value, f"/sys/block/{self.name}/hiops/{key}")

    def time_out(self, ms):
        """Also when it is bound anew."""
        self.limit_ms = ms
        put(ms, f"/sys/block/{self.name}/queue/io_timeout")

    def bind(self):
        put(self.driver, f"{PCI}/{self.function}/driver_override")
        put(self.function, f"/sys/bus/pci/drivers/{self.driver}/bind")
        if self.limit_ms:
            self.time_out(self.limit_ms)

    @property
    def faults(self):
        """The folder of its faults on demand."""
        return f"{DEBUG}/hiops/{self.function}"

    def set_fault(self, **faults):
        for key, value in faults.items():
            put(value, f"{self.faults}/{key}")

    def fault(self, name):
        with open(f"{self.faults}/{name}") as file:
            return file.read().strip()

    def unbind(self):
        """From whatever driver has it."""
        if os.path.exists(f"{PCI}/{self.function}/driver"):
            put(self.function, f"{PCI}/{self.function}/driver/unbind")

    def reset(self):
        put(1, f"{PCI}/{self.function}/reset")

    def command(self, clear=0, set=0):
        """Changes the function's command register behind its driver's back."""
        with open(f"{PCI}/{self.function}/config", "r+b", buffering=0) as file:
            old = int.from_bytes(os.pread(file.fileno(), 2, COMMAND), "little")
            os.pwrite(file.fileno(), (old & ~clear | set).to_bytes(2, "little"), COMMAND)


def module(*arguments):
    subprocess.run(["modprobe", *arguments], check=True)
