# SPDX-License-Identifier: GPL-2.0
"""The client of a key-value store inside a guest: a program that fills it and then asks (asker.c,
kvstore.c), and what is read beside it."""

import mmap
import os
import struct
import subprocess
import time

from errors import Failed
from stage import WORK

# The limit of a wait, in seconds of the machine's.
LONG = 300
# ns of the machine's from meter's start to the window's begin. A program that starts has the CPU
# for several turns, and hiops' waiters let nobody run for 16 times as long, and longer where that
# comes again (docs/waiting.md).
SETTLE_NS = 400_000_000


def until(what, true):
    """Waits until it is true."""
    end = time.monotonic() + LONG
    while not true():
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {LONG} s")
        time.sleep(0.02)


def numbers(text):
    """{name: number} of lines "NAME NUMBER"."""
    return {name: int(value) for name, value in map(str.split, text.splitlines())}


def reads_of(disk, table):
    """Reads that a text of /proc/diskstats has of the disk; none of no disk."""
    return sum(int(words[3]) for words in map(str.split, table.splitlines())
               if len(words) > 14 and words[2] == disk)


def counter(name):
    """A file in RAM in which a program counts: its path."""
    path = f"{WORK}/{name}"
    with open(path, "wb") as file:
        file.write(bytes(8))
    return path


def window(asks, ns):
    """meter's options for a window of so many ns, from which on the client's latencies count."""
    return ["-w", str(SETTLE_NS), "-n", str(int(ns)), "-k", str(asks.process.pid)]


class Client:
    """A program of bench/ that says "filled N", asks after a line, and tells when it is ended."""

    def __init__(self, words, gets):
        """`words` are the program and its arguments, `gets` the file in which it counts them."""
        self.name = f"bench/{words[0]}"
        self.process = subprocess.Popen([f"{WORK}/{words[0]}", *words[1:]], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with open(gets, "r+b") as file:
            self.counted = mmap.mmap(file.fileno(), 8)

    def filled(self):
        """Waits until it has set values: how many."""
        words = self.process.stdout.readline().split()
        if words[:1] != ["filled"]:
            raise Failed(f"{self.name} did not fill the store: status {self.process.wait()}")
        return int(words[1])

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def gets(self):
        return struct.unpack("Q", self.counted)[0]

    def wait(self, more):
        """Until it has got so many more; the ns that each took."""
        first, began = self.gets(), time.monotonic_ns()
        until(f"{more} gets", lambda: self.gets() >= first + more or self.process.poll())
        return (time.monotonic_ns() - began) / max(self.gets() - first, 1)

    def end(self):
        """What it tells."""
        self.process.terminate()
        told = self.process.stdout.read()
        if self.process.wait():
            raise Failed(f"{self.name} ended with status {self.process.returncode}: "
                         f"{' '.join(told.split())}")
        return numbers(told)
