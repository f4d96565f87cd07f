# SPDX-License-Identifier: GPL-2.0
"""When two runs of the timed matrix agree."""

import contextlib
import io
import json
import os
import tempfile
import unittest

import agree
import main


def row(driver, iops, p50, load="psync-1"):
    return {"load": load, "driver": driver, "iops": iops, "p50_us": p50}


class Agreement(unittest.TestCase):
    def test_limits(self):
        self.assertEqual((agree.limit("nvme"), agree.limit("hiops_ahci")), (0.01, 0.02))

    def test_each_figure_of_what_both_have(self):
        one = [row("nvme", 100, 50), row("nvme", 1, 1, "only here")]
        found = agree.differences(one, [row("nvme", 101, 50), row("hiops_nvme", 1, 1)])
        self.assertEqual([f[3] for f in found], ["iops", "p50_us"])
        self.assertAlmostEqual(found[0][0], 0.01)
        self.assertEqual(found[1][0], 0)

    def test_two_sides_of_one_run(self):
        for second, status in ((101.9, 0), (102.1, 1)):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "x.json")
                with open(path, "w") as out:
                    json.dump({"rows": [row("nvme", 100, 50), row("nvme-2", second, 50)]}, out)
                with contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(main.main(["agree", path]), status)
