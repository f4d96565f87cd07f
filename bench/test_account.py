# SPDX-License-Identifier: GPL-2.0
"""What is made of two edges and the plugin's words."""

import unittest

import account

EDGE = """clock {clock}
self {own}
sectors {sectors}
rounds {rounds}

 24:  {irqs}  PCI-MSIX-0000:00:10.0   1-edge  nvme0q1
cpu  1 2 3
intr {intr} 0 5
ctxt {ctxt}
"""


def edges():
    begin = EDGE.format(clock=1000, own=10, sectors=80, rounds=5, irqs=3, intr=100, ctxt=7)
    end = EDGE.format(clock=2_001_000, own=30, sectors=880, rounds=105, irqs=53, intr=160, ctxt=27)
    return account.edge(begin), account.edge(end)


class Windows(unittest.TestCase):
    def setUp(self):
        words = {"kernel": "1000000", "user": "500000", "idle": "200000",
                 "mmio:nvme": "10,16", "mmio:msix-table": "0,4", "mmio:acpi-tmr": "7,7"}
        self.window = account.Window(*edges(), words, account.Costs(3200, 320, 1600))

    def test_edge(self):
        begin, _ = edges()
        self.assertEqual((begin.clock, begin.own), (1000, 10))
        self.assertEqual((begin.sectors, begin.rounds), (80, (5,)))
        self.assertIn("ctxt 7", begin.files)

    def test_differences(self):
        seen = self.window
        self.assertEqual((seen.elapsed, seen.sectors, seen.rounds), (2_000_000, 800, 100))
        self.assertEqual((seen.switches, seen.all_interrupts), (20, 60))

    def test_busy_is_instructions_and_costs_without_the_idle_tasks(self):
        self.assertEqual(self.window.busy, 1_300_000 + 10 * 3200 + 20 * 320 + 60 * 1600)

    def test_neighbours_and_meter_are_left_out(self):
        self.assertEqual(self.window.for_io(2000), self.window.busy - 100 * 2000 - 20)

    def test_registers(self):
        self.assertEqual(self.window.registers, (10, 20))
