# SPDX-License-Identifier: GPL-2.0
"""Debian's memcached with values on a drive, by the clock of the machine that keeps time.

In one boot: all values in memory, its extstore in memory (tmpfs), and then on nvme's block device,
on ext4 there, on hiops' block device and on hiops' bytes; values of 100, 400 and 2,000 bytes, 1, 16
and 64 of its I/O threads and as many clients (bench/extstore.py, bench/asker.c). The drives are
equal ones of the model. Table on stdout, in real units; JSON in bench/results/, by the machine's
clock.
"""

import boot
import extstore
import table
from errors import Wrong

# The drive's PCI slot of each side that has one.
SLOTS = {"nvme": 0x10, "hiops": 0x11, "ext4": 0x12, "bytes": 0x13}
TIMES = ("cpu_ns", "p50_ns", "p99_ns", "p999_ns", "elapsed_ns", "busy_ns")
# What has no drive: nothing of it is over nvme's.
BASES = "memory", "tmpfs"
# Heading, width, text of a row and of the rows beside it.
COLUMNS = (("gets/s", 9, lambda row, beside: f"{row['gets_s']:,.0f}"),
           ("ratio", 7, lambda row, beside: over_nvme(row, beside, lambda one: one["gets_s"])),
           ("p50 us", 9, lambda row, beside: f"{row['p50_ns'] / 1000:,.1f}"),
           ("p99 us", 9, lambda row, beside: f"{row['p99_ns'] / 1000:,.1f}"),
           ("CPU us", 9, lambda row, beside: f"{row['cpu_ns'] / 1000:.2f}"),
           ("- memory", 10, lambda row, beside: beyond(row, beside, "memory")),
           ("ratio", 7, lambda row, beside: beyond_ratio(row, beside, "memory")),
           ("- tmpfs", 9, lambda row, beside: beyond(row, beside, "tmpfs")),
           ("ratio", 7, lambda row, beside: beyond_ratio(row, beside, "tmpfs")),
           ("reads", 7, lambda row, beside: f"{row['reads']:.2f}"),
           ("cache MiB", 11, lambda row, beside: f"{row['cache'] / 2**20:.1f}"))
NAMES = {"memory": "none: in memory", "tmpfs": "extstore in RAM (tmpfs)",
         "nvme": "nvme's block device", "ext4": "ext4 on nvme's", "hiops": "hiops' block device",
         "bytes": "hiops' bytes"}


def over_nvme(row, beside, value):
    """The row's value over nvme's, or nothing."""
    nvme = beside.get("nvme")
    if not nvme or row["side"] in (*BASES, "nvme"):
        return ""
    return f"{value(row) / value(nvme):.2f}"


def beyond(row, beside, base):
    """CPU time of a get beyond what it takes on that base, or nothing."""
    if base not in beside or row["side"] in BASES[:BASES.index(base) + 1]:
        return ""
    return f"{(row['cpu_ns'] - beside[base]['cpu_ns']) / 1000:.2f}"


def beyond_ratio(row, beside, base):
    """That over nvme's, or nothing."""
    if base not in beside:
        return ""
    return over_nvme(row, beside, lambda one: one["cpu_ns"] - beside[base]["cpu_ns"])


def real(result):
    """The result in real units."""
    scale = result["scale"]
    rows = [{**row, **{key: row[key] / scale for key in TIMES}, "gets_s": row["gets_s"] * scale}
            for row in result["rows"]]
    return {**result, "scale": 1, "rows": rows}


def cells(rows):
    """The rows of each size and number of threads, by side."""
    found = {}
    for row in rows:
        found.setdefault((row["value"], row["threads"]), {})[row["side"]] = row
    return found


def ordered(rows):
    """The rows in the table's order, in whatever order they were measured."""
    return sorted(rows, key=lambda row: (row["value"], row["threads"],
                                         extstore.SIDES.index(row["side"])))


def texts(result):
    """(load, side, the texts of COLUMNS) of each row; the load only of the first one of it."""
    for (value, threads), beside in cells(real(result)["rows"]).items():
        name = f"{value:,}, {threads}"
        for side, row in beside.items():
            yield name, side, [text(row, beside) for _, _, text in COLUMNS]
            name = ""


def faults(rows):
    """What no row should have, in words."""
    for row in rows:
        for key in ("missed", "wrong", "badcrc"):
            if row[key]:
                yield f"{row['side']}, {row['value']} bytes, {row['threads']}: {row[key]} {key}"


def lines(result):
    """The table."""
    yield (f"memcached with values on a drive, {result['model']}: {result['device']}; "
           f"{result['cpus']} vCPU")
    yield ("Real time. CPU time of a get: of the whole machine; of it beyond that with all values "
           "in memory, and with extstore on tmpfs; ratios: over nvme's")
    yield f"{'bytes, threads':<16}{'values on':<10}" + "".join(
        f"{heading:>{width}}" for heading, width, _ in COLUMNS)
    for load, side, row in texts(result):
        yield f"{load:<16}{side:<10}" + "".join(
            f"{text:>{width}}" for text, (_, width, _) in zip(row, COLUMNS))
    yield from faults(result["rows"])


def markdown(result):
    """The table for a page."""
    header = ["bytes, threads", "values on", "gets/s", "ratio", "p50, µs", "p99, µs",
              "CPU a get, µs", "beyond memory", "ratio", "beyond tmpfs", "ratio", "reads a get",
              "page cache, MiB"]
    return table.markdown(header, [[load, NAMES[side], *row] for load, side, row in texts(result)])


def options(parser):
    boot.options(parser)
    parser.add_argument("--sides", default=",".join(extstore.SIDES),
                        help=f"({','.join(extstore.SIDES)})")
    parser.add_argument("--values", default=",".join(map(str, extstore.KEYS)))
    parser.add_argument("--threads", default=",".join(map(str, extstore.THREADS)))
    parser.add_argument("--gets", type=int, default=16000, help="in each window (16000)")


def checked(args):
    """The options, checked as far as can be without a machine."""
    for name, known in (("sides", extstore.SIDES), ("values", extstore.KEYS)):
        unknown = set(getattr(args, name).split(",")) - set(map(str, known))
        if unknown:
            raise Wrong(f"--{name} takes {','.join(map(str, known))}, not {unknown.pop()}")
    if not all(word.isdigit() and 0 < int(word) <= 256 for word in args.threads.split(",")):
        raise Wrong(f"--threads takes numbers from 1 to 256, not {args.threads}")
    return args


def run(args):
    words = ["extstore", "--sides", checked(args).sides, "--values", args.values, "--threads",
             args.threads, "--gets", str(args.gets)]
    result = boot.measured(args, SLOTS, words)
    result["rows"] = ordered(result["rows"])
    boot.save("memcached", args, result)
    print(*lines(result), sep="\n")
