#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""circles.py CRATE.rs FILE...: circles among the files of a Rust crate, one a line.

A file needs another one if it names something of it by a path: in a `use`, or in code; from
`crate`, `self` or `super`, from a module below it, or from one that it imports. What a file hands
on (`pub use`) is of the file that it comes from, and needed by the one that hands it on. A module
that is declared (`mod`) is not needed for that; where it has files that take turns, by `path` in
attributes, it is all of them. A method is called without a path, and not seen.
"""

import os
import sys

from rust_edit import Source


class File:
    """A file of the crate: as a module (its path, a tuple of names), with what it names."""

    def __init__(self, path, module):
        self.source, self.module = Source(path), module
        # Each path that is named, with the module in which that is; those of imported names; and
        # which of these are handed on.
        self.named, self.imported, self.handed_on = [], {}, set()
        # Modules that are declared with the paths of their files, and these.
        self.placed = {}
        self.read(0, len(self.source.tokens), module)

    def read(self, n, end, module):
        """The tokens from the n-th to the end, which are in `module`, this file's or one in it."""
        at = self.source.at
        paths = []
        while n < end:
            word = at(n)
            if word == "mod" and at(n + 2) == "{":
                last = self.source.pair(n + 2)
                self.read(n + 3, last, module + (at(n + 1),))
                n, paths = last, []
            elif word == "mod" and at(n + 2) == ";":
                if paths:
                    self.placed[module + (at(n + 1),)] = paths
                paths = []
            elif word == "path" and at(n - 1) in ("[", ",") and at(n + 1) == "=":
                folder = os.path.dirname(self.source.path)
                paths.append(os.path.normpath(os.path.join(folder, at(n + 2).strip('"'))))
            elif word == "use" and at(n + 1) != "<":
                is_public = at(n - 1) == "pub" or (at(n - 1) == ")" and self.is_pub(n - 1))
                n = self.use(n + 1, (), module, is_public)
            elif word == "in" and at(n - 1) == "(" and at(n - 2) == "pub":
                n = self.source.pair(n - 1)
            elif at(n + 1) == "::" and at(n - 1) not in ("::", "."):
                path = [word]
                while at(n + 1) == "::" and at(n + 2).isidentifier():
                    n += 2
                    path.append(at(n))
                self.named.append((tuple(path), module))
            n += 1

    def is_pub(self, n):
        """Whether the n-th token ends a `pub(...)`."""
        while self.source.at(n) not in ("(", ""):
            n -= 1
        return self.source.at(n - 1) == "pub"

    def use(self, n, path, module, is_public):
        """Notes the tree of a `use` at the n-th token, below `path`. The token behind it."""
        at = self.source.at
        n += at(n) == "::"
        while at(n) not in ("{", "*", ",", "}", ";", "as"):
            if at(n) != "::" and not (at(n) == "self" and path):
                path += (at(n),)
            n += 1
        if at(n) == "{":
            n += 1
            while at(n) != "}":
                n = self.use(n, path, module, is_public)
                n += at(n) == ","
            return n + 1
        name = path[-1]
        if at(n) == "*":
            name, n = "*", n + 1
        elif at(n) == "as":
            name, n = at(n + 1), n + 2
        self.imported[name] = (path, module)
        if is_public:
            self.handed_on.add(name)
        self.named.append((path, module))
        return n


class Crate:
    """The files of a crate, by module."""

    def __init__(self, root, paths):
        folder = os.path.dirname(root)
        self.files = {}
        for path in paths:
            names = os.path.relpath(path, folder)[:-len(".rs")].split(os.sep)
            module = () if path == root else tuple(names)
            self.files[module] = File(path, module)
        for file in list(self.files.values()):
            for module, paths in file.placed.items():
                self.place(module, paths)

    def place(self, module, paths):
        """The files at `paths`, as far as they are the crate's, are `module`, and no other."""
        for name, file in list(self.files.items()):
            if os.path.normpath(file.source.path) not in paths:
                continue
            del self.files[name]
            other, first = File(file.source.path, module), self.files.get(module)
            if first is None:
                self.files[module] = other
                continue
            first.named += other.named
            first.imported |= other.imported
            first.handed_on |= other.handed_on

    def absolute(self, path, module, file, seen=()):
        """The path from the crate's root, or None: it is another crate's."""
        first, rest = path[0], path[1:]
        if first == "crate":
            return rest
        if first in ("self", "super"):
            base = module
            for k, word in enumerate(path):
                if word == "super":
                    base = base[:-1]
                elif word != "self":
                    return base + path[k:]
            return base
        if module + (first,) in self.files:
            return module + path
        if first in file.imported and first not in seen:
            there = self.absolute(*file.imported[first], file, seen + (first,))
            return None if there is None else there + rest
        return None

    def home(self, path, depth=0):
        """The module whose file what the absolute path names is in."""
        module = ()
        for k, name in enumerate(path):
            if module + (name,) in self.files:
                module += (name,)
                continue
            file = self.files[module]
            if name in file.handed_on and depth < 9:
                there = self.absolute(*file.imported[name], file, (name,))
                if there is not None:
                    return self.home(there + path[k + 1:], depth + 1)
            break
        return module

    def needs(self, module):
        """The modules whose files this one's needs."""
        file = self.files[module]
        paths = (self.absolute(path, place, file) for path, place in file.named)
        return {self.home(path) for path in paths if path is not None} - {module}

    def circles(self):
        """Circles, not all: none of the files in one begins another."""
        needs = {module: sorted(self.needs(module)) for module in self.files}
        left = set(needs)
        while left:
            start = min(left)
            reached = {start: None}
            queue = [start]
            while queue:
                module = queue.pop(0)
                for other in needs[module]:
                    if other == start:
                        circle = [start]
                        while module != start:
                            circle.insert(1, module)
                            module = reached[module]
                        yield circle + [start]
                        left -= set(circle)
                        queue = []
                        break
                    if other not in reached:
                        reached[other] = module
                        queue.append(other)
            left.discard(start)


def main(args):
    crate = Crate(args[0], args)
    for circle in crate.circles():
        print(" -> ".join(crate.files[module].source.path for module in circle))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1:])
