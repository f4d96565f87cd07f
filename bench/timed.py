# SPDX-License-Identifier: GPL-2.0
"""What is to be booted for the timed matrix, see bench/timed: each boot's command goes into
SCRATCH/boots, and what its result is told by beside it."""

import json
import os
import shlex

import loads
import models
import sides
import yardstick
from drives import HERE
from errors import Wrong

# A vCPU is a turn on one thread of the host: with many, a boot takes for ever.
MOST_CPUS = 8
# Seconds of the host's, from boot: a matrix takes half an hour.
LIMIT = 7200
# PCI slots of the drives. In-tree has the first of each pair, hiops the second.
SLOTS = (0x10, 0x12), (0x11, 0x13)
DRIVERS = {"nvme": ("nvme", "hiops_nvme"), "sata": ("ahci", "hiops_ahci")}


def options(parser):
    # What the others mean is told by bench/timed --help.
    parser.add_argument("scratch", help="a folder for what it writes")
    for name in ("--model", "--drivers"):
        parser.add_argument(name)
    for name in ("--loads", "--hiops", "--ways", "--label", "--set"):
        parser.add_argument(name, default="")
    for name in ("--sata", "--unheld"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--cpus", default="1")


def checked(found):
    """The options, checked as far as can be without a machine."""
    if not (found.cpus.isdigit() and 1 <= int(found.cpus) <= MOST_CPUS):
        raise Wrong(f"--cpus takes a number from 1 to {MOST_CPUS}, not {found.cpus}")
    found.cpus = int(found.cpus)
    loads.chosen(found.loads)
    if any("=" not in word for word in found.hiops.split()):
        raise Wrong(f"--hiops takes KEY=VALUE words, not {found.hiops}")
    if found.ways and not found.label:
        raise Wrong("--ways needs a --label: its result is no comparison of two")
    sides.ways_of(found.ways)
    if found.drivers is not None and len(found.drivers.split(",")) != 2:
        raise Wrong(f"--drivers takes two, not {found.drivers}")
    if not all(c.isalnum() or c in "-_." for c in found.label):
        raise Wrong(f"--label takes letters, digits and -_. only, not {found.label}")
    names = [found.model] if found.model else models.known()
    found.models = [models.varied(models.load(name), found.set) for name in names]
    polled = [load.name for load in loads.chosen(found.loads) if load.polls]
    if polled and any(found.sata or model.kind == "sata" for model in found.models):
        raise Wrong(f"a SATA drive has no queue for {', '.join(polled)}")
    if found.set and not found.label:
        raise Wrong("--set needs a --label: its result is not the model's")
    return found


def result_name(model, kind, cpus, label):
    """The name of a result's file in bench/results."""
    words = ["timed", model.name, "" if kind == model.kind else kind, f"{cpus}cpu", label]
    return "-".join(w for w in words if w) + ".json"


def drive(model, kind, slot, seed):
    """QEMU's arguments for a drive in PCI slot `slot`.

    Equal seeds: the same latencies in the same order.
    """
    name, serial = f"m{slot:x}", f"timed{slot:x}"
    if kind == "nvme":
        devices = (f"-device nvme,id=nv{slot:x},serial={serial},drive={name},"
                   f"max_ioqpairs={MOST_CPUS},addr={slot:x},{model.nvme()}")
    else:
        devices = (f"-device ich9-ahci,id=hba{slot:x},addr={slot:x} "
                   f"-device ide-hd,serial={serial},drive={name},bus=hba{slot:x}.0,"
                   "rotation_rate=1")
    return ["--qemu", f"-drive '{model.drive(name, seed)}' {devices}"]


def boot(scratch, n, model, kind, args):
    """The command of the n-th boot, and all that its result is told by."""
    drivers = args.drivers.split(",") if args.drivers else DRIVERS[kind]
    words, texts = [], []
    if not args.unheld:
        words += ["--qemu", shlex.join(yardstick.arguments(model))]
    for slots, driver in zip(SLOTS, drivers):
        for seed, slot in enumerate(slots, 1):
            words += drive(model, kind, slot, seed)
        texts.append(",".join(f"0000:00:{slot:x}.0={driver}" for slot in slots))
    counts = os.path.join(scratch, f"{n}.counts")
    plugin = f"{HERE}/.build/libcount.so".replace(",", ",,") + ",out=" + counts.replace(",", ",,")
    command = ["env", *(f"{key}={value}" for key, value in model.environment().items()),
               os.path.join(HERE, "..", "ci", "vm"), "--timed", "--cpus", str(args.cpus),
               "--timeout", str(LIMIT), *words, "--qemu", f"-plugin '{plugin}'", "--",
               "python3", os.path.join(HERE, "main.py"), "matrix", "--counts", counts,
               "--sides", ";".join(texts), "--loads", args.loads, "--hiops", args.hiops,
               "--ways", args.ways, "--model", model.name, "--set", args.set,
               "--json", os.path.join(scratch, f"{n}.json")]
    if not args.unheld:
        command += ["--yardsticks"]
    about = {"name": result_name(model, kind, args.cpus, args.label), "model": model.name,
             "device": model.device, "latency_ns": model.latency_ns,
             "spread_percent": model.spread_percent, "kind": kind, "scale": models.SCALE,
             "label": args.label}
    return command, about


def run(args):
    args = checked(args)
    with open(os.path.join(args.scratch, "boots"), "w") as boots:
        for n, model in enumerate(args.models):
            kind = "sata" if args.sata else model.kind
            command, about = boot(args.scratch, n, model, kind, args)
            boots.write(shlex.join(command) + "\n")
            with open(os.path.join(args.scratch, f"{n}.counts"), "w"):
                pass  # the plugin's, which the guest may read before there is anything in it
            with open(os.path.join(args.scratch, f"{n}.about"), "w") as out:
                json.dump(about, out)
