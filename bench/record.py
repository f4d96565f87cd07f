# SPDX-License-Identifier: GPL-2.0
"""The JSON of a measurement: what one in a guest, or on this machine, begins with; read again."""

import json
import os


def save(path, indent=1, **more):
    """Writes it, with the machine that it is of."""
    with open(path, "w") as out:
        json.dump({"cpus": os.cpu_count(), "kernel": os.uname().release, **more}, out,
                  indent=indent)


def line(row):
    """A row of a result in one line, without digits that mean nothing."""
    row = json.loads(json.dumps(row), parse_float=lambda number: round(float(number), 4))
    return json.dumps(row, separators=(",", ":"))


def load(path):
    """What is in it."""
    with open(path) as text:
        return json.load(text)
