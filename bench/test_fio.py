# SPDX-License-Identifier: GPL-2.0
"""What fio is told, and what is read of what it tells."""

import json
import os
import re
import unittest

import fio
from errors import Failed

HERE = os.path.dirname(os.path.abspath(__file__))


def job(name, error=0, iops=10.5):
    latencies = {"percentile": {"50.000000": 1000, "99.900000": 2000}}
    return {"jobname": name, "error": error, "read": {"iops": iops, "clat_ns": latencies},
            "sync": {"lat_ns": latencies}}


class Words(unittest.TestCase):
    def test_options(self):
        self.assertEqual(
            fio.section("a", "/dev/b", direct=1, thread=True, iodepth=None, readonly=False, bs=0),
            ["--name=a", "--filename=/dev/b", "--direct=1", "--thread", "--bs=0"])

    def test_command(self):
        words = fio.command(fio.section("a", "b"), fio.section("c", "d"))
        self.assertEqual(words[0], "fio")
        self.assertIn("--output-format=json", words)
        self.assertEqual([w for w in words if "name=" in w],
                         ["--name=a", "--filename=b", "--name=c", "--filename=d"])

    def test_percentiles_asked_for_are_those_read(self):
        self.assertEqual(fio.percent_list((50, 99.9)), "50:99.9")
        self.assertEqual(fio.percentiles(job("a")["read"], (99.9, 50)), [2000, 1000])
        self.assertEqual(fio.percentiles(job("a")["sync"], (50,), "lat_ns"), [1000])


class Told(unittest.TestCase):
    def test_behind_what_else_it_says(self):
        text = "fio: a note\n" + json.dumps({"jobs": [job("a"), job("b", iops=4)]})
        jobs = fio.told(text, "x")
        self.assertEqual([j["jobname"] for j in jobs], ["a", "b"])
        self.assertEqual(fio.iops(jobs), 14.5)

    def test_failed(self):
        text = json.dumps({"jobs": [job("a"), job("b", error=5)]})
        for text, why in ((text, "x: fio's error 5"), ("no JSON", "x: fio told no result: no JSON"),
                          ('{"jobs": [', "told no result"), ("{}", "told no result")):
            with self.subTest(text=text), self.assertRaisesRegex(Failed, why):
                fio.told(text, "x")

    def test_run(self):
        jobs = json.dumps({"jobs": [job("a")]})
        self.assertEqual(fio.run(["echo", jobs], "x")[0]["jobname"], "a")
        with self.assertRaisesRegex(Failed, "x: fio's status 3: no such disk"):
            fio.run(["sh", "-c", "echo no such disk >&2; exit 3"], "x")


class OnePlace(unittest.TestCase):
    def test_nobody_else_puts_it_into_words(self):
        words = re.compile(r'"fio"|--output-format|index\("\{"|clat_ns')
        for name in sorted(os.listdir(HERE)):
            if name.endswith(".py") and name not in ("fio.py", "test_fio.py"):
                with open(os.path.join(HERE, name)) as text, self.subTest(name=name):
                    self.assertIsNone(words.search(text.read()))
