# SPDX-License-Identifier: GPL-2.0
"""plot-sweep SWEEP.json PICTURE.svg: where precompletion pays, one field for each device."""

import record
import sweep
from plot_timed import plt  # in its style


def draw(rows):
    """A field a way: the darker, the more is saved; with the CPU time it takes."""
    latencies, spreads = sweep.axes(rows)
    ways = sorted({row["way"] for row in rows})
    most = max(abs(row["saved_us"]) for row in rows) or 1
    figure, grid = plt.subplots(1, len(ways), figsize=(4.6 * len(ways), 3.8), squeeze=False)
    for axes, way in zip(grid.flat, ways):
        field = [[0.0] * len(spreads) for _ in latencies]
        for row in (row for row in rows if row["way"] == way):
            x, y = spreads.index(row["spread_percent"]), latencies.index(row["latency_ns"])
            field[y][x] = row["saved_us"]
            axes.text(x, y, f"{row['saved_us']:+.1f}\n{row['cpu_ratio']:.2f}", ha="center",
                      va="center", fontsize=6)
        axes.imshow(field, cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto", origin="lower")
        axes.set_xticks(range(len(spreads)), [str(spread) for spread in spreads], fontsize=7)
        axes.set_yticks(range(len(latencies)), [f"{ns / 1000:g}" for ns in latencies], fontsize=7)
        axes.set_xlabel("spread of the device, %", fontsize=8)
        axes.set_ylabel("time of the device, µs", fontsize=8)
        axes.set_title(f"{way}: µs saved of a read, CPU time beside sleeping", fontsize=8)
    figure.tight_layout()
    return figure


def options(parser):
    parser.add_argument("sweep", help="JSON of `sweep`")
    parser.add_argument("picture")


def run(args):
    draw(record.load(args.sweep)["rows"]).savefig(args.picture, metadata={"Date": None})
