# SPDX-License-Identifier: GPL-2.0
"""The dashboard's checks find what they are for."""

import copy
import os
import tempfile
import unittest

import watching

PLACE = {"x": 0, "y": 0, "w": 12, "h": 8}
GOOD = {
    "title": "t", "uid": "u", "schemaVersion": 39,
    "templating": {"list": [{"name": "datasource"}, {"name": "disk"}]},
    "panels": [
        {"id": 1, "type": "row", "title": "row", "gridPos": {"x": 0, "y": 8, "w": 24, "h": 1}},
        {"id": 2, "type": "stat", "title": "one", "gridPos": PLACE, "targets": [
            {"refId": "A", "datasource": {"uid": "${datasource}"},
             "expr": 'rate(hiops_a_total{disk=~"$disk"}[$__rate_interval])'}]},
        {"id": 3, "type": "stat", "title": "two", "gridPos": {**PLACE, "x": 12}, "targets": [
            {"refId": "A", "datasource": {"uid": "${datasource}"}, "expr": "hiops_b"}]},
    ],
}


class Panels(unittest.TestCase):
    """What is wrong with a dashboard is told."""

    def told(self, change):
        dashboard = copy.deepcopy(GOOD)
        change(dashboard, dashboard["panels"])
        return list(watching.faults(dashboard))

    def test_a_good_one_has_no_faults(self):
        self.assertEqual(self.told(lambda d, p: None), [])

    def test_each_fault_is_told(self):
        changes = {
            "it has no uid": lambda d, p: d.pop("uid"),
            "two panels have one id": lambda d, p: p[1].update(id=3),
            "two: it lies on one": lambda d, p: p[2]["gridPos"].update(x=11),
            "two: it is beyond the page": lambda d, p: p[2]["gridPos"].update(x=13),
            "one: it asks for nothing": lambda d, p: p[1].pop("targets"),
            "two: two expressions have one refId": lambda d, p: p[2]["targets"].append(
                p[2]["targets"][0]),
            "two: its data source is one machine's own": lambda d, p: p[2]["targets"][0][
                "datasource"].update(uid="P1809F7CD0C75ACF3"),
            "one: there is no variable disk": lambda d, p: d["templating"]["list"].pop(),
        }
        for wanted, change in changes.items():
            with self.subTest(wanted):
                self.assertEqual(self.told(change), [wanted])

    def test_variables_are_filled_in(self):
        self.assertIn("rate(hiops_a_total{disk=~\\\".*\\\"}[1m])", watching.rules(GOOD))

    def test_what_a_type_does_not_keep_is_lost(self):
        whole = {"a": [{"b": 1, "empty": ""}], "c": {"d": 2}, "e": [1]}
        self.assertEqual(list(watching.lost(whole, whole)), [])
        self.assertEqual(
            list(watching.lost(whole, {"a": [{}], "c": {"d": "2"}, "e": []})),
            [".a[0].b is not known", ".c.d is '2' instead of 2", ".e is [] instead of [1]"])


class Names(unittest.TestCase):
    """What is named is printed, and what is printed is shown."""

    def test_both_ways(self):
        have = watching.printed("# HELP hiops_a x\n# TYPE hiops_a gauge\nhiops_a 1\n"
                                "# TYPE hiops_b gauge\n")
        self.assertEqual(have, {"hiops_a", "hiops_b"})
        with tempfile.TemporaryDirectory() as folder:
            for name, text, wanted in [
                    ("x.json", "hiops_a hiops_b hiops0n1", []),
                    ("y.json", "hiops_a", ["hiops_b is not shown"]),
                    ("z.yml", "hiops_a", []),
                    ("v.yml", "rate(hiops_c[1m])", ["hiops_c is not printed"])]:
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                told = watching.unprinted(have, path)
                self.assertEqual(told, [f"{path}: {line}" for line in wanted])


if __name__ == "__main__":
    unittest.main()
