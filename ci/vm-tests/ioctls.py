# SPDX-License-Identifier: GPL-2.0
"""ioctls.py KIND NODE...: how each node of a drive of that kind, nvme or sata, takes the ioctls of
tools, a line each: "PLACE NAME: RESULT [WRITTEN DATA SENSE]", or the errno's name. PLACE is the
node's among the others, WRITTEN what of the argument is told, DATA how the data begins, SENSE a
sense key with its codes.
"""
import ctypes
import errno
import fcntl
import os
import struct
import sys

DATA = ctypes.create_string_buffer(4096)
SENSE = ctypes.create_string_buffer(32)
# The commands of SG_IO, which its structures point to.
BLOCKS = []


def word(value):
    """An int that is read, written and told."""
    return struct.pack("<i", value), slice(4)


def untold(argument, told=slice(0)):
    """A structure of which no more than that is told."""
    return argument, told


def scsi(cdb, size):
    """SG_IO (struct sg_io_hdr) of the command, for so many bytes of data; its status is told."""
    block = ctypes.create_string_buffer(bytes.fromhex(cdb))
    BLOCKS.append(block)
    pointers = [ctypes.addressof(memory) for memory in (DATA, block, SENSE)]
    return untold(struct.pack("<iiBBHIQQQIIi4xQBBBBHHiII4x", ord("S"), -3 if size else -1,
                              len(cdb) // 2, len(SENSE), 0, size, *pointers, 20000, *[0] * 12),
                  slice(64, 65))


def nvme(opcode, size, cdw10, nsid=1):
    """struct nvme_passthru_cmd."""
    return untold(struct.pack("<BBHIIIQQIIIIIIIIII", opcode, 0, 0, nsid, 0, 0, 0,
                              ctypes.addressof(DATA), 0, size, cdw10, *[0] * 7))


def nvme64(*command):
    """struct nvme_passthru_cmd64."""
    return untold(nvme(*command)[0][:68] + bytes(12))


# struct nvme_user_io: eight blocks are read.
READ = struct.pack("<BBHHHQQQIIHH4x", 2, 0, 0, 7, 0, 0, ctypes.addressof(DATA), 0, 0, 0, 0, 0)
ADMIN, ADMIN64, IO, IO64, SUBMIT, SG_IO = (0xc0484e41, 0xc0504e47, 0xc0484e43, 0xc0504e48,
                                           0x40304e42, 0x2285)
KINDS = {
    "sata": [
        ("SG_GET_VERSION_NUM", 0x2282, word(0)),
        ("SG_EMULATED_HOST", 0x2203, word(0)),
        ("SG_GET_TIMEOUT", 0x2202, 0),
        ("SG_SET_TIMEOUT", 0x2201, word(1000)),
        ("SG_SET_TIMEOUT, negative", 0x2201, word(-1)),
        ("SG_GET_TIMEOUT then", 0x2202, 0),
        ("SG_SET_TIMEOUT, none", 0x2201, word(0)),
        # How much can be reserved is another size with each driver.
        ("SG_GET_RESERVED_SIZE", 0x2272, untold(bytes(4))),
        ("SG_SET_RESERVED_SIZE", 0x2275, word(1 << 30)),
        ("SG_SET_RESERVED_SIZE, negative", 0x2275, word(-1)),
        ("SG_SCSI_RESET of nothing", 0x2284, word(0)),
        ("SG_SCSI_RESET of nothing, not escalated", 0x2284, word(0x100)),
        ("SG_SCSI_RESET of the device", 0x2284, word(1)),
        # The host is another one with each driver; the unit is 0.
        ("SCSI_IOCTL_GET_IDLUN", 0x5382, untold(bytes(8), slice(1, 2))),
        ("SCSI_IOCTL_GET_BUS_NUMBER", 0x5386, untold(bytes(4))),
        ("SCSI_IOCTL_PROBE_HOST", 0x5385, 0),
        ("SCSI_IOCTL_TEST_UNIT_READY", 2, 0),
        ("SCSI_IOCTL_DOORLOCK", 0x5380, 0),
        ("SCSI_IOCTL_DOORUNLOCK", 0x5381, 0),
        ("TEST UNIT READY", SG_IO, scsi("000000000000", 0)),
        ("INQUIRY", SG_IO, scsi("120000006000", 96)),
        ("INQUIRY of the serial number", SG_IO, scsi("120180002400", 36)),
        ("INQUIRY of names", SG_IO, scsi("120183006800", 104)),
        ("READ CAPACITY (10)", SG_IO, scsi("25000000000000000000", 8)),
        ("REPORT LUNS", SG_IO, scsi("a00000000000000000100000", 16)),
        ("LOG SENSE", SG_IO, scsi("4d004000000000004000", 64)),
        ("no command", SG_IO, scsi("ff0000000000", 0)),
        ("IDENTIFY DEVICE", SG_IO, scsi("85080e00000001" + "00" * 6 + "40ec00", 512)),
        ("HDIO_GET_IDENTITY", 0x030d, untold(bytes(512), slice(512))),
        ("HDIO_DRIVE_CMD", 0x031f, word(0xe5)),
        ("HDIO_DRIVE_TASK", 0x031e, untold(bytes([0xe5] + [0] * 6), slice(7))),
        ("NVME_IOCTL_ID", 0x4e40, 0),
        ("none", 0x12ff, 0),
    ],
    "nvme": [
        ("NVME_IOCTL_ID", 0x4e40, 0),
        ("NVME_IOCTL_RESET", 0x4e44, 0),
        ("identify the namespace", ADMIN, nvme(6, 4096, 0)),
        ("identify the controller", ADMIN, nvme(6, 4096, 1, 0)),
        ("identify the namespaces", ADMIN, nvme(6, 4096, 2, 0)),
        ("identify, 64 bits", ADMIN64, nvme64(6, 4096, 1, 0)),
        ("SMART log", ADMIN, nvme(2, 512, 0x7f0002, 0xffffffff)),
        ("SMART log, 64 bits", ADMIN64, nvme64(2, 512, 0x7f0002, 0xffffffff)),
        ("a vendor's own", ADMIN, nvme(0xff, 0, 0)),
        ("read", IO, nvme(2, 512, 0)),
        ("read, 64 bits", IO64, nvme64(2, 512, 0)),
        ("read blocks", SUBMIT, untold(READ)),
        ("SG_IO", SG_IO, scsi("000000000000", 0)),
        ("none", 0x12ff, 0),
    ],
}
# So much of the data is told: all that is the drive's, and none of what counts.
TOLD = {"sata": 104, "nvme": 16}


def ask(node, code, argument, most):
    """How that ends, as text."""
    ctypes.memset(DATA, 0, len(DATA))
    ctypes.memset(SENSE, 0, len(SENSE))
    written, told = argument if argument else (b"", slice(0))
    written = bytearray(written)
    try:
        status = fcntl.ioctl(node, code, written or 0)
    except OSError as error:
        return errno.errorcode[error.errno]
    sense = SENSE.raw
    # In descriptors, or fixed.
    sense = sense[1:4] if sense[0] & 0x7f == 0x72 else bytes([sense[2] & 0xf, *sense[12:14]])
    data = DATA.raw[:most].rstrip(b"\0")
    return " ".join([str(status), written[told].hex(), data.hex(), sense.hex()])


def main():
    kind, *nodes = sys.argv[1:]
    for place, path in enumerate(nodes):
        node = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        for name, code, argument in KINDS[kind]:
            print(f"{place} {name}: {ask(node, code, argument, TOLD[kind])}")
        os.close(node)


main()
