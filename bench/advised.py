# SPDX-License-Identifier: GPL-2.0
"""What `hiopsctl advise` says inside the guest that bench/run advise boots: beside each load, on a
drive of the in-tree driver's.
"""

import json
import os
import shutil
import subprocess
import time

import counting
import fio
import loads
import record
import sides
from drives import HERE
from errors import Failed
from neighbours import Neighbours
from stage import WORK

# Reads after which a load is under way.
BEGUN = 500
# Seconds that it looks, by the machine's clock.
SECONDS = 1
# What of its answer goes into the JSON.
ALL = ("kernel", "programs", "iowait", "busiest", "blocked", "runnable")
KEYS = ("answer", "why", "depth", "deepest", "us_per_io")


def command(load, disk):
    """The load on that disk, until it is ended."""
    return fio.command(fio.section(
        "load", f"/dev/{disk}", thread=True, group_reporting=True, direct=1, bs=load.block,
        rw=load.rw, ioengine=load.engine, numjobs=load.jobs, iodepth=load.depth,
        norandommap=True, time_based=True, runtime=100_000))


def reads(disk):
    """How many the disk has done."""
    with open(f"/sys/block/{disk}/stat", encoding="ascii") as text:
        return int(text.read().split()[0])


def asked(hiopsctl, load, disk):
    """What is said of the disk under the load."""
    before = reads(disk)
    running = subprocess.Popen(command(load, disk), cwd=WORK, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    try:
        while reads(disk) < before + BEGUN:
            if running.poll() is not None:
                raise Failed(f"{load.name}: fio: {running.stderr.read().strip()[-300:]}")
            time.sleep(0.01)
        done = subprocess.run([hiopsctl, "--json", "advise", "-i", str(SECONDS)], text=True,
                              stdout=subprocess.PIPE, check=True)
    finally:
        running.kill()
        running.wait()
    said = json.loads(done.stdout)
    told = [one for one in said["drives"] if one["disk"] == disk]
    return {"load": load.name, **{key: said[key] for key in ALL},
            **{key: told[0][key] for key in ("iops", *KEYS)}}


def options(parser):
    parser.add_argument("--side", required=True, help="ADDRESS=DRIVER: the drive")
    parser.add_argument("--loads", required=True)
    parser.add_argument("--hiopsctl", required=True, help="the program")
    parser.add_argument("--json", required=True, help="where the results go")


def run(args):
    counting.quiet()
    disk = sides.Side(args.side, "in-tree", {}).disks[0]
    os.makedirs(WORK, exist_ok=True)
    # Of RAM, as the shared folder is slow.
    hiopsctl, _ = (shutil.copy2(program, WORK)
                   for program in (args.hiopsctl, os.path.join(HERE, ".build", "hog")))
    rows = []
    for load in loads.chosen(args.loads):
        with Neighbours(load.neighbours, WORK):
            rows.append(asked(hiopsctl, load, disk))
    record.save(args.json, rows=rows)
