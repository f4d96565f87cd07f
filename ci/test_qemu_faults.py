# SPDX-License-Identifier: GPL-2.0
"""What QEMU did wrong is told from what a guest did, in what was left of runs of the lab."""

import os
import subprocess
import tempfile
import unittest

CI = os.path.dirname(os.path.abspath(__file__))
HALTED = "RIP=ffffffff81c0d1a3 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\n"
BUSY = HALTED.replace("HLT=1", "HLT=0")
OOPS = """\
[  97.7] Oops: int3: 0000 [#1] SMP NOPTI\r
[  97.7] RIP: 0010:enqueue_task_fair+0xa0b/0xcc0\r
[  97.7] Code: e5 f7 ff ff 48 8b 74 24 08 e9 77 fa ff ff {} <1f> 44 00 00 48 81 bd 18 04\r
"""


def tells(function, text):
    """Whether that function of qemu-faults.sh says so of a file with the text."""
    with tempfile.NamedTemporaryFile("w", newline="") as file:
        file.write(text)
        file.flush()
        script = f". {CI}/qemu-faults.sh; {function} {file.name}"
        return not subprocess.run(["bash", "-euc", script]).returncode


def look(first, second):
    """What the monitor tells of two CPUs, each a line of registers and what is in service."""
    text = "".join(f"CPU#{n}\n{registers}" for n, (registers, _) in enumerate((first, second)))
    for n, (_, served) in enumerate((first, second)):
        text += f"dumping local APIC state for CPU {n}\nISR\t {served}\nIRR\t (none)\n"
    return text


class LostEnd(unittest.TestCase):
    """A CPU that halts while it has an interrupt in service."""

    IDLE, STUCK = (HALTED, "(none)"), (HALTED, "236")

    def test_twice_on_either_cpu(self):
        for pair in ((self.STUCK, self.IDLE), (self.IDLE, self.STUCK)):
            self.assertTrue(tells("lost_end", look(*pair) * 2))

    def test_not_once(self):
        fine = look(self.IDLE, self.IDLE)
        self.assertFalse(tells("lost_end", look(self.STUCK, self.IDLE) + fine))
        self.assertFalse(tells("lost_end", fine + look(self.IDLE, self.STUCK)))

    def test_not_on_two_cpus_by_turns(self):
        self.assertFalse(tells("lost_end", look(self.STUCK, self.IDLE)
                               + look(self.IDLE, self.STUCK)))

    def test_not_of_one_that_serves_it(self):
        self.assertFalse(tells("lost_end", look((BUSY, "236"), self.IDLE) * 2))

    def test_not_of_no_answer(self):
        self.assertFalse(tells("lost_end", "QEMU does not answer\n"))


class StaleBreakpoint(unittest.TestCase):
    """A breakpoint that was run, and is not in memory."""

    def test_what_is_there_is_no_breakpoint(self):
        self.assertTrue(tells("stale_breakpoint", OOPS.format("0f")))

    def test_a_breakpoint_that_is_there_is_the_guests(self):
        self.assertFalse(tells("stale_breakpoint", OOPS.format("cc")))

    def test_another_oops_is_the_guests(self):
        self.assertFalse(tells("stale_breakpoint", OOPS.format("0f").replace("int3", "0002")))

    def test_a_log_without_one(self):
        self.assertFalse(tells("stale_breakpoint", "[    0.0] Linux version\r\n"))
        self.assertFalse(tells("stale_breakpoint", "[  97.7] Oops: int3: 0000\r\n"))


if __name__ == "__main__":
    unittest.main()
