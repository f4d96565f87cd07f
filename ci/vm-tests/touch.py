# SPDX-License-Identifier: GPL-2.0
"""touch.py GROUP MIB PROCESSES TOLD UNTIL: so many processes, in that control group, have MIB of
memory together, and each touches pages of its own at random: what is there is what it wrote last.
Every other one only reads after the beginning, so that there are pages that can go without being
written. They end when the file UNTIL is there, or, if it is a number, after so many touches; then
every page is looked at once more. TOLD has a line for each: how many pages it has touched. Where
GROUP is none (a kernel without such groups), they ask themselves for their memory to go, all of it
after as many touches as it has eighths of pages.

Says how each ended: "ok", "wrong", or by which signal. Status 0 where all are ok.
"""

import array
import mmap
import os
import random
import signal
import struct
import sys

PAGE = mmap.PAGESIZE
STAMP = struct.Struct("<QQQQ")
MADV_PAGEOUT = 21
LINE = 16


def content(who, page, version):
    """A page that no other is like, nor was."""
    return STAMP.pack(who + 1, page, version, ~version & 0xFFFFFFFF) * (PAGE // STAMP.size)


class Toucher:
    """The memory of one, and what is to be in it."""

    def __init__(self, who, pages, told, alone):
        self.who, self.told, self.touched = who, told, 0
        # Touches after which all of it goes; 0: it goes because it has to.
        self.goes_after = max(1, pages // 8) if alone else 0
        self.dice = random.Random(who)
        self.versions = array.array("L", [0]) * pages
        self.memory = mmap.mmap(-1, pages * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        # A page is what is swapped, and what is faulted in.
        if os.path.exists("/sys/kernel/mm/transparent_hugepage"):
            self.memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            self.put(page)

    def put(self, page):
        """The page has its version's content."""
        at = page * PAGE
        self.memory[at:at + PAGE] = content(self.who, page, self.versions[page])

    def check(self, page):
        """It has."""
        at = page * PAGE
        if self.memory[at:at + PAGE] != content(self.who, page, self.versions[page]):
            os.write(1, b"%d: page %d is wrong\n" % (self.who, page))
            os._exit(1)

    def touch(self):
        """A page of any is looked at, and, by every other process, written."""
        page = self.dice.randrange(len(self.versions))
        self.check(page)
        if self.who % 2 == 0:
            self.versions[page] += 1
            self.put(page)
        if self.goes_after and self.touched % self.goes_after == 0:
            self.memory.madvise(MADV_PAGEOUT)
        self.touched += 1
        if self.touched % 16 == 0:
            os.pwrite(self.told, b"%15d\n" % self.touched, self.who * LINE)


def child(who, group, pages, told, until):
    """All that one does."""
    alone = group == "none"
    if not alone:
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as procs:
            procs.write(str(os.getpid()))
    one = Toucher(who, pages, told, alone)
    if until.isdigit():
        for _ in range(int(until)):
            one.touch()
    else:
        while not os.path.exists(until):
            one.touch()
    for page in range(pages):
        one.check(page)


def main(group, mib, processes, told, until):
    """Starts them, and tells how they end. This process is not in the group: its memory stays."""
    processes = int(processes)
    with open(told, "wb") as file:
        file.write((b"%15d\n" % 0) * processes)
    told = os.open(told, os.O_WRONLY)
    children = []
    for who in range(processes):
        pid = os.fork()
        if not pid:
            child(who, group, (int(mib) << 20) // PAGE // processes, told, until)
            os._exit(0)
        children.append(pid)
    good = True
    for who, pid in enumerate(children):
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        how = {0: "ok", 1: "wrong"}.get(status) or signal.Signals(-status).name
        print(f"{who}: {how}")
        good = good and not status
    return 0 if good else 1


sys.exit(main(*sys.argv[1:]))
