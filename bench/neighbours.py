# SPDX-License-Identifier: GPL-2.0
"""Threads that compute beside a load (bench/hog.c), and how fast they are alone."""

import contextlib
import os
import subprocess


class Neighbours:
    """One hog for each scheduling class of `classes`, until the block ends.

    The program lies in `folder`, in RAM; the files `counters` there tell their rounds.
    """

    def __init__(self, classes, folder):
        self.classes, self.folder = classes, folder
        self.counters = []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for n, name in enumerate(self.classes):
                counter = os.path.join(self.folder, f"hog.{n}")
                with open(counter, "wb") as file:
                    file.write(bytes(4096))
                hog = subprocess.Popen([os.path.join(self.folder, "hog"), counter, name])
                stack.callback(hog.wait)
                stack.callback(hog.kill)
                self.counters.append(counter)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *what):
        self.stack.close()


def share(rounds, elapsed_ns, alone_ns):
    """What the neighbours did in `elapsed_ns` over what one does alone, a round in `alone_ns`."""
    return rounds * alone_ns / elapsed_ns
