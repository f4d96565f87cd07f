# SPDX-License-Identifier: GPL-2.0
"""A drive of the crash test: where what lies on it, and what is written.

A file system, then *slots* that are overwritten in place, then *acknowledgements*: a block for each
writer, in which it notes, without waiting for it to be durable, how much of its work is. What
stands there at any moment was promised before that moment. On a drive of bytes there are *values*
in place of the file system and the slots: packed, so that blocks hold parts of several, and by
turns of two writers.
"""

import hashlib
import struct

MIB = 1 << 20
BLOCK = 4096
# A file system: XFS takes no less.
FILE_SYSTEM = 304 * MIB
SLOTS_AT = FILE_SYSTEM
SLOTS = 64
SLOT_BLOCKS = 4
ACKS_AT = SLOTS_AT + 8 * MIB
# The writers, by the place of their block.
WRITERS = ("files", "slots", "even", "odd")
# Values of each of their two writers.
VALUES = 64
VALUE = 300
# What a drive writes whole, or not.
SECTOR = 512
DRIVE = 320 * MIB

_ACK = struct.Struct("<8sQ")
_STAMP = struct.Struct("<8sQI")
_MAGIC = b"hiopscr1"


def ack(count):
    """The block that says that the writer's works 0 to `count` - 1 are durable."""
    return _ACK.pack(_MAGIC, count).ljust(BLOCK, b"\0")


def acked(block):
    """What such a block says; 0 for one that was never written."""
    magic, count = _ACK.unpack_from(block)
    return count if magic == _MAGIC else 0


def ack_at(writer):
    """The byte on the drive where the writer's block lies."""
    return ACKS_AT + WRITERS.index(writer) * BLOCK


def slot_at(version):
    """The byte on the drive where the slot lies that is written as `version`."""
    return SLOTS_AT + version % SLOTS * SLOT_BLOCKS * BLOCK


def slot(version):
    """What is written there; each block bears a stamp of its own, as a write may be torn."""
    return b"".join(_STAMP.pack(_MAGIC, version, n) + data(version, n, BLOCK - _STAMP.size)
                    for n in range(SLOT_BLOCKS))


def version_of(block, place):
    """Which version of its slot the block is, by its place there; None: none, or it is damaged."""
    magic, version, n = _STAMP.unpack_from(block)
    whole = (magic == _MAGIC and n == place
             and block[_STAMP.size:] == data(version, n, BLOCK - _STAMP.size))
    return version if whole else None


def value_at(writer, version):
    """The byte on the drive where the value lies that the writer, even or odd, writes as
    `version`."""
    return (version % VALUES * 2 + (writer == "odd")) * VALUE


def value(writer, version):
    """What is written there."""
    return data(version, 2 + (writer == "odd"), VALUE)


def file_data(number):
    """What the file of that number holds: 1 to 48 KiB."""
    return data(number, 0, 1024 + number * 7919 % (47 * 1024))


def data(number, part, size):
    """Bytes that nothing else has."""
    seed = hashlib.sha256(b"%d %d" % (number, part)).digest()
    return (seed * (size // len(seed) + 1))[:size]
