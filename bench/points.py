# SPDX-License-Identifier: GPL-2.0
"""What is measured where drivers are compared by counts: sets of points, each one kind of load."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Point:
    """One load: bench/jobs/<job>.fio with `jobs` processes, blocks of `bs` bytes, `depth` in flight
    in each, on so many of the driver's disks."""

    job: str = "basic"
    jobs: int = 1
    bs: int = 512
    depth: int = 1
    hipri: int = 0
    disks: int = 1
    engine: str = "psync"
    rw: str = "randread"
    mix: int = 100

    def env(self):
        """What its job file is told."""
        told = {"BS": self.bs, "DEPTH": self.depth, "HIPRI": self.hipri, "ENGINE": self.engine,
                "RW": self.rw, "MIX": self.mix}
        return {name: str(value) for name, value in told.items()}

    def __str__(self):
        """In a table's first column."""
        if self.job == "basic":
            mix = f" {self.mix} %" * (self.mix < 100)
            kind = "" if self.rw == "randread" else f"{self.rw}{mix}, "
            depth = f"{self.engine} {self.depth} deep, " * (self.depth > 1)
            disks = f", {self.disks} disks" * (self.disks > 1)
            return f"{kind}{depth}{self.jobs} job{'s' * (self.jobs > 1)}, {self.bs} B{disks}"
        return f"io_uring{' IOPOLL' * self.hipri}, depth {self.depth}, {self.bs} B"


SETS = {
    # The paper's figure 7.
    "blocksize": [Point(jobs=jobs, bs=bs) for jobs in (1, 16, 64, 128)
                  for bs in (512, 2048, 4096, 8192, 32768)],
    # The paper's figure 1: more and more drives on one HBA.
    "ssds": [Point(jobs=64, disks=disks) for disks in (1, 2, 3, 4, 5, 6)],
    "uring": [Point(job="uring", depth=depth) for depth in (1, 8, 32, 128)],
    "iopoll": [Point(job="uring", depth=depth, hipri=1) for depth in (1, 8, 32, 128)],
    # Reads one after the other in large pieces, and a mix of reads and writes.
    "kinds": [Point(engine="libaio", depth=8, bs=131072, rw="read"),
              Point(jobs=16, bs=4096, rw="randrw", mix=70)],
    "floor": [Point(jobs=jobs) for jobs in (1, 16, 64)],
}


def one(text):
    """The one point that a text like "16", jobs, or "uring:2", the second of a set, means."""
    name, _, n = text.rpartition(":")
    return SETS[name][int(n) - 1] if name else Point(jobs=int(n))


def of(name, jobs):
    """The set `name`; without a name, 512-byte reads by each number of `jobs`, like "1,16"."""
    return SETS[name] if name else [Point(jobs=int(j)) for j in jobs.split(",")]
