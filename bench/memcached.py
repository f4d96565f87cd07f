# SPDX-License-Identifier: GPL-2.0
"""Debian's memcached with values on a drive, by the clock of the machine that keeps time.

In one boot: all values in memory, its extstore in memory (tmpfs), and then on nvme's block device,
on ext4 there, on hiops' block device and on hiops' bytes; values of 100, 400 and 2,000 bytes, 1, 16
and 64 of its I/O threads and as many clients (bench/extstore.py, bench/asker.c). The drives are
equal ones of the model. Table on stdout, in real units; JSON in bench/results/, by the machine's
clock.
"""

import os
import shlex
import subprocess
import tempfile

import extstore
import models
import record
import table
import timed
import timed_result
import yardstick
from drives import HERE
from errors import Failed, Wrong

# The drive's PCI slot of each side that has one.
SLOTS = {"nvme": 0x10, "hiops": 0x11, "ext4": 0x12, "bytes": 0x13}
# A drive that keeps what it is given.
STORE = "store=1"
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


def drive(model, slot):
    """QEMU's arguments of the drive there."""
    return shlex.join(["-drive", model.drive(f"m{slot:x}"), "-device",
                       f"nvme,id=nv{slot:x},serial=timed{slot:x},drive=m{slot:x},addr={slot:x},"
                       f"{model.nvme()}"])


def command(args, model, scratch):
    """What boots the machine."""
    counts = os.path.join(scratch, "counts")
    plugin = f"{HERE}/.build/libcount.so".replace(",", ",,") + ",out=" + counts.replace(",", ",,")
    words = [os.path.join(HERE, "..", "ci", "vm"), "--timed", "--cpus", "1",
             "--timeout", str(timed.LIMIT), "--qemu", f"-plugin '{plugin}'"]
    if not args.unheld:
        words += ["--qemu", shlex.join(yardstick.arguments(model))]
    for slot in SLOTS.values():
        words += ["--qemu", drive(model, slot)]
    places = ",".join(f"{side}=0000:00:{slot:x}.0" for side, slot in SLOTS.items())
    words += ["--", "python3", os.path.join(HERE, "main.py"), "extstore", "--counts", counts,
              "--places", places, "--sides", args.sides, "--values", args.values, "--threads",
              args.threads, "--gets", str(args.gets), "--model", model.name, "--set", STORE,
              "--json", os.path.join(scratch, "json")]
    return words + (["--yardsticks"] if not args.unheld else [])


def options(parser):
    parser.add_argument("--model", default="tlc", help="one of bench/models, NVMe (tlc)")
    parser.add_argument("--sides", default=",".join(extstore.SIDES),
                        help=f"({','.join(extstore.SIDES)})")
    parser.add_argument("--values", default=",".join(map(str, extstore.KEYS)))
    parser.add_argument("--threads", default=",".join(map(str, extstore.THREADS)))
    parser.add_argument("--gets", type=int, default=16000, help="in each window (16000)")
    parser.add_argument("--label", default="", help="added to the result's name")
    parser.add_argument("--unheld", action="store_true", help="without the yardsticks")


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
    model = models.varied(models.load(checked(args).model), STORE)
    os.makedirs(f"{HERE}/results", exist_ok=True)
    subprocess.run([os.path.join(HERE, "build")], check=True)
    with tempfile.TemporaryDirectory(dir=f"{HERE}/results") as scratch:
        with open(os.path.join(scratch, "counts"), "w"):
            pass  # the plugin's, which the guest may read before there is anything in it
        done = subprocess.run(command(args, model, scratch),
                              env={**os.environ, **model.environment()})
        if done.returncode:
            raise Failed(f"the machine ended with status {done.returncode}; no result was written")
        result = {"model": model.name, "device": model.device, "scale": models.SCALE,
                  **record.load(os.path.join(scratch, "json"))}
        result["rows"] = ordered(result["rows"])
    words = ["memcached", "" if model.name == "tlc" else model.name, args.label]
    path_of = os.path.join(HERE, "results", "-".join(filter(None, words)) + ".json")
    with open(path_of, "w") as out:
        out.write(timed_result.text_of(result))
    print(*lines(result), sep="\n")
