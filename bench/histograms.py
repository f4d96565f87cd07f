# SPDX-License-Identifier: GPL-2.0
"""hiops' histograms beside fio's own percentiles, on machines that keep time.

fio's percentile has to be in the bucket that the histogram names, or in the next one, as fio
measures around what hiops measures. Where CPUs are short a thread waits for one after its read has
ended, which is in fio's figure alone: such loads are not compared.

Table on stdout; JSON in bench/results/. Status 1 where they are further apart.
"""

import bisect
import os

import boot
import models
import timed
import timed_result
from drives import HERE
from errors import Failed, Wrong

# Loads of each model that leave a CPU idle. On the fast one each has a thread of its own: of
# several that have come together fio looks at one after the other, and that takes as long.
LOADS = {"tlc": "psync-1,psync-8,uring-4", "lowlat": "psync-1,psync-2",
         "sata": "psync-1,psync-8,uring-4"}
SLOT = 0x10
DRIVERS = {"nvme": "hiops_nvme", "sata": "hiops_ahci"}
# Ends of buckets in ns: two a power of two (rust/engine/latency.rs).
ENDS = sorted(ns << power for power in range(25) for ns in (1000, 1500))


def apart(row):
    """How many buckets fio's percentile is above the histogram's."""
    return bisect.bisect_right(ENDS, row["fio_ns"]) - ENDS.index(int(row["below_ns"]))


def lines(rows):
    """The table, by the machine's clock."""
    yield f"{'machine':<10}{'load':<12}{'percent':>8}{'fio us':>10}  histogram's bucket, us"
    for row in rows:
        end = ENDS.index(int(row["below_ns"]))
        begin = ENDS[end - 1] if end else 0
        wrong = "" if apart(row) in (0, 1) else f"  {apart(row)} buckets apart"
        yield (f"{row['machine']:<10}{row['load']:<12}{row['percent']:>8}"
               f"{row['fio_ns'] / 1000:>10.1f}  {begin / 1000:g} to {ENDS[end] / 1000:g}{wrong}")


def command(model, loads, scratch):
    """What boots the machine."""
    return [*boot.BEGINS, *timed.drive(model, model.kind, SLOT, 1), "--", "python3",
            os.path.join(HERE, "main.py"), "histogrammed", "--loads", loads,
            "--side", f"0000:00:{SLOT:x}.0={DRIVERS[model.kind]}",
            "--json", os.path.join(scratch, "json")]


def options(parser):
    parser.add_argument("--models", default=",".join(LOADS), help="of bench/models")


def run(args):
    rows = []
    for name in args.models.split(","):
        model = models.load(name)
        if name not in LOADS:
            raise Wrong(f"there are no loads for {name} that leave a CPU idle: {', '.join(LOADS)}")
        result = boot.result_of(model, lambda scratch, name=name, model=model:
                                command(model, LOADS[name], scratch))
        rows += [{"machine": name, **row} for row in result["rows"]]
    with open(os.path.join(HERE, "results", "histograms.json"), "w") as out:
        out.write(timed_result.text_of({"rows": rows}))
    print(*lines(rows), sep="\n")
    if any(apart(row) not in (0, 1) for row in rows):
        raise Failed("a histogram is more than a bucket from what fio measured")
