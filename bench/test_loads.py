# SPDX-License-Identifier: GPL-2.0
"""The loads of the matrix: names, sizes, what fio is told."""

import unittest

import loads
from errors import Wrong
from loads import LOADS


class Chosen(unittest.TestCase):
    def test_none_is_all(self):
        self.assertEqual(len(loads.chosen("")), len(LOADS))

    def test_in_the_order_told(self):
        names = ["uring-32", "psync-1+hog"]
        self.assertEqual([load.name for load in loads.chosen(",".join(names))], names)

    def test_what_is_no_part_of_the_matrix_is_asked_for(self):
        self.assertNotIn("iopoll-1", [load.name for load in loads.chosen("")])
        self.assertEqual([load.name for load in loads.chosen("hybrid-1")], ["hybrid-1"])

    def test_unknown_is_named_and_the_known_listed(self):
        with self.assertRaises(Wrong) as what:
            loads.chosen("psync-1,psync-7")
        self.assertIn("psync-7;", str(what.exception))
        self.assertIn("uring-4x32", str(what.exception))
        self.assertIn("few", str(what.exception))

    def test_a_set_stands_for_its_loads(self):
        names = [load.name for load in loads.chosen("few,uring-32")]
        self.assertEqual(names, ["psync-1", "psync-2", "psync-3", "psync-4", "psync-8", "uring-1",
                                 "uring-2", "uring-4", "uring-5", "uring-6", "uring-8",
                                 "uring-32"])

    def test_what_is_asked_of_a_fast_drive_is_of_the_matrix(self):
        for name in ("psync-3", "uring-2", "uring-4", "uring-5", "uring-6", "uring-64",
                     "uring-64+hog2", "psync-8+hog3"):
            self.assertIn(name, LOADS)


class Sizes(unittest.TestCase):
    def test_the_window_has_enough_of_each_job(self):
        for load in LOADS.values():
            with self.subTest(load=load.name):
                begin, end = load.window
                self.assertLess(begin, end)
                least = loads.LEAST * load.jobs * load.disks
                self.assertGreaterEqual((end - begin) * loads.SECTOR, least * loads.BLOCK)

    def test_more_in_flight_more_in_all(self):
        found = [LOADS[name].ios for name in ("psync-1", "uring-8", "uring-32", "uring-128")]
        self.assertEqual(found, [8000, 32000, 32000, 32000])
        self.assertEqual(LOADS["psync-1+hog"].ios, 8000)
        self.assertEqual(LOADS["uring-32+nicehog"].ios, 32000)

    def test_names_are_their_keys(self):
        for name, load in LOADS.items():
            self.assertEqual(name, load.name)

    def test_neighbours(self):
        self.assertEqual(LOADS["psync-1"].neighbours, ())
        self.assertEqual(LOADS["psync-1+hog2"].neighbours, ("normal", "normal"))
        self.assertEqual(LOADS["psync-16+idlehog"].neighbours, ("idle",))
        self.assertEqual(LOADS["psync-8+hog3"].neighbours, ("normal",) * 3)


    def test_a_part_of_a_block_counts_as_the_block(self):
        part, whole = loads.KNOWN["bytes-128of4096-16"], loads.KNOWN["bytes-4096-16"]
        self.assertEqual((part.block, part.counted, whole.counted), (128, 4096, 4096))
        self.assertEqual(part.window, whole.window)


    def test_a_file_is_eight_times_the_memory_and_what_it_has_is_not_moved(self):
        cold, fault = loads.KNOWN["cold-64"], loads.KNOWN["fault-64"]
        self.assertEqual((cold.region, fault.region), (8 * cold.memory,) * 2)
        self.assertGreater(fault.memory, cold.memory)
        moved = cold.jobs * cold.ios * 8 * 7 // 8
        self.assertEqual((cold.window, fault.window), ((int(moved * 0.15), int(moved * 0.8)),) * 2)


