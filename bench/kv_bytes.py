# SPDX-License-Identifier: GPL-2.0
"""A key-value store of values of 400 bytes, packed on hiops' bytes and padded on block devices.

In one boot of the machine that keeps time: the same store (bench/kvstore.c, bench/kv_store.py) on
nvme's block device and on hiops' by O_DIRECT, where each record of 408 bytes has a block of 512; on
hiops' bytes the same way, and without padding. 1, 16 and 64 threads; gets alone, and 30 gets to a
set. The drives are equal ones of the model. Table on stdout, in real units; JSON in bench/results/,
by the machine's clock.
"""

import boot
import kv_store
import table
from errors import Wrong

# The PCI slot of each side's drive.
SLOTS = {"nvme": 0x10, "hiops": 0x11, "bytes-padded": 0x12, "bytes": 0x13}
TIMES = ("cpu_ns", "p50_ns", "p99_ns", "p999_ns", "elapsed_ns", "busy_ns")
# Heading, that of a page, width, text of a row and of nvme's beside it.
COLUMNS = (("op/s", "operations/s", 10, lambda row, nvme: f"{row['operations_s']:,.0f}"),
           ("ratio", "ratio", 7, lambda row, nvme: over(row, nvme, "operations_s")),
           ("p50 us", "p50, µs", 9, lambda row, nvme: f"{row['p50_ns'] / 1000:,.1f}"),
           ("p99 us", "p99, µs", 9, lambda row, nvme: f"{row['p99_ns'] / 1000:,.1f}"),
           ("CPU us", "CPU an operation, µs", 8, lambda row, nvme: f"{row['cpu_ns'] / 1000:.2f}"),
           ("ratio", "ratio", 7, lambda row, nvme: over(row, nvme, "cpu_ns")),
           ("reads", "reads a get", 7, lambda row, nvme: f"{row['reads']:.2f}"),
           ("space", "bytes of the drive a value", 7, lambda row, nvme: f"{row['space']:.0f}"),
           ("ratio", "ratio", 7, lambda row, nvme: over(row, nvme, "space")))
NAMES = {"nvme": "nvme's block device", "hiops": "hiops' block device",
         "bytes-padded": "hiops' bytes, padded", "bytes": "hiops' bytes, packed"}


def over(row, nvme, key):
    """The row's value over nvme's, or nothing."""
    return f"{row[key] / nvme[key]:.2f}" if nvme and row["side"] != "nvme" else ""


def real(result):
    """The result in real units."""
    scale = result["scale"]
    rows = [{**row, **{key: row[key] / scale for key in TIMES},
             "operations_s": row["operations_s"] * scale} for row in result["rows"]]
    return {**result, "scale": 1, "rows": rows}


def ordered(rows):
    """The rows in the table's order, in whatever order they were measured."""
    order = list(SLOTS)
    return sorted(rows, key=lambda row: (row["mix"], row["threads"], order.index(row["side"])))


def texts(result):
    """(load, side, the texts of COLUMNS) of each row; the load only of the first one of it."""
    loads = {}
    for row in real(result)["rows"]:
        loads.setdefault((row["mix"], row["threads"]), {})[row["side"]] = row
    for (mix, threads), beside in loads.items():
        name = f"{f'{mix} gets to a set' if mix else 'gets'}, {threads}"
        for side, row in beside.items():
            yield name, side, [text(row, beside.get("nvme")) for *_, text in COLUMNS]
            name = ""


def lines(result):
    """The table."""
    switches = "".join(f", {key}={value}" for key, value in result["hiops"].items())
    yield (f"Values of 400 bytes on a drive, {result['model']}: {result['device']}; "
           f"{result['cpus']} vCPU{switches}")
    yield ("Real time. Latencies: of gets; CPU time: of the whole machine; ratios: over nvme's. "
           "None of the values was wrong")
    yield f"{'load, threads':<22}{'log on':<14}" + "".join(
        f"{heading:>{width}}" for heading, _, width, _ in COLUMNS)
    for load, side, row in texts(result):
        yield f"{load:<22}{side:<14}" + "".join(
            f"{text:>{width}}" for text, (_, _, width, _) in zip(row, COLUMNS))


def markdown(result):
    """The table for a page."""
    header = ["load, threads", "log on", *(heading for _, heading, _, _ in COLUMNS)]
    return table.markdown(header, [[load, NAMES[side], *row] for load, side, row in texts(result)])


def options(parser):
    boot.options(parser)
    parser.add_argument("--sides", default=",".join(SLOTS), help=f"({','.join(SLOTS)})")
    parser.add_argument("--mixes", default=",".join(map(str, kv_store.MIXES)),
                        help="gets to a set, 0: no sets (0,30)")
    parser.add_argument("--threads", default=",".join(map(str, kv_store.THREADS)))
    parser.add_argument("--gets", type=int, default=48000, help="in each window (48000)")
    parser.add_argument("--warm", type=int, default=kv_store.WARM,
                        help=f"gets before it ({kv_store.WARM})")
    parser.add_argument("--hiops", default="", help="'KEY=VALUE ...': switches of its disks")


def checked(args):
    """The options, checked as far as can be without a machine."""
    unknown = set(args.sides.split(",")) - set(SLOTS)
    if unknown:
        raise Wrong(f"--sides takes {','.join(SLOTS)}, not {unknown.pop()}")
    if any("=" not in word for word in args.hiops.split()):
        raise Wrong(f"--hiops takes 'KEY=VALUE ...', not {args.hiops}")
    for name, least, most in (("threads", 1, 256), ("mixes", 0, 1000)):
        given = getattr(args, name)
        if not all(word.isdigit() and least <= int(word) <= most for word in given.split(",")):
            raise Wrong(f"--{name} takes numbers from {least} to {most}, not {given}")
    return args


def run(args):
    words = ["kv-store", "--sides", checked(args).sides, "--mixes", args.mixes, "--threads",
             args.threads, "--gets", str(args.gets), "--warm", str(args.warm), "--hiops",
             args.hiops]
    result = boot.measured(args, SLOTS, words)
    result["rows"] = ordered(result["rows"])
    boot.save("kv-bytes", args, result)
    print(*lines(result), sep="\n")
