# SPDX-License-Identifier: GPL-2.0
"""What counts as right, and which drives the yardsticks are held against."""

import unittest

import models
import yardstick
from errors import Failed
from yardstick import Reading


class Readings(unittest.TestCase):
    def test_bounds(self):
        for measured, good in ((98, True), (102, True), (97.9, False), (102.1, False)):
            with self.subTest(measured=measured):
                reading = Reading("x", measured, 100, 0.02, "IOPS")
                self.assertEqual(yardstick.right(reading), good)

    def test_nothing_wanted(self):
        self.assertTrue(yardstick.right(Reading("x", 20, 0, 0.02, "ns")))
        self.assertFalse(yardstick.right(Reading("x", 21, 0, 0.02, "ns")))

    def test_hold(self):
        good, bad = Reading("good", 1, 1, 0.02, "IOPS"), Reading("bad", 2, 1, 0.02, "IOPS")
        yardstick.hold([good])
        with self.assertRaises(Failed) as caught:
            yardstick.hold([good, bad])
        self.assertIn("bad", str(caught.exception))
        self.assertNotIn("good", str(caught.exception))


class Arguments(unittest.TestCase):
    def test_drives(self):
        args = yardstick.arguments(models.load("tlc"))
        media = [args[n + 1] for n, arg in enumerate(args) if arg == "-drive"]
        self.assertEqual(len(media), len(yardstick.FUNCTIONS))
        self.assertEqual(media[0].replace("id=y0", ""), media[1].replace("id=y1", ""))
        self.assertEqual(media[4].replace("id=y4", ""), media[5].replace("id=y5", ""))
        for medium, ns in ((media[2], 320_000), (media[3], 640_000)):
            for option in (f",latency-ns={ns},", "spread-percent=0", "tail-ns=0"):
                self.assertIn(option, medium)
        # But for what they are there for, they are the reference.
        stored, linked = (media[2].replace("id=y2", f"id=y{n}") for n in (6, 7))
        self.assertEqual(media[6], stored + ",store=on,discard=unmap")
        self.assertEqual(media[7], linked.replace("channels=64", "channels=0") + ",link-mb-s=200")

    def test_instant(self):
        args = yardstick.arguments(models.load("instant"))
        self.assertIn(",latency-ns=40000,", args[args.index("-drive", 8) + 1])
