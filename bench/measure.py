# SPDX-License-Identifier: GPL-2.0
"""Two drives side by side, inside the guest that bench/compare starts.

Prints a table (or, with --limit, a result for each number of jobs, as ci/report.py tells it) and
writes JSON.
The drives alternate; of the rounds the median counts.
"""

import dataclasses
import os
import statistics
import sys

import counting
import points
import record
from drives import REPO, hiops_is_loaded

sys.path.append(os.path.join(REPO, "ci"))

from report import Report  # noqa: E402

KEYS = ("instructions", "interrupts", "softirqs", "switches", "registers")


def one_round(counter, drives, point, ios, backwards):
    """Short and long run on each drive, alternating: the per-I/O counts and IOPS of each."""
    fewer, more = ios
    order = drives[::-1] if backwards else drives
    short, long = {}, {}
    for drive in order:
        short[drive] = counting.counted(counter, drive, point, fewer)
    for drive in order[::-1]:
        long[drive] = counting.counted(counter, drive, point, more)
    return [{**counting.per_io(short[d][0], long[d][0], more - fewer), "iops": long[d][1]}
            for d in drives]


def ratio(pair):
    return pair[1]["instructions"] / pair[0]["instructions"]


def compare(counter, drives, point, ios, rounds, limit):
    """Up to `rounds` rounds; with a limit, no more than what decides on which side of it the median
    is."""
    done = []
    for n in range(rounds):
        done.append(one_round(counter, drives, point, ios, n % 2 == 1))
        print(f"hiops: {point}, round {n + 1} of {rounds}: {done[-1][0]['instructions']:.0f} and "
              f"{done[-1][1]['instructions']:.0f} instructions", file=sys.stderr)
        if limit is not None:
            within = sum(ratio(pair) <= limit for pair in done)
            if max(within, len(done) - within) > rounds // 2:
                break
    medians = [{k: statistics.median(pair[i][k] for pair in done) for k in done[0][i]}
               for i in (0, 1)]
    return {"point": dataclasses.asdict(point), "load": str(point),
            "drivers": [d.driver for d in drives], "per_io": medians, "rounds": done,
            "ratio": statistics.median(map(ratio, done))}


def table(measured, cpus, rounds, loaded):
    """Counts alone: IOPS of a machine that is emulated say nothing, and are in the JSON only."""
    drivers = " and ".join(measured[0]["drivers"])
    of = f", median of {rounds}" * (rounds > 1)
    yield (f"{drivers}, {cpus} CPU{'s' * (cpus > 1)}{'' if loaded else ', hiops is not loaded'}: "
           f"what a random read takes, counted{of}. Fewer is better")
    yield f"{'load':<32}  {'driver':<12}{KEYS[0]:>14}{'ratio':>7}" + "".join(
        f"{k:>12}" for k in KEYS[1:])
    for r in measured:
        for i, (driver, c) in enumerate(zip(r["drivers"], r["per_io"])):
            ratio_of = f"{r['ratio']:.2f}" if i else ""
            yield (f"{'' if i else r['load']:<32}  {driver:<12}{c['instructions']:>14,.0f}"
                   f"{ratio_of:>7}" + "".join(f"{c[k]:>12.2f}" for k in KEYS[1:]))


def asserted(measured, cpus, limit):
    """A result for each point: is the ratio of instructions within the limit?"""
    told = Report()
    for r in measured:
        name = f"{r['drivers'][1]} against {r['drivers'][0]}, {cpus} vCPU, {r['load']}"
        a, b = (p["instructions"] for p in r["per_io"])
        text = (f"{b:.0f} instructions per I/O beside {a:.0f}, ratio {r['ratio']:.3f}, "
                f"limit {limit}")
        if r["ratio"] <= limit:
            told.ok(name, text)
        else:
            told.not_ok(name, text)
    return 0 if told.plan() else 1


def options(parser):
    counting.options(parser)
    parser.add_argument("--jobs", default="1,16")
    parser.add_argument("--points", choices=points.SETS,
                        help="a set of bench/points.py instead of --jobs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ios", default=f"{counting.SHORT},{counting.LONG}",
                        help="the I/Os of the two runs that are subtracted")
    parser.add_argument("--limit", type=float,
                        help="assert that the ratio of instructions is not above this")


def run(args):
    cpus = os.cpu_count()
    ios = [int(n) for n in args.ios.split(",")]
    counter, drives = counting.prepare(args)
    measured = [compare(counter, drives, point, ios, args.rounds, args.limit)
                for point in points.of(args.points, args.jobs)]
    loaded = hiops_is_loaded()
    record.save(args.json, hiops_is_loaded=loaded, results=measured)
    if args.limit is not None:
        return asserted(measured, cpus, args.limit)
    print(*table(measured, cpus, args.rounds, loaded), sep="\n")
    return 0
