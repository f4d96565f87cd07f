// SPDX-License-Identifier: GPL-2.0
//! Telling the device of commands later, together with others that are to come.
//!
//! A strategy may let commands that are staged wait for more ([`Strategy::defers`]), as long as
//! they are no whole batch ([`Queue::batch`]) and the poll timer is certain to come for them:
//!
//! ```text
//!  staged --- a whole batch, or the strategy does not defer ---> rung
//!     |
//!  deferred --- a drain, and the strategy defers no more ------> flushed
//!     |     --- a thread that leaves its CPU, the next tick ---> flushed
//!     +     --- the gate opens, the strategy is another -------> flushed
//! ```
//!
//! # For how long
//! The strategy names a time. No command is late by more than a tenth of what the device has lately
//! taken for one, whatever it names: the next tick comes by then, and is put off no further. Who
//! looks in passing when the next look may be too late tells the device itself. A device of which
//! it is not known what it takes is told at once.
//!
//! # A deferred doorbell is never lost
//! Only a polled queue defers, and the timer comes while something is deferred: the two find each
//! other as the timer and the issuer do for what is outstanding (`poll.rs`). A queue that goes back
//! to its interrupt meanwhile says so, passes a fence, and looks whether anything is deferred; the
//! issuer says that it defers, passes a fence, and looks whether the queue is polled. One of the
//! two sees the other (`tests/loom_defer.rs`).

use crate::queue::{IoQueue, IssueSide};
use crate::queued::{Left, Passage};
use crate::strategy::{Staged, Strategy, View};
use crate::Upper;
use cell::sync::{fence, AtomicBool, AtomicU32, AtomicU64, Ordering};
use hal::{Platform, Queue};

/// The part of a command's time that it may be late by.
const SHARE: u64 = 10;
/// How much of a new measurement goes into the average: the part of 2 to the power of so much.
const WEIGHT: u32 = 3;

/// What a queue defers, and whether it does at this moment.
pub(crate) struct Deferring {
    /// [`Queue::batch`].
    pub(crate) batch: usize,
    /// Staged commands wait for more of them. Written by the issue token's holder.
    on: AtomicBool,
    /// The device is told by then, by the clock of [`Upper::now_ns`].
    until_ns: AtomicU64,
    /// What the device has lately taken for a command, in nanoseconds; 0: not known. Written by the
    /// drain token's holder.
    device_ns: AtomicU64,
    /// The tag of a command whose time is taken, plus 1; 0: of none.
    sampled: AtomicU32,
    /// When the device was told of it.
    told_ns: AtomicU64,
}

impl Deferring {
    /// For a queue whose device is best told of `batch` commands at once.
    pub(crate) fn new(batch: usize) -> Self {
        Self {
            batch,
            on: AtomicBool::new(false),
            until_ns: AtomicU64::new(0),
            device_ns: AtomicU64::new(0),
            sampled: AtomicU32::new(0),
            told_ns: AtomicU64::new(0),
        }
    }

    /// For how long commands may wait for others, in nanoseconds; 0: how long the device takes is
    /// not known.
    #[inline]
    pub(crate) fn most_ns(&self) -> u64 {
        self.device_ns.load(Ordering::Relaxed) / SHARE
    }

    /// When the device is told of what is deferred, at the latest.
    #[inline]
    pub(crate) fn until_ns(&self) -> u64 {
        self.until_ns.load(Ordering::Relaxed)
    }

    /// The device is told of `tag`, and maybe of others. By the issuer.
    #[inline]
    pub(crate) fn begin_sample(&self, tag: u32, now_ns: impl FnOnce() -> u64) {
        if self.batch > 1 && self.sampled.load(Ordering::Relaxed) == 0 {
            self.told_ns.store(now_ns(), Ordering::Relaxed);
            // Release: who finds the tag finds when that was.
            self.sampled.store(tag.wrapping_add(1), Ordering::Release);
        }
    }

