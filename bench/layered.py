# SPDX-License-Identifier: GPL-2.0
"""What the kernel's functions take of a read, inside the guest that bench/run layers boots.

Rows go to the JSON, by the machine's clock: instructions of a read by function, and what takes
time without one."""

import sys

import account
import counting
import functions
import layers
import loads
import models
import record
import sides
from matrix import COSTS
from stage import Stage

DRIVERS = {"ahci": "ahci", "nvme": "nvme", "hiops": "hiops_nvme", "bytes": "hiops_nvme"}
# Fewer instructions of a read than this are no function's of its path.
LEAST = 0.5


def row(stage, symbols, load, name, side):
    """What a read takes there; `name` is the side's."""
    if load.passthru:
        name = "passthru"
        for disk in side.disks:
            # Else the disk does not count it.
            sides.put(f"/sys/block/{disk}/queue/iostats_passthrough", "1", "1")
    seen, _ = stage.run(load, side.disks)
    ios = seen.sectors * loads.SECTOR / load.counted
    found = functions.by_function(functions.by_block(symbols, stage.blocks))
    found["(user space)"] = [int(seen.words["user"]), 0]
    reads, writes = seen.registers
    device = (reads * stage.costs.read + writes * stage.costs.write
              + seen.all_interrupts * stage.costs.interrupt)
    print(f"hiops: {load.name}, {name}: {seen.busy / ios:.0f} ns", file=sys.stderr)
    # One load's name for what is compared with it.
    return {"load": load.name.replace("passthru", "fixed"), "side": name,
            "cpu_ns": seen.busy / ios, "idle_ns": int(seen.words["idle"]) / ios,
            "device_ns": device / ios,
            "functions": {function: insns / ios for function, (insns, _) in sorted(found.items())
                          if insns / ios >= LEAST}}


def options(parser):
    parser.add_argument("--counts", required=True, help="the plugin's out= file")
    parser.add_argument("--model", required=True, help="the device model that QEMU was told of")
    parser.add_argument("--json", required=True, help="where the results go")


def run(args):
    counting.quiet()
    model = models.load(args.model)
    places = {name: sides.Side(f"0000:00:{slot:x}.0={DRIVERS[name]}", name,
                               {"bytes": "1"} if name == "bytes" else {})
              for name, (slot, _) in layers.SIDES.items()}
    stage = Stage(args.counts, account.Costs(*(model.guest_ns(key) for key in COSTS)))
    for side in places.values():  # what is read of the share once, before anything counts
        stage.run(loads.LOADS["psync-2"], side.disks)
    symbols = functions.Symbols()
    record.save(args.json, rows=[row(stage, symbols, loads.KNOWN[load], name, places[name])
                                 for load, name in layers.WAYS])
