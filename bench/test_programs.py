# SPDX-License-Identifier: GPL-2.0
"""Programs on drives: their table, what boots the machine, what is put together of the rounds."""

import unittest

import boot
import main
import models
import programs
import programs_guest
from errors import Wrong


def row(side, rate, load="rocksdb-read-64", **more):
    return {"load": load, "system": "ext4", "side": side, "operations_s": rate, "p50_ns": 400_000,
            "p99_ns": 800_000, "cpu_ns": 20_000, **more}


def result(*rows):
    return {"model": "m", "device": "a drive", "scale": 4, "cpus": 1, "rows": list(rows)}


def arguments(*words):
    return programs.checked(main.parser("programs")[0].parse_args(words))


class Table(unittest.TestCase):
    def test_real_units_and_ratio(self):
        first, second = programs.texts(result(row("nvme", 10_000), row("hiops_nvme", 12_000)))
        self.assertEqual(first, ("rocksdb-read-64, ext4", "nvme",
                                 ["40,000", "", "", "100.0", "200.0", "5.00"]))
        self.assertEqual(second[:1] + (second[2][:3],), ("", ["48,000", "", "1.20"]))

    def test_by_time(self):
        rows = [{"load": "sqlite", "system": "ext4", "side": side, "seconds": seconds}
                for side, seconds in (("nvme", 8), ("hiops_nvme", 4))]
        self.assertEqual([texts for *_, texts in programs.texts(result(*rows))],
                         [["", "2.000", "", "", "", ""], ["", "1.000", "2.00", "", "", ""]])

    def test_a_load_is_named_once_on_each_system(self):
        rows = [row(side, 1, system=system) for system in ("ext4", "xfs")
                for side in ("nvme", "hiops_nvme")]
        self.assertEqual([name for name, *_ in programs.texts(result(*rows))],
                         ["rocksdb-read-64, ext4", "", "rocksdb-read-64, xfs", ""])
        lines = programs.markdown(result(*rows)).splitlines()
        self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")})


class Guest(unittest.TestCase):
    def test_mean_of_rounds(self):
        rounds = [{"operations_s": rate, "p50_ns": 1, "p99_ns": 3, "busy": 0.5,
                   "reads": 500, "switches": 0, "interrupts": 0}
                  for rate in (900, 1100)]
        new = programs_guest.row("rocksdb-read-64", "xfs", "nvme", rounds)
        self.assertEqual((new["operations_s"], new["p99_ns"], new["reads"]), (1000, 3, 0.5))
        self.assertEqual(new["cpu_ns"], 500_000)
        self.assertEqual(new["rounds"], rounds)

    def test_in_order_of_the_loads(self):
        self.assertEqual(programs_guest.chosen("rocksdb-read-64,rocksdb-fill"),
                         ["rocksdb-fill", "rocksdb-read-64"])


class Boot(unittest.TestCase):
    def test_refused(self):
        for words in (("--programs", "doom"), ("--systems", "vfat"), ("--rounds", "0"),
                      ("--seconds", "61"), ("--hiops", "mode")):
            with self.subTest(words=words), self.assertRaises(Wrong):
                arguments(*words)

    def test_drives_of_both_kinds_keep_what_they_are_given(self):
        for name, device in (("tlc", "-device nvme"), ("sata", "-device ide-hd")):
            model = models.varied(models.load(name), boot.STORE)
            words = boot.command(arguments("--unheld"), model, "/scratch",
                                 dict(zip(("a", "b"), programs.SLOTS)), [])
            drives = [word for word in words if word.startswith("-drive")]
            self.assertEqual(len(drives), 2)
            self.assertTrue(all("store=on" in drive and device in drive for drive in drives))
