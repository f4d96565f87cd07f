# SPDX-License-Identifier: GPL-2.0
"""What precompletion is worth, in words."""

import unittest

import naps


def row(load, driver, mean):
    return {"load": load, "driver": driver, "mean_us": mean, "p99_us": mean + 4,
            "cpu_ns_per_io": 8000, "neighbour": 0.5 if "+" in load else None}


class Lines(unittest.TestCase):
    result = {"latency_ns": 80_000, "scale": 4, "rows": [
        row("psync-1", "nvme", 340), row("psync-1", "hiops_nvme asleep", 336),
        row("psync-1", "hiops_nvme naps", 330), row("iopoll-1", "hiops_nvme", 324),
        row("psync-1+hog", "hiops_nvme asleep", 400), row("uring-1", "hiops_nvme ticks", 360),
        row("uring-32", "nvme", 999)]}

    def test_real_time_and_the_share_of_what_could_be_saved(self):
        told = list(naps.lines(self.result))
        self.assertEqual(told[2], ["80", "-", "hiops_nvme: naps", "2.5", "3.5", "2.00", "", "0.50"])
        self.assertEqual([cells[-1] for cells in told[:4]], ["-0.33", "0.00", "0.50", "1.00"])

    def test_nothing_to_hold_it_against_no_share(self):
        told = list(naps.lines(self.result))
        self.assertEqual(told[4], ["80", "hog", "hiops_nvme: asleep", "20.0", "21.0", "2.00",
                                   "0.500", ""])

    def test_other_loads_are_not_told(self):
        told = [cells[2] for cells in naps.lines(self.result)]
        self.assertEqual(told[4:], ["hiops_nvme: asleep", "hiops_nvme: io_uring, ticks"])
