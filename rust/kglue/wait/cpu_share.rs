// SPDX-License-Identifier: GPL-2.0
//! What threads that wait for I/O know of the CPU that they share.
//!
//! Each runs for some microseconds, and says so here as it arrives. One that computes keeps the CPU
//! for a slice of the scheduler's, which is longer than most I/O takes; a thread that sleeps would
//! have had the CPU back at its completion. So a thread yields only to those that were counted
//! where they wait, and a turn that took long all the same is lost to one that computes: after it
//! none yields there for a while. How many threads are ready otherwise is not asked.
//!
//! A program that starts threads computes, too, and with hundreds of them costs several turns. So
//! interrupts and ticks note which thread they interrupt while waiters are ready, and a turn that
//! was lost is known to be lost to that thread. If it counts for as much as a waiter, the next turn
//! would be lost as well: none is tried for long, unless it is seen that the thread sleeps or has
//! gone, or the CPU is idle. If it counts for less, turns pay beside it, and are tried again soon.
//!
//! Others compute for some microseconds only, as threads do that pass work on to those that wait
//! for I/O. Beside many of these a turn is soon over, and is a loss all the same: one that yields
//! stays behind them all, where one that sleeps is let run first. So interrupts note, too, whether
//! the thread that they meet while waiters are ready is one, and where it mostly is not, none
//! yields.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use hal::{Error, Platform};
use strategy::{Account, Stakes};

use crate::platform::{cpu, now_ms, stamp, stamps_of, stamps_to_ns, KernelPlatform};
use crate::shims_safe::{
    hiops_counts_for_less, hiops_is_ready_here, hiops_on_idle_cpu, hiops_this_pid,
};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../../kunit/cpu_share.rs"]
mod kunit;

/// CPUs that are told apart.
const CPUS: usize = 256;
/// A CPU on which no waiter arrived for this long was a thread's that computes: it keeps the CPU
/// for a slice, 0.7 ms at least (`sysctl_sched_base_slice` in Linux 7.3's kernel/sched/fair.c).
const LONG_NS: u64 = 350_000;
/// A lost turn is more than may be lost.
const TURNS: Stakes = Stakes {
    most_ns: 1,
    trial_ns: 1,
};
/// How many threads that are no waiters interrupts have met, more than waiters, before no waiter
/// yields. Chosen: a crowd has its first round of I/O over by then, and is known.
const OTHERS: u32 = 16;
/// The most that are counted: as many waiters as [`OTHERS`] that come after them let it be tried.
const MOST_OTHERS: u32 = 2 * OTHERS;
/// For how long the last one that was met counts, as a queue that is polled meets none. Chosen: a
/// few of the kernel's ticks.
const MET_MS: u64 = 20;
/// A turn that was lost to one that counts for as much as a waiter, and stays, counts as this many:
/// the next is tried after 1,024 times as long as it took, and takes a thousandth of the time.
const STAYS: u32 = 7;

/// One CPU.
#[derive(Default)]
pub(crate) struct Share {
    /// Threads that yielded, or whose I/O is over, and that have not had their turn.
    ready: AtomicU32,
    /// When a waiter last came by, as a [`stamp`].
    last: AtomicU64,
    /// What turns lose.
    turns: Account,
    /// How many threads that are no waiters interrupts have met while waiters were ready, less the
    /// waiters that they have met.
    others: AtomicU32,
    /// When the last of those that are no waiters was met, in milliseconds.
    met_ms: AtomicU64,
    /// The thread that was interrupted last while waiters were ready, by its number; and
    seen: AtomicU32,
    /// when a waiter had arrived before that, as a [`stamp`]: that tells in which turn it was.
    seen_in: AtomicU64,
    /// The thread that the last turn was lost to; 0: none was seen in it.
    taker: AtomicU32,
    /// When that one was last asked for, in milliseconds: to find it costs more than a look may.
    asked_ms: AtomicU64,
}

/// On which CPU a thread is counted as ready, plus 1; 0: on none.
#[derive(Default)]
pub(crate) struct Ready(AtomicU32);

/// All CPUs.
pub(crate) struct CpuWaiters {
    cpus: <KernelPlatform as Platform>::Table<Share>,
    /// [`LONG_NS`] in stamps.
    long: u64,
}

impl CpuWaiters {
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

    /// A thread that waits arrives: whether one that yields here has its turn again soon. With
    /// preemption off.
    #[inline]
    pub(crate) fn arrive(&self) -> bool {
        self.here().is_some_and(|share| {
            share.last.store(stamp(), Ordering::Relaxed);
            share.is_crowded()
        })
    }

