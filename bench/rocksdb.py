# SPDX-License-Identifier: GPL-2.0
"""RocksDB as a program that is measured: db_bench of the lab's root, which tells operations a
second and their percentiles. Its database is made once, outside the guest, so that all sides read
the same bytes."""

import os
import re
import shutil
import subprocess

from errors import Failed
from group import Group

KEYS = 400_000
# Of those that fillrandom writes, into a database of its own.
FILLED = 100_000
# What db_bench may have with the page cache, which has an eighth of the database then: its block
# cache has 8 MiB of that.
MEMORY = 44 << 20
COMMON = ("db_bench", "--compression_type=none", "--value_size=400", "--key_size=16",
          "--open_files=-1", "--bloom_bits=10", "--cache_size=8388608", "--histogram",
          "--verify_checksum=true", "--stats_dump_period_sec=0")
# The clock is looked at after each tenth operation of a thread: db_bench's own is each thousandth.
READS = ("--use_existing_db=true", "--ops_between_duration_checks=10", "--seed=7")
# Bytes a second, by the machine's clock, that the thread writes beside those that read.
WRITING = 1 << 20


def loads():
    """{name: db_bench's options of it}."""
    found = {"rocksdb-fill": ["--benchmarks=fillrandom,waitforcompaction",
                              f"--num={FILLED}", "--write_buffer_size=8388608", "--seed=1"]}
    for threads in (1, 16, 64):
        for name, options in (("read", []), ("direct", ["--use_direct_reads=true"])):
            found[f"rocksdb-{name}-{threads}"] = [
                "--benchmarks=readrandom", "--readonly=true", *READS, *options,
                f"--threads={threads}"]
    # The last one, as it changes the database.
    found["rocksdb-while-writing-16"] = [
        "--benchmarks=readwhilewriting", *READS, "--threads=16",
        f"--benchmark_write_rate_limit={WRITING}"]
    return found


LOADS = loads()


def systems(name):
    """The file systems that the load is on: few threads are on one only, as they take as long."""
    return ("ext4",) if name.startswith(("rocksdb-read-1", "rocksdb-direct-1")) else ("ext4", "xfs")


def db_bench(words):
    """Its output; it is Failed if db_bench fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(words)}: status {done.returncode}: "
                     f"{(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def told(name, out):
    """What db_bench tells of the benchmark `name`, in the units of its clock."""
    rate = re.search(rf"^{name} *: .*?(\d+) ops/sec [\d.]+ seconds (\d+) operations", out, re.M)
    percents = re.search(r"^Percentiles: P50: ([\d.]+) .*\bP99: ([\d.]+) ", out, re.M)
    if not rate or not percents:
        raise Failed(f"db_bench told nothing of {name}: {out.strip()[-300:]}")
    found = re.search(rf"^{name} *: .*\((\d+) of (\d+) found\)", out, re.M)
    if found and found[1] != found[2]:
        raise Failed(f"db_bench's {name} found {found[1]} of {found[2]} keys")
    return {"operations_s": int(rate[1]), "operations": int(rate[2]),
            "p50_ns": float(percents[1]) * 1000, "p99_ns": float(percents[2]) * 1000}


def make(data, _programs):
    """Outside the guest: the database, in the folder."""
    db_bench([*COMMON, "--benchmarks=fillseq,compact,verifychecksum", f"--num={KEYS}",
              "--disable_wal=true", "--seed=1", f"--db={data}/rocksdb"])


class Program:
    """RocksDB on one side's file system."""

    def __init__(self, folder, data, _programs):
        self.path, self.filled = f"{folder}/rocksdb", f"{folder}/filled"
        shutil.copytree(f"{data}/rocksdb", self.path)

    def run(self, watch, name, seconds):
        """What is told of the load `name`."""
        fills = name == "rocksdb-fill"
        words = [*COMMON, *LOADS[name], f"--db={self.filled if fills else self.path}"]
        if not fills:
            words += [f"--num={KEYS}", f"--duration={seconds}"]
        group = Group("rocksdb")
        group.write("memory.max", "max" if fills else MEMORY)
        out, seen = watch.run(words, None if fills else seconds, group.join)
        benchmark = re.search("--benchmarks=([a-z]+)", " ".join(words))[1]
        row = {**told(benchmark, out), **seen}
        if fills:
            verify(self.filled, FILLED)
            shutil.rmtree(self.filled)
        return row

    def end(self):
        """Its data is what it should be."""
        verify(self.path, KEYS)


def verify(path, keys):
    """All blocks of the database have their checksums."""
    if not os.path.exists(path):
        raise Failed(f"there is no database {path}")
    out = db_bench([*COMMON, "--benchmarks=verifychecksum", "--use_existing_db=true",
                    "--readonly=true", f"--num={keys}", f"--db={path}"])
    if not re.search(r"^verifychecksum *:", out, re.M):
        raise Failed(f"db_bench did not verify {path}: {out.strip()[-300:]}")
