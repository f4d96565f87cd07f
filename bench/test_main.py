# SPDX-License-Identifier: GPL-2.0
"""The one way in: each command has what it must, and what is wrong is told."""

import contextlib
import glob
import io
import os
import types
import unittest
from unittest import mock

import main
from errors import Failed, Wrong

HERE = os.path.dirname(os.path.abspath(__file__))


def ran(*words):
    """(status, what it said on stderr)"""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        return main.main(list(words)), said.getvalue()


class Commands(unittest.TestCase):
    def test_each_has_options_and_says_what_it_does(self):
        for name in main.COMMANDS:
            with self.subTest(name=name):
                parser, module = main.parser(name)
                self.assertTrue(parser.description.strip())
                self.assertTrue(callable(module.run))

    def test_there_is_no_other_way_in(self):
        for path in glob.glob(os.path.join(HERE, "*.py")):
            with open(path) as text, self.subTest(path=path):
                if os.path.basename(path) not in ("main.py", "test_main.py"):
                    self.assertNotIn("__main__", text.read())

    def test_none(self):
        for words in ((), ("nonsense",), ("agree",), ("agree", "--bogus", "x")):
            with self.subTest(words=words):
                status, said = ran(*words)
                self.assertEqual(status, 2)
                self.assertTrue(said.startswith("hiops: error: "))
        self.assertIn("agree, barriers, blocks", ran("nonsense")[1])

    def test_status(self):
        for why, status in ((Failed("it broke"), 1), (OSError("it broke"), 1),
                            (Wrong("it broke"), 2)):
            run = mock.Mock(side_effect=why)
            module = types.SimpleNamespace(__doc__="", options=lambda parser: None, run=run)
            with self.subTest(why=why), mock.patch.object(main.importlib, "import_module",
                                                          lambda name: module):
                self.assertEqual(ran("agree"), (status, "hiops: error: it broke\n"))
                run.side_effect = None
                run.return_value = None
                self.assertEqual(ran("agree"), (0, ""))
