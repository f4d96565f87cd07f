# SPDX-License-Identifier: GPL-2.0
"""What each layer of the kernel takes of a read of 512 bytes, on the machine that keeps time.

In one boot, on equal drives: ahci's and nvme's block devices, nvme's passthrough, hiops' block
device and hiops' bytes; one thread that reads and waits, and io_uring with 128 reads in flight and
buffers that the kernel knows beforehand. The plugin counts each of the kernel's functions, of which
the machine executes one instruction a nanosecond; NAMES_OF says of which layer one is. What goes
down to the device and what comes back from it are not told apart. Table on stdout, in real units;
JSON in bench/results/, by the machine's clock.
"""

import os

import boot
import models
import table
import timed
import timed_result
from drives import HERE

# How the drive is reached, and by which driver's PCI function.
SIDES = {"ahci": (0x10, "sata"), "nvme": (0x11, "nvme"), "hiops": (0x12, "nvme"),
         "bytes": (0x13, "nvme")}
NAMES = {"ahci": "ahci", "nvme": "nvme", "passthru": "nvme's passthrough",
         "hiops": "hiops' block device", "bytes": "hiops' bytes"}
# What is measured: a load of bench/loads.py on some sides; nvme's passthrough is a load of its own.
WAYS = (("bytes-512-1", "ahci"), ("bytes-512-1", "nvme"), ("bytes-512-1", "hiops"),
        ("bytes-512-1", "bytes"), ("bytes-fixed-512-128", "ahci"), ("bytes-fixed-512-128", "nvme"),
        ("bytes-passthru-512-128", "nvme"), ("bytes-fixed-512-128", "hiops"),
        ("bytes-fixed-512-128", "bytes"))
LOADS = {"bytes-512-1": "1 thread", "bytes-fixed-512-128": "io_uring, 128 in flight"}

# The layers whose functions are modules', by module.
MODULES = {"nvme": "driver", "nvme_core": "driver", "ahci": "driver", "libahci": "driver",
           "hiops": "driver", "libata": "libata, SCSI", "scsi_mod": "libata, SCSI",
           "scsi_common": "libata, SCSI", "sd_mod": "libata, SCSI"}
PROGRAM, REST = "the program", "scheduler, timers, idle"
# With what the names of a layer's functions begin, underscores left out; the first layer that fits
# is it. The rest is REST.
NAMES_OF = {
    PROGRAM: ("(user space)",),
    "hook of the wait": ("hiops_wait_wanted", "hiops_redirect", "ftrace", "arch_ftrace"),
    REST: ("io_schedule",),
    "block": tuple("""bd_ bdev bio blk block_ bvec disk_ elv get_failfast part_ rq_ sbitmap
                      should_fail submit_bio update_io_ticks wbt""".split()),
    "memory": tuple("""amd_cc cc_platform copy dma folio force_dma get_user gup import_ubuf iommu
                       iov_iter is_valid_gup kfree kmalloc kmem_cache memcg memcpy memmove mempool
                       memset mod_node obj_cgroup pin_user prep_ put_page rep_movs sg_ slab swiotlb
                       try_grab unpin""".split()),
    "system call, file": tuple("""aa_file apparmor atime bpf_lsm common_file_perm do_syscall
                                  entry_SYSCALL fdget fget file_ fput fsnotify generic_perm
                                  init_sync_kiocb kiocb ksys new_sync rw_verify security syscall
                                  touch_atime vfs x64_sys""".split()),
    "io_uring": ("do_sys_io_uring", "io_", "req_", "tctx", "uring"),
    # Called by all, the scheduler most of all.
    "locks, RCU": tuple("""clear_bhb list_ local_bh lock_ mutex native_queued percpu preempt_ pv_
                           queued_spin raw_read raw_spin raw_write rcu srcu x86_indirect
                           x86_return""".split()),
    "interrupt's entry": tuple("""add_interrupt apic asm_ common_interrupt ct_ do_softirq
                                  error_entry error_return fast_mix generic_handle handle_edge
                                  handle_irq
                                  handle_softirqs idtentry irq mask_ msi native_apic note_interrupt
                                  pci_msi record_irq restore_regs sysvec unmask_ x2apic""".split()),
}
LAYERS = (PROGRAM, "hook of the wait", "driver", "libata, SCSI", "block", "memory",
          "system call, file", "io_uring", "locks, RCU", "interrupt's entry", REST)
