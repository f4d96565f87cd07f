// SPDX-License-Identifier: GPL-2.0
//! Whether the threads that wait for I/O have a CPU for themselves, or share it with one that computes.

use crate::context::stamps_to_ns;
use core::sync::atomic::{AtomicU64, Ordering};

/// A thread that was ready and did not run for so long waited for one that computes: those that wait for I/O come by more often.
const LONG_NS: u64 = 2_000_000;
/// A CPU is judged after so much time on it. A virtual machine's own pauses are rare in it, a neighbour's slices are not.
const WINDOW_NS: u64 = 16_000_000;

/// What was seen of one CPU since it was last judged, in units of [`crate::context::stamp`]. Written on that CPU only, with preemption off.
#[derive(Default)]
pub(crate) struct Pace {
    /// When a waiter last came by.
    last: AtomicU64,
    /// Time between any two that came by.
    all: AtomicU64,
    /// That of it in which one was kept waiting for long.
    lost: AtomicU64,
}

impl Pace {
    /// A waiter comes by at `now`, `ready` all the time since the last one did; whether the CPU is disputed: most of its time is somebody else's. Told
    /// once in a window.
    #[inline]
    pub(crate) fn come_by(&self, now: u64, ready: bool) -> bool {
        let gap = now.saturating_sub(self.last.load(Ordering::Relaxed));
        self.last.store(now, Ordering::Relaxed);
        let all = self.all.load(Ordering::Relaxed).wrapping_add(gap);
        self.all.store(all, Ordering::Relaxed);
        ready && self.judge(gap, all)
    }

    /// The second half of [`Pace::come_by`], for one that was ready.
    #[inline]
    fn judge(&self, gap: u64, all: u64) -> bool {
        let mut lost = self.lost.load(Ordering::Relaxed);
        if stamps_to_ns(gap) > LONG_NS {
            lost = lost.wrapping_add(gap);
            self.lost.store(lost, Ordering::Relaxed);
        }
        if stamps_to_ns(all) < WINDOW_NS {
            return false;
        }
        self.all.store(0, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        lost > all / 2
    }
}
