// SPDX-License-Identifier: GPL-2.0
//! What threads that wait for I/O know of the CPU that they share.
//!
//! Each runs for some microseconds, and comes by here. One that computes keeps the CPU for a slice
//! of the scheduler's, which is longer than most I/O takes; a thread that sleeps would have had the
//! CPU back at its completion. So nobody yields but to threads that were counted where they wait,
//! and a turn that took long all the same is lost to one that computes: after it nobody yields
//! there for a while. How many threads are ready otherwise is not asked.
//!
//! A program that starts threads computes, too, and with hundreds of them costs several turns. So
//! interrupts and ticks note who runs when no waiter has come by for long, though some are ready,
//! and look afterwards whether that thread is still there: if not, or if the CPU is idle, turns are
//! tried again soon.

use crate::context::{cpu, now_ms, stamp, stamps_of, stamps_to_ns};
use crate::platform::KernelPlatform;
use crate::shims_safe::{hiops_is_ready_here, hiops_on_idle_cpu, hiops_this_pid};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use hal::{Error, Platform};
use strategy::{Account, Stakes};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit/share.rs"]
mod kunit;

/// CPUs that are told apart.
const CPUS: usize = 256;
/// A CPU on which no waiter came by for so long was somebody's who computes: such a thread keeps it
/// for a slice, 0.7 ms at least (`sysctl_sched_base_slice` in Linux 7.3's kernel/sched/fair.c).
const LONG_NS: u64 = 350_000;
/// A lost turn is more than may be lost.
const TURNS: Stakes = Stakes {
    most_ns: 1,
    trial_ns: 1,
};

/// One CPU.
#[derive(Default)]
pub(crate) struct Share {
    /// Threads that yielded, or whose I/O is over, and that have not had their turn.
    ready: AtomicU32,
    /// When a waiter last came by, as a [`stamp`].
    last: AtomicU64,
    /// What turns lose.
    turns: Account,
    /// Who had the CPU for long while waiters were ready, last, by its number; 0: nobody did.
    other: AtomicU32,
}

/// On which CPU a thread is counted as ready, plus 1; 0: on none.
#[derive(Default)]
pub(crate) struct Ready(AtomicU32);

/// All CPUs.
pub(crate) struct Shares {
    cpus: <KernelPlatform as Platform>::Table<Share>,
    /// [`LONG_NS`] in stamps.
    long: u64,
}

impl Shares {
    pub(crate) fn new(platform: &KernelPlatform) -> Result<Self, Error> {
        Ok(Self {
            cpus: platform.table(CPUS, |_| Share::default())?,
            long: stamps_of(LONG_NS),
        })
    }

    /// The present CPU. With preemption off.
    #[inline]
    fn here(&self) -> Option<&Share> {
        self.cpus.get(cpu() % CPUS)
    }

    /// A thread that waits comes by: whether one that yields here has its turn again soon. With
    /// preemption off.
    #[inline]
    pub(crate) fn come_by(&self) -> bool {
        self.here().is_some_and(|share| {
            share.last.store(stamp(), Ordering::Relaxed);
            share.is_crowded()
        })
    }

    /// Whether threads are ready on this CPU that come by soon. Any context, with preemption off.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.here().is_some_and(Share::is_crowded)
    }

    /// A thread that yielded at `since`, a [`stamp`], here or on another CPU, has its turn. With
    /// preemption off.
    #[inline]
    pub(crate) fn take_turn(&self, since: u64) {
        let Some(share) = self.here() else { return };
        let now = stamp();
        let last = share.last.load(Ordering::Relaxed).max(since);
        share.last.store(now, Ordering::Relaxed);
        let lost = now.saturating_sub(last);
        if lost > self.long {
            share.lose(stamps_to_ns(lost), now_ms());
        }
    }

    /// An interrupt or a tick looks whom it interrupts: one that has had the CPU for long while
    /// waiters were ready, or whether that one is still there. With preemption off.
    pub(crate) fn look(&self) {
        let Some(share) = self.here() else { return };
        if !share.is_crowded() {
            share.relent(hiops_on_idle_cpu());
        } else if stamp().saturating_sub(share.last.load(Ordering::Relaxed)) > self.long / 2 {
            share.see(hiops_this_pid());
        }
    }

    /// The thread of `ready` is ready to run on `cpu`; `None`: it runs. It is counted there, once.
    #[inline]
    pub(crate) fn set_ready(&self, ready: &Ready, cpu: Option<u32>) {
        let on = cpu.map_or(0, |cpu| cpu.wrapping_add(1));
        if on == 0 && ready.0.load(Ordering::Relaxed) == 0 {
            return;
        }
        let share = |on: u32| self.cpus.get(on.checked_sub(1)? as usize % CPUS);
        let before = ready.0.swap(on, Ordering::Relaxed);
        if let Some(share) = share(before) {
            share.ready.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(share) = share(on) {
            share.ready.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Share {
    #[inline]
    fn is_crowded(&self) -> bool {
        self.ready.load(Ordering::Relaxed) != 0 && self.has_turns(now_ms())
    }

    /// Who yields has its turn again soon, as far as is known.
    #[inline]
    fn has_turns(&self, now_ms: u64) -> bool {
        self.turns.is_open(now_ms)
    }

    /// A turn was lost for `ns`.
    #[cold]
    fn lose(&self, ns: u64, now_ms: u64) {
        self.turns.spend(ns, TURNS, now_ms);
    }

    /// That thread has had the CPU for long, while waiters were ready.
    #[inline]
    fn see(&self, pid: u32) {
        self.other.store(pid, Ordering::Relaxed);
    }

    /// Turns that were lost are tried again soon if the CPU is `idle`, or if whom they were lost to
    /// is not ready here any more. On that CPU, with preemption off.
    #[inline]
    fn relent(&self, idle: bool) {
        if self.turns.has_failed() && (idle || !self.is_shared()) {
            self.turns.relent();
        }
    }

    /// Whether turns may be lost to the same thread again.
    #[cold]
    fn is_shared(&self) -> bool {
        let other = self.other.load(Ordering::Relaxed);
        other == 0 || hiops_is_ready_here(other)
    }
}
