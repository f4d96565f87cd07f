# SPDX-License-Identifier: GPL-2.0
"""What happened between the two edges of a window: bench/meter's readings, CPU time, counts.

CPU time is counted, not sampled. On the timed machine an instruction takes 1 ns, and what takes
time without instructions (a register's read or write, an interrupt) takes what the model says. So
the CPU time of a window is the instructions of all CPUs but the idle tasks', plus those costs, less
what the neighbours computed and what meter itself took.
"""

import dataclasses

import counting


@dataclasses.dataclass(frozen=True)
class Costs:
    """ns that pass without an instruction: for a register's read, its write, an interrupt."""

    read: int = 0
    write: int = 0
    interrupt: int = 0


@dataclasses.dataclass(frozen=True)
class Edge:
    """One edge of a window."""

    clock: int     # ns
    own: int       # meter's own CPU time, ns
    sectors: int   # moved since the boot, on all disks that it looks at
    rounds: tuple  # of each neighbour
    files: str     # what was read of /proc


def edge(text):
    """The edge that bench/meter wrote."""
    head, _, files = text.partition("\n\n")
    numbers = {"clock": [], "self": [], "sectors": [], "rounds": []}
    for line in head.splitlines():
        name, value = line.split()
        numbers[name].append(int(value))
    clock, own, sectors = (numbers[name][0] for name in ("clock", "self", "sectors"))
    return Edge(clock, own, sectors, tuple(numbers["rounds"]), files)


class Window:
    """Two edges, and the plugin's `words` for the region between them."""

    def __init__(self, begin, end, words, costs):
        self.begin, self.end = begin, end
        self.elapsed = end.clock - begin.clock
        self.sectors = end.sectors - begin.sectors
        self.rounds = sum(end.rounds) - sum(begin.rounds)
        self.words, self.costs = words, costs

    def between(self, value):
        """By how much value(text of the files) grew."""
        return value(self.end.files) - value(self.begin.files)

    @property
    def switches(self):
        """Switches of tasks, of all CPUs."""
        return self.between(lambda text: counting.text_value(text, "ctxt"))

    @property
    def all_interrupts(self):
        """Of all CPUs and sources, the timers' too."""
        return self.between(lambda text: counting.text_value(text, "intr", first=True))

    @property
    def registers(self):
        """(reads, writes) of the drives' registers."""
        return counting.registers(self.words)

    @property
    def busy(self):
        """CPU time in ns of everything but the idle tasks, of all CPUs."""
        kernel, user, idle = (int(self.words[name]) for name in ("kernel", "user", "idle"))
        reads, writes = self.registers
        return (kernel + user - idle + reads * self.costs.read + writes * self.costs.write
                + self.all_interrupts * self.costs.interrupt)

    def for_io(self, alone_ns):
        """CPU time in ns for the load, where a round of a neighbour takes `alone_ns`."""
        return self.busy - self.rounds * alone_ns - (self.end.own - self.begin.own)
