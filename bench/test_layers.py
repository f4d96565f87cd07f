# SPDX-License-Identifier: GPL-2.0
"""The table of layers: which function is of which, what is added up, what boots the machine."""

import unittest

import layers
import loads
import models

OF = {"(user space)": "the program", "nvme_queue_rq [nvme]": "driver",
      "ahci_qc_issue [libahci]": "driver",
      "<engine[68]::queue::IoQueue<kglue[88]::P>>::submit [hiops]": "driver",
      "ata_scsi_queuecmd [libata]": "libata, SCSI", "scsi_queue_rq [scsi_mod]": "libata, SCSI",
      "sd_init_command [sd_mod]": "libata, SCSI",
      "hiops_wait_wanted [hiops]": "hook of the wait",
      "ftrace_trampoline [__builtin__ftrace]": "hook of the wait", "blk_mq_submit_bio": "block",
      "__blkdev_direct_IO_simple": "block", "bio_endio": "block",
      "sbitmap_get": "block", "gup_fast_fallback": "memory", "dma_direct_map_phys": "memory",
      "iov_iter_extract_pages": "memory", "kmem_cache_alloc_noprof": "memory",
      "vfs_read": "system call, file", "__x64_sys_pread64": "system call, file",
      "do_syscall_64": "system call, file", "io_issue_sqe": "io_uring", "io_read": "io_uring",
      "io_schedule": "scheduler, timers, idle", "io_schedule_timeout": "scheduler, timers, idle",
      "__schedule": "scheduler, timers, idle", "hrtimer_interrupt": "scheduler, timers, idle",
      "_raw_spin_lock": "locks, RCU", "__rcu_read_lock": "locks, RCU",
      "asm_common_interrupt": "interrupt's entry", "handle_edge_irq": "interrupt's entry"}


def row(side, load="bytes-512-1", **insns):
    names = {"program": "(user space)", "driver": "x [hiops]", "block": "bio_endio",
             "sched": "do_idle"}
    return {"load": load, "side": side, "cpu_ns": 0, "idle_ns": 0, "device_ns": 400,
            "functions": {names[key]: ns for key, ns in insns.items()}}


def result():
    rows = [row(side, load, program=800, driver=400, block=block, sched=4000)
            for load in layers.LOADS for side, block in (("nvme", 1200), ("bytes", 0))]
    return {"model": "m", "device": "a drive", "scale": 4, "rows": rows}


class Layers(unittest.TestCase):
    def test_functions(self):
        for function, layer in OF.items():
            with self.subTest(function=function):
                self.assertEqual(layers.layer_of(function), layer)

    def test_what_is_apart_is_a_layer(self):
        self.assertLessEqual(set(layers.APART), {*layers.LAYERS, layers.DEVICE})
        self.assertLessEqual({*layers.MODULES.values(), *layers.NAMES_OF}, set(layers.LAYERS))

    def test_the_path_is_without_fio_scheduler_and_device(self):
        self.assertEqual(layers.path(layers.by_layer(
            row("nvme", program=800, driver=400, block=1200, sched=4000))), 1600)

    def test_tables_in_real_ns(self):
        (_, header, lines), _ = layers.tables(result())
        told = {name: cells for name, *cells in lines}
        self.assertEqual(header[1:], ["nvme", "hiops' bytes"])
        self.assertEqual(told["**the path**"], ["400", "100"])
        self.assertEqual(told["over nvme's"], ["1.00", "0.25"])
        self.assertEqual(told["all, with idle time"], ["1,700", "1,400"])
        self.assertIn("| driver | 100 | 100 |", layers.markdown(result()))


class Boot(unittest.TestCase):
    def test_loads_and_sides_are_there(self):
        for load, side in layers.WAYS:
            self.assertIn(load, loads.KNOWN)
            self.assertIn(side, layers.SIDES)

    def test_blocks_are_counted(self):
        words = layers.command(models.load("tlc"), "/a,b")
        plugin = next(word for word in words if word.startswith("-plugin"))
        self.assertIn(",profile=on,out=/a,,b/counts'", plugin)
        self.assertEqual(sum("driver=null-co" in word for word in words), len(layers.SIDES))
