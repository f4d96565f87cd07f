# SPDX-License-Identifier: GPL-2.0
"""read-path PROFILE MODULE [--write PAGE | --check PAGE]: one NVMe read, file by file.

Which files of the source a reader opens who follows one synchronous read: down to the doorbell,
back from the interrupt to the end of the request, and through the hook of the thread that waits.
PROFILE is the result of bench/compare --profile 1, which has the blocks of the module that ran for
each read, and MODULE the hiops.ko that ran. The debug information says of which files a block's
instructions are, inlined ones included; the calls in these blocks, which of them are reached from
the function that blk-mq calls, and which from the hook.

Without an option the table goes to stdout. --write puts it into PAGE, between two comments; --check
fails where PAGE has another one, or the way is longer than MOST.
"""

import collections
import re
import subprocess

import record
from errors import Failed

# Files of a read at most: down, down and back, and with the wait.
MOST = {"down": 15, "back": 25, "wait": 30}
WORDS = {"down": "down to the doorbell", "back": "and back", "wait": "and the wait"}
# Where each way begins; what is reached from neither belongs to the way back.
ENTRIES = {"down": re.compile(r"::Ops<hiops::nvme::Nvme,.*>>::queue_rqs?$"),
           "wait": re.compile(r"^hiops_(redirect|io_schedule\w*)$")}
# A block that runs less often than in this part of all reads is none of a read's.
OFTEN = 0.5
# The timer that watches sleepers comes twice a second: on a slow host for each read, which is not
# the read's doing.
TIMER = re.compile(r"::coarse_expired$")
MARKED = re.compile(r"(<!-- read path -->\n).*?(<!-- end -->)", re.DOTALL)

FUNCTION = re.compile(r"^([0-9a-f]{16}) <(.+)>:$")
SOURCE = re.compile(r"/src/((?:rust/(?!kernel/|library/|pin-init/)|c_shims/)[\w./]+):\d+")
INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t")
TARGET = re.compile(r"\t(?:call|jmp) +[0-9a-f]+ <([^>+]+)>")
RELOCATION = re.compile(r"\t+[0-9a-f]+: R_X86_64_\w+\t(\S+?)([-+]0x[0-9a-f]+)?$")
HASH = re.compile(r"\[[0-9a-f]{16}\]")


class Function:
    """What a function's instructions are of, and whom they call, each by its offset."""

    def __init__(self, start):
        self.start = start
        self.at = []        # offsets
        self.files = {}     # offset: files
        self.calls = {}     # offset: the name called, or an address in .text


def functions(module):
    """{name: Function} of the module's text."""
    text = subprocess.run(["objdump", "-w", "-d", "-r", "-l", "--inlines", "-j", ".text", module],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    found, function, files, offset = {}, None, set(), 0
    is_new = False
    for line in text.split("\n"):
        begins = FUNCTION.match(line)
        if begins:
            function = found[begins[2]] = Function(int(begins[1], 16))
            files = set()
            continue
        if function is None:
            continue
        instruction = INSTRUCTION.match(line)
        if instruction:
            offset = int(instruction[1], 16) - function.start
            function.at.append(offset)
            function.files[offset] = files
            is_new = True
            target = TARGET.search(line)
            if target:
                function.calls[offset] = target[1]
            relocation = RELOCATION.search(line)
            if relocation:
                name, more = relocation.groups()
                # A call's displacement counts from behind it, 4 bytes on.
                function.calls[offset] = int(more, 16) + 4 if name == ".text" and more else name
            continue
        if is_new:
            files, is_new = set(), False
        source = SOURCE.search(line)
        if source:
            files.add(source[1])
    return found


class Read:
    """What ran of the module for each read, or at least in the part `often` of all reads."""

    def __init__(self, profile, module, often=OFTEN):
        self.functions = functions(module)
        names = list(self.functions)
        plain = subprocess.run(["c++filt", "-s", "rust"], input="\n".join(names), text=True,
                               stdout=subprocess.PIPE, check=True).stdout.split("\n")
        self.plain = {name: HASH.sub("", text) for name, text in zip(names, plain)}
        by_plain = dict(zip(plain, names))
        by_start = {function.start: name for name, function in self.functions.items()}
        self.files = collections.defaultdict(set)
        self.calls = collections.defaultdict(set)
        for name, offset, insns, runs in record.load(profile)["blocks"]:
            if not name.endswith(" [hiops]") or runs < often:
                continue
            ran = name.removesuffix(" [hiops]")
            if ran not in by_plain:
                raise Failed(f"{module} is not the module that ran: it has no {ran}")
            name = by_plain[ran]
            function = self.functions[name]
            first = function.at.index(offset)
            for at in function.at[first:first + round(insns / runs)]:
                self.files[name] |= function.files[at]
                called = function.calls.get(at)
                called = by_start.get(called, called)
                if called in self.functions:
                    self.calls[name].add(called)
        if not self.files:
            raise Failed(f"{profile} has no blocks of hiops")

    def reached(self, entry):
        """The functions that ran and are reached from those whose name is `entry`."""
        left = [name for name in self.files if entry.search(self.plain[name])]
        if not left:
            raise Failed(f"no function that ran is called {entry.pattern}")
        reached = set()
        while left:
            name = left.pop()
            if name in self.files and name not in reached:
                reached.add(name)
                left += self.calls[name]
        return reached

    def ways(self):
        """{way: files}, each with those of the ways before it."""
        down, wait = (self.reached(ENTRIES[way]) for way in ("down", "wait"))
        timer = {name for name in self.files if TIMER.search(self.plain[name])}
        back = set(self.files) - down - wait - timer

        def files_of(names):
            return set().union(*(self.files[name] for name in names))
        down = files_of(down)
        back = down | files_of(back)
        return {"down": down, "back": back, "wait": back | files_of(wait)}


def page(ways):
    """The table, a file a line."""
    lines = ["| file | down to the doorbell | and back | and the wait |",
             "| --- | --- | --- | --- |"]
    for file in sorted(ways["wait"]):
        marks = ["●" if file in ways[way] else "" for way in MOST]
        lines.append(f"| [{file.removeprefix('rust/')}](../{file}) | {' | '.join(marks)} |")
    counts = " | ".join(f"**{len(ways[way])}** (at most {MOST[way]})" for way in MOST)
    return "\n".join([*lines, f"| files | {counts} |"]) + "\n"


def options(parser):
    parser.add_argument("profile", help="the result of bench/compare --profile 1")
    parser.add_argument("module", help="the hiops.ko that ran")
    parser.add_argument("--write", metavar="PAGE", help="put the table there")
    parser.add_argument("--check", metavar="PAGE", help="fail unless it has this table")


def run(args):
    ways = Read(args.profile, args.module).ways()
    new = page(ways)
    if not args.write and not args.check:
        print(new, end="")
        return 0
    path = args.write or args.check
    with open(path) as old:
        text = old.read()
    if not MARKED.search(text):
        raise Failed(f"{path} has no place for the table: <!-- read path --> ... <!-- end -->")
    wanted = MARKED.sub(lambda marks: marks[1] + new + marks[2], text)
    if args.write:
        with open(path, "w") as out:
            out.write(wanted)
        return 0
    if text != wanted:
        raise Failed(f"the table in {path} is out of date: ci/read-path writes it\n{new}")
    for way, most in MOST.items():
        if len(ways[way]) > most:
            raise Failed(f"one read, {WORDS[way]}: {len(ways[way])} files, at most {most}")
    return 0
