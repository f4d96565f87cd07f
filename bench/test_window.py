# SPDX-License-Identifier: GPL-2.0
"""How fio's logs are cut and what percentiles are taken for."""

import unittest

import window

MS = 1_000_000


class Logs(unittest.TestCase):
    def test_entries(self):
        text = "100, 5000, 0, 4096, 0, 0\n102, 7000, 1, 4096, 8, 0\n"
        self.assertEqual(window.entries(text), [(100, 5000), (102, 7000)])
        self.assertEqual(window.entries(""), [])

    def test_cut_takes_what_ended_inside(self):
        job = [(9, 1), (10, 2), (19, 3), (20, 4)]
        self.assertEqual(window.cut([job], 10 * MS, 20 * MS), ([[2, 3]], True))

    def test_cut_sees_a_job_that_began_late_or_ended_early(self):
        for job in [(11, 1), (25, 2)], [(5, 1), (19, 2)], []:
            with self.subTest(job=job):
                self.assertFalse(window.cut([[(0, 1), (30, 2)], job], 10 * MS, 20 * MS)[1])


class Percentiles(unittest.TestCase):
    def test_smallest_that_enough_do_not_exceed(self):
        hundred = list(range(1, 101))
        for percent, value in (1, 1), (50, 50), (99, 99), (99.9, 100), (100, 100):
            with self.subTest(percent=percent):
                self.assertEqual(window.percentile(hundred, percent), value)

    def test_exact_in_thousandths(self):
        self.assertEqual(window.percentile(list(range(1, 1001)), 99.9), 999)
        self.assertEqual(window.percentile(list(range(1, 10001)), 99.99), 9999)

    def test_one_value_is_every_percentile(self):
        self.assertEqual({value for _, value in window.distribution([7])}, {7})

    def test_distribution_ascends_and_is_found_again(self):
        told = window.distribution([5, 3, 9, 1])
        self.assertEqual([value for _, value in told], sorted(value for _, value in told))
        self.assertEqual((window.at(told, 50), window.at(told, 100)), (3, 9))

    def test_fio_is_asked_for_no_more_than_it_takes(self):
        self.assertLessEqual(len(window.PERCENTS), 20)
