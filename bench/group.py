# SPDX-License-Identifier: GPL-2.0
"""A cgroup of a program's own, as a service has: what memory it may have, with page cache."""

import os
import subprocess

import sides

GROUPS = "/run/groups"


class Group:
    """The cgroup `name`, without any limit at first."""

    def __init__(self, name):
        if not os.path.ismount(GROUPS):
            os.makedirs(GROUPS, exist_ok=True)
            subprocess.run(["mount", "-t", "cgroup2", "none", GROUPS], check=True)
            sides.put(f"{GROUPS}/cgroup.subtree_control", "+memory", "memory")
        self.path = f"{GROUPS}/{name}"
        os.makedirs(self.path, exist_ok=True)
        self.write("memory.high", "max")

    def write(self, name, value):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as file:
            file.write(str(value))

    def join(self):
        """The process that calls this is in it."""
        self.write("cgroup.procs", os.getpid())

    def limit(self, cache):
        """Its memory is what it has now, and so many bytes of page cache: more is reclaimed. As a
        limit it would have a program killed of which many threads read ahead at once. Memory that
        processes share counts as a file's, and stays."""
        with open(f"{self.path}/memory.stat", encoding="ascii") as text:
            stat = dict(map(str.split, text))
            has = int(stat["file"]) - int(stat["shmem"])
        with open(f"{self.path}/memory.current", encoding="ascii") as text:
            self.write("memory.high", int(text.read()) - has + cache)
