// SPDX-License-Identifier: GPL-2.0
//! Telling a device of several commands at once, and looking at it once for several, where registers
//! are dear ([`Queue::batch`]).
//!
//! # What is held back
//! Commands that are bound but do not make a batch, while the device has work enough: no more than
//! a batch less than it has tags. On a CPU that others wait for, who come by soon, a batch is
//! enough: there the CPU is what is short, and whoever comes next has commands to add. There, as
//! long as it pays to give way, a polled queue holds back even what the device could begin with: a
//! device that is told of three answers three, and so whoever drains for them tells of three again.
//!
//! # Who is certain to tell
//! Whoever fills the batch tells, and a thread that is about to leave its CPU idle. If none comes: something is with the device, and its completion leads to a
//! drain, as for requests that wait for a tag. The issuer says that it holds, passes a fence, and looks at what is outstanding; the drainer counts what is done,
//! passes a fence, and looks whether anything is held. One of the two sees the other (`tests/loom_gather.rs`). Of a polled queue it is the next tick, which
//! comes while something is held: the timer and the issuer find each other as they do for what is outstanding (`poll.rs`).

use crate::issue::Left;
use crate::queue::{IoQueue, IssueSide};
use crate::upper::Ending;
use crate::Upper;
use cell::sync::{fence, AtomicBool, Ordering};
use hal::{Platform, Queue};

/// What a queue gathers, and whether it does at this moment.
pub(crate) struct Gathering {
    /// [`Queue::batch`].
    batch: usize,
    /// With so many outstanding the device has work enough.
    enough: u64,
    /// Staged commands wait for more of them. Written by the issue token's holder.
    held: AtomicBool,
}

impl Gathering {
    /// For a queue that gathers `batch` of its `capacity` slots.
    pub(crate) fn new(batch: usize, capacity: usize) -> Self {
        Self {
            batch,
            // CAST: usize is at most 64 bits wide.
            enough: capacity.saturating_sub(batch) as u64,
            held: AtomicBool::new(false),
        }
    }

    /// Nothing is staged any more, or it goes to the device now.
    pub(crate) fn end(&self) {
        self.held.store(false, Ordering::Relaxed);
    }
}

impl<P: Platform, Q: Queue, U: Upper> IoQueue<P, Q, U> {
    /// Whether it pays to gather.
    #[inline]
    pub(crate) fn gathers(&self) -> bool {
        self.gathering.batch > 1
    }

    /// Tells the device of everything that is staged, unless it may wait for more.
    #[inline]
    pub(crate) fn ring_or_hold(&self, side: &mut IssueSide<Q>) {
        if !self.gathers() || !self.holds(side.bound.len()) {
            self.ring(side);
        }
    }

    /// Whether `staged` commands may wait; from then on that is seen. By the issuer.
    #[inline]
    fn holds(&self, staged: usize) -> bool {
        if staged != 0 && staged < self.gathering.batch && self.may_hold() {
            self.gathering.held.store(true, Ordering::Relaxed);
            // The hand-over with the drainer and with the timer, see above.
            fence(Ordering::SeqCst);
            if self.may_hold() {
                self.watch();
                return true;
            }
        }
        if self.is_holding() {
            self.gathering.end();
        }
        false
    }

    /// Whether what does not make a batch may wait for more.
    #[inline]
    fn may_hold(&self) -> bool {
        self.is_filled() || (self.is_polled() && self.is_left_to_waiters())
    }

    /// Whether threads wait for this CPU that, as far as is known, give way to each other while they wait for I/O: they find
    /// completions, and more at once, if they are left to it.
    #[inline]
    pub(crate) fn is_left_to_waiters(&self) -> bool {
        self.gathers() && self.giving_way.is_on() && self.upper.is_crowded()
    }

    /// Whether the device has work enough.
    #[inline]
    fn is_filled(&self) -> bool {
        let Gathering { batch, enough, .. } = self.gathering;
        let outstanding = self.outstanding();
        // CAST: usize is at most 64 bits wide.
        outstanding >= batch as u64 && (outstanding >= enough || self.upper.is_crowded())
    }

    /// Whether staged commands wait for more of them.
    #[inline]
    pub(crate) fn is_holding(&self) -> bool {
        self.gathering.held.load(Ordering::Relaxed)
    }

    /// Whether something is held that must not be any longer. By the drainer, after the fence that follows its count.
    #[inline]
    pub(crate) fn is_starved(&self) -> bool {
        self.is_holding() && !self.may_hold()
    }

    /// Nobody adds to what is held: it goes to the device, if that has not enough.
    #[inline]
    pub(crate) fn let_go(&self) {
        if self.is_holding() && !self.is_filled() {
            self.tell_held();
        }
    }

    /// What is held goes to the device.
    #[inline]
    pub(crate) fn tell_held(&self) {
        if self.is_holding() {
            if let Some(mut side) = self.issue.lock_or_knock() {
                self.gathering.end();
                self.ring(&mut side);
                self.leave(side, Left::Idle, &mut Ending::new());
            }
        }
    }
}
