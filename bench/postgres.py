# SPDX-License-Identifier: GPL-2.0
"""PostgreSQL as a program that is measured: Debian's, asked by its own pgbench, whose transactions
a second count, and of whose log the percentiles are. Its cluster is made once, outside the guest,
so that all sides have the same."""

import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess

import client
import window
from errors import Failed
from group import Group

# Tables of 256 MiB, with an index of 43 MiB: more than there is memory for.
SCALE = 20
# Bytes of page cache, beside PostgreSQL's own 16 MiB.
CACHE = 32 << 20
# It does not run as root.
NOBODY = 65534
DATABASE = "postgres"
# Nothing that begins by itself disturbs a run: no vacuum, no checkpoint but the last one.
SETTINGS = ("listen_addresses=", "shared_buffers=16MB", "autovacuum=off", "jit=off",
            "checkpoint_timeout=1h", "max_wal_size=4GB", "huge_pages=off", "log_checkpoints=off")
# Of the cluster's making alone: what is loaded is not logged too.
MAKING = ("fsync=off", "wal_level=minimal", "max_wal_senders=0", "max_wal_size=128MB")
SCRIPTS = {"select": ["--select-only"], "tpcb": []}
LOADS = {f"pgbench-{script}-{clients}": (options, clients)
         for script, options in SCRIPTS.items() for clients in (1, 16, 64)}
# What of a transaction's sum of TPC-B is where; all of it is the same number.
SUMS = ("select sum(abalance) from pgbench_accounts", "select sum(bbalance) from pgbench_branches",
        "select sum(tbalance) from pgbench_tellers",
        "select coalesce(sum(delta), 0) from pgbench_history")


def systems(_name):
    """The file systems that a load is on."""
    return ("ext4",)


class Server:
    """PostgreSQL on the cluster in a folder."""

    def __init__(self, programs, cluster, settings=(), join=None):
        self.binaries = glob.glob(f"{programs}/usr/lib/postgresql/*/bin")[0]
        self.env = {**os.environ, "LD_LIBRARY_PATH": f"{programs}/usr/lib/x86_64-linux-gnu"}
        # The name of a socket has to be short.
        self.socket = "/run/postgresql"
        os.makedirs(self.socket, exist_ok=True)
        os.chown(self.socket, NOBODY, NOBODY)
        words = [word for one in (*SETTINGS, *settings) for word in ("-c", one)]
        self.log = open(f"{self.socket}/log", "w+")
        self.process = subprocess.Popen(
            as_nobody(self.binaries, "postgres", "-D", cluster, "-k", self.socket, *words),
            env=self.env, stdout=self.log, stderr=subprocess.STDOUT, preexec_fn=join)
        client.until("PostgreSQL's start", lambda: is_ready(cluster) or self.ended())

    def ended(self):
        """Whether it is over, which is a failure."""
        if self.process.poll() is not None:
            self.log.seek(0)
            raise Failed(f"PostgreSQL ended with status {self.process.returncode}: "
                         f"{self.log.read().strip()[-500:]}")
        return False

    def words(self, tool, *words):
        """The command of one of its tools."""
        return [f"{self.binaries}/{tool}", "--host", self.socket, "--username", DATABASE, *words,
                DATABASE]

    def run(self, tool, *words):
        """What the tool says on stdout."""
        return said(self.words(tool, *words), self.env)

    def end(self):
        """Ends it, with a checkpoint."""
        self.ended()
        self.process.send_signal(signal.SIGINT)
        if self.process.wait():
            raise Failed(f"PostgreSQL ended with status {self.process.returncode}")
        self.log.close()


def as_nobody(binaries, tool, *words):
    """The command of the tool as a user who is not root."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
            f"{binaries}/{tool}", *words]


def said(words, env):
    """The command's stdout; it is Failed if the command fails."""
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(words)}: status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def is_ready(cluster):
    """Whether its server says that it is."""
    with contextlib.suppress(FileNotFoundError):
        with open(f"{cluster}/postmaster.pid", encoding="ascii") as text:
            return text.read().rstrip().endswith("ready")
    return False


