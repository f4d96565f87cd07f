# SPDX-License-Identifier: GPL-2.0
"""SQLite as a program that is measured: its own speed test, which tells how long it takes. Each
commit is synced (synchronous=FULL, what SQLite does as it comes)."""

import contextlib
import os
import re
import sqlite3

from errors import Failed

# Of the test's 100.
SIZE = 10
LOADS = {f"sqlite-{journal}": journal for journal in ("delete", "wal")}


def systems(_name):
    """The file systems that a load is on."""
    return ("ext4",)


def make(_data, _programs):
    """It has nothing from the start."""


def told(out):
    """(the ns that all of it took, what it read in a word), by the speed test's words."""
    total = re.search(r"^ *TOTAL\.* +([\d.]+)s$", out, re.M)
    seen = re.search(r"^Verification Hash: (\d+ [0-9a-f]+)$", out, re.M)
    if not total or not seen:
        raise Failed(f"SQLite's speed test came to no end: {out.strip()[-300:]}")
    return float(total[1]), seen[1]


class Program:
    """SQLite on one side's file system."""

    # What the test read, of a kind of journal: the same on all sides.
    read = {}

    def __init__(self, folder, _data, programs):
        self.folder, self.test = folder, f"{programs}/speedtest1"

    def run(self, watch, name, _seconds):
        """What is told of the load `name`."""
        path = f"{self.folder}/{name}.db"
        out, _ = watch.run([self.test, "--size", str(SIZE), "--verify", "--journal", LOADS[name],
                            path])
        seconds, seen = told(out)
        if self.read.setdefault(name, seen) != seen:
            raise Failed(f"{name} read {seen} and not {self.read[name]} as before")
        check(path)
        os.unlink(path)
        return {"seconds": seconds}

    def end(self):
        """All was checked."""


def check(path):
    """The database is whole."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            said = database.execute("PRAGMA integrity_check").fetchall()
    except sqlite3.DatabaseError as why:
        said = why
    if said != [("ok",)]:
        raise Failed(f"SQLite says of {path}: {said}")
