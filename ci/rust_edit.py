#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Breaks a line of Rust on purpose: an edit of a function by its syntax, not by its text.

rust_edit.py FOLDER FUNCTION EDITS  does them to the one function of that name, or TYPE::NAME, that
                                    the crate in FOLDER has; tells the file
rust_edit.py FOLDER                 tells the functions with a fence, one a line for each

What is formatted anew, commented, moved to another file or renamed around it is still found. EDITS
are some of these, with "; " between them; X and Y are names, of calls, fields or variables. A
number at the end of one says which X in the function it is, if not the first.

  drop X            the statement that calls X is gone
  no-acquire X      the ordering that the call of X is given does not acquire any more
  no-release X      the same for release
  call X Y          Y is called instead
  eager X           .X(|| VALUE), a bool's, is .X_some(VALUE)
  true X, false X   the operand of || and && that X stands in is computed, and taken for that
  use X Y           Y stands where the variable or constant X stood
"""

import glob
import os
import re
import sys

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']*|[^'\\])')
  | (?P<name>'?(?:r\#)?[A-Za-z_]\w*)
  | (?P<number>\d\w*(?:\.\d\w*)?)
  | (?P<mark>\|\||&&|=>|->|::|==|!=|<=|>=|.)""", re.VERBOSE | re.DOTALL)
OPEN, CLOSE = "([{", ")]}"
# What an operand ends at, of its own depth.
EDGES = {"||", "&&", ";", ",", "=", "=>", "{", "}", "if", "while", "match", "return", "else"}
BEFORE_AN_ITEM = {"", "}", "]", ";", "unsafe", "pub"}
NOT = {"no-acquire": {"Acquire": "Relaxed", "AcqRel": "Release"},
       "no-release": {"Release": "Relaxed", "AcqRel": "Acquire"}}


class Wrong(Exception):
    """There is no such thing to edit; the text says what is."""


class Source:
    """A file's text and its tokens (text, where it begins)."""

    def __init__(self, path):
        self.path = path
        with open(path) as file:
            self.text = file.read()
        self.tokens = [(m[0], m.start()) for m in TOKEN.finditer(self.text) if m["skip"] is None]

    def at(self, n):
        return self.tokens[n][0] if 0 <= n < len(self.tokens) else ""

    def pair(self, n):
        """The token that closes what the n-th opens."""
        depth = 0
        for end in range(n, len(self.tokens)):
            depth += (self.at(end) in OPEN) - (self.at(end) in CLOSE)
            if not depth:
                return end
        raise Wrong(f"{self.path}: a {self.at(n)} is not closed")

    def functions(self):
        """(type or "", name, first token of the body, last) of each, but of tests."""
        owner, ends, n = "", 0, 0
        while n < len(self.tokens):
            word, name = self.at(n), self.at(n + 1)
            if word == "mod" and name == "tests" and self.at(n + 2) == "{":
                n = self.pair(n + 2)
            elif word in ("impl", "trait") and self.at(n - 1) in BEFORE_AN_ITEM:
                body = self.body(n)
                if body:
                    owner, ends = self.owner(n, body), self.pair(body)
                    n = body
            elif word == "fn" and re.match(r"\w", name):
                body = self.body(n)
                if body:
                    yield owner if n < ends else "", name, body, self.pair(body)
            n += 1

    def body(self, n):
        """The brace that opens the body of what begins at the n-th token, or None."""
        while self.at(n) not in ("{", ";", ""):
            n = self.pair(n) if self.at(n) in "([" else n
            n += 1
        return n if self.at(n) == "{" else None

    def owner(self, n, body):
        """The type of an `impl`, or the trait's name."""
        words, depth = [], 0
        for k in range(n + 1, body):
            word = self.at(k)
            depth -= word == ">"
            if word == "for" and not depth:
                words = []
            elif word == "where":
                break
            elif not depth and re.match(r"\w", word):
                words.append(word)
            depth += word == "<"
        return words[-1] if words else ""


