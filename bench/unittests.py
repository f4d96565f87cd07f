#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the tests of this folder (test_*.py); a line for each: "ok NAME" or "not ok NAME: why"."""

import os
import sys
import unittest


class Lines(unittest.TestResult):
    """Tells each test's end as ci/report.sh does."""

    def __init__(self):
        super().__init__()
        self.why = {}

    def tell(self, test, error):
        # A test with sub-tests ends once: its first error counts.
        self.why.setdefault(test.id(), f"{error[0].__name__}: {error[1]}")

    def addError(self, test, err):
        self.tell(test, err)

    def addFailure(self, test, err):
        self.tell(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.tell(test, (err[0], f"{dict(subtest.params)}: {err[1]}"))

    def addSkip(self, test, reason):
        self.why.setdefault(test.id(), f"skipped: {reason}")

    def stopTest(self, test):
        why = self.why.get(test.id())
        # A result is one line.
        print(f"not ok {test.id()}: {' '.join(why.split())[:160]}" if why else f"ok {test.id()}")


here = os.path.dirname(os.path.abspath(__file__))
result = Lines()
unittest.defaultTestLoader.discover(here).run(result)
# A file that does not load is a test that fails, by its own name.
sys.exit(1 if result.why else 0)
