// SPDX-License-Identifier: GPL-2.0
//! The gate: open, quiesced, dead. Control path.
//!
//! Who holds both tokens has the queue for itself: submitters leave their requests in the FIFO and
//! knock, drainers knock and go. So the gate costs the data path nothing.

use cell::{Guard, TryLock};
use core::fmt;
use hal::{Failure, Platform, Queue, RetryHint, TagBatch};

use crate::complete::DrainPass;
use crate::policy::{Context, Strategy};
use crate::queue::{CompletionBatch, DrainSide, IoQueue, IssueBudget, IssueSide, Upper};
use crate::submit::IssueStop;

/// How long to sleep between two looks at a token. Its holder has preemption off and bounded work
/// to do.
const LOOK_AGAIN_US: u64 = 50;

/// A queue that is at rest: nothing is issued, nothing is drained, what is submitted waits.
/// Dropping it is [`Quiesced::unquiesce`].
#[must_use = "dropping it opens the gate again"]
pub struct Quiesced<'a, P: Platform, Q: Queue, U: Upper, S: Strategy> {
    queue: &'a IoQueue<P, Q, U, S>,
    /// Both are there until the drop.
    tokens: Option<Tokens<'a, Q, S>>,
}

struct Tokens<'a, Q: Queue, S: Strategy> {
    issue: Guard<'a, IssueSide<Q>>,
    drain: Guard<'a, DrainSide<Q, S>>,
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// The right to the queue that was left closed ([`Quiesced::keep_closed`]), if it was; one
    /// caller gets it.
    pub fn kept_closed(&self) -> Option<Quiesced<'_, P, Q, U, S>> {
        // In the order in which they were parked: with the first, the other one is there, too.
        let drain = self.drain.unpark()?;
        let issue = self.issue.unpark()?;
        Some(Quiesced {
            queue: self,
            tokens: Some(Tokens { issue, drain }),
        })
    }

    /// Closes the gate: returns when nobody issues or drains any more, and all tags that nothing is
    /// bound to are the controller's again. Sleeps; one caller at a time, or the second sleeps
    /// until the first resumes.
    pub fn quiesce(&self, platform: &P) -> Quiesced<'_, P, Q, U, S> {
        let mut issue = take(platform, &self.issue);
        let drain = take(platform, &self.drain);
        // The controller may have other plans with its tags when it goes on.
        let IssueSide { hw, free, .. } = &mut *issue;
        self.hw.unget_tags(hw, &mut free.take_all());
        Quiesced {
            queue: self,
            tokens: Some(Tokens { issue, drain }),
        }
    }
}

/// TIMEOUT: none, as every holder leaves after a bounded number of rounds, save a `Quiesced`, for
/// which it is meant to wait.
fn take<'a, T>(platform: &impl Platform, token: &'a TryLock<T>) -> Guard<'a, T> {
    loop {
        if let Some(guard) = token.try_lock() {
            return guard;
        }
        platform.sleep_us(LOOK_AGAIN_US);
    }
}

