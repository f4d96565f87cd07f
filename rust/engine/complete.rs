// SPDX-License-Identifier: GPL-2.0
//! From completions to ended requests, what one context leaves to others, and what a hybrid queue
//! makes of what it has drained.
//!
//! Whoever passes by (a submitter, a thread that waits, a tick) ends a budget at most
//! ([`Strategy::budget`]), and issues for others no more than as many as it has freed tags for, and
//! a budget. An interrupt ends all that is there, and issues likewise. What is over that is left:
//!
//! ```text
//!  completions                     --- to a tick, at once
//!    which threads come for sooner --- to the tick of a polled queue that was due; else to one
//!                                      after half an interval (Strategy::leaves_to_waiters)
//!  requests, though tags are free  --- to a tick, at once
//!  either, where there is no timer --- to nobody: the context goes on, ROUNDS times at most
//! ```
//!
//! A tick is such a context itself, and so comes again at once for what it leaves. That something
//! is left is said first, and the timer armed then: a tick that is under way sees the one, or is
//! followed by another.

use cell::sync::Ordering;
use hal::{Detached, Event, Platform, Queue, TagBatch};

use crate::policy::{Context, Drained, Mode, Strategy, View};
use crate::queue::{
    CompletionBatch, DrainSide, IoQueue, IssueBudget, Leftover, UnreportedInterrupts, Upper,
};

/// A pass over the completions that are there.
#[derive(Clone, Copy)]
pub(crate) struct DrainPass {
    /// Under which context.
    pub(crate) by: Context,
    /// When it began, while it is predicted when commands are over.
    pub(crate) at_ns: u64,
    /// How many it takes at most.
    pub(crate) most: usize,
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Takes the completions that are there, ends their requests under `by`, and issues from the
    /// FIFO with the tags that came free; or obliges whoever is at it to look again. Returns how
    /// many requests it ended. Any context, with preemption off.
    ///
    /// A passer-by looks first whether anything came. An interrupt goes through with it:
    /// [`Queue::release_tags`] may be what lets the device interrupt again.
    #[inline]
    pub fn drain(&self, by: Context) -> usize {
        match by {
            Context::Irq => self.drain_as_interrupt(),
            _ => self.drain_for(by, false),
        }
    }

    /// As [`IoQueue::drain_interrupt`], out of line.
    #[inline(never)]
    fn drain_as_interrupt(&self) -> usize {
        self.drain_interrupt()
    }

    /// [`IoQueue::drain`] by the interrupt, which takes all completions that are there: as
    /// [`IoQueue::drain_up_to`] without a bound, and without a look at whether anything came.
    // Inline in the interrupt's handler, for which it is; elsewhere `drain` is small.
    #[inline(always)]
    pub fn drain_interrupt(&self) -> usize {
        let (by, mut total, mut issued) = (Context::Irq, 0usize, 0);
        for _ in 0..=ROUNDS {
            let Some(mut side) = self.drain.lock_or_knock() else {
                return total;
            };
            let mut ended = CompletionBatch::new();
            let pass = DrainPass {
                by,
                at_ns: self.poll_ns(),
                most: usize::MAX,
            };
            let more = self.drain_once(&mut side, &mut ended, pass);
            let knocked = side.release();
            if !self.fifo.is_empty() || self.is_flush_due() {
                issued = self.issue_freed(by, total.wrapping_add(ended.count()), issued);
            }
            total = total.wrapping_add(ended.finish(&self.upper, by));
            if !knocked && !more {
                return total;
            }
        }
        if !self.leave_completions(None, true) {
            self.upper.retry_later();
        }
        total
    }

    /// When a poll begins, while that matters.
    #[inline]
    pub(crate) fn poll_ns(&self) -> u64 {
        match self.is_predicting() {
            true => self.upper.now_ns(),
            false => 0,
        }
    }

    /// One pass with the drain token held; whether another is to follow.
    #[inline(always)]
    fn drain_once(
        &self,
        side: &mut DrainSide<Q, S>,
        ended: &mut CompletionBatch<U>,
        pass: DrainPass,
    ) -> bool {
        let more = self.drain_batch(side, ended, pass);
        if !more && self.leftover.has_completions() {
            self.leftover_taken(pass.by);
        }
        // If it is back to interrupts: what has come since this pass announces itself no more.
        more | self.adapt(side, pass.by, ended)
    }

    /// A thread that passes by drains, see [`IoQueue::drain_budgeted`].
    pub(crate) fn poll_cq(&self, due: bool) -> usize {
        let was_due = match self.polling.is_on() {
            true => self.begin_poll(self.upper.now_ns()),
            false => None,
        };
        self.drain_budgeted(Context::Coop, due, was_due)
    }

