#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""lengths.py MOST FILE...: the functions of Rust files that have more than MOST lines, from that of
`fn` to that of the closing brace, one a line."""

import sys

from rust_edit import Source


def functions(path):
    """(name, first line, lines) of each, those of tests included."""
    source = Source(path)
    for n, (word, start) in enumerate(source.tokens):
        if word == "fn" and source.at(n + 1).isidentifier():
            body = source.body(n)
            if body is not None:
                end = source.tokens[source.pair(body)][1]
                first = source.text.count("\n", 0, start) + 1
                yield source.at(n + 1), first, source.text.count("\n", start, end) + 1


def main(most, paths):
    for path in paths:
        for name, first, lines in functions(path):
            if lines > most:
                print(f"{path}:{first}: {name} has {lines} lines")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    main(int(sys.argv[1]), sys.argv[2:])
