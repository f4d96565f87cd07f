// SPDX-License-Identifier: GPL-2.0
//! Those functions of `c_shims/`, and of the kernel's, that ask for no more than the types of their
//! parameters say: in a context that is not theirs they do harm to what the caller does, not to
//! memory. Those that ask for a type of this crate's are declared beside that type.
//!
//! bindgen takes every function for one that has to be called with care, so these are declared by
//! hand, and held against what it has read.

use core::sync::atomic::{AtomicBool, AtomicUsize};
use kernel::bindings;
use kernel::device::{Bound, Device};
use kernel::ffi::{c_int, c_long, c_uint};

use crate::shims;

#[allow(clashing_extern_declarations, reason = "bindgen's are unsafe to call")]
#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for nothing else, as above. Each is as its header says it: see the
// constants below.
unsafe extern "C" {
    /// The nodes for disks' bytes can be made from now on; 0, or an errno. Once; sleeps.
    pub(crate) safe fn hiops_bytes_begin() -> i32;
    /// Undoes it, when all nodes are gone. Sleeps.
    pub(crate) safe fn hiops_bytes_end();
    /// The errno of a status of the block layer's. Any context.
    pub(crate) safe fn hiops_bytes_errno(status: u8) -> c_int;
    /// Waits until `over`, for `ticks` at most; whether it is. `is_tracked`: the calling thread is
    /// tracked with what it waits for. Sleeps.
    pub(crate) safe fn hiops_io_wait(over: &AtomicBool, ticks: c_long, is_tracked: bool) -> bool;
    /// The calling thread waits for no page of user memory until [`hiops_pagefault_enable`]: one
    /// that is not there is a failure. Nests.
    pub(crate) safe fn hiops_pagefault_disable();
    /// Undoes it.
    pub(crate) safe fn hiops_pagefault_enable();
    /// Nests. The caller calls [`hiops_preempt_enable`] later.
    pub(crate) safe fn hiops_preempt_disable();
    /// Turns preemption off for a thread that submits, which calls [`hiops_preempt_enable`] later.
    pub(crate) safe fn hiops_submit_begin();
    /// Undoes either.
    pub(crate) safe fn hiops_preempt_enable();
    /// Bottom halves wait, if interrupts do not already; whether they do now. A caller that is
    /// answered `true` calls [`hiops_bh_on`] later. Any context.
    pub(crate) safe fn hiops_bh_off() -> bool;
    /// Undoes it.
    pub(crate) safe fn hiops_bh_on();
    /// What the calling thread allocates starts no I/O. The result is for [`hiops_noio_restore`].
    pub(crate) safe fn hiops_noio_save() -> u32;
    /// Undoes it, in the same thread.
    pub(crate) safe fn hiops_noio_restore(flags: u32);
    /// Cycles of the time stamp counter in nanoseconds; 0: it is not known. Any context.
    pub(crate) safe fn hiops_stamp_ns(stamps: u64) -> u64;
    /// The running thread, as its address. Any context.
    pub(crate) safe fn hiops_this_thread() -> u64;
    /// The calling thread was woken.
    pub(crate) safe fn hiops_is_awake() -> bool;
    /// Rests a moment; `false`: there is a reason not to go on so.
    pub(crate) safe fn hiops_pause() -> bool;
    /// Rests a moment; `false`: another thread is more urgent.
    pub(crate) safe fn hiops_pause_awake() -> bool;
    /// The calling thread may take completions: it submits nothing, and interrupts are on.
    pub(crate) safe fn hiops_may_drain() -> bool;
    /// Nothing that the calling thread waits for is plugged.
    pub(crate) safe fn hiops_may_nap() -> bool;
    /// The calling thread may let others run without going to sleep.
    pub(crate) safe fn hiops_may_yield() -> bool;
    /// The idle task has this CPU, or this is an interrupt that came to it. Any context.
    pub(crate) safe fn hiops_on_idle_cpu() -> bool;
    /// The running thread, by its number. Any context.
    pub(crate) safe fn hiops_this_pid() -> u32;
    /// The thread of that number runs on this CPU or is ready to. Any context; of use with
    /// preemption off.
    pub(crate) safe fn hiops_is_ready_here(pid: u32) -> bool;
    /// The scheduler counts the thread of that number for less than the running one: it is nicer,
    /// or of class SCHED_IDLE. Any context.
    pub(crate) safe fn hiops_counts_for_less(pid: u32) -> bool;
    /// A stamp of one CPU can be held against that of another. Any context.
    pub(crate) safe fn hiops_stamps_agree() -> bool;
    /// So many numbers on each CPU; null: there is no memory. Sleeps.
    pub(crate) safe fn hiops_percpu_alloc(count: c_uint) -> *mut u64;
    /// The lowest number that is free; negative: there is no memory. Sleeps.
    pub(crate) safe fn hiops_number_get() -> i32;
    /// Gives it back.
    pub(crate) safe fn hiops_number_put(number: i32);
    /// The lowest that is free of the disks with a major of hiops' own. Sleeps.
    pub(crate) safe fn hiops_disk_number_get() -> i32;
    /// Gives it back.
    pub(crate) safe fn hiops_disk_number_put(number: i32);
    /// Registers that major; negative: there is none. Sleeps.
    pub(crate) safe fn hiops_major_get() -> i32;
    /// Gives it back.
    pub(crate) safe fn hiops_major_put(major: i32);
    /// The module's parameters that are numbers. Any context.
    pub(crate) safe fn hiops_get_params() -> shims::hiops_params;
    /// What things cost on this CPU; 0: it could not be measured. Milliseconds; sleeps.
    pub(crate) safe fn hiops_measure_costs(found: &mut shims::hiops_costs);
    /// A workqueue that memory pressure can't stall, with that number in its name; null: there is
    /// no memory. Sleeps.
    pub(crate) safe fn hiops_alloc_wq(number: c_int) -> *mut bindings::workqueue_struct;
    /// Hooks the kernel's waits: 0, or an errno. Counted; each success is undone once. Sleeps.
    pub(crate) safe fn hiops_hook_get() -> c_int;
    /// Undoes it once; whether they are hooked still. Sleeps.
    pub(crate) safe fn hiops_hook_put() -> bool;
    /// From now on [`engine::Cpu::may_predict`] is true. Counted; each is undone once. Sleeps.
    pub(crate) safe fn hiops_predicts_get();
    /// Undoes it.
    pub(crate) safe fn hiops_predicts_put();
    /// Returns when all threads have left the wait hook that were in it. Sleeps.
    pub(crate) safe fn hiops_hook_left();
    /// The kernel's tick count: a word that the tick advances.
    pub(crate) safe static jiffies: AtomicUsize;
    /// Most bytes that are mapped for the device at once.
    pub(crate) safe fn dma_max_mapping_size(device: &Device<Bound>) -> usize;
    /// Most that are mapped well.
    pub(crate) safe fn dma_opt_mapping_size(device: &Device<Bound>) -> usize;
    /// Whether the calling thread has that capability, one of `CAP_`.
    pub(crate) safe fn capable(capability: c_int) -> bool;
    /// Returns when all readers by RCU have left that were there when this was called. Sleeps.
    #[cfg(linux_7_2)]
    pub(crate) safe fn synchronize_rcu();
}

