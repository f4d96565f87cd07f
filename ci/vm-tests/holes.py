# SPDX-License-Identifier: GPL-2.0
"""holes.py write FILE: a file of 20,000 blocks of 4 KiB, no two of which are alike. holes.py punch
FILE: every other one is given back to the file system. holes.py read FILE: the others are as they
were, on the drive, too, and those read as zeroes. (A program a hole would take a machine that is
emulated an hour.)
"""
import ctypes
import os
import sys

BLOCKS, SIZE = 20_000, 4096
KEEP_SIZE, PUNCH_HOLE = 1, 2


def block(number):
    """What is in that block at first."""
    return number.to_bytes(8, "little") * (SIZE // 8)


def punch(path):
    """Gives every other block back."""
    call = ctypes.CDLL(None, use_errno=True).fallocate64
    call.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64
    with open(path, "r+b") as file:
        for at in range(0, BLOCKS * SIZE, 2 * SIZE):
            if call(file.fileno(), KEEP_SIZE | PUNCH_HOLE, at, SIZE):
                sys.exit(f"no hole at {at}: {os.strerror(ctypes.get_errno())}")
        os.fsync(file.fileno())


def main():
    verb, path = sys.argv[1:]
    if verb == "write":
        with open(path, "wb") as file:
            for number in range(1, BLOCKS + 1):
                file.write(block(number))
            file.flush()
            # They have their places before half of them go.
            os.fsync(file.fileno())
        return
    if verb == "punch":
        punch(path)
        return
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as drop:
        drop.write("3")
    with open(path, "rb") as file:
        for number in range(1, BLOCKS + 1):
            if file.read(SIZE) != (bytes(SIZE) if number % 2 else block(number)):
                sys.exit(f"block {number} is another")
        if file.read(1):
            sys.exit("there are more blocks")


main()
