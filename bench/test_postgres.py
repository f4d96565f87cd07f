# SPDX-License-Identifier: GPL-2.0
"""PostgreSQL: what is read of pgbench's words and of its log."""

import unittest

import postgres
from errors import Failed

# As pgbench 17.12 printed them.
SELECT = """\
pgbench (17.12 (Debian 17.12-0+deb13u1))
transaction type: <builtin: select only>
scaling factor: 20
query mode: prepared
number of clients: 2
number of threads: 1
maximum number of tries: 1
number of transactions per client: 20
number of transactions actually processed: 40/40
number of failed transactions: 0 (0.000%)
latency average = 0.424 ms
initial connection time = 37.541 ms
tps = 4713.646005 (without initial connection time)
"""
LOG = """\
0 1 1234 0 1796054700 814061
0 2 420 0 1796054700 814492
0 3 81 0 1796054700 814577
"""


class Told(unittest.TestCase):
    def test_rate(self):
        self.assertEqual(postgres.told(SELECT), {"operations_s": 4713.646005, "operations": 40})

    def test_a_transaction_that_failed(self):
        with self.assertRaisesRegex(Failed, "3 of pgbench"):
            postgres.told(SELECT.replace("transactions: 0 (", "transactions: 3 ("))

    def test_nothing_told(self):
        with self.assertRaises(Failed):
            postgres.told("pgbench: error: connection to server failed\n")


class Log(unittest.TestCase):
    def test_percentiles(self):
        self.assertEqual(postgres.percentiles(LOG), {"p50_ns": 420_000, "p99_ns": 1_234_000})

    def test_one_of_a_hundred_is_slower_than_the_99th(self):
        log = "".join(f"0 {n} {n} 0 1796054700 814061\n" for n in range(1, 201))
        self.assertEqual(postgres.percentiles(log), {"p50_ns": 100_000, "p99_ns": 198_000})

    def test_empty(self):
        with self.assertRaises(Failed):
            postgres.percentiles("")