# What takes time without instructions.
DEVICE = "registers, interrupt"
# Neither the I/O's path nor any driver's to change, or of which the path's part is not known. The
# hook is on the way of any driver's waits once hiops is loaded.
APART = PROGRAM, "hook of the wait", "locks, RCU", "interrupt's entry", REST, DEVICE


def layer_of(function):
    """The layer that a function is of."""
    name, _, module = function.removesuffix("]").rpartition(" [")
    begins = (name or function).lstrip("_")
    layer = next((layer for layer, names in NAMES_OF.items() if begins.startswith(names)), None)
    # A module's functions have names of all kinds.
    if module in MODULES and layer != "hook of the wait":
        return MODULES[module]
    return layer or REST


def by_layer(row):
    """{layer: ns} of a row, whose functions have instructions."""
    found = dict.fromkeys((*LAYERS, DEVICE), 0)
    for function, insns in row["functions"].items():
        found[layer_of(function)] += insns
    found[DEVICE] = row["device_ns"]
    return found


def path(layers):
    """What of it the path of the I/O is."""
    return sum(ns for name, ns in layers.items() if name not in APART)


def tables(result):
    """(what is told, header, lines) of each load, in real ns."""
    for load, told in LOADS.items():
        cells = {row["side"]: {name: ns / result["scale"] for name, ns in by_layer(row).items()}
                 for row in result["rows"] if row["load"] == load}
        nvme = path(cells["nvme"])

        def line(name, value, cells=cells):
            return [name, *(f"{value(one):,.0f}" for one in cells.values())]

        lines = [line(name, lambda one, name=name: one[name])
                 for name in next(iter(cells.values())) if name not in APART]
        lines.append(line("**the path**", path))
        lines.append(["over nvme's", *(f"{path(one) / nvme:.2f}" for one in cells.values())])
        lines += [line(name, lambda one, name=name: one[name]) for name in APART]
        lines.append(line("all, with idle time", lambda one: sum(one.values())))
        yield told, [f"ns, {told}", *(NAMES[side] for side in cells)], lines


def markdown(result):
    """The tables for a page."""
    return "\n".join(table.markdown(header, lines) for _, header, lines in tables(result))


def lines(result):
    """The tables."""
    yield f"CPU time of a read of 512 bytes by layer, {result['model']}: {result['device']}; ns"
    for _, header, told in tables(result):
        yield f"{header[0]:<28}" + "".join(f"{name:>20}" for name in header[1:])
        for name, *cells in told:
            yield f"{name:<28}" + "".join(f"{cell:>20}" for cell in cells)


def command(model, scratch):
    """What boots the machine."""
    words = [*boot.BEGINS, *boot.plugin(scratch, ",profile=on")]
    for slot, kind in SIDES.values():
        words += timed.drive(model, kind, slot, 1)
    return words + ["--", "python3", os.path.join(HERE, "main.py"), "layered",
                    "--counts", os.path.join(scratch, "counts"),
                    "--model", model.name, "--json", os.path.join(scratch, "json")]


def options(parser):
    parser.add_argument("--model", default="tlc", help="one of bench/models, NVMe (tlc)")


def run(args):
    model = models.load(args.model)
    result = boot.result_of(model, lambda scratch: command(model, scratch))
    with open(os.path.join(HERE, "results", "layers.json"), "w") as out:
        out.write(timed_result.text_of(result))
    print(*lines(result), sep="\n")
