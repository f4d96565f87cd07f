# SPDX-License-Identifier: GPL-2.0
"""A device that takes blocks of descriptors: figures 5 to 8 of "Prototyping and Performance
Evaluation of a Dynamically Adaptable Block Device Driver for PCIe-based SSDs", and the pipelined
completion of HIOPS.

By discrete events on this machine (rust/lld_ram/examples/blocks), with the real engine, in seconds;
then some points of a slower device with the module, in a guest that keeps time
(bench/blocks_ram.py).
Tables on stdout, in real units; JSON in bench/results/blocks.json.
"""

import json
import os
import subprocess
import tempfile

import record
import table
from drives import HERE, REPO

ANSWERS = "a block at once", "singly", "singly, two engines"
SAYS = {"plain": "what is pending (plain)", "coop": "waits a moment for who comes again (coop)"}
# Seconds of the host's for the guest.
LIMIT = 3600
# By how much the module may be off what the events say.
OFF = 0.05


def rows_of(text):
    """The points that the example tells, a line each."""
    return [json.loads(line) for line in text.splitlines()]


def of(rows, figure, **asked):
    """The points of a figure, of the device at its own pace, that are as asked."""
    return [row for row in rows if row["figure"] == figure and row["slow"] == 1
            and all(row[key] == value for key, value in asked.items())]


def kilo(value):
    """A rate in thousands."""
    return f"{value / 1000:,.0f}" if value >= 10_000 else f"{value / 1000:,.1f}"


def axis(rows, key):
    """The values that are there, in order."""
    return sorted({row[key] for row in rows})


def interface(rows):
    """Figure 5: (header, lines), in thousands a second: simulated, and by the closed form."""
    rows = of(rows, "5")
    lines = []
    for answers, words in enumerate(ANSWERS):
        for way in ("read", "write"):
            told = {row["size"]: row for row in rows
                    if (row["answers"], row["op"]) == (answers, way)}
            lines.append([f"{words}, {way}s"] + [
                f"{kilo(row['iops'])} ({row['iops'] / row['closed']:.2f})"
                for _, row in sorted(told.items())])
    return ["descriptors a block", *map(str, axis(rows, "size"))], lines


def static(rows):
    """Figure 6 for reads, in thousands a second."""
    rows = of(rows, "6", op="read")
    lines = []
    for size in axis(rows, "size"):
        told = {row["threads"]: row for row in rows if row["size"] == size}
        lines.append([str(size)] + [kilo(row["iops"]) for _, row in sorted(told.items())])
    return ["blocks of, threads", *map(str, axis(rows, "threads"))], lines


def dynamic(rows):
    """Figure 7: rate, beside the best static size with as many threads, and latency."""
    lines = []
    for way in ("read", "write"):
        for says, name in SAYS.items():
            told = sorted(of(rows, "7", op=way, strategy=says), key=lambda row: row["threads"])
            best = [max(row["iops"] for row in of(rows, "6", op=way, threads=one["threads"]))
                    for one in told]
            lines.append([f"{way}s, {name}: thousands a second",
                          *(kilo(row["iops"]) for row in told)])
            lines.append(["over the best static size",
                          *(f"{row['iops'] / most:.2f}" for row, most in zip(told, best))])
            lines.append(["latency, µs", *(f"{row['mean_us']:,.1f}" for row in told)])
    return ["threads", *map(str, axis(of(rows, "7"), "threads"))], lines


