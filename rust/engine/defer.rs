// SPDX-License-Identifier: GPL-2.0
//! Telling the device of commands later, together with others that are to come.
//!
//! A strategy may let commands that are staged wait for more ([`Strategy::defers`]), as long as they
//! are no whole batch ([`Queue::batch`]) and something is certain to come for them:
//!
//! ```text
//!  staged --- a whole batch, or the strategy does not defer ---> rung
//!     |
//!  deferred --- a drain, and the strategy defers no more ------> flushed
//!     |     --- a thread that leaves its CPU, a tick ----------> flushed
//!     +     --- the gate opens, the strategy is another -------> flushed
//! ```
//!
//! # A deferred doorbell is never lost
//! Where the queue interrupts, something is with the device, whose completion leads to a drain, which
//! asks again, and once nothing is outstanding no strategy is asked. The issuer says that it defers,
//! passes a fence, and looks at what is outstanding; the drainer counts what is done, passes a fence,
//! and looks whether anything is deferred. One of the two sees the other (`tests/loom_defer.rs`). Of
//! a polled queue it is the next tick, which comes while something is deferred: the timer and the
//! issuer find each other as they do for what is outstanding (`poll.rs`).

use crate::issue::Left;
use crate::queue::{IoQueue, IssueSide};
use crate::strategy::{Staged, Strategy, View};
use crate::upper::Ending;
use crate::Upper;
use cell::sync::{fence, AtomicBool, Ordering};
use hal::{Platform, Queue};

/// What a queue defers, and whether it does at this moment.
pub(crate) struct Deferring {
    /// [`Queue::batch`].
    pub(crate) batch: usize,
    /// Staged commands wait for more of them. Written by the issue token's holder.
    on: AtomicBool,
}

impl Deferring {
    /// For a queue whose device is best told of `batch` commands at once.
    pub(crate) fn new(batch: usize) -> Self {
        Self {
            batch,
            on: AtomicBool::new(false),
        }
    }

    /// Nothing is staged any more, or it goes to the device now.
    pub(crate) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
    }
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
        if staged != 0 && staged < self.deferring.batch && self.may_defer(Staged::Open) {
            self.deferring.on.store(true, Ordering::Relaxed);
            // The hand-over with the drainer and with the timer, see above.
            fence(Ordering::SeqCst);
            if self.may_defer(Staged::Open) {
                self.watch();
                return true;
            }
        }
        if self.is_deferred() {
            self.deferring.end();
        }
        false
    }

    /// Whether what is no whole batch may wait for more: somebody is certain to come for it, and the
    /// strategy wants that.
    #[inline]
    fn may_defer(&self, staged: Staged) -> bool {
        (self.outstanding() != 0 || self.is_polled()) && self.strategy.defers(self, staged)
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
                self.leave(side, Left::Idle, &mut Ending::new());
            }
        }
    }
}
