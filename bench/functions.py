#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Where the instructions of an I/O go, by kernel function, for two drives side by side.

Runs inside the guest that bench/compare --profile starts: the plugin counts by translated block,
this adds the blocks up to the functions of /proc/kallsyms of the same boot.
"""

import bisect
import collections
import json
import os
import subprocess
import sys

import counting
from drives import Failed


class Symbols:
    """The kernel's functions by address, modules included."""

    def __init__(self):
        found = {}
        with open("/proc/kallsyms") as table:
            for line in table:
                addr, kind, name, *module = line.split()
                if kind in "tTwW":
                    found[int(addr, 16)] = (name, module[0].strip("[]") if module else "")
        if not any(found):
            raise Failed("/proc/kallsyms shows no addresses: kernel.kptr_restrict?")
        self.addrs = sorted(found)
        names = [found[a][0] for a in self.addrs]
        # binutils knows Rust's v0 names.
        plain = subprocess.run(["c++filt", "-s", "rust"], input="\n".join(names), stdout=subprocess.PIPE,
                               text=True, check=True).stdout.split("\n")
        self.names = [(p + (f" [{found[a][1]}]" if found[a][1] else "")) for a, p in zip(self.addrs, plain)]

    def at(self, addr):
        """(function, is this its first instruction?)"""
        i = bisect.bisect_right(self.addrs, addr) - 1
        return (self.names[i], self.addrs[i] == addr) if i >= 0 else ("?", False)


def by_function(symbols, blocks):
    """{function: [instructions, calls]} of a region's block lines."""
    total = collections.defaultdict(lambda: [0, 0])
    for line in blocks:
        words = dict(w.split("=") for w in line.split()[1:])
        name, first = symbols.at(int(words["addr"], 16))
        total[name][0] += int(words["insns"])
        total[name][1] += int(words["runs"]) if first else 0
    return total


def profile(counter, symbols, drive, jobs):
    """Per I/O: {function: (instructions, calls)}; user space as one."""
    runs = []
    for ios in (counting.SHORT, counting.LONG):
        counts, _, blocks = counting.fio(counter, drive, "randread", jobs, ios)
        total = by_function(symbols, blocks)
        total["(user space)"] = [counts["user"], 0]
        runs.append(total)
    n = counting.LONG - counting.SHORT
    return {name: tuple((runs[1][name][i] - runs[0][name][i]) / n for i in (0, 1)) for name in list(runs[1])}


def main():
    args = counting.arguments(__doc__)
    args.add_argument("--jobs", type=int, default=16)
    args = args.parse_args()
    try:
        counter, drives = counting.prepare(args)
        symbols = Symbols()
        profiles = [profile(counter, symbols, d, args.jobs) for d in drives]
    except (Failed, OSError) as why:
        print(f"hiops: error: {why}", file=sys.stderr)
        return 1
    names = sorted(set(profiles[0]) | set(profiles[1]),
                   key=lambda n: -max(p.get(n, (0, 0))[0] for p in profiles))
    rows = [[n] + [v for p in profiles for v in p.get(n, (0, 0))] for n in names]
    with open(args.json, "w") as out:
        json.dump({"cpus": os.cpu_count(), "jobs": args.jobs, "drivers": [d.driver for d in drives],
                   "columns": ["function", "insns", "calls", "insns", "calls"], "rows": rows}, out, indent=0)
    print(f"{os.cpu_count()} vCPU, {args.jobs} jobs: instructions and calls per I/O")
    print("".join(f"{d.driver:>20}" for d in drives) + f"{'difference':>12}  function")
    for name, a, calls_a, b, calls_b in [["(all)"] + [sum(r[i] for r in rows) for i in range(1, 5)]] + rows:
        if max(a, b) >= 10:
            print(f"{a:>11.0f} {calls_a:>8.2f}{b:>11.0f} {calls_b:>8.2f}{b - a:>12.0f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
