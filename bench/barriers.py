# SPDX-License-Identifier: GPL-2.0
"""barriers PROFILE MODULE: what orders memory, or reads a clock, in one read of each driver.

PROFILE is the result of bench/compare --profile 1, and MODULE the hiops.ko that ran.
Counts per read, by function, of the drivers' own code; what the rest of the kernel does for the
read stands below. In all other measurements each of these is one instruction, and no more.

A kernel with one CPU overwrites the lock prefixes of its C code, unless it is told noreplace-smp.
QEMU's drives have shadow doorbells, which take an mfence at each submission and each completion;
real ones have none, and neither has QEMU's with -global nvme.dbcs=off.
"""

import re

import read_path
import record
from errors import Failed

COUNTS = "locked", "mfence", "rdtsc"
# Below that a count per read is of something that happens in passing.
FEW = 0.005
# Where each phase of hiops' begins. Dynamic calls are no edges, so their targets are here, too.
ENTRIES = {"submission": read_path.ENTRIES["down"],
           "completion": re.compile(r"^kglue::irq::handle::| as kglue::timers::Expired>::expired$"),
           "wait": re.compile(r"^hiops_(redirect|io_schedule\w*)$"
                              r"| as kglue::blk::request::Waited>::wait$|>::spin::<kglue::wait::")}
OTHER = "reached from none of these"
# A function's phase is what reaches it in most reads; of one that most reads do without, in some.
OFTEN = read_path.OFTEN, 0.2, FEW
# In-tree: what is no submission. Its functions are few, and called by these words.
COMPLETION = re.compile(r"irq|poll|complete|unmap|free|error|end_req")
MODULES = {"nvme": ("nvme", "nvme_core"), "ahci": ("ahci", "libahci", "libata"),
           "hiops_nvme": ("hiops",), "hiops_ahci": ("hiops",)}
ARGUMENTS = re.compile(r"(?<=\w)(::)?<[^<>]*>")
MODULE = re.compile(r" \[(\w+)\]$")


def phases_of(reads):
    """{function: phase} of hiops' own that ran, as /proc/kallsyms calls them: the first of ENTRIES
    that reaches it, in the first of the `reads` in which one does."""
    phases = {}
    for read in reads:
        for phase, entry in ENTRIES.items():
            if any(entry.search(read.plain[name]) for name in read.files):
                for name in read.reached(entry):
                    phases.setdefault(read.plain[name], phase)
    return phases


def phase_of(name, phases):
    """Of a function of a driver's own, named as in a profile."""
    module = MODULE.search(name)[1]
    plain = read_path.HASH.sub("", MODULE.sub("", name))
    if module != "hiops":
        return "completion" if COMPLETION.search(plain) else "submission"
    return phases.get(plain, OTHER)


def short(name):
    """A function's name without what its types are instances of."""
    name, left = read_path.HASH.sub("", name), None
    while name != left:
        left, name = name, ARGUMENTS.sub("", name)
    return name


def own(driver, rows):
    """(rows of the driver's own functions, the sum of all others)"""
    inside, rest = [], [0] * len(COUNTS)
    for name, *counts in rows:
        module = MODULE.search(name)
        if module and module[1] in MODULES[driver]:
            inside.append([name, *counts])
        else:
            rest = total([rest, counts])
    return inside, rest


def total(counts):
    """The sum of lists of COUNTS."""
    return [sum(column) for column in zip([0] * len(COUNTS), *counts)]


def line(counts, name):
    return "".join(f"{count:>9.2f}" for count in counts) + f"  {name}"


def lines(driver, rows, phases):
    """A driver's part of the table."""
    inside, rest = own(driver, rows)
    yield "".join(f"{key:>9}" for key in COUNTS) + f"  {driver}"
    for phase in (*ENTRIES, OTHER):
        of_phase = [row for row in inside if phase_of(row[0], phases) == phase]
        if phase == OTHER and not of_phase:
            continue
        for name, *counts in sorted(of_phase, key=lambda row: (-sum(row[1:]), row[0])):
            yield line(counts, f"  {short(name)}")
        yield line(total(row[1:] for row in of_phase), f"{phase}")
    yield line(total(row[1:] for row in inside), "the driver's own")
    yield line(rest, "the rest of the kernel")


def options(parser):
    parser.add_argument("profile", help="the result of bench/compare --profile 1")
    parser.add_argument("module", help="the hiops.ko that ran")


def run(args):
    profile = record.load(args.profile)
    if "barriers" not in profile:
        raise Failed(f"{args.profile} has no barriers: it is of an older bench/compare")
    phases = phases_of(read_path.Read(args.profile, args.module, often) for often in OFTEN)
    for driver, rows in zip(profile["drivers"], profile["barriers"]):
        print(*lines(driver, rows, phases), sep="\n")
