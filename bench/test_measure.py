# SPDX-License-Identifier: GPL-2.0
"""What the main job ends with: a table of counts that needs no explanation."""

import unittest

import measure


class Tables(unittest.TestCase):
    def lines(self, rounds=1):
        cell = {key: 1.0 for key in measure.KEYS} | {"iops": 4711}
        pair = [cell | {"instructions": 20_000}, cell | {"instructions": 12_000}]
        row = {"load": "1 job, 512 B", "drivers": ["nvme", "hiops_nvme"], "per_io": pair,
               "ratio": 0.6}
        return list(measure.table([row], 1, rounds, True))

    def test_it_says_which_way_is_better_and_tells_no_speed(self):
        text = "\n".join(self.lines())
        self.assertIn("Fewer is better", text)
        self.assertNotRegex(text, "IOPS|4711|median")
        self.assertIn("median of 3", self.lines(3)[0])

    def test_a_line_a_driver_with_the_ratio_beside_the_second(self):
        _, head, first, second = self.lines()
        self.assertEqual(first.split(), ["1", "job,", "512", "B", "nvme", "20,000", *4 * ["1.00"]])
        self.assertEqual(second.split(), ["hiops_nvme", "12,000", "0.60", *4 * ["1.00"]])
        for line in head, first, second:
            self.assertLessEqual(len(line), 116)