class Fio(unittest.TestCase):
    def test_passthrough_is_by_the_disk_s_other_node(self):
        load = loads.KNOWN["bytes-passthru-512-128"]
        told = load.section(0, "nvme0n1", {"ioengine": "io_uring", "bs": 512},
                            size=lambda disk: 4096)
        self.assertIn("--filename=/dev/ng0n1", told)
        self.assertIn("--ioengine=io_uring_cmd", told)
        ours = load.section(0, "hiops0n1", {"ioengine": "io_uring", "bs": 512},
                            size=lambda disk: 4096, has=lambda path: path == "/dev/hiops0n1_bytes")
        self.assertIn("--filename=/dev/hiops0n1_bytes", ours)
        self.assertIn("--ioengine=io_uring", ours)

    def test_a_section_a_disk(self):
        told = LOADS["two-disks-16"].fio(["a", "b", "c"], "/x/io")
        self.assertEqual([word for word in told if word.startswith("--filename")],
                         ["--filename=/dev/a", "--filename=/dev/b"])
        self.assertEqual(told.count("--numjobs=16"), 2)

    def test_only_depth_and_mix_where_they_belong(self):
        self.assertIn("--iodepth=32", LOADS["uring-4x32"].fio(["a"], "l"))
        self.assertNotIn("--iodepth=1", LOADS["psync-1"].fio(["a"], "l"))
        self.assertIn("--rwmixread=70", LOADS["mix-16+hog"].fio(["a"], "l"))

    def test_who_polls_says_so(self):
        self.assertIn("--hipri", loads.KNOWN["iopoll-1"].fio(["a"], "l"))
        self.assertNotIn("--hipri", LOADS["uring-1"].fio(["a"], "l"))
        hybrid = loads.KNOWN["hybrid-1"]
        self.assertEqual(hybrid.command(["a"], "/x"),
                         ["env", "LD_PRELOAD=/x/hybrid.so", *hybrid.fio(["a"], "/x/io")])

    def test_a_short_slice_is_the_readers(self):
        short, long = loads.KNOWN["psync-1+shorthog"], LOADS["psync-1+hog"]
        told = short.fio(["a"], "/x/io")
        self.assertEqual(short.command(["a"], "/x"), ["/x/slice", "100000", *told])
        self.assertEqual(long.command(["a"], "/x"), told)

    def test_who_goes_through_the_page_cache_finds_it_full(self):
        told = loads.KNOWN["cold-16"].fio(["a"], "l")
        self.assertEqual({"--direct=0", "--invalidate=0", "--size=1073741824"} - set(told), set())
        self.assertIn("--direct=1", LOADS["psync-16"].fio(["a"], "l"))

    def test_who_goes_in_order_has_a_part_of_its_own(self):
        told = loads.KNOWN["paging-16"].section(0, "a", {}, size=lambda disk: 1 << 30)
        self.assertIn("--offset_increment=67108864", told)
        self.assertIn("--size=67108864", told)
        for alone in ("paging-1", "oltp70-16"):
            told = loads.KNOWN[alone].section(0, "a", {}, size=lambda disk: 1 << 30)
            self.assertFalse([word for word in told if "offset" in word])

    def test_files_are_the_file_system_s(self):
        load = loads.KNOWN["fsync-ext4-16"]
        told = load.fio(["a"], "l", [{"filename": None, "directory": "/f"}])
        wanted = {"--directory=/f", "--fsync=1", "--fallocate=none", f"--size={load.ios * 4096}"}
        self.assertEqual(wanted - set(told), set())
        self.assertFalse([word for word in told if word.startswith("--filename")])

    def test_two_disks_may_be_one_device(self):
        told = loads.KNOWN["raid1-16"].fio(["a", "b"], "l", [{"filename": "/dev/md100"}])
        self.assertEqual([word for word in told if word.startswith("--filename")],
                         ["--filename=/dev/md100"])

    def test_all_that_is_dirty_is_written_at_the_end(self):
        told = loads.KNOWN["dirty"].fio(["a"], "l")
        self.assertIn("--end_fsync=1", told)
        self.assertFalse([word for word in told if word.startswith("--fsync")])

    def test_the_shares_of_reads(self):
        shares = {"mix-16": 70, "oltp7-16": 7, "oltp70-64": 70, "messaging-1": 67}
        for name, share in shares.items():
            self.assertIn(f"--rwmixread={share}", loads.KNOWN[name].fio(["a"], "l"))

    def test_buffered_writes_sync_and_have_no_log(self):
        told = LOADS["write-fsync"].fio(["a"], "/x/io")
        self.assertIn("--direct=0", told)
        self.assertIn("--fsync=16", told)
        self.assertFalse([w for w in told if "log" in w])
