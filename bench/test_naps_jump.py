# SPDX-License-Identifier: GPL-2.0
"""What becomes of naps after a jump, as a table."""

import types
import unittest

import naps_jump


class Rows(unittest.TestCase):
    def test_the_first_reads_apart_in_real_time(self):
        slow, fast = (types.SimpleNamespace(device_us=us) for us in (300, 80))
        # The first ten took what the slow one takes, by a clock that is four times as fast.
        reads = [(4 * 302_000, False)] * 10 + [(4 * 82_500, True)] * 990
        row = naps_jump.row("naps", slow, fast, reads)
        self.assertEqual(naps_jump.table_of([row]).splitlines()[2],
                         "| 300 | 80 | naps | 0.90 | 24.4 | 10 | 1.00 | 2.5 | 0 |")
