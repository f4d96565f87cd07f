# SPDX-License-Identifier: GPL-2.0
"""RocksDB: what is read of db_bench's words."""

import unittest

import rocksdb
from errors import Failed

# As db_bench 9.10 printed it, without its lines of progress and its histogram.
READ = """\
DB path: [/run/d/db]
readrandom   :    2845.575 micros/op 21545 ops/sec 2.967 seconds 63936 operations;    8.5 MB/s \
(999 of 999 found)

Microseconds per read:
Count: 63936 Average: 2856.3318  StdDev: 4842.90
Min: 9  Median: 2371.1510  Max: 144045
Percentiles: P50: 2371.15 P75: 3258.66 P99: 13283.09 P99.9: 78167.76 P99.99: 108227.22
"""
FILL = """\
DB path: [/run/d/db2]
fillrandom   :      33.962 micros/op 29444 ops/sec 3.396 seconds 100000 operations;   11.7 MB/s
Microseconds per write:
Count: 100000 Average: 32.3318  StdDev: 42.90
Min: 9  Median: 29.5  Max: 4045
Percentiles: P50: 29.50 P75: 32.66 P99: 590.80 P99.9: 781.76 P99.99: 1082.22
"""


class Told(unittest.TestCase):
    def test_reads(self):
        self.assertEqual(rocksdb.told("readrandom", READ),
                         {"operations_s": 21545, "operations": 63936, "p50_ns": 2371150,
                          "p99_ns": 13283090})

    def test_writes(self):
        self.assertEqual(rocksdb.told("fillrandom", FILL)["operations_s"], 29444)

    def test_a_key_that_is_lost(self):
        with self.assertRaisesRegex(Failed, "998 of 999"):
            rocksdb.told("readrandom", READ.replace("(999 of", "(998 of"))

    def test_nothing_told(self):
        with self.assertRaises(Failed):
            rocksdb.told("readrandom", "put error: IO error\n")


class Loads(unittest.TestCase):
    def test_what_changes_the_database_is_the_last(self):
        self.assertEqual(list(rocksdb.LOADS)[-1], "rocksdb-while-writing-16")
        self.assertTrue(all("--readonly=true" in words for words in
                            list(rocksdb.LOADS.values())[1:-1]))