    /// Drains no more requests than a budget, if somebody is certain to come for the rest.
    /// `was_due`: when the next tick would have come, if the caller has put it off.
    pub(crate) fn drain_budgeted(&self, by: Context, due: bool, was_due: Option<u64>) -> usize {
        self.drain_up_to(self.drain_budget(), by, due, was_due)
    }

    /// Drains under `by`; when it is `due`, or someone has knocked for it, with no look at whether
    /// anything came.
    pub(crate) fn drain_for(&self, by: Context, due: bool) -> usize {
        self.drain_up_to(usize::MAX, by, due, None)
    }

    /// Drains until `most` requests have ended, or further, if nobody is certain to come for the
    /// rest.
    fn drain_up_to(&self, most: usize, by: Context, due: bool, was_due: Option<u64>) -> usize {
        let (mut most, mut due) = (most, due);
        let (mut total, mut issued) = (0usize, 0);
        let mut rounds = 0..ROUNDS;
        while let Some(mut side) = self.drain.lock_or_knock() {
            let mut ended = CompletionBatch::new();
            let pass = DrainPass {
                by,
                at_ns: self.poll_ns(),
                most: most.saturating_sub(total),
            };
            let due = core::mem::replace(&mut due, true) || self.hw.check_event(&mut side.hw);
            let more = match due {
                true => self.drain_once(&mut side, &mut ended, pass),
                false => {
                    self.found_nothing(pass.at_ns);
                    by == Context::Poll && self.adapt(&mut side, by, &ended)
                }
            };
            let knocked = side.release();
            if due && (!self.fifo.is_empty() || self.is_flush_due()) {
                issued = self.issue_freed(by, total.wrapping_add(ended.count()), issued);
            }
            total = total.wrapping_add(ended.finish(&self.upper, by));
            if !knocked && !more {
                break;
            }
            if total >= most {
                if self.leave_completions(was_due, knocked || by == Context::Poll) {
                    break;
                }
                most = usize::MAX;
            }
            if rounds.next().is_none() {
                if !self.leave_completions(None, true) {
                    self.upper.retry_later();
                }
                break;
            }
        }
        total
    }

    /// Issues from the FIFO after a drain that has `freed` tags. `issued` says how many were until
    /// now, and the answer how many are then.
    #[cold]
    fn issue_freed(&self, by: Context, freed: usize, issued: usize) -> usize {
        let own = match by {
            Context::Sweep => usize::MAX,
            _ => freed,
        };
        let mut budget = IssueBudget::of(own, issued);
        self.issue_again(&mut budget);
        budget.issued()
    }

    /// What was left was taken, by who drains under `by`.
    #[cold]
    fn leftover_taken(&self, by: Context) {
        self.leftover.end_completions();
        if by == Context::Coop && self.polling.is_on() {
            self.put_off_tick(self.upper.now_ns());
        }
    }

    /// Whether a completion may be waiting that nobody is taking at this moment. Any context, with
    /// preemption off.
    #[inline]
    pub fn check(&self) -> bool {
        let Some(mut side) = self.drain.try_lock() else {
            return false;
        };
        let came = self.hw.check_event(&mut side.hw);
        if side.release() {
            // Who knocked meanwhile relies on a drain.
            self.drain_for(Context::Coop, true);
        }
        came
    }

    /// Takes up to [`DrainPass::most`] completions, and no more than [`TagBatch::MAX`], and frees
    /// their tags. Returns whether there may be more. After it the caller looks at the FIFO.
    // Inline with what it calls, as the issuer's way is: where completions come one at a time,
    // calls were a tenth of what each took.
    #[inline(always)]
    pub(crate) fn drain_batch(
        &self,
        side: &mut DrainSide<Q, S>,
        ended: &mut CompletionBatch<U>,
        pass: DrainPass,
    ) -> bool {
        let mut more = true;
        let room = TagBatch::<Detached>::MAX.saturating_sub(side.detached.len());
        for _ in 0..pass.most.min(room) {
            let Some(event) = self.hw.fetch_event(&mut side.hw) else {
                more = false;
                break;
            };
            let Event { tag, outcome } = event;
            let tag = self.hw.detach_tag_cmd(&mut side.hw, tag);
            self.batching
                .end_sample(tag.index(), || self.upper.now_ns());
            if self.is_predicting() {
                self.answered(tag.index(), pass);
            }
            match self
                .slots
                .get(tag.index())
                .and_then(|slot| slot.take(&mut side.requests))
            {
                Some(rq) => ended.end(&self.upper, rq, outcome),
                None => side.spurious = side.spurious.saturating_add(1),
            }
            // It has room.
            let _ = side.detached.push(tag);
        }
        self.release(side);
        more
    }

    /// Gives the drained tags back to the pool.
    ///
    /// The hand-over with the issuer (`issue_batch`): tags are released, a fence, which is the
    /// release of the drain token, then the FIFO is looked at.
    #[inline(always)]
    pub(crate) fn release(&self, side: &mut DrainSide<Q, S>) {
        self.done.add(side.detached.len());
        let writes = self.hw.release_tags(&mut side.hw, &mut side.detached);
        self.drain_doorbells.add(writes);
        self.note_violations(side);
    }

