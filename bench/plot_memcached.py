# SPDX-License-Identifier: GPL-2.0
"""plot-memcached RESULT.json PICTURE.svg: gets a second, and what CPU time one takes, of memcached
with values on nvme's block device and on hiops' bytes."""

import memcached
import record
from plot_timed import COLOURS, plt  # in its style

DRAWN = "nvme", "bytes"
# What a get's CPU time is made of, from below; the last part is the side's own colour.
PARTS = (("memory", "#d8dade", "memcached, network, client"), ("tmpfs", "#b0b4bc", "extstore"))


def parts(beside, side):
    """CPU time of a get in ns: (in memory, extstore's part, the path to the drive)."""
    steps = [beside[base]["cpu_ns"] for base, _, _ in PARTS] + [beside[side]["cpu_ns"]]
    return [step - before for before, step in zip([0, *steps], steps)]


def bars(axes, loads, place, side, colour):
    """One load's bar of CPU time, for all loads."""
    bottom = [0] * len(loads)
    told = [*((colour_of, name) for _, colour_of, name in PARTS),
            (colour, f"path to the drive: {memcached.NAMES[side]}")]
    for part, (fill, name) in enumerate(told):
        heights = [parts(beside, side)[part] / 1000 for beside in loads.values()]
        shown = name if part == len(PARTS) or side == DRAWN[0] else None
        axes.bar(place, heights, 0.38, bottom=bottom, color=fill, label=shown)
        bottom = [low + height for low, height in zip(bottom, heights)]


def draw(result):
    """The picture, in real units."""
    loads = memcached.cells(memcached.real(result)["rows"])
    figure, (rate, cost) = plt.subplots(2, 1, figsize=(7.5, 6))
    for n, (side, colour) in enumerate(zip(DRAWN, COLOURS)):
        place = [at + (n - 0.5) * 0.4 for at in range(len(loads))]
        rate.bar(place, [beside[side]["gets_s"] for beside in loads.values()], 0.38, color=colour,
                 label=memcached.NAMES[side])
        bars(cost, loads, place, side, colour)
    for at, beside in enumerate(loads.values()):
        for axes, key, size in ((rate, "gets_s", 1), (cost, "cpu_ns", 1000)):
            values = [beside[side][key] for side in DRAWN]
            axes.annotate(f"{values[1] / values[0]:.2f}", (at, max(values) / size), (0, 2),
                          ha="center", textcoords="offset points", fontsize=7)
    names = [f"{value:,} bytes,\n{threads} thread{'s' * (threads > 1)}" for value, threads in loads]
    for axes, label in ((rate, "gets a second"), (cost, "CPU time of a get, µs")):
        axes.set_xticks(range(len(loads)), names, fontsize=7)
        axes.set_ylabel(label, fontsize=8)
        axes.margins(y=0.12)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.tick_params(axis="y", labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    return figure


def options(parser):
    parser.add_argument("result", help="JSON of `memcached`")
    parser.add_argument("picture")


def run(args):
    draw(record.load(args.result)).savefig(args.picture, metadata={"Date": None})
