# SPDX-License-Identifier: GPL-2.0
"""What came of the N-th boot of a timed matrix (bench/timed): puts it into its place in
bench/results and prints its table."""

import json
import os
import sys

import record
import table
from drives import HERE


def options(parser):
    parser.add_argument("scratch", help="the folder that `timed` was given")
    parser.add_argument("n", metavar="N", type=int)


def text_of(result):
    """The result as JSON, a row a line, without digits that mean nothing."""
    rows = ",\n".join(map(record.line, result["rows"]))
    head = json.dumps({**result, "rows": None}, indent=1)
    return head.replace('"rows": null', f'"rows": [\n{rows}\n]') + "\n"


def run(args):
    result = {}
    for part in ("about", "json"):
        with open(os.path.join(args.scratch, f"{args.n}.{part}")) as text:
            result.update(json.load(text))
    path = os.path.join(HERE, "results", result.pop("name"))
    # Beside its place and renamed: nobody sees half of it.
    with open(f"{path}.{os.getpid()}", "w") as out:
        out.write(text_of(result))
    os.replace(out.name, path)
    print(*table.lines(result), sep="\n")
    print(f"hiops: {os.path.relpath(path, os.path.dirname(HERE))}", file=sys.stderr)