    /// The device has answered `tag`. By the drainer.
    #[inline]
    pub(crate) fn end_sample(&self, tag: usize, now_ns: impl FnOnce() -> u64) {
        // CAST: a tag is 16 bits wide.
        let sampled = (tag as u32).wrapping_add(1);
        if self.batch > 1 && self.sampled.load(Ordering::Acquire) == sampled {
            let took = now_ns().saturating_sub(self.told_ns.load(Ordering::Relaxed));
            let before = self.device_ns.load(Ordering::Relaxed);
            self.device_ns
                .store(average(before, took), Ordering::Relaxed);
            self.sampled.store(0, Ordering::Relaxed);
        }
    }

    /// The device answers nothing of before any more. With both tokens.
    pub(crate) fn forget_sample(&self) {
        self.sampled.store(0, Ordering::Relaxed);
    }

    /// Nothing is staged any more, or it goes to the device now.
    pub(crate) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
    }
}

/// The average of nanoseconds, when it was `before` (0: of nothing) and a command took `took`,
/// which counts as twice the average at most: one that the drive had to try again is no measure of
/// others.
fn average(before: u64, took: u64) -> u64 {
    if before == 0 {
        return took;
    }
    let took = took.min(before.saturating_mul(2));
    let rest = before.saturating_sub(before >> WEIGHT);
    rest.saturating_add(took >> WEIGHT)
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Tells the device of everything that is staged, unless it is to wait for more.
    #[inline]
    pub(crate) fn ring_or_defer(&self, side: &mut IssueSide<Q>) {
        if self.deferring.batch <= 1 || !self.defer(side.bound.len()) {
            self.ring(side);
        }
    }

    /// Lets `staged` commands wait, if they are to; from then on that is seen. By the issuer.
    #[inline]
    fn defer(&self, staged: usize) -> bool {
        let for_ns = match staged != 0 && staged < self.deferring.batch {
            true => self.most_deferred_ns(Staged::Open),
            false => 0,
        };
        if for_ns != 0 {
            let begins = !self.deferring.on.swap(true, Ordering::Relaxed);
            // The hand-over with who turns polling off, and with the timer, see above.
            fence(Ordering::SeqCst);
            if self.is_polled() {
                self.watch();
                if begins {
                    let now = self.upper.now_ns();
                    let until = now.saturating_add(for_ns);
                    self.deferring.until_ns.store(until, Ordering::Relaxed);
                    self.hasten_tick(now, until);
                }
                return true;
            }
        }
        if self.is_deferred() {
            self.deferring.end();
        }
        false
    }

    /// For how long what is no whole batch may wait for more, in nanoseconds; 0: it must not.
    #[inline]
    fn most_deferred_ns(&self, staged: Staged) -> u64 {
        if !self.is_polled() {
            return 0;
        }
        self.strategy
            .defers(self, staged)
            .min(self.deferring.most_ns())
    }

    #[inline]
    fn may_defer(&self, staged: Staged) -> bool {
        self.most_deferred_ns(staged) != 0
    }

    /// Whether staged commands wait for more of them.
    #[inline]
    pub(crate) fn is_deferred(&self) -> bool {
        self.deferring.on.load(Ordering::Relaxed)
    }

    /// Whether something is deferred that must not be any longer. By the drainer, after the fence
    /// that follows its count.
    #[inline]
    pub(crate) fn is_flush_due(&self) -> bool {
        self.is_deferred() && !self.may_defer(Staged::Open)
    }

    /// What is deferred goes to the device, unless the strategy lets it wait on.
    #[inline]
    pub(crate) fn flush_unless_deferred(&self, staged: Staged) {
        if self.is_deferred() && !self.may_defer(staged) {
            self.flush();
        }
    }

    /// What is deferred goes to the device.
    #[inline]
    pub(crate) fn flush(&self) {
        if self.is_deferred() {
            if let Some(mut side) = self.issue.lock_or_knock() {
                self.deferring.end();
                self.ring(&mut side);
                self.leave(side, Left::Idle, &mut Passage::new());
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_slow_command_does_not_make_a_slow_device() {
        let mut device = 400_000;
        device = average(device, 30_000_000_000);
        assert!(device <= 450_000, "{device}");
    }

    #[test]
    fn it_follows_a_device_that_has_become_slower() {
        let slower = (0..100).fold(400_000, |before, _| average(before, 900_000));
        assert!((880_000..=900_000).contains(&slower), "{slower}");
    }
}
