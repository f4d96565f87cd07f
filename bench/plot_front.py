# SPDX-License-Identifier: GPL-2.0
"""plot-front NVME.json SATA.json PICTURE.svg: the README's picture, IOPS and p99 of some loads.

Without matplotlib, which not every machine has that writes the docs' pages (bench/run pages): of
the same results it is the same text everywhere, so a test can tell one that is out of date.
"""

import record
import svg
import table

# The loads, in words.
LOADS = {"psync-1": "1 thread", "psync-16": "16 threads", "psync-64": "64 threads",
         "uring-32": "io_uring, 32 in flight"}
# What a real SATA link carries of reads of 4 KiB (bench/models/sata.toml); the model has none.
LINK = 98_000

WIDTH = 880
# Where the bars of either panel begin, how long the longest is, and how high one is.
PANELS = {"iops": (176, 228), "p99_us": (536, 228)}
TITLES = {"iops": "IOPS (higher is better)", "p99_us": "p99 latency, µs (lower is better)"}
BAR, LOAD, KIND, TOP = 11, 34, 30, 74

STYLE = svg.style("""
.panel { fill: #ffffff }
text { fill: #1f2328; font: 12px sans-serif }
.title { font-weight: bold; font-size: 13px }
.small, .value { font-size: 11px }
.small { fill: #59636e }
.intree { fill: #9aa1ab }
.hiops { fill: #c8641c }
.gain { font-weight: bold }
.link { stroke: #1f2328; stroke-dasharray: 4 3 }
""", """
.panel { fill: #0d1117 }
text { fill: #e6edf3 }
.small { fill: #9198a1 }
.intree { fill: #6e7681 }
.hiops { fill: #e0803a }
.link { stroke: #e6edf3 }
""")


def pairs(result):
    """{load: (in-tree cell, hiops' cell)} of LOADS, in real units."""
    found = {pair[0]["load"]: pair for pair in table.pairs(table.real(result)["rows"])}
    return {load: found[load] for load in LOADS}


def bar(key, cells, longest, top):
    """The two bars of one load in one panel."""
    left, room = PANELS[key]
    ratio = cells[1][key] / cells[0][key]
    for side, (name, cell) in enumerate(zip(("intree", "hiops"), cells)):
        y = top + side * (BAR + 1)
        width = cell[key] / longest * room
        yield svg.tag("rect", x=left, y=y, width=round(width, 1), height=BAR, class_=name)
        told = svg.escaped(f"{cell[key]:,.0f}")
        if side:
            told += " " + svg.tag("tspan", f"×{ratio:.2f}", class_="gain")
        yield svg.tag("text", told, x=round(left + width + 5, 1), y=y + BAR - 1.5, class_="value")


def link(longest, top, bottom):
    """What a real SATA link can't do is right of this line."""
    left, room = PANELS["iops"]
    x = round(left + LINK / longest * room, 1)
    yield svg.tag("text", "right of the line is more than a real SATA link carries", x=left,
                  y=top - 14, class_="small")
    # Not through the figures of one thread, which is far from it.
    yield svg.tag("line", x1=x, x2=x, y1=top + LOAD - 5, y2=bottom, class_="link")


def legend():
    """Which bar is whose; what the panels are."""
    for x, name, words in ((16, "intree", "in-tree driver"), (126, "hiops", "hiops")):
        yield svg.tag("rect", x=x, y=16, width=BAR, height=BAR, class_=name)
        yield svg.tag("text", words, x=x + 16, y=26)
    yield svg.tag("text", "4 KiB random reads, 1 CPU, in an emulated machine that keeps time, "
                  "told in real units", x=196, y=26, class_="small")
    for key, (left, _) in PANELS.items():
        yield svg.tag("text", TITLES[key], x=left, y=54, class_="title")


def draw(nvme, sata):
    """The picture's text."""
    kinds = {"NVMe SSD": pairs(nvme), "SATA SSD": pairs(sata)}
    cells = [cell for found in kinds.values() for pair in found.values() for cell in pair]
    longest = {key: max(cell[key] for cell in cells) for key in PANELS}
    parts, top = list(legend()), TOP
    for kind, found in kinds.items():
        parts.append(svg.tag("text", kind, x=16, y=top + 8, class_="title"))
        top += KIND - 8
        for load, pair in found.items():
            parts.append(svg.tag("text", LOADS[load], x=28, y=top + BAR + 4))
            for key in PANELS:
                parts += bar(key, pair, longest[key], top)
            top += LOAD
        if kind.startswith("SATA"):
            parts += link(longest["iops"], top - LOAD * len(found), top - 8)
        top += KIND - 12
    return svg.document(WIDTH, top - 8, STYLE, parts,
                        "IOPS and p99 latency of the in-tree drivers and of hiops")


def options(parser):
    parser.add_argument("nvme", help="JSON of `timed` on an NVMe model")
    parser.add_argument("sata", help="the same on a SATA model")
    parser.add_argument("picture")


def run(args):
    with open(args.picture, "w") as out:
        out.write(draw(record.load(args.nvme), record.load(args.sata)))
