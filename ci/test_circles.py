# SPDX-License-Identifier: GPL-2.0
"""Circles among a crate's files: which are found, and what makes none."""

import contextlib
import io
import os
import tempfile
import unittest

import circles


class Circles(unittest.TestCase):
    def found(self, **files):
        """What is told of a crate `root` with these files; `a__b` is a/b.rs."""
        with tempfile.TemporaryDirectory() as folder:
            texts = {os.path.join(folder, f"{name.replace('__', '/')}.rs"): text
                     for name, text in ({"root": ""} | files).items()}
            for path, text in texts.items():
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file:
                    file.write(text)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                circles.main(list(texts))
            return said.getvalue().replace(folder + "/", "").replace(".rs", "").splitlines()

    def test_each_way_to_name_a_file(self):
        for text in ("use crate::b;", "use crate::b::{self, X};", "pub(crate) use super::b::X;",
                     "use crate::{c::Z, b::{Y as X, Z}};", "use super::{b as z};",
                     "fn f() -> crate::b::X;", "fn f() { <super::b::X as Copy>::f() }",
                     "macro_rules! m { () => { $crate::b::f() }; }",
                     "mod inner { use super::super::b::X; }", "use self::super::b::*;",
                     "fn f() { for x in crate::b::f() {} }"):
            with self.subTest(text=text):
                self.assertEqual(self.found(a=text, b="use crate::a::A;"), ["a -> b -> a"])

    def test_no_need(self):
        for text in ("", "// use crate::b::X;", "/// [`crate::b::X`]\nfn f() {}", "mod b;",
                     'const X: &str = "crate::b";', "use b::X;", "use other::b;", "fn f(b: B) {}",
                     "pub(in crate::b) struct X;", "fn f() -> impl Sized + use<'_> {}",
                     "mod inner { use super::b::X; }"):
            with self.subTest(text=text):
                self.assertEqual(self.found(a=text, b="use crate::a::A;"), [])

    def test_what_is_handed_on_is_of_the_file_that_it_is_from(self):
        root = "mod a; pub(crate) use a::deep::{X as Y};"
        a = "pub(crate) mod deep; pub(crate) use self::deep::X;"
        self.assertEqual(self.found(root=root, a=a, a__deep="", b="use crate::Y;"), [])
        self.assertEqual(self.found(root=root, a=a, a__deep="use crate::b::f;", b="use crate::Y;"),
                         ["a/deep -> b -> a/deep"])

    def test_a_folder_and_what_is_in_it(self):
        inside = "use super::f;"
        self.assertEqual(self.found(a="mod b; fn f() {}", a__b=inside), [])
        for a in ("mod b; pub use b::X;", "mod b; fn f() { b::g() }", "use self::b::X;"):
            with self.subTest(a=a):
                self.assertEqual(self.found(a=a, a__b=inside), ["a -> a/b -> a"])

    def test_through_an_imported_module(self):
        a = "use crate::b; fn f() { b::c::g() }"
        self.assertEqual(self.found(a=a, b="", b__c="use crate::a;"), ["a -> b/c -> a"])

    def test_a_module_whose_files_take_turns(self):
        root = ('use a::A; mod a; #[cfg_attr(X = "y", path = "on.rs")] '
                '#[cfg_attr(not(X = "y"), path = "off.rs")] mod b;')
        a = "use crate::b::X;"
        self.assertEqual(self.found(root=root, a=a, on="", off=""), [])
        self.assertEqual(self.found(root=root, a=a, on="", off="use crate::a;"), ["a -> on -> a"])
        self.assertEqual(self.found(root=root, a=a, on="use super::A;", off=""),
                         ["root -> a -> on -> root"])

    def test_the_shortest_of_each_file(self):
        files = {"a": "use crate::{b::X, c::Y};", "b": "use crate::c;", "c": "use crate::a;",
                 "d": "use crate::e::X;", "e": "use crate::{a, d};", "f": "use crate::a;"}
        self.assertEqual(self.found(**files), ["a -> c -> a", "b -> c -> a -> b", "d -> e -> d"])