const _: [unsafe extern "C" fn(c_uint) -> *mut u64; 2] =
    [shims::hiops_percpu_alloc, hiops_percpu_alloc];
const _: [unsafe extern "C" fn(*mut shims::hiops_costs); 1] = [shims::hiops_measure_costs];
const _: [unsafe extern "C" fn(c_int) -> *mut bindings::workqueue_struct; 2] =
    [shims::hiops_alloc_wq, hiops_alloc_wq];
const _: [unsafe extern "C" fn(); 4] = [
    shims::hiops_hook_left,
    hiops_hook_left,
    shims::hiops_bytes_end,
    hiops_bytes_end,
];
const _: *const kernel::ffi::c_ulong = &raw const bindings::jiffies;
const _: [unsafe extern "C" fn(*mut bindings::device) -> usize; 2] = [
    bindings::dma_max_mapping_size,
    bindings::dma_opt_mapping_size,
];
const _: [unsafe extern "C" fn(c_int) -> bool; 2] = [bindings::capable, capable];
#[cfg(linux_7_2)]
const _: [unsafe extern "C" fn(); 2] = [bindings::synchronize_rcu, synchronize_rcu];

const _: [unsafe extern "C" fn(u8) -> c_int; 2] = [shims::hiops_bytes_errno, hiops_bytes_errno];
const _: [unsafe extern "C" fn(*const bool, c_long, bool) -> bool; 1] = [shims::hiops_io_wait];
const _: [unsafe extern "C" fn(); 16] = [
    shims::hiops_pagefault_disable,
    hiops_pagefault_disable,
    shims::hiops_pagefault_enable,
    hiops_pagefault_enable,
    shims::hiops_predicts_get,
    hiops_predicts_get,
    shims::hiops_predicts_put,
    hiops_predicts_put,
    shims::hiops_submit_begin,
    hiops_submit_begin,
    shims::hiops_bh_on,
    hiops_bh_on,
    shims::hiops_preempt_disable,
    hiops_preempt_disable,
    shims::hiops_preempt_enable,
    hiops_preempt_enable,
];
const _: [unsafe extern "C" fn() -> u32; 4] = [
    shims::hiops_noio_save,
    hiops_noio_save,
    shims::hiops_this_pid,
    hiops_this_pid,
];
const _: [unsafe extern "C" fn(u32) -> bool; 4] = [
    shims::hiops_counts_for_less,
    hiops_counts_for_less,
    shims::hiops_is_ready_here,
    hiops_is_ready_here,
];
const _: [unsafe extern "C" fn(u32); 2] = [shims::hiops_noio_restore, hiops_noio_restore];
const _: [unsafe extern "C" fn() -> u64; 2] = [shims::hiops_this_thread, hiops_this_thread];
const _: [unsafe extern "C" fn(u64) -> u64; 2] = [shims::hiops_stamp_ns, hiops_stamp_ns];
const _: [unsafe extern "C" fn() -> bool; 20] = [
    shims::hiops_stamps_agree,
    hiops_stamps_agree,
    shims::hiops_hook_put,
    hiops_hook_put,
    shims::hiops_bh_off,
    hiops_bh_off,
    shims::hiops_may_drain,
    hiops_may_drain,
    shims::hiops_pause_awake,
    hiops_pause_awake,
    shims::hiops_may_nap,
    hiops_may_nap,
    shims::hiops_is_awake,
    hiops_is_awake,
    shims::hiops_pause,
    hiops_pause,
    shims::hiops_may_yield,
    hiops_may_yield,
    shims::hiops_on_idle_cpu,
    hiops_on_idle_cpu,
];
const _: [unsafe extern "C" fn() -> i32; 10] = [
    shims::hiops_bytes_begin,
    hiops_bytes_begin,
    shims::hiops_hook_get,
    hiops_hook_get,
    shims::hiops_number_get,
    hiops_number_get,
    shims::hiops_disk_number_get,
    hiops_disk_number_get,
    shims::hiops_major_get,
    hiops_major_get,
];
const _: [unsafe extern "C" fn(i32); 6] = [
    shims::hiops_number_put,
    hiops_number_put,
    shims::hiops_disk_number_put,
    hiops_disk_number_put,
    shims::hiops_major_put,
    hiops_major_put,
];
const _: [unsafe extern "C" fn() -> shims::hiops_params; 2] =
    [shims::hiops_get_params, hiops_get_params];
