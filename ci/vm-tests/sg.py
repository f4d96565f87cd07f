# SPDX-License-Identifier: GPL-2.0
"""sg.py DISK: for each line "CDB [BYTES [KEY=VALUE...]]" sends the SCSI command CDB, in
hexadecimal, by SG_IO; BYTES of data come back, or, if negative, are sent. "sg.py DISK CDB ..." does
so once: on the debug kernel it takes seconds to start.

Prints a line of how that ended: "good", the sense data in hexadecimal, or the name of the errno;
then, of data that came with "good", the first 16 bytes. KEY=VALUE sets a field of the structure to
a number.
"""
import ctypes
import errno
import fcntl
import os
import sys

SG_IO = 0x2285
NONE, TO_DEVICE, FROM_DEVICE = -1, -2, -3
CHECK_CONDITION, DRIVER_SENSE = 2, 8


class Header(ctypes.Structure):
    """struct sg_io_hdr of scsi/sg.h."""
    _fields_ = [
        ("interface_id", ctypes.c_int), ("dxfer_direction", ctypes.c_int),
        ("cmd_len", ctypes.c_ubyte), ("mx_sb_len", ctypes.c_ubyte),
        ("iovec_count", ctypes.c_ushort), ("dxfer_len", ctypes.c_uint),
        ("dxferp", ctypes.c_void_p), ("cmdp", ctypes.c_void_p), ("sbp", ctypes.c_void_p),
        ("timeout", ctypes.c_uint), ("flags", ctypes.c_uint), ("pack_id", ctypes.c_int),
        ("usr_ptr", ctypes.c_void_p), ("status", ctypes.c_ubyte),
        ("masked_status", ctypes.c_ubyte), ("msg_status", ctypes.c_ubyte),
        ("sb_len_wr", ctypes.c_ubyte), ("host_status", ctypes.c_ushort),
        ("driver_status", ctypes.c_ushort), ("resid", ctypes.c_int),
        ("duration", ctypes.c_uint), ("info", ctypes.c_uint)]


def send(disk, cdb, size, fields):
    """The result as text."""
    data = ctypes.create_string_buffer(max(abs(size), 1))
    sense = ctypes.create_string_buffer(32)
    block = ctypes.create_string_buffer(cdb, len(cdb))
    address = ctypes.addressof
    direction = NONE if size == 0 else FROM_DEVICE if size > 0 else TO_DEVICE
    header = Header(interface_id=ord("S"), dxfer_direction=direction, cmd_len=len(cdb),
                    mx_sb_len=len(sense), dxfer_len=abs(size), dxferp=address(data),
                    cmdp=address(block), sbp=address(sense), timeout=20000)
    for name, value in fields:
        setattr(header, name, value)
    try:
        fcntl.ioctl(disk, SG_IO, header)
    except OSError as error:
        return errno.errorcode[error.errno]
    if (header.status == CHECK_CONDITION and header.driver_status == DRIVER_SENSE
            and header.masked_status == 1 and header.info == 1):
        return sense.raw[:header.sb_len_wr].hex()
    if header.status or header.driver_status or header.host_status:
        return f"status {header.status}, host {header.host_status}, driver {header.driver_status}"
    if size <= 0:
        return "good"
    return f"good {data.raw[:min(size - header.resid, 16)].hex()}"


def answer(path, cdb, size="0", *fields):
    """The result of a line, or of the arguments, as text."""
    pairs = (field.split("=") for field in fields)
    disk = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fields = [(name, int(value, 0)) for name, value in pairs]
        return send(disk, bytes.fromhex(cdb), int(size), fields)
    finally:
        os.close(disk)


def main():
    path, *once = sys.argv[1:]
    for words in [once] if once else map(str.split, sys.stdin):
        print(answer(path, *words), flush=True)


main()
