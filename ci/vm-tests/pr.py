# SPDX-License-Identifier: GPL-2.0
"""pr.py DISK [ASK...]: asks for persistent reservations (linux/pr.h), a line each: what the ioctl
returned, or the errno; and what was read. DISK may be the number of a descriptor that is open.
Without ASK all of them. PR_MODE=r opens the disk for reading.
"""

import ctypes
import errno
import fcntl
import os
import struct
import sys

KEY, OTHER = 0x1122334455667788, 0x99AABBCCDDEEFF00
keys = ctypes.create_string_buffer(8 * 4)
ADDRESS = ctypes.addressof(keys)


def out(number, *fields):
    """_IOW('p', number, ...): two keys, or one, and what follows."""
    kind = "<QQII" if len(fields) == 4 else "<QII"
    return 0x40007000 | number | struct.calcsize(kind) << 16, struct.pack(kind, *fields)


def read_keys(room, address=ADDRESS):
    """_IOWR('p', 206, ...)"""
    return 0xC01070CE, struct.pack("<IIQ", 0, room, address)


ASKS = {
    "register": out(200, 0, KEY, 0, 0),
    "register-ignore": out(200, 0, KEY, 1, 0),
    "replace": out(200, KEY, OTHER, 0, 0),
    "register-flag": out(200, 0, KEY, 2, 0),
    **{f"reserve-{kind}": out(201, KEY, kind, 0) for kind in (0, 1, 6, 7, 0xFFFFFFFF)},
    "reserve-ignore": out(201, KEY, 1, 1),
    "reserve-flag": out(201, KEY, 1, 0x80000000),
    "release": out(202, KEY, 1, 0),
    "release-0": out(202, 0, 1, 0),
    "release-flag": out(202, KEY, 1, 1),
    "preempt": out(203, KEY, OTHER, 2, 0),
    "preempt-abort": out(204, KEY, OTHER, 2, 0),
    "preempt-flag": out(203, KEY, OTHER, 2, 1),
    "clear": out(205, KEY, 0, 0),
    "clear-0": out(205, 0, 0, 0),
    "clear-flag": out(205, KEY, 1, 0),
    "keys-0": read_keys(0),
    "keys-4": read_keys(4),
    "keys-too-many": read_keys(0x10001),
    "keys-nowhere": read_keys(4, 8),
    # _IOR('p', 207, ...)
    "reservation": (0x801070CF, bytes(16)),
}


def answer(disk, name):
    code, body = ASKS[name]
    body = bytearray(body)
    keys.raw = bytes(32)
    try:
        result = fcntl.ioctl(disk, code, body)
    except OSError as error:
        return errno.errorcode[error.errno]
    return f"{result} {body.hex()} {keys.raw.hex()}" if code >> 31 and result == 0 else str(result)


def main():
    path, *names = sys.argv[1:]
    mode = os.O_RDONLY if os.environ.get("PR_MODE") == "r" else os.O_RDWR
    disk = int(path) if path.isdigit() else os.open(path, mode)
    for name in names or ASKS:
        print(name, answer(disk, name))


main()
