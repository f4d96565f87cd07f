# SPDX-License-Identifier: GPL-2.0
"""Who waited for what: what bpftrace printed, and the table of it."""

import json
import unittest

import waited
import waits


def printed(name, *stacks):
    """A line of bpftrace's: the map `name`, of (thread, functions, times)."""
    return json.dumps({"type": "map", "data": {f"@{name}": {
        f"{comm},\\n        " + "\\n        ".join(f"{f}+12" for f in functions) + "\\n": times
        for comm, functions, times in stacks}}})


COLD = ["folio_wait_bit_common", "filemap_get_pages", "filemap_read", "blkdev_read_iter"]
OUT = "\n".join([
    json.dumps({"type": "attached_probes", "data": {"probes": 4}}), "ready",
    printed("waits", ("reader", ["io_schedule", *COLD], 90),
            ("kworker/0:1", ["io_schedule_timeout", "wait_for_common"], 9),
            ("kworker/1:1", ["io_schedule_timeout", "wait_for_common"], 1)),
    printed("own", ("reader", ["hiops_io_schedule_timeout", "hiops_io_schedule", *COLD], 80)),
    printed("others", ("jbd2/sda-8", ["__schedule", "schedule", "log_wait"], 60))])
PLACE = "folio_wait_bit_common < filemap_get_pages < filemap_read"


class Waits(unittest.TestCase):
    def setUp(self):
        found = waited.counts(OUT)
        self.rows = list(waited.rows_of("cold-64", found))

    def test_one_place_whoever_schedules(self):
        self.assertEqual(self.rows[0], {"load": "cold-64", "thread": "reader", "place": PLACE,
                                        "waits": 90, "own": 80})

    def test_numbered_threads_are_one(self):
        self.assertEqual(self.rows[1], {"load": "cold-64", "thread": "kworker",
                                        "place": "wait_for_common", "waits": 10, "own": 0})

    def test_who_sleeps_elsewhere_is_told_apart(self):
        self.assertEqual(self.rows[2], {"load": "cold-64", "thread": "jbd2", "place": "log_wait",
                                        "others": 60})
        result = {"rows": self.rows}
        self.assertEqual(waits.summary(result), [("cold-64", 100, 0.8)])
        _, lines = waits.told(result)
        self.assertEqual([line[3:] for line in lines],
                         [["100", "0.800"], ["90", "0.889"], ["60", "past the hook"],
                          ["10", "0.000"]])
