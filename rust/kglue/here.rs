// SPDX-License-Identifier: GPL-2.0
//! The running thread and its CPU, as the strategy asks about them.

use crate::shims_safe::{hiops_is_awake, hiops_may_yield, hiops_pause, hiops_pause_awake};
use crate::way::{Offer, Way};
use engine::{Expected, Thread, Waiter, Waiting};

/// A thread that came to sleep, and its CPU.
pub(crate) struct Here {
    /// It has not yielded for this wait, and its CPU is shared by threads like it.
    pub(crate) may_yield: bool,
    /// When what it waits for is over.
    pub(crate) expected: Option<Expected>,
}

impl Waiting for Here {
    #[inline]
    fn is_awake(&self) -> bool {
        hiops_is_awake()
    }

    #[inline]
    fn pause(&self) -> bool {
        hiops_pause()
    }

    #[inline]
    fn expects(&self) -> Option<Expected> {
        self.expected
    }

    #[inline]
    fn may_yield(&self) -> bool {
        self.may_yield && hiops_may_yield()
    }
}

/// A thread that has napped, and is not about to sleep.
pub(crate) struct Napper<'a> {
    /// Where its I/O is enlisted.
    pub(crate) waiter: &'a Waiter<Offer, Way>,
    /// Itself.
    pub(crate) thread: Thread,
}

impl Waiting for Napper<'_> {
    #[inline]
    fn is_awake(&self) -> bool {
        !self.waiter.waits(self.thread)
    }

    #[inline]
    fn pause(&self) -> bool {
        hiops_pause_awake() && !self.is_awake()
    }

    #[inline]
    fn may_yield(&self) -> bool {
        false
    }
}
