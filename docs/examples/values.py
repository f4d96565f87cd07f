#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""values keeps small values on a disk, one after the other without padding, by the disk's bytes
(docs/bytes.md). values.c does the same, and either reads what the other has written.

    values.py new FILE            begins a log at FILE's first byte: what is there is lost
    values.py put FILE TEXT...    appends values, and prints their numbers once they are durable
    values.py get FILE NUMBER     prints one; the first is 1

    | sum 4 | length 4 | magic 8 | seed 8 | sum 4 | length 4 | value | sum 4 | length 4 | ...
A sum, the CRC-32 of length and value, goes on from the sum before; the seed is random. So the log
ends where none fits: what follows is a record that was cut off as power failed, or one of an older
log, or anything. A damaged record ends it, too. Numbers are little endian.
"""

import os
import struct
import sys
import zlib

HEAD = struct.Struct("<II")
MOST = 4096 - HEAD.size
MAGIC, SEED = b"values 1", 8


class Log:
    """The log in a file, as far as it is known: its end, and the last record's sum."""

    def __init__(self, path, flags):
        self.path, self.end, self.sum = path, 0, 0
        self.file = self.attempt("opened", os.open, path, flags)
        self.size = self.attempt("opened", os.lseek, self.file, 0, os.SEEK_END)

    def attempt(self, what, call, *args):
        """What `call` returns; its error names the file."""
        try:
            return call(*args)
        except OSError as error:
            sys.exit(f"values: {self.path} can't be {what} (hiops-bytes(4)): {error.strerror}")

    def read(self, count, at):
        """All of it: a call may end early, as where a disk fails, and the next one tells why."""
        data = b""
        while len(data) < count:
            some = self.attempt("read", os.pread, self.file, count - len(data), at + len(data))
            if not some:
                sys.exit(f"values: {self.path} has become shorter: begin again")
            data += some
        return data

    def write(self, data, at):
        """Likewise."""
        while data:
            done = self.attempt("written", os.pwrite, self.file, data, at)
            data, at = data[done:], at + done

    def sum_with(self, value):
        """The sum of a record at the end that has this value."""
        return zlib.crc32(struct.pack("<I", len(value)) + value, self.sum)

    def records(self):
        """Reads the record at the end, goes past it, and yields its value, until there is none."""
        while (room := self.size - self.end - HEAD.size) >= 0:
            told, length = HEAD.unpack(self.read(HEAD.size, self.end))
            if length > min(MOST, room):
                break
            value = self.read(length, self.end + HEAD.size)
            if told != self.sum_with(value):
                break
            self.sum, self.end = told, self.end + HEAD.size + length
            yield value

    def append(self, value):
        """Writes a record to the end, and goes past it."""
        if len(value) > min(MOST, self.size - self.end - HEAD.size):
            most = f"{MOST} at most, or {self.path} is full"
            sys.exit(f"values: no room for {len(value)} bytes: {most}")
        self.sum = self.sum_with(value)
        record = HEAD.pack(self.sum, len(value)) + value
        self.write(record, self.end)
        self.end += len(record)

    def values(self):
        """What was put, in turn."""
        records = self.records()
        if not next(records, b"").startswith(MAGIC):
            sys.exit(f"values: {self.path} has no log: values new {self.path} begins one there")
        return records

    def new(self):
        self.append(MAGIC + os.urandom(SEED))
        self.attempt("made durable", os.fdatasync, self.file)

    def put(self, *texts):
        first = 1 + sum(1 for _ in self.values())
        for text in texts:
            self.append(os.fsencode(text))
        self.attempt("made durable", os.fdatasync, self.file)
        print(*range(first, first + len(texts)), sep="\n")

    def get(self, wanted):
        count = 0
        for count, value in enumerate(self.values(), 1):
            if str(count) == wanted:
                return sys.stdout.buffer.write(value + b"\n")
        sys.exit(f"values: {self.path} has {count} values, and no number {wanted}")


def main(verb="", path="", *rest):
    if not {"new": not rest, "put": len(rest) > 0, "get": len(rest) == 1}.get(verb) or not path:
        print("usage: values new FILE | put FILE TEXT... | get FILE NUMBER", file=sys.stderr)
        sys.exit(2)
    # With O_EXCL a disk has one writer; an ordinary file may have several, who spoil it.
    log = Log(path, os.O_RDONLY if verb == "get" else os.O_RDWR | os.O_EXCL)
    getattr(log, verb)(*rest)


if __name__ == "__main__":
    main(*sys.argv[1:])
