# SPDX-License-Identifier: GPL-2.0
"""Is all there that was acknowledged? In the guest: check.py DRIVE FS FOLDER, with lines "PLACE
ENTRY COUNT..." of cuts.py on its standard input; FS is the file systems' type, or bytes, FOLDER
where to mount.

Tells a result for each.
"""

import os
import subprocess
import sys

import layout

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from report import Report  # noqa: E402

# What looks at a file system that was mounted, and so has replayed its journal, and changes
# nothing.
FSCK = {"ext4": ["e2fsck", "-fn"], "xfs": ["xfs_repair", "-n"]}


class Lost(Exception):
    """What is not there, or not right."""


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Lost(f"{command[0]}: {done.stdout.strip()[-300:]}")
    return done.stdout.strip()


def check_files(folder, count):
    for number in range(count):
        try:
            with open(f"{folder}/{number}", "rb") as file:
                found = file.read()
        except OSError as why:
            raise Lost(f"file {number} of {count}: {why.strerror}") from why
        if found != layout.file_data(number):
            raise Lost(f"file {number} of {count} is not what was written")


def check_slots(drive, offset, count):
    """Each slot is as it was acknowledged last, or, block by block, newer."""
    with open(drive, "rb") as file:
        for oldest in range(max(0, count - layout.SLOTS), count):
            file.seek(offset + layout.slot_at(oldest))
            for place in range(layout.SLOT_BLOCKS):
                found = layout.version_of(file.read(layout.BLOCK), place)
                if found is None or found < oldest or (found - oldest) % layout.SLOTS:
                    raise Lost(f"slot of version {oldest} of {count}, block {place}: {found}")


def check_values(drive, offset, writer, count):
    """Each value is as it was acknowledged last, or, sector by sector, newer."""
    with open(drive, "rb") as file:
        for oldest in range(max(0, count - layout.VALUES), count):
            at = layout.value_at(writer, oldest)
            file.seek(offset + at)
            found, begin = file.read(layout.VALUE), 0
            while begin < layout.VALUE:
                end = min(begin + layout.SECTOR - (at + begin) % layout.SECTOR, layout.VALUE)
                newer = range(oldest, oldest + 100 * layout.VALUES, layout.VALUES)
                if not any(layout.value(writer, version)[begin:end] == found[begin:end]
                           for version in newer):
                    raise Lost(f"{writer} value of version {oldest} of {count}, byte {begin}")
                begin = end


def check(drive, kind, folder, place, files, slots, *values):
    offset = place * layout.DRIVE
    if kind == "bytes":
        for writer, count in zip(("even", "odd"), values):
            check_values(drive, offset, writer, count)
        return
    loop = run("losetup", "-f", "--show", "-o", str(offset), "--sizelimit",
               str(layout.FILE_SYSTEM), drive)
    try:
        run("mount", "-t", kind, loop, folder)
        try:
            check_files(folder, files)
        finally:
            run("umount", folder)
        run(*FSCK[kind], loop)
        check_slots(drive, offset, slots)
    finally:
        run("losetup", "-d", loop)


def main(drive, kind, folder):
    os.makedirs(folder, exist_ok=True)
    told = Report()
    for line in sys.stdin:
        place, entry, *counts = map(int, line.split())
        name = f"{os.path.basename(folder)}-{entry}"
        try:
            check(drive, kind, folder, place, *counts)
            told.ok(name)
        except Lost as why:
            told.not_ok(name, str(why))
    return 0 if told.plan() else 1


sys.exit(main(*sys.argv[1:]))
