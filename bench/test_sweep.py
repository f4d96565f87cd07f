# SPDX-License-Identifier: GPL-2.0
"""Where precompletion pays, as a table."""

import unittest

import sweep


def result(latency_ns, spread_percent, naps_us):
    def row(driver, mean, cpu):
        return {"load": "psync-1", "driver": driver, "mean_us": mean, "p99_us": mean + 8,
                "cpu_ns_per_io": cpu}

    return {"latency_ns": latency_ns, "spread_percent": spread_percent, "scale": 4, "rows": [
        row("nvme", 999, 1), row("hiops_nvme asleep", 340, 1000),
        row("hiops_nvme naps", naps_us, 1250)]}


class Sweep(unittest.TestCase):
    rows = sweep.gathered([result(80_000, 5, 342), result(80_000, 0, 332), result(5_000, 0, 340)])

    def test_what_is_saved_is_real_time(self):
        self.assertEqual(self.rows[1], {"latency_ns": 80_000, "spread_percent": 0, "way": "naps",
                                        "saved_us": 2.0, "p99_saved_us": 2.0, "cpu_ratio": 1.25})

    def test_a_line_a_latency_a_column_a_spread(self):
        self.assertEqual(sweep.tables(self.rows).splitlines(), [
            "| naps: device, µs | 0 % | 5 % |", "| --- | --- | --- |",
            "| 5 | +0.0 (1.25) |  |", "| 80 | +2.0 (1.25) | -0.5 (1.25) |"])
