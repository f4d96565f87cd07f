# SPDX-License-Identifier: GPL-2.0
"""Real programs on the machine that keeps time, on the in-tree driver's drive and on hiops'.

RocksDB's db_bench, PostgreSQL's pgbench, SQLite's speed test: what they are given and what they
tell of themselves is in bench/rocksdb.py, postgres.py and sqlite.py. In one boot, on equal drives
of the model that keep what they are given. Table on stdout, in real units; JSON in bench/results/,
by the machine's clock.
"""

import os
import subprocess
import tempfile

import boot
import models
import programs_guest
import table
import timed
from drives import HERE, REPO
from errors import Failed, Wrong

# PCI slots of the in-tree driver's drive, and of hiops'.
SLOTS = 0x10, 0x11
TIMES = "seconds", "p50_ns", "p99_ns", "cpu_ns"
# Heading, that of a page, width, text of a row and of the in-tree driver's beside it.
COLUMNS = (("op/s", "operations/s", 10, lambda row, first: number(row, "operations_s", 1, 0)),
           ("s", "takes, s", 8, lambda row, first: number(row, "seconds", 1, 3)),
           ("ratio", "ratio", 7, lambda row, first: ratio(row, first)),
           ("p50 us", "p50, µs", 10, lambda row, first: number(row, "p50_ns", 1000, 1)),
           ("p99 us", "p99, µs", 10, lambda row, first: number(row, "p99_ns", 1000, 1)),
           ("CPU us", "CPU an operation, µs", 9,
            lambda row, first: number(row, "cpu_ns", 1000, 2)))


def number(row, key, unit, digits):
    """The row's figure as text, or nothing."""
    return f"{row[key] / unit:,.{digits}f}" if key in row else ""


def ratio(row, first):
    """How many times as fast as the in-tree driver's, or nothing of that one itself."""
    if row is first:
        return ""
    if "operations_s" in row:
        return f"{row['operations_s'] / first['operations_s']:.2f}"
    return f"{first['seconds'] / row['seconds']:.2f}"


def real(result):
    """The result in real units."""
    scale = result["scale"]
    rows = []
    for row in result["rows"]:
        new = {**row, **{key: row[key] / scale for key in TIMES if key in row}}
        if "operations_s" in row:
            new["operations_s"] = row["operations_s"] * scale
        rows.append(new)
    return {**result, "scale": 1, "rows": rows}


def texts(result):
    """(load, driver, the texts of COLUMNS) of each row; the load only of the first one of it."""
    first = None
    for row in real(result)["rows"]:
        name = f"{row['load']}, {row['system']}"
        if first and (first["load"], first["system"]) == (row["load"], row["system"]):
            name = ""
        else:
            first = row
        yield name, row["side"], [text(row, first) for *_, text in COLUMNS]


def lines(result):
    """The table."""
    yield f"Programs, {result['model']}: {result['device']}; {result['cpus']} vCPU"
    yield ("Real time, by the programs themselves; CPU time of the whole machine in the midst of a "
           "run. Ratios: how many times as fast")
    yield f"{'program, on':<36}{'driver':<12}" + "".join(
        f"{heading:>{width}}" for heading, _, width, _ in COLUMNS)
    for load, driver, row in texts(result):
        yield f"{load:<36}{driver:<12}" + "".join(
            f"{text:>{width}}" for text, (_, _, width, _) in zip(row, COLUMNS))


def markdown(result):
    """The table for a page."""
    header = ["program, on", "driver", *(heading for _, heading, _, _ in COLUMNS)]
    return table.markdown(header, [[load, driver, *row] for load, driver, row in texts(result)])


def options(parser):
    boot.options(parser)
    parser.add_argument("--programs", default=",".join(programs_guest.LOADS),
                        help=f"({','.join(programs_guest.LOADS)})")
    parser.add_argument("--systems", default=",".join(programs_guest.SYSTEMS),
                        help="file systems; not all programs are on each")
    parser.add_argument("--rounds", type=int, default=1, help="by turns (1)")
    parser.add_argument("--seconds", type=int, default=2,
                        help="of the machine's that a run takes, if it is one by time (2)")
    parser.add_argument("--hiops", default="", help="'KEY=VALUE ...': switches of its disk")


def checked(args):
    """The options, checked as far as can be without a machine."""
    programs_guest.chosen(args.programs)
    unknown = set(args.systems.split(",")) - set(programs_guest.SYSTEMS)
    if unknown:
        raise Wrong(f"--systems takes {','.join(programs_guest.SYSTEMS)}, not {unknown.pop()}")
    for name, most in (("rounds", 9), ("seconds", 60)):
        if not 1 <= getattr(args, name) <= most:
            raise Wrong(f"--{name} takes a number from 1 to {most}, not {getattr(args, name)}")
    if any("=" not in word for word in args.hiops.split()):
        raise Wrong(f"--hiops takes 'KEY=VALUE ...', not {args.hiops}")
    return args


def prepared(data, args):
    """The folder of the programs; what they have from the start is in `data`."""
    done = subprocess.run([os.path.join(REPO, "ci", "env-programs")], stdout=subprocess.PIPE,
                          text=True)
    if done.returncode:
        raise Failed("the programs are not there")
    folder = done.stdout.strip()
    subprocess.run([os.path.join(REPO, "ci", "in-root"), "python3", "-B",
                    os.path.join(HERE, "main.py"), "programs-data", "--data", data,
                    "--folder", folder, "--programs", args.programs], check=True)
    return folder


def run(args):
    model = models.load(checked(args).model)
    drivers = timed.DRIVERS[model.kind]
    os.makedirs(f"{HERE}/results", exist_ok=True)
    with tempfile.TemporaryDirectory(dir=f"{HERE}/results") as data:
        words = ["programs-guest", "--programs", args.programs, "--systems", args.systems,
                 "--folder", prepared(data, args), "--data", data,
                 "--rounds", str(args.rounds), "--seconds", str(args.seconds),
                 "--hiops", args.hiops]
        result = boot.measured(args, dict(zip(drivers, SLOTS)), words)
    boot.save("programs", args, result)
    print(*lines(result), sep="\n")
