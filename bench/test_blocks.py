# SPDX-License-Identifier: GPL-2.0
"""What is told of a device that takes blocks."""

import unittest

import blocks
import blocks_ram


def row(figure, iops, **more):
    """A point."""
    return {"figure": figure, "slow": 1, "strategy": "plain", "answers": 0, "full": 0, "size": 32,
            "op": "read", "threads": 1, "bytes": 4096, "closed": 2 * iops, "iops": iops,
            "mean_us": 10.0, **more}


class Tables(unittest.TestCase):
    def test_lines_of_the_example(self):
        told = blocks.rows_of('{"figure": "5", "iops": 1}\n{"figure": "6", "iops": 2}\n')
        self.assertEqual([one["figure"] for one in told], ["5", "6"])

    def test_the_interface_beside_its_closed_form(self):
        header, lines = blocks.interface([row("5", 50_000, size=size, answers=answers, op=op)
                                          for size in (4, 8) for answers in range(3)
                                          for op in ("read", "write")])
        self.assertEqual(header, ["descriptors a block", "4", "8"])
        self.assertEqual(lines[0], ["a block at once, reads", "50 (0.50)", "50 (0.50)"])
        self.assertEqual(len(lines), 6)

    def test_the_dynamic_driver_beside_the_best_static_size(self):
        rows = [row("6", rate, full=1, size=size, op=op)
                for op in ("read", "write") for size, rate in ((1, 100_000), (2, 200_000))]
        rows += [row("7", 150_000, strategy=says, op=op)
                 for says in blocks.SAYS for op in ("read", "write")]
        _, lines = blocks.dynamic(rows)
        self.assertEqual(lines[1], ["over the best static size", "0.75"])

    def test_slow_points_are_in_no_table_of_events(self):
        rows = [row("8", 10_000), row("8", 1, slow=10)]
        self.assertEqual(blocks.sizes(rows)[1], [["1", "41, 10 µs"]])

    def test_who_is_off_is_named(self):
        points = [row("7", 1000, slow=10, module_iops=iops, module_mean_us=1.0)
                  for iops in (960, 940)]
        told = list(blocks.faults({"rows": [], "points": points}))
        self.assertEqual(len(told), 1)
        self.assertIn("the module has 940 a second, the events 1000", told[0])

    def test_the_json_has_a_point_a_line(self):
        text = blocks.text_of({"rows": [{"iops": 1.23456}, {"iops": 2}], "points": []})
        self.assertEqual(text, '{"rows": [\n{"iops":1.2346},\n{"iops":2}],\n"points": [\n]}\n')


class Module(unittest.TestCase):
    def test_the_machine_s_time_is_four_times_the_real_one(self):
        told = blocks_ram.parameters(row("7", 1, slow=10, size=8, answers=2, full=1))
        self.assertEqual(told["ram_blocks_fetch_ns"], 120_000)
        self.assertEqual(told["ram_blocks_read_mb_s"], 40)
        self.assertEqual((told["ram_blocks_most"], told["ram_blocks_answers"],
                          told["ram_blocks_full"], told["strategy"]), (8, 2, 1, "plain"))
