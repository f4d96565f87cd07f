# SPDX-License-Identifier: GPL-2.0
"""hostile.py SECONDS SEED NODE...: for so long, several threads send every ioctl that hiops knows,
and some that it does not, to the nodes: with structures of values at the ends of their ranges, and
with memory that is not there, not whole, not writable, or the kernel's. A node that goes is opened
anew. Prints which answers came, and "broken" with what was none that a program understands.
"""

import collections
import ctypes
import errno
import mmap
import os
import random
import struct
import sys
import threading
import time

# ID, RESCAN, ADMIN_CMD, ADMIN64_CMD, SUBMIT_IO, IO_CMD, IO64_CMD and its
# vectored form (linux/nvme_ioctl.h).
NVME = [0x4E40, 0x4E46, 0xC0484E41, 0xC0504E47, 0x40304E42, 0xC0484E43, 0xC0504E48, 0xC0504E49]
# SG_IO, HDIO_GET_IDENTITY, HDIO_DRIVE_CMD, HDIO_DRIVE_TASK, HDIO_GETGEO (scsi/sg.h,
# linux/hdreg.h).
SATA = [0x2285, 0x030D, 0x031F, 0x031E, 0x0301]
# IOC_PR_REGISTER to IOC_PR_READ_RESERVATION (linux/pr.h).
PR = [0x401870C8, 0x401070C9, 0x401070CA, 0x401870CB, 0x401870CC, 0x401070CD, 0xC01070CE,
      0x801070CF]
RESET = 0x4E44
# A namespace that is detached is no victim any more; a format takes long, and has a test of its
# own: Namespace Management and Attachment, Format, Sanitize.
ADMIN_SPARED = {0x0D, 0x15, 0x80, 0x84}
# SLEEP, security, firmware, and what takes the drive's size away.
ATA_SPARED = {0xE6, 0x99, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0x92, 0x93, 0x37, 0xF9, 0xB1}
LENGTHS = [0, 1, 3, 4, 511, 512, 513, 4095, 4096, 4097, 8192, 65536, 2 << 20, (2 << 20) + 1,
           1 << 31, 0xFFFFFFFF]
DWORDS = [0, 1, 2, 7, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]
KNOWN = {"EACCES", "EPERM", "EINVAL", "EFAULT", "ENOTTY", "ENODEV", "ENXIO", "EIO", "ETIMEDOUT",
         "EMSGSIZE", "ENOMEM", "EOPNOTSUPP", "ENOTSUP", "EROFS", "EINTR", "EBUSY", "ENOENT"}
OPCODES = [0, 1, 2, 4, 5, 6, 8, 9, 0xA, 0xC, 0xD, 0x10, 0x11, 0x14, 0x19, 0x7C, 0x81, 0x82, 0xC1]
COMMANDS = [0xEC, 0xE5, 0xE7, 0xB0, 0x25, 0x35, 0x2F, 0x60, 0x61, 0x08, 0xEF]
CDBS = [0x85, 0xA1, 0x12, 0x25, 0x9E, 0x1A, 0x35, 0x91]

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
PAGE = mmap.PAGESIZE
BIG = 1 << 21


def room(size, protection):
    return libc.mmap(None, size, protection, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)


class Places:
    """Memory of all kinds."""

    def __init__(self, dice):
        both = mmap.PROT_READ | mmap.PROT_WRITE
        # What runs over its end hits memory that nobody may touch, and not Python's own.
        self.good = room(2 * BIG, both)
        libc.mprotect(self.good + BIG + PAGE, BIG - PAGE, 0)
        read_only, half = room(BIG, mmap.PROT_READ), room(2 * PAGE, both)
        # A hole would soon be somebody's: memory that nobody may touch is none, too.
        libc.mprotect(half + PAGE, PAGE, 0)
        self.bad = [
            0,
            1,
            PAGE,
            half + PAGE - 8,
            half + PAGE,
            read_only,
            room(PAGE, 0),
            0x7FFFFFFFF000,
            1 << 63,
            0xFFFF888000000000,
            0xFFFFFFFF81000000,
            0xFFFFFFFFFFFFF000,
            0xFFFFFFFFFFFFFFFF,
        ]
        self.dice = dice

    def any(self):
        """Mostly memory that is there: else nothing else is tried."""
        kind = self.dice.random()
        return (
            self.good + self.dice.choice([0, 1, 512, PAGE - 1])
            if kind < 0.7
            else self.dice.choice(self.bad)
        )


