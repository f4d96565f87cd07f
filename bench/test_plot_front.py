# SPDX-License-Identifier: GPL-2.0
"""The README's picture: real units, both drivers, and SVG that any reader takes."""

import unittest
import xml.etree.ElementTree as xml

import plot_front

SVG = "{http://www.w3.org/2000/svg}"


def result(kind, drivers, scale=4):
    rows = [{"load": load, "driver": driver, "iops": 1000 * (n + 1) * (at + 1),
             "p99_us": 400 / (n + 1)}
            for at, load in enumerate(plot_front.LOADS) for n, driver in enumerate(drivers)]
    return {"kind": kind, "scale": scale, "rows": rows}


class Front(unittest.TestCase):
    def drawn(self):
        text = plot_front.draw(result("nvme", ("nvme", "hiops_nvme")),
                               result("sata", ("ahci", "hiops_ahci")))
        return xml.fromstring(text)

    def test_figures_are_real_ones_and_the_ratio_stands_beside_hiops(self):
        told = ["".join(text.itertext()) for text in self.drawn().iter(f"{SVG}text")]
        # By the machine's clock 1,000 and 2,000 IOPS, 400 and 200 us.
        for words, times in {"4,000": 2, "8,000 ×2.00": 2, "100": 8, "50 ×0.50": 8}.items():
            self.assertEqual(told.count(words), times, words)

    def test_each_bar_is_as_long_as_its_figure(self):
        bars = {side: [float(bar.get("width")) for bar in self.drawn().iter(f"{SVG}rect")
                       if bar.get("class") == side][1:] for side in ("intree", "hiops")}
        self.assertEqual(len(bars["hiops"]), 2 * 2 * len(plot_front.LOADS))
        _, room = plot_front.PANELS["iops"]
        self.assertEqual(max(bars["hiops"]), room)
        for first, second in zip(bars["intree"], bars["hiops"]):
            self.assertIn(round(second / first, 1), (0.5, 2.0))

    def test_each_load_is_named_for_each_kind(self):
        told = ["".join(text.itertext()) for text in self.drawn().iter(f"{SVG}text")]
        for words in plot_front.LOADS.values():
            self.assertEqual(told.count(words), 2)
