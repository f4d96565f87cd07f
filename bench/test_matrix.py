# SPDX-License-Identifier: GPL-2.0
"""What a cell of the matrix is told with."""

import unittest

import matrix


class Progress(unittest.TestCase):
    def test_real_units(self):
        cell = {"driver": "nvme", "iops": 1000, "p50_us": 320, "p99_us": 401}
        self.assertEqual(matrix.told(cell), "nvme 4000 IOPS, p50 80.0, p99 100.2 us")


class PerIo(unittest.TestCase):
    def test_what_has_grown_over_what_was_completed(self):
        before = {"completed": 100, "ticks": 10, "naps": 5, "max_irq_ns": 7}
        after = {"completed": 300, "ticks": 250, "naps": 5, "max_irq_ns": 9}
        self.assertEqual(matrix.per_io(before, after), {"completed": 1.0, "ticks": 1.2})

    def test_nothing_completed_nothing_told(self):
        self.assertEqual(matrix.per_io({}, {}), {})
        self.assertEqual(matrix.per_io({"completed": 1}, {"completed": 1, "ticks": 9}), {})
