// SPDX-License-Identifier: GPL-2.0
//! What one context leaves to others, and who is certain to come for it.
//!
//! Whoever passes by (a submitter, a thread that waits, a tick) ends a budget at most
//! ([`Strategy::budget`]), and issues for others no more than as many as it has freed tags for, and
//! a budget. An interrupt ends all that is there, and issues likewise. What is over that is left:
//!
//! ```text
//!  completions, on a queue that is polled --- to the next tick, which is put off no more
//!  completions, else                      --- to a tick that is armed for it, soon
//!  requests, though tags are free         --- to a tick, at once
//!  either, where there is no timer        --- to nobody: the context goes on, ROUNDS times at most
//! ```
//!
//! A tick is such a context itself, and so comes again at once for what it leaves. That something
//! is left is said first, and the timer armed then: a tick that is under way sees the one, or is
//! followed by another.

use crate::queue::IoQueue;
use crate::strategy::{Strategy, View};
use crate::Upper;
use cell::sync::{AtomicBool, Ordering};
use hal::{Free, Platform, Queue, TagBatch};

/// How many batches one context drains, or issues, that nobody takes off its hands.
pub(crate) const ROUNDS: usize = 16;

/// The smallest budget: to end fewer takes no longer than the tick that comes for the rest, some
/// 2,600 instructions (`learned`: tick_ns, on the timed machine).
const LEAST: usize = 8;

/// What is left at this moment.
pub(crate) struct Rest {
    /// Completions, or a drain that somebody has knocked for.
    completions: AtomicBool,
    /// Requests that a tag is free for, or a doorbell that somebody has knocked for.
    requests: AtomicBool,
}

impl Rest {
    pub(crate) fn new() -> Self {
        Self {
            completions: AtomicBool::new(false),
            requests: AtomicBool::new(false),
        }
    }

    /// Completions are left.
    #[inline]
    pub(crate) fn has_completions(&self) -> bool {
        self.completions.load(Ordering::Relaxed)
    }

    /// Something is left.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.has_completions() || self.requests.load(Ordering::Relaxed)
    }

    /// All completions were taken. By the drainer.
    pub(crate) fn end_completions(&self) {
        self.completions.store(false, Ordering::Relaxed);
    }

    /// Whether requests were left until now: the caller comes for them.
    #[inline]
    pub(crate) fn take_requests(&self) -> bool {
        // Acquire: who comes for them finds them.
        self.requests.load(Ordering::Relaxed) && self.requests.swap(false, Ordering::AcqRel)
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// How many requests one context ends in passing, and how many it issues for others beside as
    /// many as it has freed tags for, whatever the strategy says.
    #[inline(always)]
    pub(crate) fn budget(&self) -> usize {
        let said = self.strategy.budget(self);
        said.clamp(LEAST, TagBatch::<Free>::MAX)
    }

    /// Leaves completions that are there. `was_due`: when the next tick would have come, if the
    /// caller has put it off; `knocked`: for somebody who relied on the caller. `false`: nobody
    /// comes for them, as what an interrupt has announced, it does not announce again.
    #[cold]
    pub(crate) fn leave_completions(&self, was_due: Option<u64>, knocked: bool) -> bool {
        if !self.upper.can_poll() {
            return false;
        }
        let was_left = self.rest.completions.swap(true, Ordering::AcqRel);
        // Those who wait for this CPU are given until the tick that would have come.
        if knocked || !self.strategy.leaves_rest(self) {
            self.tick_at_once();
        } else if was_left {
            // A tick is to come for it.
        } else if !self.is_polled() {
            let now = self.upper.now_ns();
            self.arm(now, now.saturating_add(self.interval_ns() / 2));
        } else if let Some(due) = was_due {
            self.arm(self.upper.now_ns(), due);
        }
        true
    }

    /// Leaves requests that a tag is free for. `false`: nobody comes for them.
    #[cold]
    pub(crate) fn leave_requests(&self) -> bool {
        // Release: who comes for them finds them.
        self.rest.requests.store(true, Ordering::Release);
        let comes = self.upper.can_poll();
        if comes {
            self.tick_at_once();
        }
        comes
    }
}
