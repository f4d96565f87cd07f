# SPDX-License-Identifier: GPL-2.0
"""records.py write FOLDER WRITERS TOLD UNTIL: each of so many threads appends numbered records to
files of its own and has each one made durable by an fsync, until the file UNTIL is there or
something fails. TOLD has a line for each writer: how many of its records are acknowledged. At the
end a line says for each what failed, if anything did: "fsync EIO". A writer whose write fails still
asks for its fsync: that must fail, too.

records.py read FOLDER COUNT...: of each writer so many records are there, and are what was written.
Its older files, which it has removed, are not asked for.
"""

import errno
import hashlib
import os
import sys
import threading

# Records of a file, after which there is a new one, and the last but one goes.
IN_A_FILE = 1000
LINE = 16


def record(writer, number):
    """Bytes that no other record has, of a length that is no block's."""
    name = b"%d %d\n" % (writer, number)
    return name + hashlib.shake_128(name).digest(64 + number * 7919 % 4033)


def path_of(folder, writer, number):
    """The file that has the record."""
    return f"{folder}/{writer}.{number // IN_A_FILE}"


class Writer(threading.Thread):
    """One that writes."""

    def __init__(self, folder, number, told, until):
        super().__init__()
        self.folder, self.number, self.told, self.until = folder, number, told, until
        self.acked, self.failed = 0, "nothing"

    def open(self):
        """The file that its next record opens; its name is durable, too."""
        path = path_of(self.folder, self.number, self.acked)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        if self.acked >= 2 * IN_A_FILE:
            os.unlink(path_of(self.folder, self.number, self.acked - 2 * IN_A_FILE))
        return file

    def append(self, file):
        """The next record is durable."""
        data = record(self.number, self.acked)
        try:
            if os.write(file, data) != len(data):
                raise OSError(errno.ENOSPC, "a short write")
        finally:
            os.fsync(file)
        self.acked += 1
        os.pwrite(self.told, b"%15d\n" % self.acked, self.number * LINE)

    def run(self):
        what, file = "open", -1
        try:
            while not os.path.exists(self.until):
                if self.acked % IN_A_FILE == 0:
                    if file >= 0:
                        os.close(file)
                    what, file = "open", self.open()
                what = "fsync"
                self.append(file)
        except OSError as why:
            self.failed = f"{what} {errno.errorcode[why.errno]}"


def write(folder, writers, told, until):
    """Runs them until they end, and tells how."""
    with open(told, "wb") as file:
        file.write((b"%15d\n" % 0) * int(writers))
        file.flush()
        all_of_them = [Writer(folder, n, file.fileno(), until) for n in range(int(writers))]
        for writer in all_of_them:
            writer.start()
        for writer in all_of_them:
            writer.join()
    for writer in all_of_them:
        print(f"{writer.number}: {writer.acked} acknowledged, failed: {writer.failed}")


def read(folder, *counts):
    """Looks for all that was acknowledged."""
    for writer, count in enumerate(map(int, counts)):
        first = max(0, (count - 1) // IN_A_FILE - 1) * IN_A_FILE
        for start in range(first, count, IN_A_FILE):
            with open(path_of(folder, writer, start), "rb") as file:
                for number in range(start, min(count, start + IN_A_FILE)):
                    wanted = record(writer, number)
                    if file.read(len(wanted)) != wanted:
                        sys.exit(f"writer {writer}: record {number} of {count} is not there")


{"write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
