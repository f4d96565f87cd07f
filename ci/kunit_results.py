#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""kunit_results.py JSON: what the kernel's kunit.py has found in a log, a result for each test."""

import json
import sys

from report import Report


def tell(told, group, suite):
    for case in group["test_cases"]:
        name, status = f"{suite}.{case['name']}", case["status"]
        if status == "PASS":
            told.ok(name)
        else:
            told.not_ok(name, f"{status}, see the log")
    for sub in group["sub_groups"]:
        tell(told, sub, sub["name"])


def main(path):
    told = Report()
    with open(path) as text:
        tell(told, json.load(text), "(no suite)")
    return 0 if told.plan() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
