# SPDX-License-Identifier: GPL-2.0
"""How a program is run inside a guest while the machine is looked at, with nothing in the page
cache at first."""

import subprocess

import client
from errors import Failed
from stage import WORK

# Where in a run of so many seconds the window begins in which it is looked at, and how long that
# is.
BEGINS, LASTS = 0.3, 0.5
FILES = "/proc/interrupts", "/proc/stat", "/proc/diskstats"


class Watch:
    """What is looked at: the machine and one side's disk."""

    def __init__(self, stage, side):
        self.stage, self.side = stage, side

    def window(self, seconds):
        """What a second has in the midst of a run of so many, by the machine's clock: the CPU time
        of all in seconds, reads of the disk, switches, interrupts."""
        meter = self.stage.meter(["-w", str(int(seconds * BEGINS * 1e9)),
                                  "-n", str(int(seconds * LASTS * 1e9))], FILES)
        if meter.wait():
            raise Failed(f"bench/meter ended with status {meter.returncode}")
        seen = self.stage.window()
        of_disk = seen.between(lambda text: client.reads_of(self.side.disks[0], text))
        counts = {"busy": seen.for_io(0), "reads": of_disk * 1e9, "switches": seen.switches * 1e9,
                  "interrupts": seen.all_interrupts * 1e9}
        return {key: value / seen.elapsed for key, value in counts.items()}

    def run(self, words, seconds=None, join=None, env=None, begun=None):
        """(the program's output, its window, if it takes so many `seconds`). A program that does
        its work only when begun() says so is looked at from then on."""
        forget()
        with open(f"{WORK}/out", "w+") as out:
            running = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT,
                                       preexec_fn=join, env=env, cwd=WORK)
            if begun:
                client.until(f"{words[0]}'s begin", lambda: begun() or running.poll() is not None)
            seen = self.window(seconds) if seconds else {}
            status = running.wait()
            out.seek(0)
            text = out.read()
        if status:
            raise Failed(f"{' '.join(words)}: status {status}: {text.strip()[-500:]}")
        return text, seen


def forget():
    """Nothing is in the page cache afterwards."""
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")
