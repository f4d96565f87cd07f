// SPDX-License-Identifier: GPL-2.0
//! A queue as a strategy sees it.

use crate::queue::IoQueue;
use crate::strategy::{Strategy, View};
use crate::{Costs, Mode, Upper};
use hal::{Platform, Queue};

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// What [`IoQueue::set_foretelling`] was told last: also while the strategy wants to be left
    /// alone, and nothing is foretold.
    pub fn is_foretelling_wanted(&self) -> bool {
        self.foretelling.is_wanted()
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> View for IoQueue<P, Q, U, S> {
    #[inline(always)]
    fn outstanding(&self) -> u64 {
        // The older of the two first: it does not go below 0 by what happens between.
        let done = self.done.get();
        self.issued.get().saturating_sub(done)
    }

    #[inline(always)]
    fn tags(&self) -> u64 {
        // CAST: usize is at most 64 bits wide.
        self.slots.len() as u64
    }

    #[inline(always)]
    fn batch(&self) -> u64 {
        // CAST: as above.
        self.deferring.batch as u64
    }

    #[inline(always)]
    fn is_deferring(&self) -> bool {
        self.is_deferred()
    }

    #[inline(always)]
    fn mode(&self) -> Mode {
        self.poll.mode()
    }

    #[inline(always)]
    fn is_polled(&self) -> bool {
        self.poll.is_on()
    }

    #[inline]
    fn most_deferred_ns(&self) -> u64 {
        self.deferring.most_ns()
    }

    #[inline]
    fn costs(&self) -> Costs {
        self.costs.get()
    }

    #[inline(always)]
    fn is_crowded(&self) -> bool {
        self.upper.is_crowded()
    }

    #[inline(always)]
    fn is_foretelling(&self) -> bool {
        self.foretelling.is_on()
    }

    #[inline(always)]
    fn interrupts_thread(&self) -> bool {
        self.upper.interrupts_thread()
    }

    #[inline(always)]
    fn interrupts_waiter(&self) -> bool {
        self.upper.interrupts_waiter()
    }

    #[inline(always)]
    fn interval_ns(&self) -> u64 {
        self.poll.interval_ns()
    }

    #[inline(always)]
    fn now_ms(&self) -> u64 {
        self.upper.now_ms()
    }

    #[inline(always)]
    fn now_ns(&self) -> u64 {
        self.upper.now_ns()
    }
}