class Function:
    """A body in a Source, and the edits of it."""

    def __init__(self, source, first, last):
        self.source, self.first, self.last = source, first, last

    def found(self, what, nth, wanted):
        """The nth token of the body that is `wanted`."""
        source = self.source
        places = [n for n in range(self.first, self.last) if wanted(n)]
        if len(places) < nth:
            raise Wrong(f"{source.path}: {len(places)} of {what}, not {nth}")
        return places[nth - 1]

    def call(self, name, nth):
        at = self.source.at
        return self.found(f"{name}(...)", nth, lambda n: at(n) == name and at(n + 1) == "(")

    def value(self, name, nth, fields):
        """A use of it that is no declaration; one as a field counts if `fields`."""
        at = self.source.at
        return self.found(name, nth, lambda n: at(n) == name and at(n - 1) not in ("let", "mut")
                          and (fields or at(n - 1) != "."))

    def replaced(self, first, last, text):
        """The file's text with other text for the tokens from the first to the last."""
        source = self.source
        end = source.tokens[last][1] + len(source.at(last))
        return source.text[:source.tokens[first][1]] + text + source.text[end:]

    def words(self, first, last):
        end = self.source.tokens[last][1] + len(self.source.at(last))
        return self.source.text[self.source.tokens[first][1]:end]

    def around(self, n, edges):
        """(first, last) token around the n-th up to the `edges` of its own depth."""
        at = self.source.at
        first = last = n
        depth = 0
        while depth or (at(first - 1) not in edges and at(first - 1) not in OPEN):
            first -= 1
            depth += (at(first) in CLOSE) - (at(first) in OPEN)
        while at(last + 1) not in edges and at(last + 1) not in CLOSE:
            last += 1
            last = self.source.pair(last) if at(last) in OPEN else last
        return first, last

    def edited(self, edit):
        """The file's text after it."""
        kind, name, *other = edit.split()
        takes_two = kind in ("call", "use")
        nth = int(other.pop()) if len(other) > takes_two and other[-1].isdigit() else 1
        if len(other) != takes_two:
            raise Wrong(f"{edit}: another number of names")
        if kind == "drop":
            first, last = self.around(self.call(name, nth), {";", "{", "}"})
            if self.source.at(last + 1) != ";":
                raise Wrong(f"{self.source.path}: {name}(...) is no statement of its own")
            return self.replaced(first, last + 1, "")
        if kind in NOT:
            call = self.call(name, nth)
            last = self.source.pair(call + 1)
            places = [n for n in range(call, last) if self.source.at(n) in NOT[kind]]
            if not places:
                raise Wrong(f"{self.source.path}: {self.words(call, last)} has no such ordering")
            return self.replaced(places[0], places[0], NOT[kind][self.source.at(places[0])])
        if kind == "call":
            call = self.call(name, nth)
            return self.replaced(call, call, other[0])
        if kind == "eager":
            call = self.call(name, nth)
            if self.source.at(call + 2) != "||":
                raise Wrong(f"{self.source.path}: {name}(...) is given no closure")
            return self.replaced(call, call + 2, f"{name}_some(")
        if kind in ("true", "false"):
            first, last = self.around(self.value(name, nth, True), EDGES)
            mark = "||" if kind == "true" else "&&"
            return self.replaced(first, last, f"({self.words(first, last)} {mark} {kind})")
        if kind == "use":
            place = self.value(name, nth, False)
            return self.replaced(place, place, other[0])
        raise Wrong(f"there is no edit {kind}")


def sources(folder):
    return [Source(path) for path in sorted(glob.glob(os.path.join(folder, "*.rs")))]


def function(folder, name):
    """The one of that name, or TYPE::NAME, in the crate."""
    owner, _, short = name.rpartition("::")
    found = [(kind, Function(source, first, last)) for source in sources(folder)
             for kind, called, first, last in source.functions()
             if called == short and owner in ("", kind)]
    if len(found) != 1:
        kinds = ", ".join(f"{kind or 'no type'} in {f.source.path}" for kind, f in found)
        raise Wrong(f"{len(found)} functions {name} in {folder}" + (f": of {kinds}" * bool(found)))
    return found[0][1]


def fences(folder):
    """The name of the function around each fence."""
    for source in sources(folder):
        for _, name, first, last in source.functions():
            for n in range(first, last):
                if source.at(n) == "fence" and source.at(n + 1) == "(":
                    yield name


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def main(args):
    try:
        if len(args) == 1:
            print(*fences(args[0]), sep="\n")
            return 0
        folder, name, edits = args
        whole = function(folder, name).source
        try:
            for edit in edits.split("; "):
                write(whole.path, function(folder, name).edited(edit))
        except Wrong:
            write(whole.path, whole.text)
            raise
    except Wrong as why:
        print(why)
        return 1
    print(os.path.basename(whole.path))
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
