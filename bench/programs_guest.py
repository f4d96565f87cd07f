# SPDX-License-Identifier: GPL-2.0
"""Programs on drives of the timed machine, inside the guest that bench/run programs boots: each on
a new file system of either side, in-tree and hiops by turns; what the program tells of itself.

Rows go to the JSON, by the machine's clock; progress goes to stderr. A file system is checked when
its program has ended, and so is what the program keeps there.
"""

import contextlib
import glob
import os
import shutil
import statistics
import subprocess
import sys

import boot
import models
import places
import postgres
import record
import rocksdb
import sides
import sqlite
import watched
from errors import Failed, Wrong
from stage import WORK, flush

MODULES = rocksdb, postgres, sqlite
LOADS = {name: module for module in MODULES for name in module.LOADS}
SYSTEMS = "ext4", "xfs"
# What a second of a run has (watched.py).
SEEN = "busy", "reads", "switches", "interrupts"
# What of a round is a figure of which the rounds' mean is told.
MEANS = "operations_s", "operations", "seconds", "p50_ns", "p99_ns", *SEEN


def chosen(text):
    """The names of `text`, in the order in which they are run."""
    names = text.split(",")
    for name in names:
        if name not in LOADS:
            raise Wrong(f"--programs takes some of {','.join(LOADS)}, not {name}")
    return [name for name in LOADS if name in names]


def make(data, programs, names):
    """Outside the guest: what the modules of these loads have there from the start."""
    for module in MODULES:
        if any(LOADS[name] is module for name in names):
            module.make(data, programs)


def copied(programs):
    """The programs in RAM, with what of the shared folder is needed beside them read once: nothing
    that is measured waits for that folder."""
    place = shutil.copytree(programs, f"{WORK}/programs", symlinks=True)
    binaries = [shutil.which("db_bench"), *glob.glob(f"{place}/usr/lib/postgresql/*/bin/p*g*"),
                f"{place}/speedtest1"]
    libraries = subprocess.run(["ldd", *binaries], text=True, stdout=subprocess.PIPE).stdout
    for path in {word for word in libraries.split() if word.startswith("/")} - {*binaries}:
        if os.path.exists(path):
            read(path)
    read(binaries[0])
    return place


def read(path):
    """Reads the file to its end."""
    with open(path, "rb") as file:
        while file.read(1 << 20):
            pass


def grown(before, after):
    """What hiops' counts grew by."""
    return {key: after[key] - before[key] for key in after if after[key] != before[key]}


def mean(rounds):
    """One figure of all rounds."""
    return {key: statistics.fmean(one[key] for one in rounds)
            for key in MEANS if key in rounds[0]}


def row(name, system, side, rounds):
    """A load's row, of one side."""
    new = {"load": name, "system": system, "side": side, **mean(rounds), "rounds": rounds}
    if "busy" in new:
        for key in SEEN:
            new[key] /= new["operations_s"]
        new["cpu_ns"] = new.pop("busy") * 1e9
    return new


def told_of(new):
    """A row in a line of progress, in real units."""
    scale = models.SCALE
    words = [f"{new['load']} on {new['system']}, {new['side']}:"]
    if "seconds" in new:
        words.append(f"{new['seconds'] / scale:.3f} s")
    if "operations_s" in new:
        words.append(f"{new['operations_s'] * scale:,.0f} operations/s")
    words += [f"{key[:-3]} {new[key] / scale / 1000:,.1f} us"
              for key in ("p50_ns", "p99_ns", "cpu_ns") if key in new]
    words += [f"{new[key]:.2f} {key}" for key in SEEN if key in new]
    return " ".join(words)


def those(text, module, system):
    """Of the names of `text` those that are the module's and on such a file system."""
    return [name for name in chosen(text)
            if LOADS[name] is module and system in module.systems(name)]


def measured(stage, module, system, found, args, save):
    """The rows of a module's loads on such a file system of each side."""
    names = those(args.programs, module, system)
    if not names:
        return
    with contextlib.ExitStack() as stack:
        programs = {}
        for side in found:
            folder = stack.enter_context(places.mounted(system, side.disks[0]))
            programs[side] = module.Program(folder, args.data, args.copied)
            os.sync()
        for name in names:
            rounds = {side: [] for side in found}
            for n in range(args.rounds):
                for side in found if n % 2 == 0 else found[::-1]:
                    before = side.stats()
                    told = programs[side].run(watched.Watch(stage, side), name, args.seconds)
                    rounds[side].append({**told, "stats": grown(before, side.stats())})
            for side in found:
                new = row(name, system, side.name, rounds[side])
                print(f"hiops: {told_of(new)}", file=sys.stderr, flush=True)
                save(new)
        for program in programs.values():
            program.end()
    for side in found:
        flush(side.disks[0])


def options(parser):
    boot.guest_options(parser)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--systems", required=True)
    parser.add_argument("--folder", required=True, help="of ci/env-programs")
    parser.add_argument("--data", required=True, help="what make() made")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--hiops", default="")


def run(args):
    stage, addresses = boot.prepared(args)
    args.copied = copied(args.folder)
    switches = dict(word.split("=", 1) for word in args.hiops.split())
    found = [sides.Side(f"{address}={driver}", driver, switches)
             for driver, address in addresses.items()]
    rows = []

    def save(new):
        # As they come: what is there counts, if the machine is ended.
        rows.append(new)
        record.save(args.json, hiops=switches, rows=rows)

    for module in MODULES:
        for system in args.systems.split(","):
            measured(stage, module, system, found, args, save)
    if not rows:
        raise Failed("nothing was measured")
