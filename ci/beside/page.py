# SPDX-License-Identifier: GPL-2.0
"""Makes docs/tools.md of what ci/beside/guest has written: python3 page.py FOLDER."""

import difflib
import pathlib
import re
import sys
import textwrap

HEAD = """# What tools show

What the tools that storage is administered with say of a drive on hiops, beside one of the same
make on the in-tree driver: Debian 13 with systemd, QEMU's NVMe and SATA drives. Made by
`ci/beside/run`. Names, serial numbers, addresses and identifiers that two drives can't share are
taken for equal; so are counts that grow with use.

"""
# Where each number is a count or a time.
COUNTING = {"iostat -x", "node_exporter", "nvme smart-log", "smartctl -x", "smartctl -x -d nvme"}
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# What no two drives share.
OWN = [
    (r"(?<![A-Za-z])[A-D]([-_])drive\b", r"X\1drive"),
    (r"4[1-4]2d6472697665", "582d6472697665"),
    (r"(0000[:_])?00[:_]0[5-8][._]0", "ADDRESS"),
    (r"(?i)\b" + UUID, "UUID"),
    (r"(?i)(?<!\.)\b0?x?[0-9a-f]{16}\b", "IDENTIFIER"),
    (r"(?i)(DISK-?SEQ|by-diskseq/)(\W*)[0-9]+", r"\1\2N"),
    (r"\b(MAJ:MIN|MAJOR|MINOR|maj:min|maj|min|PART_ENTRY_DISK)(\W+)[0-9:]+", r"\1\2N"),
    (r"(USEC_INITIALIZED=|Device number: +|DeviceNumber: +)[0-9]+", r"\1N"),
    (r"\bata[0-9]+\b", "ataN"),
    (r"\bhost[0-9]+\b", "hostN"),
    (r"\b[0-9]+:0:0:0\b", "N:0:0:0"),
]


def told(text, name, counting):
    """The lines of `text`, said of the drive `name`, without what is its own."""
    text = re.sub(rf"\b{name}(p(?=[0-9])|(?=[0-9]\b))?", lambda m: "DISKp" if m[1] is not None
                  else "DISK", text)
    for pattern, instead in OWN:
        text = re.sub(pattern, instead, text)
    if counting:
        text = re.sub(r"[0-9]+([.,][0-9]+)*(e[+-][0-9]+)?", "N", text)
    return [re.sub(" {2,}", " ", line.rstrip()) for line in text.splitlines()]


def wrapped(line):
    """A line of a diff, as lines of the page."""
    indent = line[0] + " " * (len(line[1:]) - len(line[1:].lstrip()))
    return textwrap.wrap(line[1:].strip(), 98, initial_indent=indent,
                         subsequent_indent=indent + "    ") or [line]


def differences(folder, names, label, kind):
    """What differs of the tool's words of two drives of a kind, as a diff; None: it wasn't used."""
    files = {side: folder / f"{label}.{kind}.{side}" for side in ("in-tree", "hiops")}
    if not files["hiops"].exists():
        return None
    tool = label.partition("-")[2]
    said = [
        told(file.read_text(errors="replace"), names[f"{kind}.{side}"], tool in COUNTING)
        for side, file in files.items()
    ]
    lines = difflib.unified_diff(*said, lineterm="", n=0)
    lines = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    return [piece for line in lines for piece in wrapped(line)]


def cell(differs):
    """What the table says of it."""
    if differs is None:
        return ""
    return "the same" if not differs else f"{len(differs)} lines differ"


def page(folder):
    """The page."""
    names = dict(line.split() for line in (folder / "names").read_text().splitlines())
    files = (file.name for file in folder.iterdir())
    labels = sorted({re.sub(r"\.(nvme|sata)\.(in-tree|hiops)$", "", name) for name in files}
                    - {"names"})
    labels = [label for label in labels if not label.endswith(".both")]
    rows, sections = [], []
    for label in labels:
        tool = label.partition("-")[2]
        found = {kind: differences(folder, names, label, kind) for kind in ("nvme", "sata")}
        rows.append(f"| `{tool}` | {cell(found['nvme'])} | {cell(found['sata'])} |")
        for kind, lines in found.items():
            if lines:
                title = {"nvme": "NVMe", "sata": "SATA"}[kind]
                sections += [f"## `{tool}`, {title}", "", "```diff", *lines, "```", ""]
    raids = []
    for kind in ("nvme", "sata"):
        said = (folder / f"99-mdadm.{kind}.both").read_text(errors="replace")
        raids.append("the same data" if "the same data" in said else "**fails**")
        if "the same data" not in said:
            sections += [f"## `mdadm`, {kind}", "", "```", *said.splitlines(), "```", ""]
    rows.append(f"| `mdadm`: raid1 over both, rebuilt on hiops | {' | '.join(raids)} |")
    table = ["| tool | NVMe | SATA |", "| --- | --- | --- |", *rows, ""]
    legend = ["Below, `-` is what is said of the drive in tree, `+` of the one on hiops.", ""]
    return HEAD + "\n".join([*table, *legend, *sections]).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(pathlib.Path(sys.argv[1])))
