# SPDX-License-Identifier: GPL-2.0
"""stuck.py DISK argument|data: has an NVMe disk identify its controller, with the argument of the
ioctl or the room for the data in memory of which no page comes before a line, or the end, is read
from the standard input. Prints "stuck" when the kernel waits for such a page, then how the command
ended.
"""
import ctypes
import errno
import fcntl
import mmap
import os
import struct
import sys
import threading

ADMIN = 0xC0484E41
IDENTIFY, CONTROLLER = 6, 1
USERFAULTFD = 323
API, REGISTER, ZEROPAGE = 0xC018AA3F, 0xC020AA00, 0xC020AA04
PAGE = 4096


def main():
    path, which = sys.argv[1:]
    disk = os.open(path, os.O_RDONLY)
    faults = ctypes.CDLL(None, use_errno=True).syscall(USERFAULTFD, os.O_CLOEXEC)
    fcntl.ioctl(faults, API, struct.pack("QQQ", 0xAA, 0, 0))
    absent = mmap.mmap(-1, PAGE)
    at = ctypes.addressof(ctypes.c_char.from_buffer(absent))
    there = ctypes.create_string_buffer(PAGE)

    def answer():
        os.read(faults, 32)
        print("stuck", flush=True)
        sys.stdin.readline()
        fcntl.ioctl(faults, ZEROPAGE, struct.pack("QQQQ", at, PAGE, 0, 0))

    # The command as the kernel reads it: opcode and so on, namespace; data; its length; dword 10.
    data = at if which == "data" else ctypes.addressof(there)
    dword10 = struct.pack("<I", CONTROLLER)
    command = struct.pack("<II16xQII24s8x", IDENTIFY, 0, data, 0, PAGE, dword10)
    argument = ctypes.create_string_buffer(command, 72)
    fcntl.ioctl(faults, REGISTER, struct.pack("QQQQ", at, PAGE, 1, 0))
    threading.Thread(target=answer, daemon=True).start()
    libc = ctypes.CDLL(None, use_errno=True)
    where = at if which == "argument" else ctypes.addressof(argument)
    result = libc.ioctl(disk, ctypes.c_ulong(ADMIN), ctypes.c_void_p(where))
    print("ended", errno.errorcode[ctypes.get_errno()] if result < 0 else result, flush=True)


main()
