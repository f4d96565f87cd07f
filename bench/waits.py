# SPDX-License-Identifier: GPL-2.0
"""Who waits for what on a disk of hiops', and how often the hook finds the thread's own I/O.

Loads of the timed matrix on a device model, watched by bpftrace (bench/waited.py). Table on stdout;
JSON in bench/results/.
"""

import os

import boot
import loads
import models
import table
import timed
import timed_result
from drives import HERE
from errors import Wrong

SLOT = 0x10
DRIVERS = {"nvme": "hiops_nvme", "sata": "hiops_ahci"}
# Less often than in one of so many waits of a load is not told.
RARE = 200


def summary(result):
    """[(load, waits, the share of them that the hook found)]."""
    sums = {}
    for row in result["rows"]:
        waits, own = sums.get(row["load"], (0, 0))
        sums[row["load"]] = waits + row.get("waits", 0), own + row.get("own", 0)
    return [(load, waits, own / waits if waits else 0) for load, (waits, own) in sums.items()]


def told(result):
    """(header, lines) of the table."""
    lines = []
    for load, waits, share in summary(result):
        rows = [row for row in result["rows"] if row["load"] == load]
        lines.append([load, "all", "that pass the hook", str(waits), f"{share:.3f}"])
        for row in sorted(rows, key=lambda row: -row.get("waits", row.get("others", 0))):
            times = row.get("waits", row.get("others", 0))
            if times * RARE < max(waits, 1):
                continue
            own = f"{row['own'] / row['waits']:.3f}" if "waits" in row else "past the hook"
            lines.append(["", row["thread"], row["place"], str(times), own])
    return ["load", "thread", "waits in", "times", "finds its own I/O"], lines


def markdown(result):
    """The table for a page."""
    return table.markdown(*told(result))


def lines(result):
    """The table."""
    switches = f", {result['hiops']}" if result["hiops"] else ""
    yield f"Waits on a disk of hiops', {result['model']}{switches}: {result['device']}"
    header, rows = told(result)
    for row in (header, *rows):
        yield f"{row[0]:<16}{row[1]:<16}{row[2]:<66}{row[3]:>8}  {row[4]}"


def command(args, model, scratch):
    """What boots the machine."""
    words = [*boot.BEGINS, *boot.plugin(scratch), *timed.drive(model, model.kind, SLOT, 1)]
    return words + ["--", "python3", os.path.join(HERE, "main.py"), "waited",
                    "--counts", os.path.join(scratch, "counts"), "--loads", args.loads,
                    "--hiops", args.hiops, "--side", f"0000:00:{SLOT:x}.0={DRIVERS[model.kind]}",
                    "--model", model.name, "--json", os.path.join(scratch, "json")]


def options(parser):
    parser.add_argument("--model", default="tlc", help="one of bench/models (tlc)")
    parser.add_argument("--loads", default="psync-64,cold-64,fault-64", help="of bench/loads.py")
    parser.add_argument("--hiops", default="", help="'KEY=VALUE ...': switches of the disk")
    parser.add_argument("--set", default="", help="KEY=NUMBER,...: other values of the model's; a "
                        "file system needs store=1")


def run(args):
    if not args.loads or any(load.disks > 1 for load in loads.chosen(args.loads)):
        raise Wrong("--loads takes loads of one disk")
    model = models.varied(models.load(args.model), args.set)
    result = boot.result_of(model, lambda scratch: command(args, model, scratch))
    result["hiops"] = args.hiops
    with open(os.path.join(HERE, "results", f"waits-{model.name}.json"), "w") as out:
        out.write(timed_result.text_of(result))
    print(*lines(result), sep="\n")
