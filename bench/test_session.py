# SPDX-License-Identifier: GPL-2.0
"""The recorded session: what script(1) wrote as lines, and the picture of it."""

import os
import unittest
import xml.etree.ElementTree as xml

import pages
import plot_session
import record
import session
from errors import Failed

SVG = "{http://www.w3.org/2000/svg}"
OUTPUT = b"Script started on ...\n# a\r\none\r\ntwo\r\n# b\r\nend"
# "# a" and half of the next line, its rest, a line more; the second command; its output.
TIMING = b"1.0 7\n0.5 3\n2.0 5\n9.0 5\n0.25 3\n"


class Lines(unittest.TestCase):
    def test_a_line_is_there_when_its_end_is(self):
        self.assertEqual(session.lines(OUTPUT, TIMING),
                         [(1.0, "# a"), (1.5, "one"), (3.5, "two"), (12.5, "# b"), (12.75, "end")])

    def test_what_is_no_plain_text_is_refused(self):
        with self.assertRaises(Failed):
            session.lines(b"head\n\x1b[1mbold\r\n", b"1.0 10\n")


class Picture(unittest.TestCase):
    def test_every_line_stands_there_and_nothing_else(self):
        lines = record.load(session.RECORD)
        drawn = xml.fromstring(plot_session.draw(lines))
        self.assertEqual([text.text for text in drawn.iter(f"{SVG}text")],
                         [line for _, line in lines if line])

    def test_it_is_small_and_shows_what_it_is_for(self):
        for name in pages.PICTURES:
            self.assertLess(os.path.getsize(name), 60_000, name)
        typed = [line for _, line in record.load(session.RECORD) if line.startswith("# ")]
        self.assertEqual([line.split()[:3][1:] for line in typed if "hiopsctl" in line],
                         [["hiopsctl", word] for word in ("list", "bind", "stat", "unbind")])

    def test_pauses_are_cut_and_a_command_waits_for_its_reader(self):
        lines = [(0.0, "# a"), (60.0, "one"), (60.01, "two"), (61.0, "# b")]
        self.assertEqual(plot_session.paced(lines), [
            (0.0, [(0, "# a")]), (plot_session.PAUSE, [(1, "one"), (2, "two")]),
            (plot_session.PAUSE + plot_session.READ, [(3, "# b")])])

    def test_a_line_fits(self):
        for _, line in record.load(session.RECORD):
            self.assertLessEqual(len(line), plot_session.COLUMNS)
