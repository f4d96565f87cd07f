# SPDX-License-Identifier: GPL-2.0
"""The writers of the crash test, in the guest: load.py DRIVE FOLDER [--flush], or, for a drive of
bytes, load.py DRIVE bytes [--flush].

Until the machine is killed: files, each with fsync of it and its folder; slots, by turns with
fdatasync and O_DSYNC; and beside them writes that nobody waits for. Of bytes: values, likewise, and
what each of two writers leaves of a block is the other's. Tells now and then how much is
acknowledged; with --flush that is only what a flush of the drive has followed, as a drive that does
not know FUA would lose what a file system has written with it.
"""

import mmap
import os
import sys
import threading

import layout

# Works between two lines that tell of them.
TOLD = 16
# What nobody waits for goes round in so many blocks.
NOISE_BLOCKS = 256


class Acks:
    """A writer's block on the drive."""

    def __init__(self, drive, writer, flush):
        self.fd = os.open(drive, os.O_WRONLY | os.O_DIRECT)
        self.flush = flush
        self.at = layout.ack_at(writer)
        self.name = f"{os.path.basename(drive)} {writer}"
        self.page = mmap.mmap(-1, layout.BLOCK)

    def note(self, count):
        if self.flush:
            os.fdatasync(self.fd)
        self.page[:] = layout.ack(count)
        os.pwrite(self.fd, self.page, self.at)
        if count % TOLD == 0:
            print(f"host: acked {self.name} {count}", flush=True)


def write_files(drive, folder, flush):
    acks = Acks(drive, "files", flush)
    parent = os.open(folder, os.O_RDONLY)
    number = 0
    while True:
        fd = os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(fd, layout.file_data(number))
        os.fsync(fd)
        os.close(fd)
        os.fsync(parent)
        number += 1
        acks.note(number)


def write_slots(drive, flush):
    acks = Acks(drive, "slots", flush)
    page = mmap.mmap(-1, layout.BLOCK * layout.SLOT_BLOCKS)
    plain = os.open(drive, os.O_WRONLY | os.O_DIRECT)
    durable = os.open(drive, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    version = 0
    while True:
        page[:] = layout.slot(version)
        if version % 2:
            os.pwrite(durable, page, layout.slot_at(version))
        else:
            os.pwrite(plain, page, layout.slot_at(version))
            os.fdatasync(plain)
        version += 1
        acks.note(version)


def write_values(drive, writer, flush):
    acks = Acks(drive, writer, flush)
    plain = os.open(f"{drive}_bytes", os.O_WRONLY)
    durable = os.open(f"{drive}_bytes", os.O_WRONLY | os.O_DSYNC)
    version = 0
    while True:
        value, at = layout.value(writer, version), layout.value_at(writer, version)
        if version % 2:
            os.pwrite(durable, value, at)
        else:
            os.pwrite(plain, value, at)
            os.fdatasync(plain)
        version += 1
        acks.note(version)


def write_noise(folder):
    fd = os.open(f"{folder}/noise", os.O_WRONLY | os.O_CREAT)
    n = 0
    while True:
        os.pwrite(fd, layout.data(n, 1, layout.BLOCK), n % NOISE_BLOCKS * layout.BLOCK)
        n += 1
        if n % NOISE_BLOCKS == 0:
            # Written back by now, but not flushed: the disk may forget it.
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def run(work, *args):
    """A writer that ends, for whatever reason, ends the program."""
    try:
        work(*args)
    except BaseException as why:
        print(f"host: failed {args[0]} {work.__name__}: {why}", flush=True)
    os._exit(1)


def main(drive, folder, flush=None):
    works = ((write_files, (drive, folder, flush)), (write_slots, (drive, flush)),
             (write_noise, (folder,)))
    if folder == "bytes":
        works = [(write_values, (drive, writer, flush)) for writer in ("even", "odd")]
    for work, args in works:
        threading.Thread(target=run, args=(work, *args)).start()


main(*sys.argv[1:])
