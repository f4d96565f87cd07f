# SPDX-License-Identifier: GPL-2.0
"""SQLite: what is read of its speed test's words, and that a database is looked at."""

import os
import sqlite3
import tempfile
import unittest

import sqlite
from errors import Failed

# As the test of SQLite 3.46.1 printed it; of its lines the last ones.
SPEED = """\
 980 - PRAGMA integrity_check......................................    0.014s
 990 - ANALYZE.....................................................    0.002s
       TOTAL.......................................................    0.318s
Verification Hash: 826556 2ef302098d252181c4cb98b84a8a332a8e98506910393697
"""


class Told(unittest.TestCase):
    def test_total_and_what_was_read(self):
        self.assertEqual(sqlite.told(SPEED), (0.318, "826556 2ef302098d252181c4cb98b84a8a332a"
                                                     "8e98506910393697"))

    def test_cut_off(self):
        for words in ("TOTAL", "Verification"):
            with self.subTest(words=words), self.assertRaises(Failed):
                sqlite.told("".join(line for line in SPEED.splitlines(True) if words not in line))


class Check(unittest.TestCase):
    def test_a_whole_one_and_a_torn_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one.db")
            with sqlite3.connect(path) as database:
                database.execute("create table t (a unique)")
                database.executemany("insert into t values (?)",
                                     ((f"{n:0100}",) for n in range(999)))
            database.close()
            sqlite.check(path)
            with open(path, "r+b") as file:
                file.seek(3 * 4096 + 512)
                file.write(bytes(2048))
            with self.assertRaises(Failed):
                sqlite.check(path)
