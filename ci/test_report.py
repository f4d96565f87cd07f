# SPDX-License-Identifier: GPL-2.0
"""How results are told: both reporters write the same, and what dies half-way is not well."""

import io
import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

from report import Report

CI = os.path.dirname(os.path.abspath(__file__))


def bash(script, cwd=CI):
    """(status, stdout) of a script that has sourced report.sh."""
    done = subprocess.run(["bash", "-euc", f". {CI}/report.sh\n{script}"], cwd=cwd, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.returncode, done.stdout


def retold(script):
    """What is told of `script`, another reporter, as lines."""
    other = shlex.quote(f". ./report.sh\n{script}")
    return bash(f"retell half 'its ' bash -c {other}\nplan || true")[1].split("\n")


class Lines(unittest.TestCase):
    """What is told, and how."""

    def test_both_reporters_write_the_same(self):
        out = io.StringIO()
        told = Report(out)
        told.ok("a name")
        told.ok("b", "17 I/Os")
        told.not_ok("c #1", "why\nnot")
        told.not_ok("d", "")
        told.plan()
        status, lines = bash("ok 'a name'; ok b '17 I/Os'; not_ok 'c #1' $'why\\nnot'\n"
                             "not_ok d ''; plan")
        self.assertEqual(lines, out.getvalue())
        self.assertEqual(status, 1)
        self.assertEqual(lines.splitlines(), [
            "KTAP version 1", "ok 1 a name", "ok 2 b # 17 I/Os", "not ok 3 c  1 # why not",
            "not ok 4 d # failed", "1..4"])

    def test_nothing_told(self):
        out = io.StringIO()
        self.assertTrue(Report(out).plan())
        self.assertEqual(bash("plan"), (0, out.getvalue()))

    def test_status_is_whether_all_were_ok(self):
        self.assertEqual(bash("ok a; plan")[0], 0)
        self.assertEqual(bash("ok a; (not_ok b); plan")[0], 1)

    def test_subshells_and_jobs_at_once_are_numbered(self):
        lines = bash("for n in {1..20}; do ok $n & done; wait\n"
                     "echo | ok piped; (ok nested); plan")[1].splitlines()
        numbers = sorted(int(line.split()[1]) for line in lines if line.startswith("ok "))
        self.assertEqual(numbers, list(range(1, 23)))
        self.assertEqual(lines[-1], "1..22")

    def test_check_tells_what_was_said_last(self):
        lines = bash("check good true\ncheck bad sh -c 'echo one; echo two; false'\n"
                     "plan || true")[1]
        self.assertIn("\nok 1 good\nnot ok 2 bad # two\n", "\n" + lines.partition("\n")[2])


class Retold(unittest.TestCase):
    """Another reporter's results as one's own."""

    def test_whole(self):
        self.assertEqual(retold("ok a; not_ok b why; plan || true"), [
            "KTAP version 1", "ok 1 its a", "not ok 2 its b # why", "1..2", ""])

    def test_cut_off(self):
        for end, status in (("exit 0", ""), ("kill -9 $$", ", status 137"),
                            ("set -u; $nothing", ", status 127")):
            with self.subTest(end=end):
                self.assertEqual(retold(f"ok a; {end}"), [
                    "KTAP version 1", "ok 1 its a",
                    f"not ok 2 half # it did not come to its end: 1 results{status}",
                    "1..2", ""])

    def test_another_number_than_planned(self):
        self.assertIn("not ok 2 half # it told 1 results of 2", retold("ok a; echo 1..2"))

    def test_a_failure_without_a_result(self):
        self.assertIn("not ok 2 half # it ended with status 3", retold("ok a; plan; exit 3"))
        self.assertIn("not ok 1 half # it told no result", retold("plan"))

    def test_skipped(self):
        self.assertIn("not ok 1 its a # SKIP no disk",
                      retold("echo 'ok 1 a # SKIP no disk'; echo 1..1"))
        self.assertEqual(retold("plan 'no tool here'"), [
            "# half is not run: no tool here", "KTAP version 1", "1..0", ""])


class Whole(unittest.TestCase):
    """ci/test with checks of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        os.mkdir(f"{self.tree}/ci")
        for name in ("test", "lib.sh", "report.sh", "hung.sh", "cargo-results.sh"):
            shutil.copy2(f"{CI}/{name}", f"{self.tree}/ci/")

    def run_checks(self, **checks):
        """(status, the last line) of checks that are these scripts."""
        for name, script in checks.items():
            path = f"{self.tree}/ci/check-{name}"
            with open(path, "w") as file:
                file.write(f"#!/usr/bin/env bash\nset -eu\n. {CI}/report.sh\n{script}\n")
            os.chmod(path, 0o755)
        done = subprocess.run([f"{self.tree}/ci/test", *checks], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL,
                              env={**os.environ, "HIOPS_CACHE": f"{self.tree}/cache"})
        return done.returncode, done.stdout.splitlines()

    def test_all_well(self):
        status, lines = self.run_checks(one="ok a; ok b; plan", two="plan 'no tool'",
                                        three="ok c; plan")
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed"))

    def test_one_that_ends_half_way(self):
        for end in ("exit 0", "kill -9 $$", "false", "$nothing"):
            with self.subTest(end=end):
                status, lines = self.run_checks(one="ok a; plan", half=f"ok b; {end}; ok c; plan")
                self.assertEqual((status, lines[-1]), (1, "2 passed, 1 failed"))
                self.assertIn("# not ok half # it did not come to its end", lines[-2])

    def test_one_that_hangs_is_ended_and_named(self):
        os.environ["HIOPS_SILENCE_S"] = "2"
        self.addCleanup(os.environ.pop, "HIOPS_SILENCE_S")
        status, lines = self.run_checks(hangs=f"ok a; exec -a {self.tree}-asleep sleep 1000",
                                        next="ok b; plan")
        self.assertEqual((status, lines[-1]), (1, "2 passed, 1 failed"))
        self.assertIn("# not ok hangs # it said nothing for 2 s, and was ended", lines[-2])
        self.assertEqual(subprocess.run(["pgrep", "-f", f"{self.tree}-asleep"],
                                        stdout=subprocess.DEVNULL).returncode, 1)

    def test_a_test_of_cargos_that_hangs_is_named(self):
        says = r"echo \     Running unittests x.rs \(t/x-0f\); echo running 2 tests; " \
            "echo test a::b has been running for over 60 seconds; echo test c::d ... ok; sleep 1000"
        status, lines = self.run_checks(
            one=f". {CI}/lib.sh; . {CI}/hung.sh; CARGO_SILENCE_S=2; . {CI}/cargo-results.sh\n"
                f"cargo_results host bash -c {shlex.quote(says)}; plan")
        self.assertEqual(lines[-1], "1 passed, 1 failed")
        self.assertIn("# not ok host: x::a::b # nothing was said for 2 s: it hangs", lines[-2])

    def test_nothing_at_all_is_a_failure(self):
        self.assertEqual(self.run_checks(one="plan 'no tool'")[0], 1)
