# SPDX-License-Identifier: GPL-2.0
"""What a load may be on, instead of the disks themselves: a file system on the first of them, a
device that is made of them, or memory that is swapped out to the first; and the elevator that it
may have above them. Inside the guest; there is no udev that would name such devices."""

import contextlib
import os
import subprocess

import sides
from errors import Failed

# What makes a file system, and how it is mounted: nothing is written behind the load's back.
SYSTEMS = {"ext4": (["mkfs.ext4", "-qF", "-E", "nodiscard"], "noatime,noinit_itable"),
           "xfs": (["mkfs.xfs", "-qfK"], "noatime")}
# dm's targets, whose lines end with the device and where on it they begin.
TARGETS = {"linear": "linear", "crypt": f"crypt aes-xts-plain64 {'5a' * 64} 0"}
RAIDS = {"raid0": ["--level=0", "--chunk=64"], "raid1": ["--level=1", "--assume-clean"]}
RAID = "/dev/md100"
# Modules of elevators.
ELEVATORS = {"kyber": "kyber-iosched", "bfq": "bfq"}


def run(*words):
    """Runs it: what it says."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(words)}: {done.stdout.strip()[-300:]}")
    return done.stdout


@contextlib.contextmanager
def elevator(name, disks):
    """The disks have that one meanwhile, if any."""
    chosen = [f"/sys/block/{disk}/queue/scheduler" for disk in disks if name]
    if name in ELEVATORS:
        # The kernel itself looks for the first of them only.
        run("modprobe", ELEVATORS[name])
    for path in chosen:
        sides.put(path, name, f"[{name}]")
    yield
    for path in chosen:
        sides.put(path, "none", "[none]")


@contextlib.contextmanager
def place(load, disks, group):
    """Where a load on such disks is told to be: {option: value} of each of its sections. `group` is
    the load's, if its memory is limited."""
    kind = load.on
    if kind in SYSTEMS:
        with mounted(kind, disks[0]) as folder:
            yield [{"filename": None, "directory": folder}]
    elif kind == "swap":
        with swapped(load, disks[0], group) as file:
            yield [{"filename": file}]
    elif kind in TARGETS:
        with mapped(kind, disks[0]) as device:
            yield [{"filename": device}]
    elif kind in RAIDS:
        run("mdadm", "--build", RAID, "--run", *RAIDS[kind], f"--raid-devices={len(disks)}",
            *(f"/dev/{disk}" for disk in disks))
        try:
            yield [{"filename": RAID}]
        finally:
            run("mdadm", "--stop", RAID)
    else:
        yield [{} for _ in disks]


@contextlib.contextmanager
def mounted(kind, disk):
    """The folder of a new file system on the disk, which is checked afterwards."""
    make, options = SYSTEMS[kind]
    folder = f"/run/on-{disk}"
    os.makedirs(folder, exist_ok=True)
    run(*make, f"/dev/{disk}")
    run("mount", "-o", options, f"/dev/{disk}", folder)
    try:
        yield folder
    finally:
        run("umount", folder)
    check = ["e2fsck", "-fn"] if kind == "ext4" else ["xfs_repair", "-n"]
    run(*check, f"/dev/{disk}")


@contextlib.contextmanager
def swapped(load, disk, group):
    """A file in memory, of the group's, of which most is on the disk."""
    folder = "/run/swapped"
    os.makedirs(folder, exist_ok=True)
    run("mkswap", f"/dev/{disk}")
    run("swapon", f"/dev/{disk}")
    run("mount", "-t", "tmpfs", "-o", "size=100%", "none", folder)
    try:
        # Pages of zeroes would not be written.
        subprocess.run(["dd", "if=/dev/urandom", f"of={folder}/file", "bs=1M", "status=none",
                        f"count={load.region >> 20}"], preexec_fn=group.join, check=True)
        yield f"{folder}/file"
    finally:
        run("umount", folder)
        run("swapoff", f"/dev/{disk}")


@contextlib.contextmanager
def mapped(kind, disk):
    """A device of dm's that is the whole disk."""
    with open(f"/sys/block/{disk}/size", encoding="ascii") as text:
        sectors = int(text.read())
    name = f"on-{disk}"
    run("dmsetup", "create", name, "--table", f"0 {sectors} {TARGETS[kind]} /dev/{disk} 0")
    minor = run("dmsetup", "info", "-c", "--noheadings", "-o", "minor", name).strip()
    try:
        yield f"/dev/dm-{minor}"
    finally:
        run("dmsetup", "remove", name)