def nvme(dice, places, code):
    dword = lambda: dice.choice(DWORDS)
    admin = code & 0xFF in (0x41, 0x47)
    opcode = dice.choice([*OPCODES, dice.randrange(256)])
    if admin and opcode in ADMIN_SPARED:
        opcode = 6
    if code == 0x40304E42:
        return struct.pack(
            "<BBHHHQQQIIHH4x",
            dice.choice([0, 1, 2, 5, 9, 255]),
            dice.choice([0, 0, 0, 1, 255]),
            dword() & 0xFFFF,
            dice.choice([0, 7, 1023, 0xFFFF]),
            0,
            places.any(),
            places.any(),
            dword(),
            dword(),
            dword(),
            0,
            0,
        )
    nsid = dice.choice([0, 1, 1, 1, 2, 0xFFFFFFFF])
    flags = dice.choice([0] * 8 + [1, 0x40, 0xFF])
    return struct.pack(
        "<BBHIIIQQIIIIIIIII12x",
        opcode,
        flags,
        0,
        nsid,
        dword(),
        dword(),
        dice.choice([0] * 8 + [places.any()]),
        places.any(),
        dice.choice([0] * 8 + [64]),
        dice.choice(LENGTHS),
        dword(),
        dword(),
        dword(),
        dword(),
        dword(),
        dword(),
        dice.choice([0, 0, 0, 1, 50, 0xFFFFFFFF]),
    )


def sata(dice, places, code):
    command = dice.choice([*COMMANDS, dice.randrange(256)])
    command = 0xEC if command in ATA_SPARED else command
    if code != 0x2285:
        return bytes([command] + [dice.choice([0, 1, 0xD0, 255]) for _ in range(7)])
    cdb = bytearray(dice.choice([0, 1, 2, 255]) for _ in range(32))
    cdb[0] = dice.choice([*CDBS, dice.randrange(256)])
    cdb[14 if cdb[0] == 0x85 else 9] = command
    block = places.good + BIG - PAGE
    ctypes.memmove(block, bytes(cdb), 32)
    return struct.pack(
        "<iiBBHIQQQIIiQ24x",
        dice.choice([ord("S")] * 8 + [0, -1]),
        dice.choice([-1, -2, -3, -4, 0, 7]),
        dice.choice([0, 5, 6, 12, 16, 32, 33, 255]),
        dice.choice([0, 8, 32, 255]),
        dice.choice([0] * 8 + [1, 65535]),
        dice.choice(LENGTHS),
        places.any(),
        dice.choice([block] * 8 + [places.any()]),
        places.any(),
        dice.choice([0, 1, 0xFFFFFFFF]),
        dice.choice(DWORDS),
        0,
        0,
    )


def reservation(dice, places, code):
    key = lambda: dice.choice([0, 1, 0xFFFFFFFFFFFFFFFF])
    if code == 0xC01070CE:
        room = dice.choice([0, 1, 1000, 16383, 16384, 65536, 65537, 0xFFFFFFFF])
        return struct.pack("<IIQ", 0, room, places.any())
    fields = [dice.choice([0, 1, 2, 6, 7, 0xFFFFFFFF]), dice.choice([0, 0, 1, 2, 0xFFFFFFFF])]
    keys = [key(), key()] if code & 0xFF0000 == 0x180000 else [key()]
    return struct.pack("<" + "Q" * len(keys) + "II", *keys, *fields)


def attack(seed, nodes, until, answers):
    dice = random.Random(seed)
    places = Places(dice)
    # Some answer with 255 blocks behind it.
    argument = room(BIG, mmap.PROT_READ | mmap.PROT_WRITE)
    disks = {}
    while time.monotonic() < until:
        path = dice.choice(nodes)
        try:
            if path not in disks or dice.random() < 0.02:
                if path in disks:
                    os.close(disks.pop(path))
                disks[path] = os.open(path, dice.choice([os.O_RDONLY, os.O_RDWR]) | os.O_NONBLOCK)
        except OSError as error:
            answers["open " + errno.errorcode[error.errno]] += 1
            time.sleep(0.02)
            continue
        kinds = [(NVME, nvme), (SATA, sata)]
        if dice.random() < 0.95:
            kinds = kinds[1:] if "d0" in path or "d1" in path else kinds[:1]
        codes, make = (PR, reservation) if dice.random() < 0.1 else dice.choice(kinds)
        code = (
            dice.choice(codes)
            if dice.random() < 0.97
            else dice.choice([RESET, 0, 0xFFFFFFFF, 0x4E4A, dice.randrange(1 << 32)])
        )
        body = make(dice, places, code)
        ctypes.memmove(argument, body + bytes(128 - len(body)), 128)
        where = argument
        if dice.random() < 0.15:
            where = places.any()
        result = libc.ioctl(disks[path], code, where)
        answers[
            (
                "positive"
                if result > 0
                else (
                    "0"
                    if result == 0
                    else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))
                )
            )
        ] += 1
    finished.append(True)


finished = []


def main():
    seconds, seed, *nodes = sys.argv[1:]
    answers = collections.Counter()
    until = time.monotonic() + float(seconds)
    threads = [
        threading.Thread(target=attack, args=(int(seed) * 100 + n, nodes, until, answers))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(dict(sorted(answers.items())))
    if finished.count(True) != len(threads):
        print("broken threads")
    for answer in sorted(answers):
        name = answer.removeprefix("open ")
        if name not in KNOWN | {"0", "positive"}:
            print("broken", answer)


main()
