// SPDX-License-Identifier: GPL-2.0
//! The poll timer of a queue without its interrupt, and the switch between the two.
//!
//! While a queue is *polled* its interrupt is off and its completions are found by whoever passes
//! by, and by a timer that ticks only while something is outstanding. Whether a queue is polled is
//! written by the drain token's holder alone: where the mode is set, with the queue at rest, and of
//! a hybrid queue by whoever has drained it.
//!
//! # The hand-over between issuer and timer
//! An issuer counts its commands as issued, gives its token back, which is a fence, and looks
//! whether the timer is armed; a tick that finds nothing outstanding disarms the timer
//! ([`OnDemand`](crate::OnDemand)) and looks at the count again. One of the two sees the other
//! (`tests/loom_poll.rs`). What was counted before the queue became polled is found by the context
//! that switches, in the same way.
//!
//! When it fires where it is predicted when commands are over: `predict.rs`.

use cell::sync::{fence, Ordering};
use hal::{Error, Platform, Queue};

use crate::policy::{Context, Mode, Selectable, Strategy, View, LAST};
use crate::queue::{IoQueue, IssueBudget, Upper};
use crate::quiesce::Quiesced;

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// The interval between two ticks in microseconds.
    pub fn poll_interval_us(&self) -> u32 {
        self.polling.interval_us()
    }

    /// Changes the interval; from the next tick on.
    pub fn set_poll_interval_us(&self, us: u32) {
        self.polling.interval_us.store(us.max(1), Ordering::Relaxed);
    }

    /// The poll timer has expired: takes completions under [`Context::Poll`], and says through
    /// [`Upper::arm_poll`] when to come again: while anything is outstanding, after one interval;
    /// at once, where something is left (`complete.rs`). A completion is noticed no later than
    /// that, whatever was found before. One caller at a time; any context, with preemption off.
    pub fn tick(&self) {
        let due = self.leftover.has_completions();
        self.drain_budgeted(Context::Poll, due, None);
        self.flush();
        if self.leftover.take_requests() {
            self.issue_again(&mut IssueBudget::new());
        }
        // Whoever switches to polling does as the issuer does.
        if self.is_watched() || self.polling.timer.stop(|| self.is_watched()) {
            self.come_again();
        }
    }

    fn come_again(&self) {
        let now = self.upper.now_ns();
        self.arm(now, self.next_poll_ns(now));
        if self.leftover.is_any() {
            self.tick_at_once();
        }
    }

    /// The next tick comes at once.
    #[cold]
    pub(crate) fn tick_at_once(&self) {
        let now = self.upper.now_ns();
        self.arm(now, now);
    }

    /// A context that passes by polls at `now`, or has whoever drains poll again: what is deferred
    /// goes to the device, if the next poll may be too late for it, and the timer need not
    /// come for an interval. When the tick would have come, if it was put off.
    #[inline]
    pub(crate) fn begin_poll(&self, now: u64) -> Option<u64> {
        self.flush_in_time(now);
        self.put_off_tick(now)
    }

    /// The next tick need not come for an interval from `now`, or for as long as the strategy has
    /// it, nor before what is deferred has to go; unless something is left to it.
    #[inline]
    pub(crate) fn put_off_tick(&self, now: u64) -> Option<u64> {
        if !self.polling.timer.is_on() || self.leftover.is_any() {
            return None;
        }
        if self.polling.is_poll_due(now) {
            let due = self.next_poll_ns(now);
            let until = match self.batching.is_pending() {
                true => self.batching.until_ns(),
                false => due,
            };
            let was_due = self.polling.due_ns();
            if until > was_due {
                self.arm(now, due.min(until));
                return Some(was_due);
            }
        }
        None
    }

    #[inline]
    fn flush_in_time(&self, now: u64) {
        let interval = self.polling.interval_ns();
        let next = now.saturating_add(interval.saturating_sub(interval / LAST));
        if self.batching.is_pending() && next >= self.batching.until_ns() {
            self.flush();
        }
    }

    /// The next tick is to come at `due` at the latest.
    #[inline]
    pub(crate) fn hasten_tick(&self, now: u64, due: u64) {
        if due < self.polling.due_ns() {
            self.arm(now, due);
        }
    }

    /// The next tick comes at `due`.
    #[inline]
    pub(crate) fn arm(&self, now: u64, due: u64) {
        self.polling.due_ns.store(due, Ordering::Relaxed);
        let us = due.saturating_sub(now) / 1000;
        self.upper
            .arm_poll(u32::try_from(us).unwrap_or(u32::MAX).max(1));
    }

    #[inline(never)]
    pub(crate) fn start_timer(&self) {
        if self.polling.timer.start() {
            self.come_again();
        } else if self.is_predicting() {
            self.aim_tick();
        }
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> Quiesced<'_, P, Q, U, S> {
    /// Changes the mode; [`Quiesced::unquiesce`] then looks for completions that nobody announces
    /// any more. With preemption off.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: this queue's interrupt can't be turned off.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), Error> {
        let queue = self.queue();
        let polled = match mode {
            Mode::Irq => false,
            Mode::Poll => true,
            Mode::Hybrid => self.begins_polled(),
        };
        let able = mode == Mode::Irq || queue.upper.can_poll();
        if !able || (polled != queue.polling.is_on() && !queue.switch(polled)) {
            return Err(Error::Unsupported);
        }
        queue.polling.set_mode(mode);
        Ok(())
    }

    /// Whether the strategy begins a hybrid queue by polling it.
    fn begins_polled(&mut self) -> bool {
        let queue = self.queue();
        let side = self.drain_side();
        side.is_some_and(|side| queue.strategy.polls(&mut side.notes, queue, None))
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy + Selectable> Quiesced<'_, P, Q, U, S> {
    /// The strategy is to be the one of that number ([`Selectable::NAMES`]). A hybrid queue begins
    /// by its interrupt again, and what was deferred goes to the device with
    /// [`Quiesced::unquiesce`], unless the new one defers it, too. With preemption off.
    pub fn select(&mut self, which: usize) {
        let queue = self.queue();
        queue.strategy.select(which);
        if queue.polling.mode() != Mode::Hybrid {
            return;
        }
        if queue.polling.is_on() {
            queue.switch(false);
        }
        if self.begins_polled() {
            queue.switch(true);
        }
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Turns the interrupt off or on again; `false`: it can't be. With the drain token held.
    #[cold]
    pub(crate) fn switch(&self, polled: bool) -> bool {
        if !self.upper.set_interrupt(!polled) {
            return false;
        }
        self.polling.turn(polled);
        if polled {
            fence(Ordering::SeqCst);
            if self.is_watched() && self.polling.timer.start() {
                self.come_again();
            }
        }
        true
    }
}
