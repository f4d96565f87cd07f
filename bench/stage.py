# SPDX-License-Identifier: GPL-2.0
"""Where loads run inside a guest: fio, neighbours and meter together, and what they leave."""

import dataclasses
import glob
import os
import shutil
import subprocess

import account
import counting
import fio
import places
import window
from drives import HERE
from errors import Failed
from group import Group
from neighbours import Neighbours

# RAM: nothing in a measurement waits for the shared folder, which is the host's work.
WORK = "/dev/shm/timed"
# ns for which a neighbour is watched alone.
ALONE_NS = 300_000_000


class Stage:
    """The plugin's counter, the helpers in RAM, the pace of a neighbour that is alone."""

    def __init__(self, counts, costs):
        shutil.rmtree(WORK, ignore_errors=True)
        os.makedirs(WORK)
        for program in ("meter", "hog", "slice", "hybrid.so", "asker", "device.so",
                        "kvstore"):
            shutil.copy2(os.path.join(HERE, ".build", program), WORK)
        self.counter = counting.Counter(counts)
        self.counter.check()
        self.costs = costs
        self.alone_ns = 0
        self.blocks = []  # of the window just over, where the plugin counts by block

    def meter(self, options, files=("/proc/interrupts", "/proc/stat")):
        """bench/meter, which has begun to count."""
        self.counter.region += 1
        command = [f"{WORK}/meter", "-o", f"{WORK}/edge", "-r", str(self.counter.region)]
        started = subprocess.Popen([*command, *options, *files], stdout=subprocess.PIPE, text=True)
        if started.stdout.readline() != "ready\n":
            raise Failed(f"bench/meter did not start: status {started.wait()}")
        return started

    def window(self):
        """What meter and the plugin told of the window just over."""
        words, self.blocks = self.counter.result()
        edges = []
        for which in ("begin", "end"):
            with open(f"{WORK}/edge.{which}") as text:
                edges.append(account.edge(text.read()))
        return account.Window(*edges, words, self.costs)

    def pace(self):
        """The window of a neighbour that has a CPU to itself; notes how long a round takes it."""
        with Neighbours(("normal",), WORK) as hogs:
            meter = self.meter(["-n", str(ALONE_NS), "-c", hogs.counters[0]])
            if meter.wait():
                raise Failed(f"bench/meter ended with status {meter.returncode}")
        alone = self.window()
        if not alone.rounds:
            raise Failed("a neighbour that is alone made no progress")
        self.alone_ns = alone.elapsed / alone.rounds
        return alone

    def run(self, load, disks):
        """The load's window, and fio's own result of its jobs."""
        for old in glob.glob(f"{WORK}/io_*"):
            os.unlink(old)
        begin, end = load.window
        options = ["-f", str(begin), "-t", str(end)]
        for disk in disks[:load.disks]:
            options += ["-d", f"/sys/block/{disk}/stat"]
        said = f"{WORK}/fio.out", f"{WORK}/fio.err"
        group = limited(load, disks[0]) if load.memory else None
        with (Neighbours(load.neighbours, WORK) as hogs,
              places.elevator(load.elevator, disks[:load.disks]),
              places.place(load, disks[:load.disks], group) as where,
              open(said[0], "w") as out, open(said[1], "w") as err):
            for counter in hogs.counters:
                options += ["-c", counter]
            meter = self.meter(options)
            command = load.command(disks, WORK, where)
            running = subprocess.Popen(command, cwd=WORK, stdout=out, stderr=err,
                                       preexec_fn=group and group.join)
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
            if ended != meter.pid:  # the window did not come to its end
                meter.kill()
            running.wait()
            meter.wait()
            for disk in disks[:load.disks] if load.writes else ():
                flush(disk)
        texts = []
        for path in said:
            with open(path) as text:
                texts.append(text.read())
        what = f"{load.name} on {', '.join(disks)}"
        if running.returncode or meter.returncode:
            raise Failed(f"{what}: fio's status {running.returncode}, meter's {meter.returncode}: "
                         f"{texts[1].strip()[-500:]}")
        return self.window(), fio.told(texts[0], what)


def limited(load, disk):
    """The cgroup of a load whose memory is limited. What the load does not use of the disk has
    filled it, or else the load's own pages will."""
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")
    group = Group("load")
    group.write("memory.max", load.memory)
    if load.swaps:
        return group
    block = 1 << 20
    subprocess.run(["dd", f"if=/dev/{disk}", "of=/dev/null", f"bs={block}", "status=none",
                    f"skip={load.region // block}",
                    f"count={load.memory // block}"], preexec_fn=group.join, check=True)
    return group


def flush(disk):
    """Has the drive flush what was written.

    A drive that is shut down with something to flush has its CPU wait for it, so the machine's
    clock stands and the flush takes for ever.
    """
    file = os.open(f"/dev/{disk}", os.O_RDWR)
    os.fsync(file)
    os.close(file)


@dataclasses.dataclass(frozen=True)
class Latencies:
    """How long a load's I/Os took that ended in a window."""

    told: list        # [[percent, ns]]
    mean: float       # ns
    least: int        # I/Os of the job that did the fewest
    throughout: bool  # whether all jobs ran from the window's begin to its end


def latencies(load, seen, jobs):
    """The Latencies of the load just run, in the window `seen`."""
    if load.syncs:
        # The whole run counts: they are one job's, or as good as that.
        what = "write" if load.dirties else "sync"
        of = fio.TOLD[what]
        told = jobs[0][what]
        percentiles = fio.percentiles(told, window.PERCENTS, of)
        pairs = [list(pair) for pair in zip(window.PERCENTS, percentiles)]
        return Latencies(pairs, told[of]["mean"], told["total_ios"], True)
    logs = []
    for path in glob.glob(f"{WORK}/io_lat.*.log"):
        with open(path) as text:
            logs.append(window.entries(text.read()))
    if len(logs) != load.jobs * load.targets:
        raise Failed(f"{load.name}: fio left {len(logs)} logs of {load.jobs * load.targets} jobs")
    inside, throughout = window.cut(logs, seen.begin.clock, seen.end.clock)
    values = [ns for job in inside for ns in job]
    if not values:
        raise Failed(f"{load.name}: no I/O ended in the window")
    mean = sum(values) / len(values)
    return Latencies(window.distribution(values), mean, min(map(len, inside)), throughout)
