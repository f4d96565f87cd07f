# SPDX-License-Identifier: GPL-2.0
"""How results are told by what is written in Python: the lines of ci/report.sh, which says more."""

import re
import sys


class Report:
    """One stream of KTAP: a line for each result, and at its end the plan."""

    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.told = self.bad = 0

    def line(self, text):
        print(text, file=self.out, flush=True)

    def result(self, verdict, name, text):
        self.told += 1
        if self.told == 1:
            self.line("KTAP version 1")
        name = re.sub(r"[#\n]", " ", name)
        text = text.replace("\n", " ")
        self.line(f"{verdict} {self.told} {name}" + (f" # {text}" if text else ""))

    def ok(self, name, what=""):
        self.result("ok", name, what)

    def not_ok(self, name, why="failed"):
        self.bad += 1
        self.result("not ok", name, why or "failed")

    def plan(self):
        """All is told: whether all were ok."""
        if not self.told:
            self.line("KTAP version 1")
        self.line(f"1..{self.told}")
        return self.bad == 0
