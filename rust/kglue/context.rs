// SPDX-License-Identifier: GPL-2.0
//! The context that the kernel runs us in, and its clocks.

use crate::shims;
use crate::shims_safe as safe;
use kernel::bindings;
use kernel::cpu::CpuId;
use kernel::time::{ClockSource, Monotonic};

/// While it lives, this thread stays on its CPU and runs on: who holds a token is never scheduled
/// away.
pub(crate) struct PreemptOff(());

impl PreemptOff {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        safe::hiops_preempt_disable();
        Self(())
    }
}

impl Drop for PreemptOff {
    #[inline(always)]
    fn drop(&mut self) {
        safe::hiops_preempt_enable();
    }
}

/// While it lives, this thread's allocations start no I/O, which might wait for the disk that is
/// being recovered.
pub(crate) struct NoIo(u32);

impl NoIo {
    pub(crate) fn new() -> Self {
        Self(safe::hiops_noio_save())
    }
}

impl Drop for NoIo {
    fn drop(&mut self) {
        safe::hiops_noio_restore(self.0);
    }
}

/// The CPU that runs this. With preemption off.
#[inline(always)]
pub(crate) fn cpu() -> usize {
    CpuId::current().as_u32() as usize
}

/// A stamp for short intervals on one CPU, in units of its own: see [`stamps_to_ns`].
#[inline(always)]
pub(crate) fn stamp() -> u64 {
    safe::hiops_stamp()
}

/// The nanoseconds between two stamps that differ by `stamps`.
pub(crate) fn stamps_to_ns(stamps: u64) -> u64 {
    safe::hiops_stamp_ns(stamps)
}

/// Nanoseconds by the kernel's monotonic clock, on all CPUs the same.
#[inline]
pub(crate) fn now_ns() -> u64 {
    // CAST: the trait promises that it is not negative.
    Monotonic::ktime_get() as u64
}

/// How much two stamps differ by that are `ns` apart; a clock of unknown speed tells no intervals.
pub(crate) fn stamps_of(ns: u64) -> u64 {
    const PROBE: u64 = 1 << 20;
    let probe_ns = stamps_to_ns(PROBE);
    ns.saturating_mul(PROBE)
        .checked_div(probe_ns)
        .unwrap_or(u64::MAX)
}

/// The kernel's tick count, wrapping.
#[inline]
pub(crate) fn jiffies() -> kernel::ffi::c_ulong {
    // SAFETY: a word that the tick advances; read once, and any value is a valid one.
    unsafe { core::ptr::read_volatile(&raw const bindings::jiffies) }
}

/// The step of [`now_ms`].
pub(crate) const TICK_MS: u64 = 1000 / shims::HIOPS_HZ as u64;

/// Milliseconds since some moment before boot, in steps of a tick.
#[inline]
pub(crate) fn now_ms() -> u64 {
    (jiffies() as u64).wrapping_mul(TICK_MS)
}