    /// Whether threads are ready on this CPU that arrive soon. Any context, with preemption off.
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
        let last = share.last.load(Ordering::Relaxed);
        share.last.store(now, Ordering::Relaxed);
        let lost = now.saturating_sub(last.max(since));
        if lost > self.long {
            share.lose(stamps_to_ns(lost), last, now_ms());
        }
    }

    /// An interrupt or a tick looks which thread it interrupts while waiters are ready; or, after
    /// turns were lost, whether the thread that they were lost to is still there. Whether waiters
    /// are ready. With preemption off.
    // Inline up to there: mostly nobody is ready, and no turn was lost.
    #[inline]
    pub(crate) fn look(&self) -> bool {
        self.here()
            .is_some_and(|share| (share.has_ready() || share.turns.has_failed()) && share.look())
    }

    /// An interrupt has met, while waiters are ready, one of them (`is_waiter`), or a thread of
    /// another kind. With preemption off.
    pub(crate) fn meet(&self, is_waiter: bool) {
        if let Some(share) = self.here() {
            share.meet(is_waiter, now_ms());
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
        self.has_ready() && self.has_turns(now_ms())
    }

    #[inline]
    fn has_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) != 0
    }

    /// See [`CpuWaiters::look`].
    #[inline(never)]
    fn look(&self) -> bool {
        if self.is_crowded() {
            self.see(hiops_this_pid(), self.last.load(Ordering::Relaxed));
        } else if self.turns.has_failed() {
            self.relent(hiops_on_idle_cpu(), now_ms());
        }
        self.has_ready()
    }

    /// A thread that yields has its turn again soon, as far as is known.
    #[inline]
    fn has_turns(&self, now_ms: u64) -> bool {
        self.turns.is_open(now_ms) && !self.is_among_others(now_ms)
    }

    /// Those that run here are mostly no waiters.
    #[inline]
    fn is_among_others(&self, now_ms: u64) -> bool {
        let met_ms = self.met_ms.load(Ordering::Relaxed);
        self.others.load(Ordering::Relaxed) >= OTHERS && now_ms < met_ms.saturating_add(MET_MS)
    }

    #[inline]
    fn meet(&self, is_waiter: bool, now_ms: u64) {
        let others = self.others.load(Ordering::Relaxed);
        if is_waiter {
            return self
                .others
                .store(others.saturating_sub(1), Ordering::Relaxed);
        }
        let others = others.saturating_add(1).min(MOST_OTHERS);
        self.others.store(others, Ordering::Relaxed);
        self.met_ms.store(now_ms, Ordering::Relaxed);
    }

    /// A turn was lost for `ns`, before which a waiter came by at `last`. The caller's; with
    /// preemption off.
    #[cold]
    fn lose(&self, ns: u64, last: u64, now_ms: u64) {
        let taker = match self.seen_in.load(Ordering::Relaxed) == last {
            true => self.seen.load(Ordering::Relaxed),
            false => 0,
        };
        self.taker.store(taker, Ordering::Relaxed);
        self.turns.spend(ns, TURNS, now_ms);
        match taker {
            0 => {}
            taker if hiops_counts_for_less(taker) => self.turns.relent(),
            _ => self.turns.persist(STAYS, now_ms),
        }
    }

    /// That thread has the CPU, while waiters are ready, of whom one came by at `last`.
    #[inline]
    fn see(&self, pid: u32, last: u64) {
        self.seen.store(pid, Ordering::Relaxed);
        self.seen_in.store(last, Ordering::Relaxed);
    }

    /// Turns that were lost are tried again soon if the CPU is `idle`, or if whom they were lost to
    /// is not ready here any more. On that CPU, with preemption off.
    #[inline]
    fn relent(&self, idle: bool, now_ms: u64) {
        if idle || self.has_lost_its_taker(now_ms) {
            self.turns.relent();
        }
    }

    /// Whether turns can't be lost to the same thread again, asked once a tick.
    #[inline]
    fn has_lost_its_taker(&self, now_ms: u64) -> bool {
        let taker = self.taker.load(Ordering::Relaxed);
        if taker == 0 || self.asked_ms.load(Ordering::Relaxed) == now_ms {
            return false;
        }
        self.asked_ms.store(now_ms, Ordering::Relaxed);
        !hiops_is_ready_here(taker)
    }
}
