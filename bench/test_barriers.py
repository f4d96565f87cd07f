# SPDX-License-Identifier: GPL-2.0
"""What orders memory in one read: from the plugin's lines to the table."""

import unittest
from unittest import mock

import barriers
import functions


class Symbols:
    """A function each 0x100 bytes."""

    NAMES = "kernel", "submit [hiops]", "nvme_queue_rq [nvme]"

    def at(self, addr):
        return self.NAMES[addr >> 8], addr & 0xff


LINES = ["block region=1 addr=0x0 insns=90 runs=9 locked=9 mfence=0 rdtsc=18",
         "block region=1 addr=0x100 insns=40 runs=4 locked=8 mfence=4 rdtsc=0",
         "block region=1 addr=0x120 insns=4 runs=4 locked=4 mfence=0 rdtsc=0",
         "block region=1 addr=0x200 insns=7 runs=1 locked=0 mfence=0 rdtsc=0"]


class Blocks(unittest.TestCase):
    def test_blocks_add_up_to_functions(self):
        blocks = functions.by_block(Symbols(), LINES)
        self.assertEqual(blocks["submit [hiops]", 0x20], (4, 4, 4, 0, 0))
        self.assertEqual(functions.by_function(blocks)["submit [hiops]"], [44, 4])
        self.assertEqual(functions.barriers_of(blocks),
                         [["kernel", 9, 0, 18], ["submit [hiops]", 12, 4, 0]])

    def test_what_happens_in_passing_is_left_out(self):
        few = {("submit [hiops]", 0): (1, 1, barriers.FEW / 2, 0, 0)}
        self.assertEqual(functions.barriers_of(few), [])


QUEUE_RQ = "<kglue::blk::ops::Ops<hiops::nvme::Nvme, B>>::queue_rq"
IRQ = "kglue::irq::handle::<A>"


def read(calls):
    """What read_path.Read tells where each function of `calls` calls those."""
    def reached(entry):
        found, left = set(), [name for name in calls if entry.search(name)]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += calls[name]
        return found

    return mock.Mock(files=calls, plain={name: name for name in calls}, reached=reached)


class Phases(unittest.TestCase):
    def test_the_first_entry_that_reaches_it_where_most_reads_pass(self):
        most = {QUEUE_RQ: ["issue"], "issue": [], IRQ: ["drain"], "drain": [], "spin": []}
        some = {**most, QUEUE_RQ: ["issue", "drain"], "hiops_redirect": ["spin", "drain"]}
        self.assertEqual(barriers.phases_of([read(most), read(some)]),
                         {QUEUE_RQ: "submission", "issue": "submission", IRQ: "completion",
                          "drain": "completion", "hiops_redirect": "wait", "spin": "wait"})

    def test_in_tree_goes_by_the_names(self):
        for name, phase in (("nvme_queue_rq [nvme]", "submission"),
                            ("nvme_irq [nvme]", "completion"),
                            ("nvme_setup_cmd [nvme_core]", "submission"),
                            ("nvme_pci_complete_batch [nvme]", "completion")):
            self.assertEqual(barriers.phase_of(name, {}), phase, name)

    def test_rusts_names_have_a_hash_in_a_profile(self):
        name = "<engine[00112233445566aa]::queue::IoQueue>::submit [hiops]"
        self.assertEqual(barriers.phase_of(name, {"<engine::queue::IoQueue>::submit": "wait"}),
                         "wait")


    def test_a_name_without_arguments_of_types(self):
        name = "<a::Queue<b::Platform, c::Sq<b::Platform>> as d::Poll<u8>>::spin::<e::Here> [hiops]"
        self.assertEqual(barriers.short(name), "<a::Queue as d::Poll>::spin [hiops]")


class Table(unittest.TestCase):
    ROWS = [["blk_mq_submit_bio", 4, 0, 2], ["submit [hiops]", 3, 1, 0], ["drain [hiops]", 2, 0, 1],
            ["nvme_irq [nvme]", 1, 0, 0]]

    def test_another_drivers_functions_are_the_kernels(self):
        inside, rest = barriers.own("hiops_nvme", self.ROWS)
        self.assertEqual([row[0] for row in inside], ["submit [hiops]", "drain [hiops]"])
        self.assertEqual(rest, [5, 0, 2])

    def test_sums(self):
        phases = {"submit": "submission", "drain": "completion"}
        told = list(barriers.lines("hiops_nvme", self.ROWS, phases))
        self.assertEqual([line.split() for line in told],
                         [["locked", "mfence", "rdtsc", "hiops_nvme"],
                          ["3.00", "1.00", "0.00", "submit", "[hiops]"],
                          ["3.00", "1.00", "0.00", "submission"],
                          ["2.00", "0.00", "1.00", "drain", "[hiops]"],
                          ["2.00", "0.00", "1.00", "completion"],
                          ["0.00", "0.00", "0.00", "wait"],
                          ["5.00", "1.00", "1.00", "the", "driver's", "own"],
                          ["5.00", "0.00", "2.00", "the", "rest", "of", "the", "kernel"]])

    def test_what_no_entry_reaches_is_told(self):
        told = list(barriers.lines("hiops_nvme", self.ROWS, {"drain": "completion"}))
        self.assertIn(f"     3.00     1.00     0.00  {barriers.OTHER}", told)
