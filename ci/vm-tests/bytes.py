#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What bytes.sh does with /dev/<disk>_bytes that a shell can't: bytes.py VERB BYTES DISK [ARG...].

check: every edge, and ranges at random, are what the block device has there. readers: threads read
at random until a file is there, and compare; the last line says how often, and what went wrong.
"""
import ctypes
import errno
import mmap
import os
import random
import sys
import threading

MOST = 4096


def content(disk):
    """All of the disk, by the block layer."""
    fd = os.open(disk, os.O_RDONLY | os.O_DIRECT)
    size = os.lseek(fd, 0, os.SEEK_END)
    piece = mmap.mmap(-1, 1 << 20)
    whole = bytearray()
    while len(whole) < size:
        count = os.preadv(fd, [piece], len(whole))
        whole += piece[:count]
    os.close(fd)
    return bytes(whole)


def wanted(whole, offset, length):
    return whole[offset : offset + min(length, MOST)]


def fails(with_, call, *args):
    try:
        call(*args)
    except OSError as error:
        assert error.errno == with_, f"errno {error.errno} instead of {with_}"
    else:
        raise AssertionError(f"no errno {with_}")


def edges(fd, whole, block):
    size = len(whole)
    near = [0, 1, 2, block - 1, block, block + 1, 2 * block - 1, 2 * block, 3 * block + 7]
    lengths = [0, 1, 2, block - 1, block, block + 1, MOST - 1, MOST, MOST + 1, 1 << 20]
    for offset in near + [size - at for at in near[1:]] + [size, size + 1, 2**62]:
        for length in lengths:
            got = os.pread(fd, length, offset)
            assert got == wanted(whole, offset, length), f"{length} at {offset}: {len(got)}"
    fails(errno.EINVAL, os.pread, fd, 1, -1)
    assert os.pread(fd, 1, 2**63 - 2) == b""


def guards(fd, whole):
    """Nothing outside the caller's buffer is written, wherever that begins and ends."""
    for length in (1, 7, 511, 513, 4095):
        room = bytearray(b"\xa5" * (length + 64))
        got = os.preadv(fd, [memoryview(room)[32 : 32 + length]], 777)
        assert got == length
        assert room[:32] == b"\xa5" * 32 and room[-32:] == b"\xa5" * 32, "outside"
        assert room[32:-32] == whole[777 : 777 + length]
    parts = [bytearray(3), bytearray(0), bytearray(700), bytearray(100)]
    assert os.preadv(fd, parts, 511) == 803
    assert b"".join(parts) == whole[511 : 511 + 803]


def faults(fd, whole):
    """A page that is not there: what came before it is read, or EFAULT."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
    libc.pread.restype = ctypes.c_ssize_t
    # Pages that were never touched, and one that is unmapped behind them.
    at = libc.mmap(None, 3 * 4096, 3, 0x22, -1, 0)
    libc.munmap(at + 2 * 4096, 4096)
    assert libc.pread(fd, at + 4096 - 100, 300, 50) == 300
    assert ctypes.string_at(at + 4096 - 100, 300) == whole[50:350]
    for inside in (1, 8, 100, 4095):
        got = libc.pread(fd, at + 2 * 4096 - inside, 4096, 3)
        # A copy stops a few bytes before the page, as copy_to_user() may.
        assert inside - 8 <= got <= inside or got == -1, got
        if got > 0:
            assert ctypes.string_at(at + 2 * 4096 - inside, got) == whole[3 : 3 + got]
    assert libc.pread(fd, at + 2 * 4096, 100, 0) == -1
    assert ctypes.get_errno() == errno.EFAULT


def check(path, disk, block, times):
    whole = content(disk)
    assert len(set(whole[:65536])) > 200, "the disk has nothing to tell apart"
    fd = os.open(path, os.O_RDONLY)
    edges(fd, whole, block)
    guards(fd, whole)
    faults(fd, whole)
    assert os.lseek(fd, 0, os.SEEK_END) == len(whole)
    os.lseek(fd, 5, os.SEEK_SET)
    assert os.read(fd, 10) + os.read(fd, 10) == whole[5:25]
    fails(errno.EOPNOTSUPP, os.preadv, fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    for mode in (os.O_WRONLY, os.O_RDWR):
        fails(errno.EROFS, os.open, path, mode)
    os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    os.close(fd)
    wrong = []

    def reader(seed):
        dice = random.Random(seed)
        fd = os.open(path, os.O_RDONLY)
        for _ in range(times):
            offset, length = dice.randrange(len(whole)), dice.randrange(1, MOST + 1)
            if os.pread(fd, length, offset) != wanted(whole, offset, length):
                wrong.append((offset, length))
        os.close(fd)

    together([threading.Thread(target=reader, args=(seed,)) for seed in range(8)])
    assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"


def together(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def readers(path, disk, count, enough):
    """As many as `count`, until the file `enough` is there, or the disk is not."""
    whole = content(disk)
    told, lock = {"reads": 0, "wrong": 0}, threading.Lock()

    def reader(seed):
        dice, fd, reads, wrong, last = random.Random(seed), os.open(path, os.O_RDONLY), 0, 0, None
        while not os.path.exists(enough):
            offset, length = dice.randrange(len(whole)), dice.randrange(1, 600)
            try:
                wrong += os.pread(fd, length, offset) != wanted(whole, offset, length)
            except OSError as error:
                last = errno.errorcode[error.errno]
                break
            reads += 1
        os.close(fd)
        with lock:
            told["reads"] += reads
            told["wrong"] += wrong
            if last:
                told[last] = told.get(last, 0) + 1

    print("ready", flush=True)
    together([threading.Thread(target=reader, args=(seed,)) for seed in range(count)])
    print(" ".join(f"{name}={number}" for name, number in sorted(told.items())), flush=True)


if __name__ == "__main__":
    verb, path, disk, *rest = sys.argv[1:]
    if verb == "check":
        check(path, disk, int(rest[0]), int(rest[1]))
    else:
        readers(path, disk, int(rest[0]), rest[1])
