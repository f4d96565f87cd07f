# SPDX-License-Identifier: GPL-2.0
"""Points of bench/blocks.py with the module: hiops_ram under fio, in a guest that keeps time
(ci/vm --timed), and so at a quarter of a machine's speed."""

import subprocess
import sys

import counting
import fio
import naps_ram
import record
from models import SCALE

# What a point is measured by: enough for some hundred blocks.
IOS = 6000
TIMES = {"fetch": 3_000, "fetch_each": 100, "process": 2_000, "answer": 1_000, "answer_each": 50,
         "link": 100}
PACES = {"read": 1_600, "write": 1_000}


def parameters(row):
    """The module's, of a point whose device takes `slow` times as long as its own."""
    slow = row["slow"] * SCALE
    return {"strategy": row["strategy"], "mode": "irq", "ram_protocol": "blocks",
            "ram_blocks_most": row["size"],
            "ram_blocks_full": row["full"], "ram_blocks_answers": row["answers"],
            **{f"ram_blocks_{name}_ns": ns * slow for name, ns in TIMES.items()},
            **{f"ram_blocks_{name}_mb_s": mb_s // slow for name, mb_s in PACES.items()}}


def measured(row):
    """The point, with what the module has of it, in real units."""
    way, threads = row["op"], row["threads"]
    section = fio.section("b", naps_ram.DISK, direct=1, rw=f"rand{way}", bs=row["bytes"],
                          ioengine="psync", numjobs=threads, thread=True, group_reporting=True,
                          norandommap=True, io_size="4g", number_ios=max(IOS // threads, 100))
    job, = fio.run(fio.command(section), str(row))
    told = {"module_iops": fio.iops([job], way) * SCALE,
            "module_mean_us": job[way][fio.TOLD[way]]["mean"] / SCALE / 1000}
    print(f"hiops: {row} {told}", file=sys.stderr)
    return {**row, **told}


def options(parser):
    parser.add_argument("--points", required=True, help="JSON of those that bench/blocks.py asks")
    parser.add_argument("--json", required=True, help="where the results go")


def run(args):
    counting.quiet()
    rows = []
    for row in record.load(args.points)["rows"]:
        words = (f"{key}={value}" for key, value in parameters(row).items())
        subprocess.run(["modprobe", "hiops", "ram_disks=1", "ram_size_mb=64", *words], check=True)
        rows.append(measured(row))
        subprocess.run(["rmmod", "hiops"], check=True)
    record.save(args.json, rows=rows)