def make(data, programs):
    """Outside the guest: the cluster, as a file of tar's in the folder."""
    # Where somebody who is not root comes to; in RAM, as there is no need for more.
    home = f"/dev/shm/hiops-postgres-{os.getpid()}"
    try:
        os.makedirs(f"{home}/data")
        os.chown(f"{home}/data", NOBODY, NOBODY)
        copy, cluster = f"{home}/programs", f"{home}/data/postgres"
        shutil.copytree(programs, copy, symlinks=True)
        binaries = glob.glob(f"{copy}/usr/lib/postgresql/*/bin")[0]
        env = {**os.environ, "LD_LIBRARY_PATH": f"{copy}/usr/lib/x86_64-linux-gnu"}
        said(as_nobody(binaries, "initdb", "--no-locale", "--encoding=UTF8", "--auth=trust",
                       f"--username={DATABASE}", "--no-sync", "-D", cluster), env)
        server = Server(copy, cluster, MAKING)
        server.run("pgbench", "--initialize", "--quiet", f"--scale={SCALE}")
        server.end()
        said(["tar", "-C", f"{home}/data", "-cf", f"{data}/postgres.tar", "postgres"], env)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def told(out):
    """Transactions a second, and how many, by pgbench's words."""
    rate = re.search(r"^tps = ([\d.]+) ", out, re.M)
    done = re.search(r"^number of transactions actually processed: (\d+)", out, re.M)
    failed = re.search(r"^number of failed transactions: (\d+)", out, re.M)
    if not rate or not done or not failed:
        raise Failed(f"pgbench told no rate: {out.strip()[-300:]}")
    if int(failed[1]):
        raise Failed(f"{failed[1]} of pgbench's transactions failed")
    return {"operations_s": float(rate[1]), "operations": int(done[1])}


def percentiles(text):
    """Those of the transactions in pgbench's log, whose third number are the microseconds."""
    times = sorted(int(line.split()[2]) for line in text.splitlines())
    if not times:
        raise Failed("pgbench's log is empty")
    return {key: window.percentile(times, percent) * 1000
            for key, percent in (("p50_ns", 50), ("p99_ns", 99))}


class Program:
    """PostgreSQL on one side's file system."""

    def __init__(self, folder, data, programs):
        self.cluster, self.programs = f"{folder}/postgres", programs
        said(["tar", "-C", folder, "-xf", f"{data}/postgres.tar"], os.environ)

    def run(self, watch, name, seconds):
        """What is told of the load `name`. Each has a server of its own: the page cache that it
        may have is told when all clients have begun, by what it has beside it then."""
        script, clients = LOADS[name]
        group = Group("postgres")
        server = Server(self.programs, self.cluster, join=group.join)
        log = f"{server.socket}/transactions"
        words = server.words("pgbench", "--no-vacuum", *script, "--protocol=prepared",
                             f"--client={clients}", f"--time={seconds}", "--log",
                             f"--log-prefix={log}")

        def begun():
            paths = glob.glob(f"{log}.*")
            if not paths or not os.path.getsize(paths[0]):
                return False
            group.limit(CACHE)
            return True

        out, seen = watch.run(words, seconds, env=server.env, begun=begun)
        path, = glob.glob(f"{log}.*")
        with open(path, encoding="ascii") as text:
            row = {**told(out), **percentiles(text.read()), **seen}
        os.unlink(path)
        group.write("memory.high", "max")
        server.end()
        return row

    def end(self):
        """All sums of TPC-B are the same."""
        server = Server(self.programs, self.cluster)
        sums = server.run("psql", "-Atc", "; ".join(SUMS)).split()
        server.end()
        if len(set(sums)) != 1 or len(sums) != len(SUMS):
            raise Failed(f"PostgreSQL's sums of a balance differ: {' '.join(sums)}")
