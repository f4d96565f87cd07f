# SPDX-License-Identifier: GPL-2.0
"""Drives that lost power: cuts.py LOG BASE IMAGES FIRST COUNT SEED.

LOG is what reached a drive, in order (QEMU's blklogwrites, in the format of dm-log-writes); BASE is
what the drive held before. At COUNT places of the log, chosen at random, power is lost: all that
came before the last flush is there, and of what came later all, half, or nothing, as the drive's
cache pleases. Each such drive goes into the file IMAGES, side by side, from the FIRST place on.
Prints for each a line "PLACE ENTRY COUNT...": how much each of layout.WRITERS had acknowledged by
then.
"""

import os
import random
import struct
import sys

import layout

_SUPER = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<QQQQ")
_MAGIC = 0x6a736677736872
FLUSH, FUA, DISCARD = 1, 2, 4


class Entry:
    """A write, with or without data, or a flush."""

    def __init__(self, flags, at, size, where):
        self.flags, self.at, self.size, self.where = flags, at, size, where


def entries(log):
    """All of the log in the open file `log`."""
    magic, _, count, sector = _SUPER.unpack(log.read(_SUPER.size))
    if magic != _MAGIC:
        sys.exit("cuts: this is no log of writes")
    found, pos = [], sector
    for _ in range(count):
        log.seek(pos)
        at, sectors, flags, _ = _ENTRY.unpack(log.read(_ENTRY.size))
        pos += sector
        size = sectors * sector
        found.append(Entry(flags, at * sector, size, pos))
        if not flags & DISCARD:
            pos += size
    return found


def copy(source, target, offset):
    """What the sparse file `source` has of data."""
    end = os.fstat(source).st_size
    at = 0
    while at < end:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:
            break
        hole = os.lseek(source, at, os.SEEK_HOLE)
        os.pwrite(target, os.pread(source, hole - at, at), offset + at)
        at = hole


def is_ack(entry):
    return entry.at >= layout.ACKS_AT and entry.size == layout.BLOCK


def acknowledged(log, found, cut):
    """For each writer, what its last acknowledgement before the cut says."""
    said = {layout.ack_at(writer): 0 for writer in layout.WRITERS}
    for entry in found[:cut]:
        if is_ack(entry):
            said[entry.at] = layout.acked(os.pread(log.fileno(), entry.size, entry.where))
    return [said[layout.ack_at(writer)] for writer in layout.WRITERS]


def lose_power(log, found, cut, target, offset, dice):
    """Makes of the base at `offset` what is there after the cut."""
    flushed = max((n for n in range(cut) if found[n].flags & FLUSH), default=-1)
    kept = dice.choice((0.0, 0.5, 1.0))
    for n, entry in enumerate(found[:cut]):
        if n > flushed and not entry.flags & FUA and dice.random() >= kept:
            continue
        # What was discarded reads as it was: the drive may do so.
        if not entry.flags & DISCARD and entry.size:
            os.pwrite(target, os.pread(log.fileno(), entry.size, entry.where), offset + entry.at)


def main(log, base, images, first, count, seed):
    dice = random.Random(seed)
    source = os.open(base, os.O_RDONLY)
    target = os.open(images, os.O_RDWR | os.O_CREAT)
    with open(log, "rb") as log:
        found = entries(log)
        begin = next((n for n, entry in enumerate(found) if is_ack(entry)), len(found))
        for place in range(int(first), int(first) + int(count)):
            cut = dice.randrange(begin, len(found) + 1)
            offset = place * layout.DRIVE
            copy(source, target, offset)
            lose_power(log, found, cut, target, offset, dice)
            print(place, cut, *acknowledged(log, found, cut))
    os.ftruncate(target, max(os.fstat(target).st_size, (int(first) + int(count)) * layout.DRIVE))


main(*sys.argv[1:])
