# SPDX-License-Identifier: GPL-2.0
"""plot-session SESSION.json PICTURE.svg: a recorded session (bench/session.py) as a terminal in
which line after line appears, again and again; all lines at once where nothing is to move.

Nothing is told but the recording: its lines, and when they came, with pauses cut to what a reader
waits for.
"""

import record
import svg

# Of a terminal with so many columns; in pixels.
COLUMNS, CELL, ROW, MARGIN, TOP = 100, 8, 19, 16, 40
# What begins a line that was typed.
PROMPT = "# "
# Seconds: the longest pause before a line, what a reader has before the next command, and at the
# end of it all.
PAUSE, READ, REST = 1.2, 2.6, 7.0

STYLE = """
.panel { fill: #f6f8fa }
text { fill: #1f2328 }
.typed { fill: #0550ae; font-weight: bold }
.dot { fill: #d0d7de }
""", """
.panel { fill: #0d1117 }
text { fill: #d1d7e0 }
.typed { fill: #79c0ff }
.dot { fill: #30363d }
"""
FONT = {"font_family": "ui-monospace, monospace", "font_size": 13, "xml:space": "preserve"}
STILL = "@media (prefers-reduced-motion: reduce) { g { animation: none !important } }"


def paced(lines):
    """[(seconds, [(row, line)...])...]: what appears at once, in the order of the recording."""
    groups, now, last = [], 0.0, None
    for row, (at, line) in enumerate(lines):
        typed = line.startswith(PROMPT)
        pause = 0.0 if last is None else min(at - last, PAUSE)
        if typed and groups:
            pause = READ
        if groups and pause < 0.1:
            groups[-1][1].append((row, line))
        else:
            now += pause
            groups.append((now, [(row, line)]))
        last = at
    return groups


def appears(n, at, whole):
    """CSS: the group is there from `at` on, of a picture of `whole` seconds."""
    share = round(100 * at / whole, 2)
    yield f"#g{n} {{ animation: k{n} {whole:.1f}s step-end infinite }}"
    yield f"@keyframes k{n} {{ 0% {{ opacity: 0 }} {share}%, to {{ opacity: 1 }} }}"


def written(row, line):
    """A line at its place, in cells of one width whatever the reader's font is."""
    kind = {"class_": "typed"} if line.startswith(PROMPT) else {}
    return svg.tag("text", svg.escaped(line), x=MARGIN, y=TOP + ROW * row + 14,
                   textLength=CELL * len(line), lengthAdjust="spacingAndGlyphs", **kind)


def draw(lines):
    """The picture's text."""
    groups = paced(lines)
    whole = groups[-1][0] + REST
    moves, parts = [], [svg.tag("circle", cx=MARGIN + 6 + 18 * n, cy=18, r=6, class_="dot")
                        for n in range(3)]
    for n, (at, rows) in enumerate(groups):
        # What is there from the start needs no turn.
        if at:
            moves += appears(n, at, whole)
        inner = "".join(written(row, line) for row, line in rows if line)
        parts.append(svg.tag("g", inner, id=f"g{n}"))
    screen = svg.tag("g", "\n".join(["", *parts, ""]), **FONT)
    return svg.document(2 * MARGIN + CELL * COLUMNS, TOP + ROW * len(lines) + MARGIN,
                        "\n".join([svg.style(*STYLE), *moves, STILL]), [screen],
                        "hiopsctl: list, bind, stat and unbind on a terminal")


def options(parser):
    parser.add_argument("session", help="JSON of `session`")
    parser.add_argument("picture")


def run(args):
    with open(args.picture, "w") as out:
        out.write(draw(record.load(args.session)))
