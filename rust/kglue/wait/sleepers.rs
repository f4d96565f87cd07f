// SPDX-License-Identifier: GPL-2.0
//! Threads that sleep with a long time-out, and the one timer that wakes them.
//!
//! blk_io_schedule() sleeps with half of kernel.hung_task_timeout_secs as its time-out, so that a
//! thread whose I/O takes minutes is seen alive. schedule_timeout() would set a timer up for that
//! and delete it again, for each I/O: 350 instructions, a fiftieth of a read. Here a sleeper writes
//! down when its time-out is over, and one timer for all of them, which comes twice a second while
//! anybody sleeps so, wakes those that are due.
//!
//! So sleep threads that pass through the hook, and those that have just submitted to hiops on the
//! same CPU and do not: for these it is all that the hook does.
//!
//! # Who keeps a sleeper alive
//! A thread is there for an RCU grace period after it has left its entry, and the timer's handler
//! is a read side. One that has left meanwhile is woken for nothing, as any sleeper may be.

use cell::sync::fence_after_exchange;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use engine::OnDemand;
use hal::{Error, Platform};
use kernel::ffi::{c_long, c_ulong};
use kernel::prelude::*;

use crate::platform::{jiffies, KernelPlatform};
use crate::shims;
use crate::timers::{CoarseExpired, CoarseTimer};
use crate::work::Pinned;

/// The timer's interval, in ticks: so late a sleeper may be woken. CAST: a small constant.
const INTERVAL: c_ulong = shims::HIOPS_HZ as c_ulong / 2;
/// A shorter time-out has a timer of its own: a tenth of it is all that one may be late.
const SHORTEST: c_ulong = 10 * INTERVAL;
/// As a power of two, the entries: several times as many as threads wait at once.
const ENTRIES: u32 = 10;
/// Nobody.
const EMPTY: u64 = 0;

/// One that sleeps with a time-out.
#[derive(Default)]
struct SleepEntry {
    /// The address of its record, or [`EMPTY`].
    sleeper: AtomicU64,
    /// When it is to be woken, in ticks; 0: that is not written down yet. By the sleeper.
    until: AtomicUsize,
}

impl SleepEntry {
    fn is_taken(&self) -> bool {
        self.sleeper.load(Ordering::Relaxed) != EMPTY
    }

    /// The time-out of the sleeper is over.
    fn is_due(&self) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        // CAST: ticks wrap around; the sign of what is left tells.
        until != 0 && (until.wrapping_sub(jiffies()) as isize) <= 0
    }

    /// Wakes the sleeper. With preemption off.
    fn wake(&self) {
        let sleeper = self.sleeper.load(Ordering::Acquire);
        if sleeper != EMPTY {
            wake_thread(sleeper);
        }
    }
}

/// Wakes the thread whose record is at `address`, and which a moment ago was asleep in the hook, or
/// waited for what is over now. With preemption off since then.
#[inline]
pub(crate) fn wake_thread(address: u64) {
    // SAFETY: it waited, and preemption is off: its task structure is still there.
    unsafe { shims::hiops_wake(address) };
}

/// The entries, and their timer.
pub(super) struct Sleepers {
    entries: <KernelPlatform as Platform>::Table<SleepEntry>,
    timer: KBox<CoarseTimer>,
    on: OnDemand,
}

impl Sleepers {
    /// A timer that wakes no thread yet.
    pub(super) fn new(platform: &KernelPlatform) -> Result<Self, Error> {
        Ok(Self {
            entries: platform.table(1 << ENTRIES, |_| SleepEntry::default())?,
            timer: CoarseTimer::new().map_err(|_| Error::NoMemory)?,
            on: OnDemand::default(),
        })
    }

    /// From now on it wakes those who sleep in `this`, which is itself; once.
    /// [`Sleepers::shutdown`] silences it.
    pub(super) fn begin(&self, this: Pinned<Self>) {
        self.timer.set_target(this);
    }

    /// The entry that `thread` falls on.
    #[inline]
    fn entry(&self, thread: u64) -> Option<&SleepEntry> {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the address.
        let hash = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENTRIES);
        // CAST: that many bits.
        self.entries.get(hash as usize)
    }

    /// `thread`, the caller, awake so far, is about to sleep for up to `ticks`. Whether the
    /// time-out is looked after here: then it calls [`Sleepers::end_sleep`] when it is awake again.
    #[inline]
    pub(super) fn begin_sleep(&self, thread: u64, ticks: c_long) -> bool {
        // The longest is for good.
        let (Ok(ticks), Some(entry)) = (c_ulong::try_from(ticks), self.entry(thread)) else {
            return false;
        };
        if ticks < SHORTEST || ticks == c_long::MAX.unsigned_abs() || entry.is_taken() {
            return false;
        }
        // The hand-over with the timer: an entry is taken, a fence, the timer is looked at.
        let sleeper = &entry.sleeper;
        let taken = sleeper.compare_exchange(EMPTY, thread, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_err() {
            return false;
        }
        fence_after_exchange();
        // Never 0: a tick more or less is nothing here.
        entry
            .until
            .store(jiffies().wrapping_add(ticks) | 1, Ordering::Relaxed);
        if self.on.start() {
            self.timer.arm_in(INTERVAL);
        }
        true
    }

    /// `thread`, the caller, is awake again.
    #[inline]
    pub(super) fn end_sleep(&self, thread: u64) {
        if let Some(entry) = self.entry(thread) {
            entry.until.store(0, Ordering::Relaxed);
            // Release: who takes the entry next writes after this.
            entry.sleeper.store(EMPTY, Ordering::Release);
        }
    }

    /// Wakes all, whatever their time-outs. Whether anybody was there. With preemption off.
    pub(super) fn wake_all(&self) -> bool {
        self.wake(|_| true)
    }

    fn wake(&self, is_due: impl Fn(&SleepEntry) -> bool) -> bool {
        let mut any = false;
        for entry in self.entries.iter().filter(|entry| entry.is_taken()) {
            any = true;
            if is_due(entry) {
                entry.wake();
            }
        }
        any
    }

    /// Whether anybody sleeps, and the timer comes.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn state(&self) -> (bool, bool) {
        (
            self.entries.iter().any(SleepEntry::is_taken),
            self.on.is_on(),
        )
    }

    /// The timer never comes again; returns when it is over. Sleeps.
    pub(super) fn shutdown(&self) {
        self.timer.shutdown();
    }
}

impl CoarseExpired for Sleepers {
    fn coarse_expired(&self) {
        if self.wake(SleepEntry::is_due) || self.on.stop(|| self.wake(SleepEntry::is_due)) {
            self.timer.arm_in(INTERVAL);
        }
    }
}
