# SPDX-License-Identifier: GPL-2.0
"""What the I/Os of a window say: fio's logs cut to it, percentiles, the distribution."""

# The percents at which a distribution is told; enough to draw it, and no more than fio takes.
PERCENTS = (1, 5, *range(10, 100, 10), 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.99, 100)


def entries(text):
    """A fio log of one job, lines "MILLISECOND, NANOSECONDS, …": [(when it ended, its latency)]."""
    lines = (line.split(",", 2) for line in text.splitlines())
    return [(int(when), int(ns)) for when, ns, _ in lines]


def cut(jobs, begin_ns, end_ns):
    """(the latencies of each job's I/Os that ended in the window, whether all jobs ran through it).

    `jobs` has the entries of each. A log's time is in whole milliseconds, so the edges are, too.
    """
    begin, end = begin_ns // 1_000_000, end_ns // 1_000_000
    throughout = all(job and job[0][0] <= begin and job[-1][0] >= end for job in jobs)
    return [[ns for when, ns in job if begin <= when < end] for job in jobs], throughout


def percentile(ordered, percent):
    """The smallest of the `ordered` values that at least `percent` of them don't exceed."""
    # In whole hundredths of a percent, as 99.9 is no exact number.
    rank = -(-len(ordered) * round(percent * 100) // 10000)
    return ordered[max(rank, 1) - 1]


def distribution(values):
    """[[percent, value]], ascending."""
    ordered = sorted(values)
    return [[p, percentile(ordered, p)] for p in PERCENTS]


def at(told, percent):
    """The value at a percent that was told."""
    return dict(map(tuple, told))[percent]
