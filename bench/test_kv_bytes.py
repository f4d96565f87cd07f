# SPDX-License-Identifier: GPL-2.0
"""A key-value store packed and padded: its table, what boots the machine, what the guest reads."""

import types
import unittest
from unittest import mock

import boot
import kv_bytes
import kv_store
import main
import models
from errors import Wrong


def row(side, operations_s, cpu_ns, **more):
    return {"side": side, "mix": 0, "threads": 64, "operations_s": operations_s, "cpu_ns": cpu_ns,
            "p50_ns": 400_000, "p99_ns": 800_000, "p999_ns": 1_000_000, "elapsed_ns": 1,
            "busy_ns": 1, "reads": 1, "space": 408 if side == "bytes" else 512, **more}


def result(*rows):
    return {"model": "m", "device": "a drive", "scale": 4, "cpus": 1, "hiops": {"lazy": "1"},
            "rows": list(rows)}


ROWS = row("nvme", 50_000, 16_000), row("bytes", 90_000, 8_000)


def arguments(*words):
    return kv_bytes.checked(main.parser("kv-bytes")[0].parse_args(words))


class Table(unittest.TestCase):
    def told(self, rows=ROWS):
        return {side: texts for _, side, texts in kv_bytes.texts(result(*rows))}

    def test_real_units(self):
        self.assertEqual(self.told()["nvme"],
                         ["200,000", "", "100.0", "200.0", "4.00", "", "1.00", "512", ""])

    def test_over_nvme(self):
        rate, ratio, _, _, cpu, of_cpu, _, space, of_space = self.told()["bytes"]
        self.assertEqual((rate, ratio, cpu, of_cpu, space, of_space),
                         ("360,000", "1.80", "2.00", "0.50", "408", "0.80"))

    def test_without_nvme_there_are_no_ratios(self):
        self.assertEqual([self.told(ROWS[1:])["bytes"][n] for n in (1, 5, 8)], [""] * 3)

    def test_over_nvme_of_the_same_load(self):
        rows = (*ROWS, row("nvme", 10_000, 1, mix=30), row("bytes", 30_000, 1, mix=30))
        ratios = [texts[1] for _, _, texts in kv_bytes.texts(result(*rows))]
        self.assertEqual(ratios, ["", "1.80", "", "3.00"])

    def test_a_load_is_named_once(self):
        rows = (*ROWS, row("nvme", 1, 1, mix=30, threads=1))
        lines = kv_bytes.markdown(result(*rows)).splitlines()
        self.assertEqual([line.split("|")[1].strip() for line in lines[2:]],
                         ["gets, 64", "", "30 gets to a set, 1"])
        self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")})

    def test_in_order(self):
        rows = [row("bytes", 1, 1, mix=30), row("bytes", 1, 1), row("nvme", 1, 1)]
        self.assertEqual([(one["mix"], one["side"]) for one in kv_bytes.ordered(rows)],
                         [(0, "nvme"), (0, "bytes"), (30, "bytes")])

    def test_lines_and_widths(self):
        lines = list(kv_bytes.lines(result(*ROWS)))
        self.assertEqual(len({len(line) for line in lines[2:]}), 1)
        self.assertTrue(lines[0].endswith("1 vCPU, lazy=1"))


class Boot(unittest.TestCase):
    def test_refused(self):
        for words in (("--sides", "floppy"), ("--mixes", "-1"), ("--mixes", "x"),
                      ("--threads", "0"), ("--threads", "257"), ("--hiops", "lazy")):
            with self.subTest(words=words), self.assertRaises(Wrong):
                arguments(*words)

    def test_a_drive_for_each_side(self):
        model = models.varied(models.load("tlc"), boot.STORE)
        words = boot.command(arguments("--unheld"), model, "/scratch", kv_bytes.SLOTS, ["kv-store"])
        self.assertEqual(sum(word.startswith("-drive") for word in words), len(kv_store.SIDES))
        self.assertEqual(set(kv_bytes.SLOTS), set(kv_store.SIDES))
        self.assertEqual(set(kv_bytes.SLOTS), set(kv_bytes.NAMES))

    def test_the_guest_takes_what_it_is_given(self):
        model = models.varied(models.load("tlc"), boot.STORE)
        words = boot.command(arguments(), model, "/scratch", kv_bytes.SLOTS, ["kv-store"])
        words = words[words.index("kv-store") + 1:]
        self.assertTrue(main.parser("kv-store")[0].parse_args(words).yardsticks)


class Guest(unittest.TestCase):
    def test_a_row(self):
        seen = mock.Mock(rounds=110, elapsed=11_000, busy=9_000, switches=55, all_interrupts=22,
                         begin=types.SimpleNamespace(rounds=(5, 0)),
                         end=types.SimpleNamespace(rounds=(105, 10)))
        seen.for_io.return_value = 8_800
        seen.between.return_value = 90
        told = {"gets": 200, "memory": 2, "records": 10, "space": 4_080, "wrong": 0, "sets": 0,
                "p50": 1, "p99": 2, "p999": 3}
        place = types.SimpleNamespace(name="bytes", disk="hiops0n1")
        new = kv_store.row(place, 16, 10, seen, told, {})
        self.assertEqual([new[key] for key in ("operations_s", "cpu_ns", "reads", "space",
                                               "from_memory", "switches", "interrupts")],
                         [10_000_000, 80, 0.9, 408, 0.01, 0.5, 0.2])

    def test_the_values_fill_whole_buffers(self):
        self.assertEqual(kv_store.KEYS % 128, 0)
