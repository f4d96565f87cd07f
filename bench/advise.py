# SPDX-License-Identifier: GPL-2.0
"""What `hiopsctl advise` says on five machines that keep time, under load on the in-tree driver's
drive, beside what the matrix of docs/timed measured there with hiops.

Table on stdout; JSON in bench/results/. Status 1 where an answer is not the matrix's.
"""

import os
import subprocess

import boot
import models
import record
import timed
import timed_result
from drives import HERE
from errors import Failed, Wrong

SLOT = 0x10
# (model, vCPUs), of each of which docs/timed has a matrix.
MACHINES = (("tlc", 1), ("tlc", 4), ("lowlat", 1), ("sata", 1), ("sata", 4))
# What hiopsctl's advise/answer.rs calls a difference, and by how much two boots differ.
IOPS, CPU, NOISE = 0.03, 0.10, 0.02
# What it says of a queue on a fast drive, of which it can't see how full it is.
DEPENDS = "depends"


def answer(iops, cpu):
    """The answer to these ratios, hiops' to in-tree's: of IOPS, and of CPU time an I/O."""
    if abs(iops - 1) >= IOPS:
        return "yes" if iops > 1 else "no"
    return "yes" if cpu <= 1 - CPU else "no_difference"


def answers(iops, cpu):
    """All that two boots could give."""
    near = (-NOISE, 0, NOISE)
    return {answer(iops + more, cpu + less) for more in near for less in near}


def measured(model, cpus):
    """{load: (ratio of IOPS, of CPU time an I/O)} of the machine's matrix."""
    matrix = record.load(os.path.join(HERE, "..", "docs", "timed", f"timed-{model}-{cpus}cpu.json"))
    theirs, ours = timed.DRIVERS[matrix["kind"]]
    cells = {(row["load"], row["driver"]): row for row in matrix["rows"]}
    ratios = {}
    for (load, driver), row in cells.items():
        if driver == theirs and (load, ours) in cells:
            ratios[load] = tuple(cells[load, ours][key] / row[key]
                                 for key in ("iops", "cpu_ns_per_io"))
    return ratios


def command(args, model, cpus, scratch, hiopsctl):
    """What boots the machine."""
    begins = [str(cpus) if before == "--cpus" else word
              for before, word in zip(("", *boot.BEGINS), boot.BEGINS)]
    side = f"0000:00:{SLOT:x}.0={timed.DRIVERS[model.kind][0]}"
    return [*begins, *timed.drive(model, model.kind, SLOT, 1), "--", "python3",
            os.path.join(HERE, "main.py"), "advised", "--side", side, "--loads", args.loads,
            "--hiopsctl", hiopsctl, "--json", os.path.join(scratch, "json")]


def judged(machine, rows, ratios):
    """The rows with their machine, what was measured there, and whether that is what was said."""
    for row in rows:
        if row["load"] not in ratios:
            raise Wrong(f"the matrix of {machine} has no {row['load']}")
        iops, cpu = ratios[row["load"]]
        yield {"machine": machine, **row, "iops_ratio": iops, "cpu_ratio": cpu,
               "agrees": row["answer"] in (*answers(iops, cpu), DEPENDS)}


def lines(rows):
    """The table."""
    yield (f"{'machine':<12}{'load':<12}{'advise says':<16}{'IOPS':>6}{'CPU':>6}  "
           "measured: hiops' to in-tree's")
    for row in rows:
        told = row["answer"].replace("_", " ")
        yield (f"{row['machine']:<12}{row['load']:<12}{told:<16}"
               f"{row['iops_ratio']:>6.2f}{row['cpu_ratio']:>6.2f}"
               + ("" if row["agrees"] else f"  otherwise: {row['why']}"))


def options(parser):
    parser.add_argument("--loads", default="psync-1,psync-4,psync-16,psync-64,uring-32,"
                        "psync-16+hog",
                        help="of bench/loads.py")
    parser.add_argument("--machines", default=",".join(f"{name}:{n}" for name, n in MACHINES),
                        help="MODEL:CPUS,...")


def run(args):
    built = subprocess.run([os.path.join(HERE, "..", "ci", "hiopsctl")], text=True,
                           stdout=subprocess.PIPE, check=True)
    hiopsctl = built.stdout.strip()
    rows = []
    for machine in args.machines.split(","):
        name, _, cpus = machine.partition(":")
        if not cpus.isdigit():
            raise Wrong(f"--machines takes MODEL:CPUS,..., not {machine}")
        model = models.load(name)
        result = boot.result_of(
            model, lambda scratch, model=model, cpus=cpus:
                command(args, model, cpus, scratch, hiopsctl))
        rows += judged(f"{name}, {cpus}", result["rows"], measured(name, cpus))
    with open(os.path.join(HERE, "results", "advise.json"), "w") as out:
        out.write(timed_result.text_of({"loads": args.loads, "rows": rows}))
    print(*lines(rows), sep="\n")
    if not all(row["agrees"] for row in rows):
        raise Failed("hiopsctl advise says otherwise than was measured")