impl<'a, P: Platform, Q: Queue, U: Upper, S: Strategy> Quiesced<'a, P, Q, U, S> {
    pub(crate) fn queue(&self) -> &'a IoQueue<P, Q, U, S> {
        self.queue
    }

    pub(crate) fn drain_side(&mut self) -> Option<&mut DrainSide<Q, S>> {
        self.tokens.as_mut().map(|tokens| &mut *tokens.drain)
    }

    /// Says what the controller's queue is like, if commands are outstanding: see
    /// [`hal::Queue::timeout_report`].
    pub fn timeout_report(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        match &self.tokens {
            Some(Tokens { issue, drain }) if self.queue.in_flight() != 0 => {
                self.queue.hw.timeout_report(&issue.hw, &drain.hw, to)
            }
            _ => Ok(()),
        }
    }

    /// Ends everything that holds a tag: what the device has finished with its own outcome, the
    /// rest with `why`, or as [`Failure::not_issued`] where the device was never told of it. Only
    /// while the device is stopped, or cut off the bus: see [`hal::Controller::stop`].
    pub fn reap(&mut self, why: Failure) {
        let queue = self.queue;
        let Some(Tokens { issue, drain }) = &mut self.tokens else {
            return;
        };
        let mut ended = CompletionBatch::new();
        // What was finished before the stop. Bounded, as the ring may hold anything.
        for _ in 0..=queue.slots.len() {
            let pass = DrainPass {
                by: Context::Sweep,
                at_ns: queue.poll_ns(),
                most: usize::MAX,
            };
            if !queue.drain_batch(drain, &mut ended, pass) {
                break;
            }
        }
        // What the device was never told of.
        let IssueSide { hw, bound, .. } = &mut **issue;
        let mut back = TagBatch::default();
        for tag in bound.drain() {
            let slot = queue.slots.get(tag.index());
            if let Some(rq) = slot.and_then(|slot| slot.take(&mut drain.requests)) {
                ended.end(&queue.upper, rq, Err(why.not_issued()));
            }
            // It has room: both are equally long.
            let _ = back.push(tag.unbind());
        }
        queue.hw.unget_tags(hw, &mut back);
        queue.batching.end();
        // What it did not finish.
        for _ in 0..queue.slots.len() {
            let Some(event) = queue.hw.reap_tag(&mut drain.hw) else {
                break;
            };
            let why = match event.outcome {
                Err(failure) if failure.retry == RetryHint::NotIssued => why.not_issued(),
                _ => why,
            };
            let tag = queue.hw.detach_tag_cmd(&mut drain.hw, event.tag);
            let slot = queue.slots.get(tag.index());
            if let Some(rq) = slot.and_then(|slot| slot.take(&mut drain.requests)) {
                ended.end(&queue.upper, rq, Err(why));
            }
            if let Err(tag) = drain.detached.push(tag) {
                queue.release(drain);
                let _ = drain.detached.push(tag);
            }
        }
        queue.release(drain);
        // No request stays behind, whatever the controller says of its tags.
        let slots = queue.slots.iter();
        for rq in slots.filter_map(|slot| slot.take(&mut drain.requests)) {
            ended.end(&queue.upper, rq, Err(why));
        }
        // Tags that the controller has lost are over, too.
        queue.done.equal(&queue.issued);
        ended.finish(&queue.upper, Context::Sweep);
    }

    /// Makes the controller's queue as it was when created, between [`Quiesced::reap`] and
    /// [`hal::Controller::start`].
    pub fn rewind(&mut self) {
        if let Some(Tokens { issue, drain }) = &mut self.tokens {
            self.queue.hw.rewind(&mut issue.hw, &mut drain.hw);
            self.queue.batching.forget_sample();
            // The controller may count anew.
            self.queue.note_violations(drain);
        }
    }

    /// Opens the gate, and issues what has gathered before it.
    pub fn unquiesce(self) {}

    /// Leaves the gate closed with nobody to hold it, until [`IoQueue::kept_closed`].
    pub fn keep_closed(mut self) {
        if let Some(Tokens { issue, drain }) = self.tokens.take() {
            issue.park();
            drain.park();
        }
    }

    /// Closes the gate for ever: everything in the FIFO and everything submitted later ends with
    /// [`CmdError::Gone`]. What holds a tag is not touched: [`Quiesced::reap`] first.
    pub fn kill(mut self) {
        if let Some(Tokens { issue, .. }) = &mut self.tokens {
            issue.dead = true;
            let mut budget = IssueBudget::in_charge();
            while self.queue.issue_batch(issue, &mut budget) == IssueStop::BudgetSpent {}
            budget.ended.finish(&self.queue.upper, Context::Sweep);
        }
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> Drop for Quiesced<'_, P, Q, U, S> {
    fn drop(&mut self) {
        if let Some(Tokens { issue, drain }) = self.tokens.take() {
            // Whoever knocked for a drain, it follows.
            let _ = drain.release();
            let knocked = issue.release();
            self.queue.kick();
            if knocked || self.queue.batching.is_pending() {
                // Not only for the FIFO: there may be commands that were staged, and committed in
                // vain.
                self.queue.issue_again(&mut IssueBudget::in_charge());
            }
        }
    }
}