def sizes(rows):
    """Figure 8 for reads: megabytes a second, and latency."""
    rows = of(rows, "8", op="read")
    lines = []
    for threads in axis(rows, "threads"):
        told = sorted((row for row in rows if row["threads"] == threads),
                      key=lambda row: row["bytes"])
        lines.append([str(threads), *(f"{row['iops'] * row['bytes'] / 1e6:,.0f}, "
                                      f"{row['mean_us']:,.0f} µs" for row in told)])
    return ["threads, KiB", *(str(size // 1024) for size in axis(rows, "bytes"))], lines


def pipelined(rows):
    """16 threads that read 512 bytes each."""
    lines = []
    for says, name in SAYS.items():
        told = of(rows, "pipelined", strategy=says)
        first = told[0]["iops"]
        lines += [[f"{name}, {ANSWERS[row['answers']]}", kilo(row["iops"]),
                   f"{row['iops'] / first:.2f}", f"{row['mean_us']:.1f}"] for row in told]
    return ["block, answers", "thousands a second", "over a block at once", "latency, µs"], lines


def words(row):
    """A point in words."""
    kind = f"full blocks of {row['size']}" if row["full"] else SAYS[row["strategy"]]
    size = f"{row['bytes'] // 1024} KiB" if row["bytes"] >= 1024 else f"{row['bytes']} bytes"
    threads = f"{row['threads']} thread{'s' * (row['threads'] > 1)}"
    return f"{kind}, answers {ANSWERS[row['answers']]}, {threads}, {row['op']}s of {size}"


def held(result):
    """The points held against the module's."""
    lines = []
    for row in result["points"]:
        ratio = row["module_iops"] / row["iops"]
        lines.append([row["figure"], words(row), f"{row['iops']:,.0f}",
                      f"{row['module_iops']:,.0f}", f"{ratio:.3f}",
                      f"{row['mean_us']:,.0f} / {row['module_mean_us']:,.0f}"])
    return ["figure", "load", "events: a second", "module", "ratio", "latency, µs"], lines


TABLES = {"interface": interface, "static": static, "dynamic": dynamic, "sizes": sizes,
          "pipelined": pipelined}


def tables(result):
    """{name: (header, lines)}"""
    told = {name: make(result["rows"]) for name, make in TABLES.items()}
    return {**told, "module": held(result)} if result["points"] else told


def markdown(result, name):
    """That table for a page."""
    return table.markdown(*tables(result)[name])


def lines(result):
    """All tables."""
    for name, (header, rows) in tables(result).items():
        widths = [max(len(line[n]) for line in (header, *rows)) for n in range(len(header))]
        yield f"{name}:"
        for line in (header, *rows):
            yield "  " + "  ".join(text.rjust(width) if n else text.ljust(width)
                                   for n, (text, width) in enumerate(zip(line, widths)))


def faults(result):
    """What is off by more than it may be, in words."""
    for row in result["points"]:
        if abs(row["module_iops"] / row["iops"] - 1) > OFF:
            yield (f"{words(row)}: the module has {row['module_iops']:.0f} a second, "
                   f"the events {row['iops']:.0f}")


def text_of(result):
    """The result as JSON, a point a line."""
    told = {name: ",\n".join(map(record.line, rows)) for name, rows in result.items()}
    return "{" + ",\n".join(f'"{name}": [\n{rows}]' for name, rows in told.items()) + "}\n"


def points(rows):
    """Those of the slow device, with what the module in a guest has of them."""
    slow = [row for row in rows if row["slow"] != 1]
    with tempfile.TemporaryDirectory(dir=os.path.join(HERE, "results")) as scratch:
        asked, told = (os.path.join(scratch, name) for name in ("asked", "told"))
        record.save(asked, rows=slow)
        command = [os.path.join(REPO, "ci", "vm"), "--timed", "--cpus", "1", "--timeout",
                   str(LIMIT), "--", "python3", os.path.join(HERE, "main.py"), "blocks-ram",
                   "--points", asked, "--json", told]
        subprocess.run(command, check=True)
        return record.load(told)["rows"]


def options(parser):
    parser.add_argument("--no-guest", action="store_true", help="by discrete events alone")


def run(args):
    example = [os.path.join(REPO, "ci", "cargo"), "run", "-q", "--release", "-p", "lld_ram",
               "--example", "blocks"]
    rows = rows_of(subprocess.run(example, check=True, stdout=subprocess.PIPE, text=True).stdout)
    os.makedirs(os.path.join(HERE, "results"), exist_ok=True)
    result = {"rows": rows, "points": [] if args.no_guest else points(rows)}
    with open(os.path.join(HERE, "results", "blocks.json"), "w", encoding="ascii") as out:
        out.write(text_of(result))
    print(*lines(result), sep="\n")
    print(*faults(result), sep="\n")
