# SPDX-License-Identifier: GPL-2.0
"""Lengths of functions: which are told, and from where to where they are counted."""

import os
import tempfile
import unittest

import lengths


class Lengths(unittest.TestCase):
    def found(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.rs")
            with open(path, "w") as file:
                file.write(text)
            return list(lengths.functions(path))

    def test_from_fn_to_brace(self):
        text = "// a\n\npub fn long(\n    x: u8,\n) -> u8 {\n    { x }\n}\n\nfn short() {}\n"
        self.assertEqual(self.found(text), [("long", 3, 5), ("short", 9, 1)])

    def test_those_of_tests_and_traits(self):
        text = "trait T { fn none(); fn some() {} }\nmod tests {\n    fn one() {\n    }\n}\n"
        self.assertEqual(self.found(text), [("some", 1, 1), ("one", 3, 2)])

    def test_no_function(self):
        self.assertEqual(self.found('type F = fn(u8) -> u8;\nconst S: &str = "fn x() {\n";'), [])


if __name__ == "__main__":
    unittest.main()
