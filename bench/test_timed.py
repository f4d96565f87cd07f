# SPDX-License-Identifier: GPL-2.0
"""The options of `bench/run timed`, a boot's command, the table."""

import contextlib
import io
import json
import unittest

import main
import models
import sides
import table
import timed
import timed_result
from errors import Wrong


def arguments(args):
    """What comes of the words behind `bench/run timed`."""
    return timed.checked(main.parser("timed")[0].parse_args(["/scratch", *args]))


def cell(driver, iops, **more):
    return {"load": "psync-1", "driver": driver, "iops": iops, **more}


class Arguments(unittest.TestCase):
    def test_alone_it_is_every_model_on_one_cpu(self):
        found = arguments([])
        self.assertEqual(([m.name for m in found.models], found.cpus), (models.known(), 1))

    def test_refused(self):
        for args in (["--cpus", "0"], ["--cpus", "9"], ["--cpus", "many"], ["--cpus", "1.5"],
                     ["--drivers", "nvme"], ["--hiops", "coop"], ["--label", "a/b"], ["--bogus"],
                     ["--set", "latency_ns=1"], ["--ways", "a: coop=0"],
                     ["--label", "x", "--ways", "a"], ["--label", "x", "--ways", "a: coop"],
                     ["--sata", "--loads", "iopoll-1"], ["--model", "sata", "--loads", "hybrid-1"],
                     ["extra"], ["--cpus"]):
            with self.subTest(args=args), self.assertRaises(Wrong):
                arguments(args)

    def test_unknown_model_and_load_list_the_known(self):
        with self.assertRaisesRegex(models.BadModel, "tlc"):
            arguments(["--model", "nosuch"])
        with self.assertRaisesRegex(Wrong, "psync-256"):
            arguments(["--loads", "nosuch"])

    def test_status_2(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(main.main(["timed", "/nowhere", "--cpus", "x"]), 2)
        self.assertIn("from 1 to 8", said.getvalue())

    def test_ways(self):
        self.assertEqual(sides.ways_of(" a: mode=irq coop=0; b:;"),
                         {"a": {"mode": "irq", "coop": "0"}, "b": {}})


class Boots(unittest.TestCase):
    def command(self, kind, *args):
        found = arguments(["--model", "tlc", *args])
        return timed.boot("/scratch", 0, models.load("tlc"), kind, found)

    def test_each_driver_has_drives_of_its_own_that_are_alike(self):
        command, _ = self.command("nvme")
        self.assertIn("0000:00:10.0=nvme,0000:00:12.0=nvme;"
                      "0000:00:11.0=hiops_nvme,0000:00:13.0=hiops_nvme", command)
        drives = [w.split("'")[1] for w in command if w.startswith("-drive '")]
        self.assertEqual(drives[0].replace("m10", "m11"), drives[2])
        self.assertNotEqual(drives[0].replace("m10", "m12"), drives[1])

    def test_sata(self):
        command, about = self.command("sata", "--label", "x")
        self.assertEqual(about["name"], "timed-tlc-sata-1cpu-x.json")
        self.assertEqual(sum("ide-hd,serial=timed" in w for w in command), 4)
        # An SSD that says so: of one that doesn't, Linux thinks otherwise.
        self.assertEqual(sum("rotation_rate=1" in w for w in command), 4)

    def test_names(self):
        name = timed.result_name(models.load("sata"), "sata", 4, "")
        self.assertEqual(name, "timed-sata-4cpu.json")


class Results(unittest.TestCase):
    def test_a_row_a_line_and_no_digits_that_mean_nothing(self):
        result = {"cpus": 1, "rows": [cell("a", 1 / 3), {**cell("b", 2), "cdf_us": [[1, 0.5]]}]}
        text = timed_result.text_of(result)
        told = json.loads(text)
        self.assertEqual((told["cpus"], told["rows"][0]["iops"]), (1, 0.3333))
        self.assertEqual(told["rows"][1], result["rows"][1])
        self.assertEqual(sum("driver" in line for line in text.splitlines()), 2)


class Table(unittest.TestCase):
    def test_ratio_is_the_second_over_the_first(self):
        self.assertEqual(table.ratio(cell("a", 200), cell("b", 150)), 0.75)

    def test_pairs_skip_what_has_no_partner(self):
        rows = [cell("a", 1), cell("b", 2), {**cell("a", 3), "load": "other"}]
        self.assertEqual(table.pairs(rows), [(rows[0], rows[1])])

    def test_several_ways_are_told_beside_the_first_driver(self):
        full = dict.fromkeys([key for key, *_ in table.COLUMNS], 1.0)
        rows = [{**full, **cell(name, iops)} for name, iops in (("a", 4), ("b x", 2), ("b y", 1))]
        told = list(table.lines({"kind": "nvme", "cpus": 1, "model": "m", "hiops": {},
                                 "device": "d", "scale": 4, "rows": rows}))
        self.assertRegex(told[-2], "b x +8 +0.50 +0.2 ")
        self.assertRegex(told[-1], "b y +4 +0.25 +0.2 ")

    def test_times_are_the_devices_not_the_machines(self):
        slow = {**cell("a", 1000), "p50_us": 320.0, "cpu_ns_per_io": 16000, "neighbour": None,
                "cdf_us": [[50, 320], [100, 400]], "switches": 2}
        told = table.real({"scale": 4, "latency_ns": 80_000, "rows": [slow]})
        self.assertEqual(told["rows"], [{**slow, "iops": 4000, "p50_us": 80, "cpu_ns_per_io": 4000,
                                         "cdf_us": [[50, 80], [100, 100]]}])
        self.assertEqual(told["latency_ns"], 80_000)
        self.assertEqual(table.real(told), told)
        self.assertEqual(slow["iops"], 1000)

    def test_what_tells_no_scale_is_real_already(self):
        self.assertEqual(table.real({"rows": [cell("a", 5)]}), {"rows": [cell("a", 5)]})

    def test_without_hiops_it_is_said(self):
        result = {"kind": "nvme", "cpus": 2, "model": "m", "hiops": {}}
        self.assertEqual(table.title(result), "m, NVMe, 2 vCPUs")
        self.assertEqual(table.title({**result, "hiops_is_loaded": True}), "m, NVMe, 2 vCPUs")
        self.assertEqual(table.title({**result, "hiops_is_loaded": False}),
                         "m, NVMe, 2 vCPUs, hiops is not loaded")

    def test_no_neighbour_no_number(self):
        full = dict.fromkeys([key for key, *_ in table.COLUMNS], 1.0)
        self.assertNotIn("None", table.line({**full, **cell("a", 5), "neighbour": None}, True))
