# SPDX-License-Identifier: GPL-2.0
"""What bench/models.py takes, and what it refuses."""

import os
import tempfile
import unittest

import models

GOOD = """name = "good"
device = "a device"
source = "the test"
kind = "nvme"
queue_slots = 1024
latency_ns = 80_000
write_latency_ns = 20_000
flush_latency_ns = 10_000
spread_percent = 20
tail_permille = 5
tail_ns = 750_000
channels = 64
link_mb_s = 800
store = 0
block_bytes = 512
bit_buckets = 0
register_read_ns = 800
register_write_ns = 80
interrupt_ns = 400
"""


class Folder(unittest.TestCase):
    """Each test has a folder of its own for a model `good`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def load(self, text, name="good"):
        with open(os.path.join(self.folder, name + ".toml"), "w") as file:
            file.write(text)
        return models.load(name, self.folder)

    def test_a_model_takes_other_numbers(self):
        good = self.load(GOOD)
        varied = models.varied(good, "latency_ns=40000,tail_permille=0")
        self.assertEqual((varied.latency_ns, varied.tail_ns), (40_000, 0))
        self.assertEqual(varied.channels, good.channels)
        self.assertEqual(models.varied(good, ""), good)

    def test_other_numbers_are_numbers_of_the_model(self):
        good = self.load(GOOD)
        for words in ("latency=1", "latency_ns", "latency_ns=fast", "spread_percent=101",
                      "kind=sata", "queue_slots=1"):
            with self.subTest(words=words), self.assertRaises(models.BadModel):
                models.varied(good, words)


class Files(Folder):
    """What is in a file."""

    def refused(self, text, *words):
        """The error names the file and has the `words`."""
        with self.assertRaises(models.BadModel) as caught:
            self.load(text)
        for word in ("good.toml", *words):
            self.assertIn(word, str(caught.exception))

    def changed(self, key, value):
        lines = [f"{key} = {value}" if line.startswith(key + " ") else line
                 for line in GOOD.splitlines()]
        return "\n".join(lines) + "\n"

    def test_good(self):
        model = self.load(GOOD)
        self.assertEqual((model.kind, model.latency_ns, model.channels), ("nvme", 80_000, 64))
        with self.assertRaises(AttributeError):
            model.latency_ns = 1

    def test_bounds(self):
        for key, (least, most) in models.NUMBERS.items():
            if key.startswith("tail"):
                least = 1
            for value in (least, most):
                with self.subTest(key=key, value=value):
                    self.assertEqual(getattr(self.load(self.changed(key, value)), key), value)
            for value in (models.NUMBERS[key][0] - 1, most + 1):
                with self.subTest(key=key, value=value):
                    self.refused(self.changed(key, value), key, str(value))

    def test_types(self):
        for value in ("true", '"80"', "80.0", "[80]"):
            with self.subTest(value=value):
                self.refused(self.changed("latency_ns", value), "latency_ns", "whole number")
        self.refused(self.changed("device", "7"), "device", "words")
        self.refused(self.changed("source", '" "'), "source", "words")

    def test_keys(self):
        for line in GOOD.splitlines():
            with self.subTest(line=line):
                self.refused(GOOD.replace(line + "\n", ""), line.split()[0], "missing")
        self.refused(GOOD + "latency = 3\n", "latency:", "no such key")

    def test_not_toml(self):
        self.refused(GOOD + "latency_ns", "no TOML")
        self.refused(GOOD + "latency_ns = 7\n", "no TOML")

    def test_names(self):
        self.refused(GOOD.replace('"good"', '"bad"'), "name", "'bad'")
        with self.assertRaises(models.BadModel) as caught:
            models.load("missing", self.folder)
        self.assertIn("known: good", str(caught.exception))
        with self.assertRaises(models.BadModel):
            models.load("../models/tlc")

    def test_kinds(self):
        self.refused(self.changed("kind", '"floppy"'), "kind", "nvme, sata")
        self.refused(self.changed("kind", '"sata"'), "queue_slots", "32")
        sata = self.changed("kind", '"sata"').replace("= 1024", "= 32")
        self.assertEqual(self.load(sata).queue_slots, 32)

    def test_a_link_has_a_rate_by_the_machine_s_clock(self):
        self.refused(self.changed("block_bytes", 1024), "block_bytes", "neither 512 nor 4096")
        self.refused(self.changed("link_mb_s", 550), "link_mb_s", "multiple of 4")

    def test_half_a_tail(self):
        self.refused(self.changed("tail_ns", 0), "tail_ns")
        self.refused(self.changed("tail_permille", 0), "tail_ns")


class Arguments(Folder):
    """What QEMU is told."""

    def test_drive(self):
        options = dict(o.split("=") for o in self.load(GOOD).drive("m0", seed=3).split(","))
        self.assertEqual(options["id"], "m0")
        self.assertEqual(options["latency-ns"], "320000")
        self.assertEqual(options["write-latency-ns"], "80000")
        self.assertEqual(options["flush-latency-ns"], "40000")
        self.assertEqual(options["tail-ns"], "3000000")
        self.assertEqual(options["tail-permille"], "5")
        self.assertEqual(options["spread-percent"], "20")
        self.assertEqual(options["channels"], "64")
        self.assertEqual(options["seed"], "3")
        self.assertEqual(options["link-mb-s"], "200")

    def test_a_drive_has_neither_link_nor_store_unless_the_model_says_so(self):
        model = self.load(GOOD.replace("= 800\nstore", "= 0\nstore"))
        for word in ("link", "store", "discard"):
            self.assertNotIn(word, model.drive("m0"))

    def test_what_a_drive_that_keeps_data_discards_is_gone(self):
        drive = models.varied(self.load(GOOD), "store=1").drive("m0")
        self.assertIn(",store=on,discard=unmap", drive)

    def test_environment(self):
        self.assertEqual(self.load(GOOD).environment(),
                         {"VT_READ_NS": "3200", "VT_WRITE_NS": "320", "VT_IRQ_NS": "1600"})

    def test_controller(self):
        self.assertEqual(self.load(GOOD).nvme(), "mqes=1023,ioeventfd=off")
        model = models.varied(self.load(GOOD), "block_bytes=4096,bit_buckets=1")
        self.assertEqual(model.nvme(), "mqes=1023,ioeventfd=off,logical_block_size=4096,"
                                       "physical_block_size=4096,bit-buckets=on")

    def test_mean(self):
        self.assertEqual(self.load(GOOD).mean_ns(), 4 * (80_000 + 3_750))


class Shipped(unittest.TestCase):
    """The models of the tree."""

    def test_all(self):
        found = models.known()
        for name in ("instant", "fast", "lowlat", "tlc", "sata", "worn", "contended"):
            self.assertIn(name, found)
        for name in found:
            with self.subTest(name=name):
                models.load(name)

    def test_nothing_of_the_fast_drive_varies(self):
        fast = models.load("fast")
        self.assertEqual((fast.spread_percent, fast.tail_permille), (0, 0))
        self.assertEqual(fast.mean_ns(), models.SCALE * 5_000)
        self.assertEqual(models.varied(fast, "latency_ns=7000").latency_ns, 7_000)
