# SPDX-License-Identifier: GPL-2.0
"""Threads that write and read back, each blocks of its own, and know what must stand there."""

import mmap
import os
import random
import sys
import threading

BLOCK = 4096
# What stands in memory before a read.
UNTOUCHED = b"untouched memory" * (BLOCK // 16)
# Blocks of each thread.
BLOCKS = 64
THREADS = 6


class Load:
    """I/O on a disk from byte `at` on, until stop(). Counts, all threads together."""

    def __init__(self, disk, at):
        self.disk, self.at = disk, at
        self.enough = threading.Event()
        self.lock = threading.Condition()
        self.done = self.failed = self.wrong = 0
        self.threads = [threading.Thread(target=self._work, args=(n,), daemon=True)
                        for n in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def wait(self, more, seconds):
        """Until so many more I/Os have ended, well or not; False: that took too long."""
        with self.lock:
            wanted = self.done + self.failed + more
            return self.lock.wait_for(lambda: self.done + self.failed >= wanted, seconds)

    def stop(self, seconds):
        """True when every thread has come to its end: no I/O is left that nobody answers."""
        self.enough.set()
        for thread in self.threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self.threads)

    def _count(self, done=0, failed=0, wrong=0):
        with self.lock:
            self.done += done
            self.failed += failed
            self.wrong += wrong
            self.lock.notify_all()

    def _wrong(self, number, block, found, stands):
        """Tells what a read has found that does not stand there."""
        if found == UNTOUCHED:
            what = "memory that nobody wrote to"
        elif found in stands.values():
            what = "another block"
        else:
            pieces = {found[n:n + 16] for n in range(0, BLOCK, 16)}
            what = f"{found[:16].hex()}, pieces: {len(pieces)}"
        sector = (self.at + (number * BLOCKS + block) * BLOCK) // 512
        print(f"{self.disk}: thread {number}, block {block} (sector {sector}): {what}",
              file=sys.stderr, flush=True)
        self._count(wrong=1)

    def _work(self, number):
        dice = random.Random(number)
        fd = os.open(f"/dev/{self.disk}", os.O_RDWR | os.O_DIRECT)
        page = mmap.mmap(-1, BLOCK)
        # By block: what was written, or None where a write has failed, and nobody knows.
        stands = {}
        while not self.enough.is_set():
            block = dice.randrange(BLOCKS)
            place = self.at + (number * BLOCKS + block) * BLOCK
            write = block not in stands or dice.random() < 0.5
            try:
                if write:
                    stamp = dice.randbytes(16) * (BLOCK // 16)
                    page[:] = stamp
                    stands[block] = None
                    os.pwrite(fd, page, place)
                    stands[block] = stamp
                else:
                    page[:] = UNTOUCHED
                    # Of a disk that has gone nothing is read, without an error.
                    if os.preadv(fd, [page], place) != BLOCK:
                        raise OSError("short")
                    if stands[block] is not None and page[:] != stands[block]:
                        self._wrong(number, block, bytes(page), stands)
                self._count(done=1)
            except OSError:
                self._count(failed=1)
        os.close(fd)
