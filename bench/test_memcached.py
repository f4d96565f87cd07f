# SPDX-License-Identifier: GPL-2.0
"""memcached on a drive: its table, what boots the machine, and what the guest's side reads."""

import unittest

import boot
import client
import extstore
import main
import memcached
import models
from errors import Wrong


def row(side, gets_s, cpu_ns, **more):
    return {"side": side, "value": 400, "threads": 16, "gets_s": gets_s, "cpu_ns": cpu_ns,
            "p50_ns": 400_000, "p99_ns": 800_000, "p999_ns": 1_000_000, "elapsed_ns": 1,
            "busy_ns": 1, "reads": 0.9, "cache": 2**20, "missed": 0, "wrong": 0, "badcrc": 0,
            **more}


def result(*rows):
    return {"model": "m", "device": "a drive", "scale": 4, "cpus": 1, "rows": list(rows)}


ROWS = (row("memory", 50_000, 20_000), row("tmpfs", 40_000, 24_000), row("nvme", 10_000, 60_000),
        row("bytes", 15_000, 36_000))


def arguments(*words):
    return memcached.checked(main.parser("memcached")[0].parse_args(words))


class Table(unittest.TestCase):
    def told(self, rows=ROWS):
        return {side: texts for _, side, texts in memcached.texts(result(*rows))}

    def test_real_units(self):
        gets, _, p50, p99, cpu, *_ = self.told()["nvme"]
        self.assertEqual((gets, p50, p99, cpu), ("40,000", "100.0", "200.0", "15.00"))

    def test_over_nvme_and_beyond_what_has_no_drive(self):
        _, ratio, _, _, _, memory, of_memory, tmpfs, of_tmpfs, *_ = self.told()["bytes"]
        self.assertEqual((ratio, memory, of_memory, tmpfs, of_tmpfs),
                         ("1.50", "4.00", "0.40", "3.00", "0.33"))

    def test_what_has_no_drive_is_over_nothing(self):
        self.assertEqual(self.told()["memory"][5:9], [""] * 4)
        self.assertEqual(self.told()["tmpfs"][5:9], ["1.00", "", "", ""])

    def test_a_base_that_was_not_measured(self):
        self.assertEqual(self.told(ROWS[2:])["bytes"][5:9], [""] * 4)

    def test_what_went_wrong_is_told(self):
        bad = row("bytes", 1, 1, wrong=3)
        self.assertIn("bytes, 400 bytes, 16: 3 wrong", list(memcached.lines(result(bad))))
        self.assertEqual(list(memcached.faults(ROWS)), [])

    def test_a_load_is_named_once(self):
        lines = memcached.markdown(result(*ROWS)).splitlines()
        self.assertEqual([line.split("|")[1].strip() for line in lines[2:]],
                         ["400, 16", "", "", ""])
        self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")})

    def test_in_order(self):
        rows = [row("bytes", 1, 1), row("nvme", 1, 1), row("nvme", 1, 1, value=100)]
        self.assertEqual([(one["value"], one["side"]) for one in memcached.ordered(rows)],
                         [(100, "nvme"), (400, "nvme"), (400, "bytes")])


class Boot(unittest.TestCase):
    def test_refused(self):
        for words in (("--sides", "floppy"), ("--values", "7"), ("--threads", "0"),
                      ("--threads", "x"), ("--threads", "257")):
            with self.subTest(words=words), self.assertRaises(Wrong):
                arguments(*words)

    def test_drives_are_alike_and_keep_what_they_are_given(self):
        model = models.varied(models.load("tlc"), boot.STORE)
        words = boot.command(arguments("--unheld"), model, "/scratch", memcached.SLOTS, [])
        drives = [word for word in words if word.startswith("-drive")]
        self.assertEqual(len(drives), 4)
        self.assertTrue(all("store=on" in drive for drive in drives))
        alike = {drive.replace(f"m{slot:x}", "").replace(f"timed{slot:x}", "")
                 .replace(f"nv{slot:x}", "").replace(f"addr={slot:x}", "")
                 for drive, slot in zip(drives, memcached.SLOTS.values())}
        self.assertEqual(len(alike), 1)
        self.assertNotIn("--yardsticks", words)


class Guest(unittest.TestCase):
    def test_reads_of_a_disk(self):
        table = ("259 0 nvme0n1 7 0 56 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
                 "259 1 hiops0n1 9 0 72 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n")
        self.assertEqual([client.reads_of(disk, table) for disk in ("hiops0n1", None)], [9, 0])

    def test_numbers(self):
        self.assertEqual(client.numbers("gets 5\nwrong 0\n"), {"gets": 5, "wrong": 0})

    def test_memory_for_values_is_of_the_smallest_that_they_fit_into(self):
        slabs = {"1:chunk_size": "384", "1:free_chunks": "7", "2:chunk_size": "480",
                 "2:free_chunks": "5", "3:chunk_size": "600", "3:free_chunks": "9",
                 "active_slabs": "3", "total_malloced": "3145728"}
        self.assertEqual([extstore.has_less(slabs, value, 6) for value in (300, 400, 2000)],
                         [False, True, True])
        # What it has is all that it may have: more would push out what was set before.
        slabs["total_malloced"] = str(int(extstore.SLABS) << 20)
        self.assertFalse(extstore.has_less(slabs, 400, 6))
