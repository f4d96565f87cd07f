# SPDX-License-Identifier: GPL-2.0
"""Draws what the results in a folder tell, in the paper's form where it has one; SVG beside the
JSON."""

import collections
import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import plot_timed  # noqa: E402
import record  # noqa: E402

PER_IO = "guest instructions per I/O"


def series(rows, key, x, y):
    """{key(row): ([x(row)...], [y(row)...])}, in the rows' order."""
    lines = collections.OrderedDict()
    for row in rows:
        xs, ys = lines.setdefault(key(row), ([], []))
        xs.append(x(row))
        ys.append(y(row))
    return lines


def lines(axes, drawn, xlabel, ylabel, log=True):
    for name, (xs, ys) in drawn.items():
        axes.plot(xs, ys, "o-", markersize=3, label=name)
    if log:
        axes.set_xscale("log", base=2)
        ticks = sorted({x for xs, _ in drawn.values() for x in xs})
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)


def bars(axes, groups, names, values, ylabel):
    """values[name][group]"""
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        places = [n + (i - (len(names) - 1) / 2) * width for n in range(len(groups))]
        drawn = axes.bar(places, values[i], width * 0.95, label=name)
        axes.bar_label(drawn, fmt="%.0f", fontsize=6)
    axes.set_xticks(range(len(groups)), groups, fontsize=7)
    axes.set_ylabel(ylabel)
    axes.legend(fontsize=7)


def flat(result):
    """The measured points of bench/compare as rows, one a driver."""
    return [{**r["point"], "driver": d, "load": r["load"], **c}
            for r in result["results"] for d, c in zip(r["drivers"], r["per_io"])]


def compare(result, axes):
    rows = flat(result)
    drivers = list(dict.fromkeys(r["driver"] for r in rows))
    loads = [r["load"] for r in rows if r["driver"] == drivers[0]]
    of = {d: [r for r in rows if r["driver"] == d] for d in drivers}
    bars(axes[0], loads, drivers, [[r["instructions"] for r in of[d]] for d in drivers],
         PER_IO)
    bars(axes[1], loads, drivers, [[100 * r["interrupts"] for r in of[d]] for d in drivers],
         "interrupts per 100 I/Os")


def pair(rows, axes, key, x, xlabel, wanted=(("iops", "IOPS (emulated)"), ("instructions", PER_IO)),
         log=True):
    """Two pictures of lines over the same x."""
    for ax, (what, label) in zip(axes, wanted):
        lines(ax, series(rows, key, x, lambda r: r[what]), xlabel, label, log)


def driver(row):
    return row["driver"]


def blocksize(result, axes):
    pair(flat(result), axes, lambda r: f"{r['driver']}, {r['jobs']} jobs",
         lambda r: r["bs"] / 1024, "block size, KiB")


def uring(result, axes):
    pair(flat(result), axes, driver, lambda r: r["depth"], "depth")


def ssds(result, axes):
    pair(flat(result), axes, driver, lambda r: r["disks"], "SSDs on one HBA", log=False)


def handlers(result, axes):
    rows = result["rows"]
    names = [(r["driver"] + " " + r["step"]).strip() for r in rows]
    longest = [[r[k] / 1000 for r in rows] for k in ("irq_max_ns", "tick_max_ns", "hook_max_ns")]
    bars(axes[0], names, ["interrupt handler", "hrtimer", "wait hook"], longest,
         "longest, thousands of instructions")
    bars(axes[1], names, ["interrupt handler"], [[r["irq_mean_ns"] for r in rows]],
         "mean, instructions")
    for ax in axes:
        ax.tick_params(axis="x", rotation=20)


def interval(result, axes):
    drawn = series(result["rows"], lambda r: "with cooperation" if r["coop"] else "timer alone",
                   lambda r: r["interval_us"], lambda r: r["iops"])
    lines(axes[0], drawn, "poll interval, us", "IOPS (counting clock)")
    axes[1].axis("off")


def keyvalue(result, axes):
    rows = [{"threads": r["threads"], "driver": d, **c}
            for r in result["rows"] for d, c in zip(r["drivers"], r["per_read"])]
    pair(rows, axes, driver, lambda r: r["threads"], "threads",
         (("rate", "reads/s (emulated)"), ("instructions", "guest instructions per read")))


def latency(result, axes):
    for ax, p in ((axes[0], "50.000000"), (axes[1], "99.900000")):
        drawn = series(result["rows"], driver, lambda r: r["depth"], lambda r: r[p] / 1000)
        lines(ax, drawn, "depth", f"p{float(p):g} latency, us (counting clock)")


def idle(result, axes):
    drivers = [r["driver"] for r in result["rows"]]
    both = [[r[k] for r in result["rows"]] for k in ("without", "with")]
    bars(axes[0], drivers, ["no hiops", "an idle hiops disk"], both, PER_IO)
    own = [sum(i for i, _ in r["hook"].values()) for r in result["rows"]]
    bars(axes[1], drivers, ["wait hook"], [own], PER_IO)


KINDS = {"compare": compare, "blocksize": blocksize, "uring": uring, "iopoll": uring,
         "handlers": handlers, "interval": interval, "keyvalue": keyvalue, "latency": latency,
         "floor": compare, "ssds": ssds, "idle": idle}


def options(parser):
    parser.add_argument("folder", help="with results; the pictures go there")


def run(args):
    for name in sorted(os.listdir(args.folder)):
        base, end = os.path.splitext(name)
        kind = base.split("-")[0]
        draw = KINDS.get(kind)
        if end != ".json" or not (draw or kind == "timed"):
            continue
        result = record.load(os.path.join(args.folder, name))
        if kind == "timed":
            plot_timed.draw(args.folder, base, result)
            continue
        figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
        draw(result, axes)
        cpus = f"{result['cpus']} vCPU{'s' * (result['cpus'] > 1)}"
        figure.suptitle(f"{base}: {cpus}", fontsize=10)
        figure.tight_layout()
        figure.savefig(os.path.join(args.folder, base + ".svg"))
        plt.close(figure)
