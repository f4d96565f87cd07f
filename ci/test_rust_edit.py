# SPDX-License-Identifier: GPL-2.0
"""Edits of Rust by its syntax: what they find, whatever it looks like, and what they refuse."""

import contextlib
import io
import os
import tempfile
import unittest

import rust_edit

CODE = """
impl<T: Into<u8>> Lock<T> {
    /// fence(Ordering::SeqCst); is no fence here, nor is "fence(" or 'f'.
    fn take<'a>(&'a self, held: u8) -> bool where T: Copy {
        let taken = (self.state).compare_exchange(FREE, HELD, Acquire, Relaxed);
        if self.is_free() && (held & HELD != 0 || !self.fifo.is_empty()) {
            fence(Ordering::SeqCst);
            self.look();
        }
        self.look();
        taken.is_ok().then(|| held == HELD)
    }
    fn free(&self);
}
impl Drop for Guard<'_> {
    fn drop(&mut self) { while is_of(self) { self.0.swap(FREE, Ordering::AcqRel); } }
}
impl Other { fn drop(&self) {} }
mod tests { fn take() { fence(Ordering::SeqCst); } }
"""
# The same as a formatter with another taste, or somebody who renames the rest, would have it.
ELSEWHERE = (CODE.replace("(Ordering::SeqCst)", "(\n    Ordering::SeqCst, // all\n)")
             .replace("taken", "got").replace("self.is_free()", "free"))


class Edits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def edit(self, code, *args):
        """(status, what it says, the code afterwards)"""
        path = os.path.join(self.folder, "lock.rs")
        with open(path, "w") as file:
            file.write(code)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = rust_edit.main([self.folder, *args])
        with open(path) as file:
            return status, said.getvalue().strip(), file.read()

    def made(self, before, after, *args, code=CODE):
        """The edit makes `after` of the one `before`."""
        self.assertEqual(code.count(before), 1)
        self.assertEqual(self.edit(code, *args), (0, "lock.rs", code.replace(before, after)))

    def test_drop(self):
        self.made("fence(Ordering::SeqCst);\n            self", "\n            self",
                  "take", "drop fence")
        self.made("self.look();\n        taken", "\n        taken", "take", "drop look 2")

    def test_formatted_and_renamed_it_is_still_found(self):
        text = self.edit(ELSEWHERE, "take", "drop fence")[2]
        self.assertEqual(text.count("fence(\n"), ELSEWHERE.count("fence(\n") - 1)
        self.assertIn("{\n            \n            self.look();", text)
        self.assertEqual(self.edit(ELSEWHERE, "take", "false fifo")[0], 0)

    def test_orderings(self):
        self.made("HELD, Acquire, Relaxed", "HELD, Relaxed, Relaxed",
                  "take", "no-acquire compare_exchange")
        self.made("Ordering::AcqRel", "Ordering::Release", "Guard::drop", "no-acquire swap")
        self.made("Ordering::AcqRel", "Ordering::Acquire", "Guard::drop", "no-release swap")

    def test_calls(self):
        self.made("self.is_free()", "self.is_held()", "take", "call is_free is_held")
        self.made(".then(|| held == HELD)", ".then_some( held == HELD)", "take", "eager then")

    def test_conditions(self):
        for name, operand in (("is_free", "self.is_free()"), ("HELD 2", "held & HELD != 0"),
                              ("fifo", "!self.fifo.is_empty()")):
            with self.subTest(name=name):
                self.made(operand, f"({operand} && false)", "take", f"false {name}")
        self.made("while is_of(self) {", "while (is_of(self) || true) {",
                  "Guard::drop", "true is_of")

    def test_several(self):
        text = self.edit(CODE, "take", "false is_free; drop fence")[2]
        self.assertIn("(self.is_free() && false)", text)
        self.assertNotIn("{\n            fence", text)

    def test_uses(self):
        self.made("(held & HELD", "(0 & HELD", "take", "use held 0")
        self.made("(FREE, HELD", "(FREE, FREE", "take", "use HELD FREE")

    def test_what_is_not_there_is_named(self):
        for args, why in ((("took", "drop fence"), "0 functions took"),
                          (("drop", "drop swap"), "2 functions drop"),
                          (("free", "drop fence"), "0 functions free"),
                          (("take", "drop fence 2"), "1 of fence(...), not 2"),
                          (("take", "drop is_free"), "no statement of its own"),
                          (("take", "no-release compare_exchange"), "has no such ordering"),
                          (("take", "drop fence; drop swap"), "0 of swap"),
                          (("take", "eager is_ok"), "no closure"),
                          (("take", "use taken"), "another number of names"),
                          (("take", "burn fence"), "there is no edit burn")):
            with self.subTest(args=args):
                status, said, text = self.edit(CODE, *args)
                self.assertEqual((status, text), (1, CODE))
                self.assertIn(why, said)

    def test_fences(self):
        self.assertEqual(self.edit(CODE), (0, "take", CODE))
