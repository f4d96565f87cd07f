# SPDX-License-Identifier: GPL-2.0
"""docs/examples: values.c and values.py keep values in an ordinary file, in the same format."""

import errno
import functools
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "docs/examples"
MOST = 4088
BEFORE = random.Random(1).randbytes(1000)
# The calls of a file whose reads and writes move three bytes at most, as those of a disk may end
# early; which is BUSY where one wants to write it, alone, or BROKEN when it is to be durable.
CALLS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOVE(name, number, data) \\
    ssize_t name(int fd, data, size_t count, off_t at) \\
    { return syscall(number, fd, p, count < 3 ? count : 3, at); }
MOVE(pread, SYS_pread64, void *p)
MOVE(pread64, SYS_pread64, void *p)
MOVE(pwrite, SYS_pwrite64, const void *p)
MOVE(pwrite64, SYS_pwrite64, const void *p)

static int fail(int with) { errno = with; return -1; }
int fdatasync(int fd) { return getenv("BROKEN") ? fail(EIO) : (int)syscall(SYS_fdatasync, fd); }

static int opened(const char *path, int flags, mode_t mode)
{
    if (getenv("BUSY") && (flags & O_ACCMODE) != O_RDONLY)
        return fail(flags & O_EXCL ? EBUSY : EINVAL);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open(const char *path, int flags, ...) { return opened(path, flags, 0600); }
int open64(const char *path, int flags, ...) { return opened(path, flags, 0600); }
"""


def log(*values, seed=b"12345678", magic=b"values 1"):
    """The bytes of a log, as both programs describe it."""
    data, total = b"", 0
    for value in (magic + seed, *values):
        body = struct.pack("<I", len(value)) + value
        total = zlib.crc32(body, total)
        data += struct.pack("<I", total) + body
    return data


def with_each(test):
    """Has `test` run with each program, and the other, and a file of what was there before."""
    @functools.wraps(test)
    def tests(self):
        for which, other in (("c", "py"), ("py", "c")):
            with self.subTest(program=which):
                self.file.write_bytes(BEFORE)
                test(self, which, other)
    return tests


class Values(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.file = cls.folder / "file"
        strict = ["gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-o"]
        subprocess.run([*strict, cls.folder / "values", EXAMPLES / "values.c"], check=True)
        (cls.folder / "calls.c").write_text(CALLS)
        calls = ["-shared", "-fPIC", cls.folder / "calls.c"]
        subprocess.run([*strict, cls.folder / "calls.so", *calls], check=True)
        cls.programs = {"c": [cls.folder / "values"],
                        "py": [sys.executable, "-B", EXAMPLES / "values.py"]}

    def run_one(self, which, *args, **env):
        """(status, stdout, stderr)."""
        done = subprocess.run([*self.programs[which], *args], env=os.environ | env,
                              capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def says(self, which, stdout, *args, **env):
        self.assertEqual(self.run_one(which, *args, **env), (0, stdout, ""))

    def refuses(self, which, why, *args, status=1, **env):
        """It says so, prints nothing else, and leaves the file as it is."""
        before = self.file.read_bytes()
        done, stdout, stderr = self.run_one(which, *args, **env)
        self.assertEqual((done, stdout), (status, ""), stderr)
        self.assertEqual(stderr.count("\n"), 1, stderr)
        self.assertIn(why, stderr)
        self.assertEqual(self.file.read_bytes(), before)

    def holds(self, *values):
        """The file is a log of these, and behind it as it was."""
        there = self.file.read_bytes()
        expected = log(*values, seed=there[16:24])
        self.assertEqual(there, expected + BEFORE[len(expected):])

    @with_each
    def test_what_is_in_the_file(self, which, _):
        self.says(which, "", "new", self.file)
        self.holds()
        self.says(which, "1\n2\n3\n", "put", self.file, "a", "", "bcd")
        self.holds(b"a", b"", b"bcd")
        self.says(which, "4\n", "put", self.file, "x" * 100)
        self.holds(b"a", b"", b"bcd", b"x" * 100)

    @with_each
    def test_a_seed_is_not_used_again(self, which, other):
        seeds = set()
        for program in (which, which, other):
            self.says(program, "", "new", self.file)
            seeds.add(self.file.read_bytes()[16:24])
        self.assertEqual(len(seeds), 3)

    @with_each
    def test_either_reads_what_the_other_wrote(self, which, other):
        self.says(which, "", "new", self.file)
        self.says(other, "1\n2\n", "put", self.file, "one", "")
        self.says(which, "3\n", "put", self.file, "drei \u2713")
        for program in (which, other):
            self.says(program, "one\n", "get", self.file, "1")
            self.says(program, "\n", "get", self.file, "2")
            self.says(program, "drei \u2713\n", "get", self.file, "3")

    @with_each
    def test_calls_that_move_less(self, which, _):
        calls = {"LD_PRELOAD": str(self.folder / "calls.so")}
        self.says(which, "", "new", self.file, **calls)
        self.says(which, "1\n2\n", "put", self.file, "some more", "y" * 50, **calls)
        self.holds(b"some more", b"y" * 50)
        self.says(which, "y" * 50 + "\n", "get", self.file, "2", **calls)

    @with_each
    def test_nothing_is_told_before_it_is_durable(self, which, _):
        broken = {"LD_PRELOAD": str(self.folder / "calls.so"), "BROKEN": "1"}
        status, stdout, stderr = self.run_one(which, "new", self.file, **broken)
        self.assertEqual((status, stdout), (1, ""))
        self.assertIn("can't be made durable", stderr)
        self.says(which, "", "new", self.file)
        status, stdout, stderr = self.run_one(which, "put", self.file, "a", **broken)
        self.assertEqual((status, stdout), (1, ""))
        self.assertIn("can't be made durable", stderr)

    @with_each
    def test_a_writer_is_alone_a_reader_is_not(self, which, _):
        busy = {"LD_PRELOAD": str(self.folder / "calls.so"), "BUSY": "1"}
        self.says(which, "", "new", self.file)
        self.says(which, "1\n", "put", self.file, "a")
        for args in (("new", self.file), ("put", self.file, "b")):
            self.refuses(which, os.strerror(errno.EBUSY), *args, **busy)
        self.says(which, "a\n", "get", self.file, "1", **busy)

    @with_each
    def test_no_log(self, which, _):
        damaged = log().replace(b"5", b"6")
        for there in (BEFORE, bytes(1000), b"", log()[:-1], log(magic=b"values 2"), damaged):
            self.file.write_bytes(there)
            self.refuses(which, f"{self.file} has no log", "get", self.file, "1")
            self.refuses(which, f"values new {self.file}", "put", self.file, "a")

    @with_each
    def test_a_number_that_is_not_there(self, which, _):
        self.file.write_bytes(log(b"a", b"b"))
        for number in ("0", "3", "x", "", "99999999999999999999999"):
            self.refuses(which, f"2 values, and no number {number}", "get", self.file, number)

    @with_each
    def test_a_record_that_was_cut_off(self, which, _):
        one, whole, after = log(b"one"), log(b"one", b"three"), log(b"one", b"two")
        for cut in (0, 1, 4, 8, 12):
            there = whole[:len(one) + cut]
            self.file.write_bytes(there + BEFORE[len(there):])
            self.refuses(which, "has 1 values", "get", self.file, "2")
            self.says(which, "2\n", "put", self.file, "two")
            self.assertEqual(self.file.read_bytes()[:len(after)], after)

    @with_each
    def test_damage_ends_the_log(self, which, _):
        whole = bytearray(log(b"one", b"two", b"three"))
        # A bit of the second's sum, length and value.
        for at in (35, 39, 44, 45):
            whole[at] ^= 1
            self.file.write_bytes(whole)
            self.refuses(which, "has 1 values", "get", self.file, "3")
            whole[at] ^= 1

    @with_each
    def test_an_older_log_does_not_come_back(self, which, other):
        self.says(which, "", "new", self.file)
        self.says(which, "1\n2\n", "put", self.file, "old 1", "old 2")
        self.says(other, "", "new", self.file)
        self.refuses(which, "has 0 values", "get", self.file, "1")
        self.says(which, "1\n", "put", self.file, "new 1")
        self.refuses(which, "has 1 values", "get", self.file, "2")

    @with_each
    def test_the_end_of_the_disk(self, which, _):
        empty, one = log(), log(b"abc")
        for left, fits in ((-1, False), (0, True), (1, True)):
            self.file.write_bytes(bytes(len(empty) + left))
            if fits:
                self.says(which, "", "new", self.file)
            else:
                self.refuses(which, f"{self.file} is full", "new", self.file)
            self.file.write_bytes(empty + bytes(len(one) - len(empty) + left))
            if fits:
                self.says(which, "1\n", "put", self.file, "abc")
                self.assertTrue(self.file.read_bytes().startswith(one))
                self.refuses(which, f"{self.file} is full", "put", self.file, "")
            else:
                self.refuses(which, f"{self.file} is full", "put", self.file, "abc")
        self.file.write_bytes(log() + bytes(8))
        self.says(which, "1\n", "put", self.file, "")
        self.says(which, "\n", "get", self.file, "1")

    @with_each
    def test_the_longest_value(self, which, other):
        longest = "z" * MOST
        self.file.write_bytes(log() + bytes(10000))
        self.says(which, "1\n", "put", self.file, longest)
        self.says(other, longest + "\n", "get", self.file, "1")
        self.refuses(which, f"{MOST} at most", "put", self.file, longest + "z")
        # One that is longer is no record, nor one that goes beyond the end, though its sum fits.
        self.file.write_bytes(log(b"z" * (MOST + 1)) + bytes(1000))
        self.refuses(which, "has 0 values", "get", self.file, "1")
        self.file.write_bytes(log(b"abc")[:-1])
        self.refuses(which, "has 0 values", "get", self.file, "1")

    @with_each
    def test_errors_name_the_file(self, which, _):
        missing = f"{self.folder}/missing"
        for args in (("new",), ("put", "a"), ("get", "1")):
            self.refuses(which, f"{missing} can't be opened", args[0], missing, *args[1:])
            self.assertFalse(os.path.exists(missing))

    @with_each
    def test_usage(self, which, _):
        for args in ((), ("new",), ("new", self.file, "a"), ("put", self.file), ("put",),
                     ("get", self.file), ("get", self.file, "1", "2"), ("no", self.file)):
            self.refuses(which, "usage", *args, status=2)


if __name__ == "__main__":
    unittest.main()
