# SPDX-License-Identifier: GPL-2.0
"""What I/O costs, counted: fio between the plugin's marks, in two sizes, subtracted."""

import os
import subprocess
import time

import drives
import fio
from drives import HERE, REPO
from errors import Failed
from points import Point

# The I/Os of the two runs: start and end of fio are in both, so their difference is I/O alone.
SHORT, LONG = 8192, 24576
# The instructions of "mark loop".
LOOP = 20_000_000
# Daemons of the guest's kernel that go through memory now and then: what they do falls on whichever
# drive has its turn.
DAEMONS = {"/sys/kernel/mm/transparent_hugepage/enabled": "never",
           "/sys/module/damon_stat/parameters/enabled": "N"}


def options(parser):
    """What every measurement in a guest is told by bench/compare."""
    parser.add_argument("--counts", required=True, help="the plugin's out= file")
    parser.add_argument("--drives", required=True, help="ADDRESS=DRIVER,...; or /dev/DISK=NAME")
    parser.add_argument("--json", required=True, help="where the results go")
    parser.add_argument("--before", default="",
                        help="a shell command that runs first, in the same boot")


def quiet():
    """Stops the DAEMONS, in so far as this kernel has them."""
    for path, off in DAEMONS.items():
        if os.path.exists(path):
            with open(path, "w") as knob:
                knob.write(off)


def prepare(args):
    """Runs what comes before, binds the drives, warms up: (a Counter, the drives)."""
    quiet()
    before = ["bash", "-c", args.before]
    if args.before and subprocess.run(before, cwd=REPO).returncode != 0:
        raise Failed("what was to run before the measurement failed")
    found = [drives.find(*d.split("=")) for d in args.drives.split(",")]
    counter = Counter(args.counts)
    counter.check()
    for drive in found:  # fio and its files are read from the share once, before anything counts
        counted(counter, drive, Point(), 512)
    return counter, found


def proc_value(path, key):
    """The sum of the numbers on the line of `path` that starts with `key`, or 0."""
    with open(path) as table:
        return text_value(table.read(), key)


def text_value(table, key, first=False):
    """The same of a text; or only the `first` number."""
    for line in table.splitlines():
        words = line.split()
        if words and words[0] == key:
            numbers = [int(w) for w in words[1:] if w.isdigit()]
            return numbers[0] if first else sum(numbers)
    return 0


class Counter:
    """Reads what the plugin (bench/plugin) writes into the file `counts`."""

    def __init__(self, counts):
        self.counts = counts
        self.region = 0
        self.read = 0

    def run(self, command, env):
        """Runs `command`, which marks by $MARK and $REGION: (its stdout, the counts, the block
        lines)."""
        self.region += 1
        env = {**os.environ, **env, "MARK": os.path.join(HERE, ".build", "mark"),
               "REGION": str(self.region)}
        done = subprocess.run(command, env=env, cwd="/tmp", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: status {done.returncode}: "
                         f"{done.stderr.strip()[-500:]}")
        return done.stdout, *self.result()

    def check(self):
        """A yardstick is held against something of known length first."""
        _, words, _ = self.run(["sh", "-c", 'exec "$MARK" loop "$REGION"'], {})
        if not LOOP <= int(words["user"]) < LOOP * 1.01:
            raise Failed(f"the plugin counted {words['user']} of {LOOP} instructions")

    def result(self):
        """The lines of the region just stopped; the file comes through a shared folder, so wait for
        it."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with open(self.counts) as counts:
                counts.seek(self.read)
                text = counts.read()
            lines = text.split("\n")
            last = lines[-2] if len(lines) > 1 else ""
            words = dict(w.split("=", 1) for w in last.split() if "=" in w)
            whole = lines[-1] == "" and last.startswith("region=")
            if whole and words["region"] == str(self.region):
                self.read += len(text)
                return words, [line for line in lines if line.startswith("block ")]
            time.sleep(0.05)
        raise Failed(f"the plugin wrote no counts for region {self.region} to {self.counts}: "
                     "was the guest started by bench/compare, under TCG?")


def registers(words, regions=("mmio:nvme", "mmio:ahci", "mmio:msix-table")):
    """(reads, writes) of the drive's own registers; the other drives are idle. APIC, 9p and the
    clock are not counted."""
    pairs = [[int(n) for n in words[region].split(",")] for region in regions if region in words]
    return sum(p[0] for p in pairs), sum(p[1] for p in pairs)


def counted(counter, drive, point, ios):
    """One run of fio as `point` says on `drive`, `ios` I/Os in all: what it counted, as whole
    numbers; its IOPS; the plugin's blocks."""
    jobs = point.jobs
    env = {**point.env(), "DISK": ":".join("/dev/" + d for d in drive.disks[:point.disks]),
           "JOBS": str(jobs), "IOS": str(ios // jobs)}
    irqs, switches = drive.interrupts(), proc_value("/proc/stat", "ctxt")
    softirqs = proc_value("/proc/softirqs", "BLOCK:")
    out, words, blocks = counter.run(fio.command([f"{HERE}/jobs/{point.job}.fio"]), env)
    counts = {
        "interrupts": drive.interrupts() - irqs,
        "switches": proc_value("/proc/stat", "ctxt") - switches,
        "softirqs": proc_value("/proc/softirqs", "BLOCK:") - softirqs,
        "kernel": int(words["kernel"]),
        "user": int(words["user"]),
        "registers": sum(registers(words)),
    }
    counts["instructions"] = counts["kernel"] + counts["user"]
    measured = [job for job in fio.told(out, drive.disk) if job["jobname"] == "measured"]
    done = sum(job[way]["total_ios"] for job in measured for way in ("read", "write"))
    if done != ios // jobs * jobs:
        raise Failed(f"fio on {drive.disk}: {done} of {ios} I/Os")
    return counts, fio.iops(measured) + fio.iops(measured, "write"), blocks


def per_io(short, long, more):
    """The counts of one I/O from those of two runs, of which the long one has so many `more`."""
    return {k: (long[k] - short[k]) / more for k in long}
