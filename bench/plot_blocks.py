# SPDX-License-Identifier: GPL-2.0
"""plot-blocks RESULT.json PICTURE.svg: the interface, the static driver and the dynamic one, of a
device that takes blocks of descriptors: figures 5 to 7 of the paper that bench/blocks.py names."""

import blocks
import record
from plot_timed import COLOURS, plt  # in its style

SHADES = "#c8cbd1", "#a9adb6", "#8a8f98", "#6c717a", "#4f535b", "#33363c"
STYLES = "-", ":", "--"


def curve(axes, rows, key, **style):
    """The rate of some points over that."""
    rows = sorted(rows, key=lambda row: row[key])
    axes.plot([row[key] for row in rows], [row["iops"] / 1000 for row in rows], marker="o",
              markersize=3, linewidth=1.2, **style)


def draw(result):
    """A panel a figure."""
    rows = result["rows"]
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
    for way, colour in (("read", COLOURS[1]), ("write", COLOURS[0])):
        for answers, (words, style) in enumerate(zip(blocks.ANSWERS, STYLES)):
            curve(panels[0], blocks.of(rows, "5", op=way, answers=answers), "size", color=colour,
                  linestyle=style, label=f"{way}s, {words}")
    for size, shade in zip(blocks.axis(blocks.of(rows, "6"), "size"), SHADES):
        told = [row for row in blocks.of(rows, "6", op="read", size=size)
                if row["threads"] >= size]
        curve(panels[1], told, "threads", color=shade, label=f"full blocks of {size}")
    for says, style in zip(blocks.SAYS, ("--", "-")):
        curve(panels[2], blocks.of(rows, "7", op="read", strategy=says), "threads",
              color=COLOURS[1], linestyle=style, label=blocks.SAYS[says])
    best = [max(blocks.of(rows, "6", op="read", threads=threads), key=lambda row: row["iops"])
            for threads in blocks.axis(blocks.of(rows, "6"), "threads")]
    curve(panels[2], best, "threads", color=COLOURS[0], linestyle=":",
          label="the best full block there")
    titles = ("the interface alone", "static, reads", "dynamic, reads")
    for axes, title, what in zip(panels, titles, ("descriptors a block", "threads", "threads")):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_title(title, fontsize=9, loc="left")
        axes.set_xlabel(what, fontsize=8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=6, frameon=False)
    panels[0].set_ylabel("thousands a second", fontsize=8)
    panels[0].set_ylim(0)
    figure.tight_layout()
    return figure


def options(parser):
    parser.add_argument("result", help="JSON of `blocks`")
    parser.add_argument("picture")


def run(args):
    draw(record.load(args.result)).savefig(args.picture, metadata={"Date": None})
