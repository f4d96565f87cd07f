# SPDX-License-Identifier: GPL-2.0
"""fio: the one place where its jobs are put into words, and where what it told is read."""

import itertools
import json
import subprocess

from errors import Failed


# What of its latencies it tells percentiles of.
TOLD = {"read": "clat_ns", "write": "clat_ns", "sync": "lat_ns"}


def section(name, where, **options):
    """A job `name` on the file or disk `where`, or on files of its own (None), with these options
    of fio's.

    One that is True stands alone; None and False stand for none.
    """
    options = {"filename": where, **options}
    words = [f"--name={name}"]
    for key, value in options.items():
        if value is True:
            words.append(f"--{key}")
        elif value is not None and value is not False:
            words.append(f"--{key}={value}")
    return words


def percent_list(percents):
    """The option's value that has fio tell these percentiles."""
    return ":".join(map(str, percents))


def command(*sections):
    """The words of a run of these jobs, or of job files."""
    return ["fio", "--output-format=json", *itertools.chain(*sections)]


def told(text, what):
    """fio's jobs in what it wrote, none of which failed; `what` says of which run, if one did."""
    try:
        jobs = json.loads(text[text.index("{"):])["jobs"]
    except (ValueError, KeyError) as why:
        raise Failed(f"{what}: fio told no result: {text.strip()[-300:]}") from why
    for job in jobs:
        if job["error"]:
            raise Failed(f"{what}: fio's error {job['error']}")
    return jobs


def run(words, what):
    """Runs it: its jobs."""
    # Where it may leave its files.
    done = subprocess.run(words, cwd="/tmp", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode:
        raise Failed(f"{what}: fio's status {done.returncode}: {done.stderr.strip()[-300:]}")
    return told(done.stdout, what)


def iops(jobs, way="read"):
    """The sum of the jobs' IOPS, each over its own time; one group is one job."""
    return sum(job[way]["iops"] for job in jobs)


def percentiles(way, percents, of="clat_ns"):
    """ns at those percents, which it was asked for, of a job's "read", "write" or "sync"; exact to
    1.6 %."""
    return [way[of]["percentile"][f"{percent:.6f}"] for percent in percents]
