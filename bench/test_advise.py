# SPDX-License-Identifier: GPL-2.0
"""What hiopsctl advise says beside what was measured, and hiops' histograms beside fio."""

import unittest

import advise
import histogrammed
import histograms
from errors import Wrong


class Advise(unittest.TestCase):
    def test_a_difference(self):
        for iops, cpu, answer in ((1.03, 1, "yes"), (1.029, 1, "no_difference"), (0.97, 1, "no"),
                                  (1, 0.9, "yes"), (1, 0.91, "no_difference"), (0.9, 0.5, "no")):
            self.assertEqual(advise.answer(iops, cpu), answer)

    def test_two_boots_differ(self):
        self.assertEqual(advise.answers(1.02, 1), {"yes", "no_difference"})
        self.assertEqual(advise.answers(1.2, 1), {"yes"})

    def test_the_matrix_of_a_machine_has_ratios(self):
        iops, cpu = advise.measured("tlc", "1")["psync-64"]
        self.assertGreater(iops, 1.2)
        self.assertLess(cpu, 0.9)

    def test_answers_are_judged(self):
        rows = [{"load": "a", "answer": "yes", "why": "short"},
                {"load": "b", "answer": "depends", "why": "few"}]
        ratios = {"a": (1.0, 1.0), "b": (1.2, 0.8)}
        told = list(advise.judged("m, 1", rows, ratios))
        self.assertEqual([row["agrees"] for row in told], [False, True])
        self.assertIn("otherwise: short", list(advise.lines(told))[1])
        with self.assertRaises(Wrong):
            list(advise.judged("m, 1", [{"load": "c", "answer": "yes", "why": ""}], ratios))


HISTOGRAM = """below_ns irq lazy coop poll nap
1000 0 1 0 0 0
96000 50 0 39 0 0
256000 9 0 0 1 0
sum_ns 1 2 3 4 5
"""


class Histograms(unittest.TestCase):
    def test_percentiles_are_ends_of_buckets(self):
        buckets = histogrammed.histogram(HISTOGRAM)
        self.assertEqual(buckets, [(1000, 1), (96000, 89), (256000, 10)])
        for percent, end in ((1, 1000), (50, 96000), (90, 96000), (91, 256000), (99.9, 256000)):
            self.assertEqual(histogrammed.below(buckets, percent), end)

    def test_fio_measures_around_it(self):
        for fio_ns, buckets in ((95_999, 0), (64_000, 0), (63_999, -1), (96_000, 1),
                                (127_999, 1), (128_000, 2)):
            self.assertEqual(histograms.apart({"fio_ns": fio_ns, "below_ns": 96_000.0}), buckets)
