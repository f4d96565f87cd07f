# SPDX-License-Identifier: GPL-2.0
"""Tables of the documents, and that each is the result's."""

import unittest
from unittest import mock

import pages


def result(ratio, neighbour=None, load="psync-1"):
    cell = {"load": load, "p50_us": 1, "p99_us": 2, "p999_us": 3, "cpu_ns_per_io": 1500,
            "neighbour": neighbour}
    return {"model": "m", "kind": "nvme", "cpus": 1, "hiops": {},
            "rows": [{**cell, "driver": "nvme", "iops": 2000},
                     {**cell, "driver": "hiops_nvme", "iops": 2000 * ratio}]}


class Tables(unittest.TestCase):
    def test_a_whole_result(self):
        text = pages.whole(result(1.5, 0.25))
        self.assertEqual(text.splitlines()[2],
                         "| psync-1 | 2,000 | 3,000 | 1.50 | 1.0 / 1.0 | 2.0 / 2.0 | 3.0 / 3.0 "
                         "| 1.50 / 1.50 | 0.25 / 0.25 |")

    def test_a_result_is_read_in_real_units(self):
        slow = {**result(1.5), "scale": 4}
        with mock.patch.object(pages.record, "load", lambda path: slow):
            first, second = pages.load("x")["rows"]
        self.assertEqual((first["iops"], second["iops"], first["p99_us"]), (8000, 12000, 0.5))

    def test_digits_that_say_something(self):
        self.assertEqual([pages.short(us) for us in (0.25, 99.94, 100.4, 7673.1)],
                         ["0.2", "99.9", "100", "7,673"])

    def test_only_loads_that_all_results_have(self):
        more = result(1)
        more["rows"] += result(3, load="psync-2")["rows"]
        text = pages.side_by_side([more, result(2)])
        self.assertEqual(text.splitlines()[2:], ["| psync-1 | 1.00 | 2.00 |"])

    def test_of_two_ways_the_second_over_the_first(self):
        both = result(1)
        both["rows"] = [{**cell, "driver": name, "mean_us": mean, "iops": 1000 / mean}
                        for cell, name, mean in zip(3 * both["rows"][:1],
                                                    ("nvme", "hiops_nvme off", "hiops_nvme on"),
                                                    (9, 5, 4))]
        self.assertEqual(pages.by_ways(both).splitlines()[2:],
                         ["| psync-1 | 1.25 | 0.80 | 1.00 | 1.00 |  |"])

    def test_only_what_is_marked_is_filled_in(self):
        page = "a\n<!-- table x -->\nold\n<!-- end -->\nb\n"
        with mock.patch.object(pages, "load", lambda name: result({"x": 1}[name])):
            new = pages.filled(page)
            self.assertEqual(new, pages.filled(new))
        self.assertTrue(new.startswith("a\n<!-- table x -->\n| load |"))
        self.assertTrue(new.endswith("|\n<!-- end -->\nb\n"))
        self.assertNotIn("old", new)

    def test_the_pages_hold_what_the_results_say(self):
        for name in pages.PAGES:
            with open(name) as text:
                page = text.read()
            self.assertIn("<!-- end -->", page)
            self.assertEqual(page, pages.filled(page), name)

    def test_the_pictures_hold_what_the_results_say(self):
        for name, draw in pages.PICTURES.items():
            with open(name) as text:
                self.assertTrue(text.read() == draw(), f"bench/run pages draws {name} anew")