    /// Lets everybody see how often the controller has contradicted itself.
    #[inline]
    pub(crate) fn note_violations(&self, side: &DrainSide<Q, S>) {
        let spurious = self.hw.violations(&side.hw).saturating_add(side.spurious);
        self.spurious_completions.store(spurious, Ordering::Relaxed);
    }
}

/// How many interrupts of a hybrid queue, which are mostly alike, the strategy is told of together,
/// at the least. The project's own choice: a window of load is judged a few commands later.
const TOGETHER: u32 = 8;
/// How many it is told of together where each has ended one command, or none: telling takes some
/// 140 instructions (`bench/compare --cpus 1 --profile 1`), which so many share. The project's own
/// choice: a window is of 256 commands, and so of 16 samples at the least.
const SHARED: u32 = 16;

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// After a drain that has `ended` some, a hybrid queue goes over to what the strategy thinks
    /// serves the load better. `true`: the caller has to look for completions again.
    #[inline(always)]
    fn adapt(&self, side: &mut DrainSide<Q, S>, by: Context, ended: &CompletionBatch<U>) -> bool {
        if self.polling.mode() != Mode::Hybrid {
            return false;
        }
        if by == Context::Irq && !self.polling.is_on() && !self.is_predicting() {
            side.interrupts.drains = side.interrupts.drains.wrapping_add(1);
            // CAST: a batch is far below that.
            let ended = ended.count() as u32;
            side.interrupts.ended = side.interrupts.ended.wrapping_add(ended);
            let alike = &side.interrupts;
            if alike.drains < TOGETHER || alike.drains.max(alike.ended) < SHARED {
                return false;
            }
        }
        self.evaluate(side, by, ended)
    }

    /// Tells the strategy of a drain, and of the interrupts before it that it was not told of.
    #[inline(never)]
    fn evaluate(
        &self,
        side: &mut DrainSide<Q, S>,
        by: Context,
        ended: &CompletionBatch<U>,
    ) -> bool {
        let passes = matches!(by, Context::Coop | Context::Sweep);
        if passes && ended.count() == 0 {
            return false;
        }
        let alike = match by {
            Context::Irq => core::mem::take(&mut side.interrupts),
            _ => UnreportedInterrupts::default(),
        };
        let drained = Drained {
            by,
            depth: match ended.count() {
                0 => 0,
                // CAST: a batch is far below that.
                ended => self.outstanding().saturating_add(ended as u64),
            },
            ended: (alike.ended as usize).max(ended.count()),
            wakes: ended.wakes(&self.upper),
            drains: alike.drains.max(1),
        };
        let wanted = self.strategy.polls(&mut side.notes, self, Some(drained));
        wanted != self.polling.is_on() && self.switch(wanted) && !wanted
    }
}

/// How many batches one context drains, or issues, that nobody takes off its hands.
pub(crate) const ROUNDS: usize = 16;

/// The smallest budget: to end fewer takes no longer than the tick that comes for the rest, some
/// 2,600 instructions (`learned`: tick_ns, on the timed machine).
const LEAST: usize = 8;

impl Leftover {
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
    fn end_completions(&self) {
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
    pub(crate) fn drain_budget(&self) -> usize {
        let said = self.strategy.budget(self);
        said.clamp(LEAST, TagBatch::<Detached>::MAX)
    }

    /// Leaves completions that are there. `was_due`: when the next tick would have come, if the
    /// caller has put it off; `knocked`: for somebody who relied on the caller. `false`: nobody
    /// comes for them, as what an interrupt has announced, it does not announce again.
    #[cold]
    fn leave_completions(&self, was_due: Option<u64>, knocked: bool) -> bool {
        if !self.upper.can_poll() {
            return false;
        }
        let was_left = self.leftover.completions.swap(true, Ordering::AcqRel);
        // Those who wait for this CPU are given until the tick that would have come.
        if knocked || !self.strategy.leaves_to_waiters(self) {
            self.tick_at_once();
        } else if was_left {
            // A tick is to come for it.
        } else if !self.polling.is_on() {
            let now = self.upper.now_ns();
            self.arm(now, now.saturating_add(self.polling.interval_ns() / 2));
        } else if let Some(due) = was_due {
            self.arm(self.upper.now_ns(), due);
        }
        true
    }

    /// Leaves requests that a tag is free for. `false`: nobody comes for them.
    #[cold]
    pub(crate) fn leave_requests(&self) -> bool {
        // Release: who comes for them finds them.
        self.leftover.requests.store(true, Ordering::Release);
        let comes = self.upper.can_poll();
        if comes {
            self.tick_at_once();
        }
        comes
    }
}
