# SPDX-License-Identifier: GPL-2.0
"""One read, file by file: which files a way has, and when the page's table is wrong."""

import os
import re
import tempfile
import unittest
from unittest import mock

import read_path
from errors import Failed

TEXT = """
0000000000000000 <queue_rq>:
/build/src/rust/kglue/blk/ops.rs:10
   0:	48 89 df             	mov    %rbx,%rdi
   3:	e8 00 00 00 00       	call   8 <queue_rq+0x8>	4: R_X86_64_PLT32	submit-0x4
/build/src/rust/library/core/src/option.rs:5 (inlined by) /build/src/rust/hal/tag.rs:7
   8:	e8 00 00 00 00       	call   d <queue_rq+0xd>	9: R_X86_64_PC32	.text+0x3c
   d:	c3                   	ret

0000000000000020 <submit>:
/build/src/rust/engine/submit.rs:3
  20:	c3                   	ret

0000000000000040 <leave>:
/build/src/rust/kernel/cpu.rs:3
/build/src/c_shims/blk.c:9
  40:	eb de                	jmp    20 <submit>
"""


class Functions(unittest.TestCase):
    def found(self):
        done = mock.Mock(stdout=TEXT)
        with mock.patch("subprocess.run", return_value=done):
            return read_path.functions("hiops.ko")

    def test_files_of_each_instruction(self):
        files = self.found()["queue_rq"].files
        self.assertEqual(files[0], {"rust/kglue/blk/ops.rs"})
        self.assertEqual(files[8], {"rust/hal/tag.rs"}, "not those of other crates")
        self.assertEqual(self.found()["leave"].files[0], {"c_shims/blk.c"})

    def test_calls_by_name_and_by_place(self):
        found = self.found()
        self.assertEqual(found["queue_rq"].calls, {3: "submit", 8: 0x40})
        self.assertEqual(found["leave"].calls, {0: "submit"})


class Ways(unittest.TestCase):
    def test_a_timer_is_on_no_reads_way(self):
        read = read_path.Read.__new__(read_path.Read)
        read.plain = {"q": "<kglue::blk::ops::Ops<hiops::nvme::Nvme, Bus>>::queue_rq",
                      "i": "kglue::irq::handle", "w": "hiops_redirect",
                      "t": "<kglue::wait::sleepers::Sleepers as CoarseExpired>::coarse_expired"}
        read.files = {name: {f"rust/{name}.rs"} for name in read.plain}
        read.calls = {name: set() for name in read.plain}
        ways = read.ways()
        self.assertEqual(ways["back"], {"rust/q.rs", "rust/i.rs"})
        self.assertEqual(ways["wait"], {"rust/q.rs", "rust/i.rs", "rust/w.rs"})


class Page(unittest.TestCase):
    WAYS = {"down": {"rust/a.rs"}, "back": {"rust/a.rs", "c_shims/b.c"},
            "wait": {"rust/a.rs", "c_shims/b.c"}}

    def run_on(self, text, ways=None, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w") as page:
                page.write(text)
            args = mock.Mock(write=None, check=None, profile="", module="")
            for name in options:
                setattr(args, name, path)
            with mock.patch.object(read_path, "Read") as read:
                read.return_value.ways.return_value = ways or self.WAYS
                read_path.run(args)
            with open(path) as page:
                return page.read()

    def test_what_is_written_is_up_to_date(self):
        empty = "before\n<!-- read path -->\n<!-- end -->\nafter\n"
        written = self.run_on(empty, write=True)
        self.assertTrue(re.search(r"before\n(.|\n)*a\.rs(.|\n)*after\n$", written))
        self.assertEqual(self.run_on(written, check=True), written)

    def test_another_table_or_no_place_for_it(self):
        for text in ("<!-- read path -->\nold\n<!-- end -->\n", "nothing"):
            with self.assertRaises(Failed):
                self.run_on(text, check=True)

    def test_too_long_a_way(self):
        ways = dict(self.WAYS, down={f"rust/{n}.rs" for n in range(read_path.MOST["down"] + 1)})
        ways["back"] = ways["wait"] = ways["down"]
        written = self.run_on("<!-- read path -->\n<!-- end -->\n", ways, write=True)
        with self.assertRaisesRegex(Failed, "at most"):
            self.run_on(written, ways, check=True)

