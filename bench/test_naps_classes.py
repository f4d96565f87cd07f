# SPDX-License-Identifier: GPL-2.0
"""What the forecast tells apart, as a table."""

import unittest

import naps_classes


class Rows(unittest.TestCase):
    def row(self, mix):
        cell = {"mean_us": 80, "cpu_ns_per_io": 20_000, "switches": 0.5}
        counts = {"completed": 4000, "naps": 2000, "naps_hit": 1500, "naps_late": 480,
                  "naps_vain": 20}
        return naps_classes.row(mix, "naps", cell, counts, 4)

    def test_real_time_and_a_read_each(self):
        table = naps_classes.table_of([self.row(naps_classes.MIXES[0])]).splitlines()
        self.assertEqual(table[2], "| 4 KiB, 1 µs | naps | 20.0 | 5.00 | 0.50 | 0.50 | 0.01 |")

    def test_no_cpu_time_of_what_is_copied(self):
        table = naps_classes.table_of([self.row(naps_classes.MIXES[1])]).splitlines()
        self.assertEqual(table[2], "| 64 KiB, 10 µs | naps | 20.0 |  | 0.50 | 0.50 | 0.01 |")
