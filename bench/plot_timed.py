# SPDX-License-Identifier: GPL-2.0
"""plot-timed FOLDER RESULT.json...: pictures of the timed matrix, drawn from its JSON alone.

For each result NAME.json: NAME-iops.svg and NAME-p99.svg, bars of the in-tree driver beside hiops
for each load, the ratio above; NAME-cdf.svg, how the latencies of some loads are distributed.
"""

import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import record  # noqa: E402
import table  # noqa: E402

# Text stays text, and nothing changes from run to run: small files that differ where results do.
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "hiops",
                            "font.family": "sans-serif"})
COLOURS = "#8a8f98", "#c8641c"
# Where hiops is this much worse, the ratio is red: the bound of a safe default.
HARM = 0.90
# Shares of I/Os that took longer, and what the rest is called.
SHARES = {0.5: "p50", 0.1: "p90", 0.01: "p99", 0.001: "p99.9", 0.0001: "p99.99"}
# The loads whose latencies are drawn, as far as a result has them.
DRAWN = ("psync-1", "psync-16", "psync-64", "uring-32", "psync-1+hog", "psync-16+hog")


def bars(result, key, label, better, log=False):
    """Bars of `key`, loads with neighbours below the others.

    better(ratio) is above HARM where hiops does no harm.
    """
    pairs = table.pairs(result["rows"])
    lines = [[p for p in pairs if ("+" in p[0]["load"]) == beside] for beside in (False, True)]
    lines = [line for line in lines if line]
    longest = max(map(len, lines))
    size = (max(5, 0.46 * longest + 1), 2.7 * len(lines) + 0.5)
    figure, grid = plt.subplots(len(lines), 1, figsize=size, squeeze=False)
    for axes, line in zip(grid.flat, lines):
        draw_bars(axes, line, key, better, log)
        axes.set_xlim(-0.6, longest - 0.4)
        axes.set_ylabel(label, fontsize=8)
    grid[0][0].legend(fontsize=8, frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    grid[0][0].set_title(table.title(result), fontsize=9, loc="left")
    return figure


def draw_bars(axes, pairs, key, better, log):
    """One line of bars() into `axes`."""
    for side, colour in enumerate(COLOURS):
        places = [n + (side - 0.5) * 0.4 for n in range(len(pairs))]
        axes.bar(places, [pair[side][key] for pair in pairs], 0.4, color=colour,
                 label=pairs[0][side]["driver"])
    values = [cell[key] for pair in pairs for cell in pair]
    for n, (first, second) in enumerate(pairs):
        ratio = second[key] / first[key]
        axes.annotate(f"{ratio:.2f}", (n, max(first[key], second[key])), (0, 2), ha="center",
                      textcoords="offset points", fontsize=7,
                      color="#b00020" if better(ratio) < HARM else "#202020")
    axes.set_xticks(range(len(pairs)), [first["load"] for first, _ in pairs], rotation=40,
                    ha="right", rotation_mode="anchor", fontsize=8)
    if log:
        axes.set_yscale("log")
        axes.set_ylim(min(values) / 2, max(values) * 2)
    else:
        axes.set_ylim(0, max(values) * 1.12)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def distributions(result):
    """The share of I/Os that took longer, over their time: a tail is a line to the right."""
    pairs = [pair for pair in table.pairs(result["rows"]) if pair[0]["load"] in DRAWN]
    if not pairs:
        return None
    rows = -(-len(pairs) // 3)
    figure, grid = plt.subplots(rows, 3, figsize=(9, 2.6 * rows), squeeze=False, sharey=True)
    for axes in grid.flat[len(pairs):]:
        axes.axis("off")
    for axes, pair in zip(grid.flat, pairs):
        for cell, colour in zip(pair, COLOURS):
            points = [(us, 1 - percent / 100) for percent, us in cell["cdf_us"] if percent < 100]
            axes.plot(*zip(*points), color=colour, label=cell["driver"], linewidth=1.4)
        axes.set_title(pair[0]["load"], fontsize=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_yticks(list(SHARES), list(SHARES.values()), fontsize=7)
        axes.minorticks_off()
        low, high = axes.get_xlim()
        ticks = [t * 10 ** e for e in range(0, 7) for t in (1, 2, 5) if low <= t * 10 ** e <= high]
        axes.set_xticks(ticks, [f"{t:,}" for t in ticks], fontsize=7)
        axes.set_ylim(0.99, min(SHARES) * 0.8)
        axes.grid(True, linewidth=0.3)
    for axes in grid[-1]:
        axes.set_xlabel("latency, µs", fontsize=8)
    grid[0][0].legend(fontsize=7, frameon=False)
    figure.suptitle(table.title(result), fontsize=9)
    return figure


def draw(folder, base, result):
    """The pictures of one result, into `folder`, in real units; of one with more than two drivers,
    none."""
    result = table.real(result)
    if not table.pairs(result["rows"]):
        return
    figures = {"iops": bars(result, "iops", "IOPS", lambda ratio: ratio),
               "p99": bars(result, "p99_us", "p99 latency, µs", lambda ratio: 1 / ratio, log=True),
               "cdf": distributions(result)}
    for name, figure in figures.items():
        if figure:
            figure.tight_layout()
            figure.savefig(os.path.join(folder, f"{base}-{name}.svg"), metadata={"Date": None})
            plt.close(figure)


def options(parser):
    parser.add_argument("folder", help="where the pictures go")
    parser.add_argument("result", nargs="+", help="JSON")


def run(args):
    for path in args.result:
        base = os.path.splitext(os.path.basename(path))[0]
        draw(args.folder, base, record.load(path))
