#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""unittests.py FOLDER...: runs the tests (test_*.py) of these folders; a result for each."""

import sys
import unittest

from report import Report


class Results(unittest.TestResult):
    """Tells each test's end to a Report."""

    def __init__(self, told):
        super().__init__()
        self.told = told
        self.why = {}

    def note(self, test, error):
        # A test with sub-tests ends once: its first error counts.
        self.why.setdefault(test.id(), f"{error[0].__name__}: {error[1]}")

    def addError(self, test, err):
        self.note(test, err)

    def addFailure(self, test, err):
        self.note(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, (err[0], f"{dict(subtest.params)}: {err[1]}"))

    def addSkip(self, test, reason):
        self.why.setdefault(test.id(), f"skipped: {reason}")

    def stopTest(self, test):
        why = self.why.get(test.id())
        if why:
            self.told.not_ok(test.id(), " ".join(why.split())[:160])
        else:
            self.told.ok(test.id())


def main(folders):
    told = Report()
    result = Results(told)
    for folder in folders:
        # A file that does not load is a test that fails, by its own name.
        unittest.defaultTestLoader.discover(folder, top_level_dir=folder).run(result)
    return 0 if told.plan() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
