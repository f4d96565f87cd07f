// SPDX-License-Identifier: GPL-2.0
//! From requests to commands: what is submitted is bound to a tag, staged, and the device told of
//! it.
//!
//! A request that finds no free tag, or the issue token held, goes into the FIFO; whoever frees a
//! tag or holds the token takes it out again, in order.
//!
//! # A request that can't be mapped
//! Memory for a mapping (a bounce buffer, a list of segments) usually comes back with the next
//! completion, so the request waits for one at the head of the FIFO. With nothing in flight there
//! is no such completion, and some mappings succeed never: more bytes than the machine maps at
//! once, a bounce buffer that others hold for good. Such a request would keep all behind it waiting
//! for ever, so it fails after a number of attempts and a time ([`MapRetryLimit`]).
//!
//! # Deferred doorbells
//! A strategy may let commands that are staged wait for more ([`Strategy::batches`]), as long as
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
//! The strategy names a time. No command is late by more than a tenth of what the device has lately
//! taken for one, whatever it names: the next tick comes by then, and is put off no further. A
//! context that polls when the next poll may be too late tells the device itself. A device of which
//! it is not known what it takes is told at once.
//!
//! Only a polled queue defers, and the timer comes while something is deferred: the two find each
//! other as the timer and the issuer do for what is outstanding (`timer.rs`). A queue that goes
//! back to its interrupt meanwhile says so, passes a fence, and looks whether anything is deferred;
//! the issuer says that it defers, passes a fence, and looks whether the queue is polled. One of
//! the two sees the other (`tests/loom_defer.rs`).
//!
//! # Blocks
//! A device may take blocks of commands, one at a time ([`Queue::takes`]). What is staged is held
//! back while one is out, as if it were deferred, and whoever drains what is over of it offers what
//! is staged anew; the strategy says the size of the block ([`Strategy::block`]), or has it wait
//! for a moment: no longer than a tenth of what the device has lately taken for a command, as
//! above, and where a timer can come for it. With [`TagBatch::MAX`] staged nothing more is bound,
//! and the FIFO fills.
//!
//! The issuer says that something is held back, passes a fence, and asks the device once more; the
//! drainer releases what is over, passes a fence, and looks whether something is held back. One of
//! the two sees the other (`tests/loom_block.rs`).

use cell::sync::{fence, Ordering};
use cell::Guard;
use hal::{Bound, CmdError, Free, FreeTags, Platform, Queue, Tag, TagBatch, Unbound};

use crate::complete::ROUNDS;
use crate::policy::{Block, Context, Staged, Strategy, Switches, View};
use crate::queue::{
    CompletionBatch, Data, Gathering, IoQueue, IssueBudget, IssueSide, MapRetryLimit, Upper,
};

/// The most commands that may be staged before one more is bound.
const ROOM: usize = TagBatch::<Bound>::MAX - 1;

/// A request that could not be issued at once.
enum Unissued<R> {
    /// Others wait before it, no tag is free, or the queue is dead.
    NoTag(R),
    /// It can't be bound, for that reason.
    NotBound(R, CmdError),
    /// The controller gave out a tag that is in use.
    TagInUse(R),
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Takes `rq` over: issues it, or leaves it in the FIFO, or ends it with an error. Never fails,
    /// never waits. Any context, with preemption off. With `last == false` the doorbell may wait
    /// for [`IoQueue::commit`], which must follow.
    // Inline in each caller: where a call came in between, it took 54 instructions more.
    #[inline(always)]
    pub fn submit(&self, rq: U::Request, last: bool) {
        let Some(mut side) = self.issue.try_lock() else {
            return self.submit_to_fifo(rq);
        };
        match self.issue_direct(&mut side, rq) {
            Ok(tag) if last => self.ring_last(&mut side, tag),
            Ok(tag) => self.stage(&mut side, tag),
            Err(unissued) => return self.submit_unissued(side, unissued, last),
        }
        if self.end_issue(side) {
            self.issue_again(&mut IssueBudget::new());
        }
    }

    /// Another context is issuing: it, or this one, issues `rq` from the FIFO.
    #[cold]
    fn submit_to_fifo(&self, rq: U::Request) {
        let mut budget = IssueBudget::new();
        self.push(rq, &mut budget);
        self.issue_again(&mut budget);
    }

    #[cold]
    fn submit_unissued(
        &self,
        side: Guard<'_, IssueSide<Q>>,
        unissued: Unissued<U::Request>,
        last: bool,
    ) {
        let (mut side, mut budget) = (side, IssueBudget::new());
        let left = match self.end_or_keep(&mut side, unissued, &mut budget.ended) {
            Ok(()) => IssueStop::Idle,
            Err(kept) => self.issue_behind(&mut side, kept, core::iter::empty(), &mut budget),
        };
        if last {
            self.ring_or_defer(&mut side);
        }
        self.leave(side, left, &mut budget);
    }

    /// As [`IoQueue::submit`], but gives `rq` back when no tag is free and others wait for one: for
    /// a layer above that has its own order of what waits. It comes again after some completion, or
    /// after a while. One may wait in the FIFO for whoever is issuing at this moment.
    #[cold]
    pub fn try_submit(&self, rq: U::Request, last: bool) -> Result<(), U::Request> {
        let mut budget = IssueBudget::new();
        let Some(mut side) = self.issue.try_lock() else {
            if !self.fifo.is_empty() {
                return Err(rq);
            }
            self.push(rq, &mut budget);
            self.issue_again(&mut budget);
            return Ok(());
        };
        let kept = match self.issue_direct(&mut side, rq) {
            Ok(tag) => {
                self.stage(&mut side, tag);
                None
            }
            Err(unissued) => (self.end_or_keep(&mut side, unissued, &mut budget.ended)).err(),
        };
        let (left, back) = match kept {
            None => (IssueStop::Idle, Ok(())),
            Some((rq, IssueStop::NotMapped)) => {
                let (kept, none) = ((rq, IssueStop::NotMapped), core::iter::empty());
                (
                    self.issue_behind(&mut side, kept, none, &mut budget),
                    Ok(()),
                )
            }
            Some((rq, _)) => (self.issue_batch(&mut side, &mut budget), Err(rq)),
        };
        if last || back.is_err() {
            self.ring_or_defer(&mut side);
        }
        self.leave(side, left, &mut budget);
        back
    }

    /// Takes all of `rqs` over as [`IoQueue::submit`] does, with one doorbell for each
    /// [`TagBatch::MAX`] of them. `rqs` is advanced with the issue token held.
    pub fn submit_many(&self, rqs: impl Iterator<Item = U::Request>) {
        let mut rqs = rqs;
        let mut budget = IssueBudget::new();
        let Some(mut side) = self.issue.try_lock() else {
            rqs.for_each(|rq| self.push(rq, &mut budget));
            return self.issue_again(&mut budget);
        };
        let (mut left, mut newest) = (IssueStop::Idle, None);
        // Not a `for`: those that are left go into the FIFO.
        while let Some(rq) = rqs.next() {
            let issued = self.issue_direct(&mut side, rq);
            if let Some(tag) = newest.take() {
                self.stage(&mut side, tag);
            }
            let unissued = match issued {
                Ok(tag) => {
                    newest = Some(tag);
                    continue;
                }
                Err(unissued) => unissued,
            };
            if let Err(kept) = self.end_or_keep(&mut side, unissued, &mut budget.ended) {
                left = self.issue_behind(&mut side, kept, &mut rqs, &mut budget);
                break;
            }
        }
        match newest {
            Some(tag) => self.ring_last(&mut side, tag),
            None => self.ring_or_defer(&mut side),
        }
        self.leave(side, left, &mut budget);
    }

    /// Tells the device of what was submitted with `last == false`. Any context, with preemption
    /// off.
    #[inline]
    pub fn commit(&self) {
        if let Some(mut side) = self.issue.lock_or_knock() {
            self.ring_or_defer(&mut side);
            self.leave(side, IssueStop::Idle, &mut IssueBudget::new());
        }
    }

    /// Binds `rq` with the token held, if nobody waits before it.
    #[inline(always)]
    fn issue_direct(
        &self,
        side: &mut IssueSide<Q>,
        rq: U::Request,
    ) -> Result<Tag<Bound>, Unissued<U::Request>> {
        if side.dead || !self.fifo.is_empty() || self.is_full(side) {
            return Err(Unissued::NoTag(rq));
        }
        if side.free.is_empty() {
            self.refill(side);
        }
        match side.free.pop() {
            Some(tag) => self.issue_one(side, tag, rq),
            None => Err(Unissued::NoTag(rq)),
        }
    }

    /// Ends what could not be issued with its error, in `ended`; or gives it back, with the reason
    /// why it has to wait.
    #[cold]
    fn end_or_keep(
        &self,
        side: &mut IssueSide<Q>,
        unissued: Unissued<U::Request>,
        ended: &mut CompletionBatch<U>,
    ) -> Result<(), (U::Request, IssueStop)> {
        let (rq, why) = match unissued {
            Unissued::NoTag(rq) if side.dead => (rq, CmdError::Gone),
            Unissued::NoTag(rq) => return Err((rq, IssueStop::Idle)),
            Unissued::TagInUse(rq) => {
                self.spurious_tags.add(1);
                (rq, CmdError::Io)
            }
            Unissued::NotBound(mut rq, why) => {
                self.upper.unmap(&mut rq);
                if why != CmdError::NotReady {
                    (rq, why)
                } else if self.is_exhausted(side) {
                    if side.map_retries.is_first_report() {
                        self.upper.starved(&rq);
                    }
                    (rq, CmdError::Invalid)
                } else {
                    return Err((rq, IssueStop::NotMapped));
                }
            }
        };
        ended.end(&self.upper, rq, Err(why.permanent()));
        Ok(())
    }

    /// Gives the issue token back after direct issue, and sees to what others wished meanwhile.
    #[inline]
    pub(crate) fn leave(
        &self,
        side: Guard<'_, IssueSide<Q>>,
        left: IssueStop,
        budget: &mut IssueBudget<U>,
    ) {
        if self.end_issue(side) || left == IssueStop::BudgetSpent {
            return self.issue_again(budget);
        }
        budget.ended.finish(&self.upper, Context::Sweep);
        if left == IssueStop::NotMapped {
            self.upper.retry_later();
        }
    }

    /// Gives the issue token back, which is a fence, and sees to it that the timer runs for what
    /// was issued. Whether somebody has knocked.
    #[inline(always)]
    pub(crate) fn end_issue(&self, side: Guard<'_, IssueSide<Q>>) -> bool {
        let knocked = side.release();
        self.watch();
        knocked
    }

    /// Sees to it that the timer runs, if it has anything to come for. After the issuer's fence.
    #[inline(always)]
    pub(crate) fn watch(&self) {
        if self.is_watched() {
            self.start_timer();
        }
    }

    /// Whether the timer has anything to come for.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.polling.is_on() && (self.outstanding() != 0 || self.batching.is_pending())
    }

    /// A thread has submitted, and takes completions in passing if the strategy says so; of a
    /// polled queue, where nobody has looked for a while. Any context, with preemption off.
    #[inline(always)]
    pub fn poll_on_submit(&self, switches: Switches) {
        if !self.strategy.polls_on_submit(self, switches) {
            return;
        }
        let mut was_due = None;
        if self.polling.is_on() {
            let now = self.upper.now_ns();
            if !self.polling.is_poll_due(now) {
                return;
            }
            was_due = self.begin_poll(now);
        }
        self.drain_budgeted(Context::Coop, false, was_due);
    }

    /// Binds `rq` to `tag`, which is to be staged, or told of, next.
    #[inline(always)]
    fn issue_one(
        &self,
        side: &mut IssueSide<Q>,
        tag: Tag<Free>,
        rq: U::Request,
    ) -> Result<Tag<Bound>, Unissued<U::Request>> {
        let (mut rq, upper) = (rq, &self.upper);
        let cmd = upper.command(&rq);
        let bound = match upper.data(&mut rq) {
            Data::One(segment) => self.hw.bind_one_segment(&mut side.hw, tag, &cmd, segment),
            Data::Many(data) => {
                // A copy: the command itself can then stay in registers.
                let copy = cmd;
                self.hw.bind_tag_cmd(&mut side.hw, tag, &copy, data)
            }
            Data::Not(why) => Err(Unbound { tag, why }),
        };
        let tag = match bound {
            Ok(tag) => tag,
            Err(Unbound { tag, why }) => {
                // The tag came from there. Were it lost, it would be one slot until the next reset.
                let _ = side.free.push(tag);
                return Err(Unissued::NotBound(rq, why));
            }
        };
        side.map_retries.end();
        upper.begin_cmd(&mut rq);
        let at = tag.index();
        if let Some(issued_at) = self.issued_at.get(at) {
            issued_at.store(upper.now_ms(), Ordering::Relaxed);
        }
        if self.may_predict() && self.is_predicting_wanted() {
            // A copy: the command itself can then stay in registers.
            let copy = cmd;
            self.predict(side, at, &copy, &rq);
        }
        let put = match self.slots.get(at) {
            Some(slot) => slot.put(&mut side.requests, rq),
            None => Err(rq),
        };
        if let Err(rq) = put {
            // Neither command is mixed up with the other, and the tag is not used until the next
            // reset.
            let _ = tag.unbind();
            return Err(Unissued::TagInUse(rq));
        }
        Ok(tag)
    }

    /// Whether the device takes blocks.
    #[inline(always)]
    fn takes_blocks(&self) -> bool {
        Q::BLOCKS && self.hw.takes_blocks()
    }

    /// Whether nothing more can be bound: what is staged leaves no room for more than the one that
    /// may be about to be, and the device takes none of it.
    #[inline(always)]
    fn is_full(&self, side: &IssueSide<Q>) -> bool {
        let staged = side.bound.len();
        let is_full = self.takes_blocks() && staged >= ROOM && !side.dead;
        is_full && self.hw.takes(&side.hw, staged) == 0
    }

    /// Stages `tag` for the doorbell.
    #[inline(always)]
    fn stage(&self, side: &mut IssueSide<Q>, tag: Tag<Bound>) {
        side.last = u32::from(tag.number());
        if let Err(tag) = side.bound.push(tag) {
            self.ring_for(side, tag);
        }
    }

    /// Tells the device of `tag`, the last for now, and of all that is staged; or stages it, where
    /// that is to wait for more.
    #[inline(always)]
    fn ring_last(&self, side: &mut IssueSide<Q>, tag: Tag<Bound>) {
        let waits = self.batching.batch() > 1 || self.takes_blocks();
        if !side.bound.is_empty() || waits {
            self.stage(side, tag);
            return self.ring_or_defer(side);
        }
        self.issued.add(1);
        let writes = self.hw.issue_tag(&mut side.hw, tag);
        self.issue_doorbells.add(writes);
    }

    /// Whether a request whose data can't be mapped at the moment is to fail: nothing in flight
    /// gives memory back, and it was waited for long enough.
    #[cold]
    fn is_exhausted(&self, side: &mut IssueSide<Q>) -> bool {
        let in_flight = !side.bound.is_empty() || self.outstanding() != 0;
        if in_flight {
            side.map_retries.end();
            return false;
        }
        side.map_retries.is_exhausted(self.upper.now_ms())
    }

    /// Tells the device of a full batch to make room for `tag`.
    #[cold]
    fn ring_for(&self, side: &mut IssueSide<Q>, tag: Tag<Bound>) {
        self.ring(side);
        // The batch is empty now.
        let _ = side.bound.push(tag);
    }

    /// Gets as many free tags as a batch holds: what this holder of the token does not use, the
    /// next one finds, and the pool's atomics are touched once in as many I/Os.
    fn refill(&self, side: &mut IssueSide<Q>) {
        side.free = self.hw.get_free_tags(&mut side.hw, FreeTags::MAX);
    }

    /// Tells the device of everything that is staged; or of a block, if it takes one.
    #[inline(always)]
    pub(crate) fn ring(&self, side: &mut IssueSide<Q>) {
        if !side.bound.is_empty() {
            if self.takes_blocks() {
                return self.ring_block(side);
            }
            self.issued.add(side.bound.len());
            self.batching
                .begin_sample(side.last, || self.upper.now_ns());
            let writes = self.hw.issue_tags(&mut side.hw, &mut side.bound);
            self.issue_doorbells.add(writes);
        }
    }

    /// Tells the device of a block, if it takes one and that is not to wait for more; holds back
    /// what is left.
    #[inline(never)]
    fn ring_block(&self, side: &mut IssueSide<Q>) {
        // The hand-over with the drainer, see above.
        self.batching.hold();
        fence(Ordering::SeqCst);
        let staged = side.bound.len();
        let takes = self.hw.takes(&side.hw, staged);
        let size = match takes {
            0 => 0,
            takes => self.size_of_block(side, staged).min(takes),
        };
        if size != 0 {
            let mut block = side.bound.split_first(size);
            side.gathering = Gathering::begun(size, side.bound.len());
            self.issued.add(block.len());
            let last = block.numbers().last().map_or(0, u32::from);
            self.batching.begin_sample(last, || self.upper.now_ns());
            let writes = self.hw.issue_tags(&mut side.hw, &mut block);
            self.issue_doorbells.add(writes);
        }
        match side.bound.len() {
            0 => self.batching.end(),
            staged if takes == 0 => {
                side.gathering.beside = staged;
                self.hw.hold(&mut side.hw, staged);
            }
            _ => {}
        }
        if self.polling.is_on() {
            self.watch();
        }
    }

    /// Of how many of `staged` commands the block is that the device would take in now, at least 1;
    /// 0: it waits for more, and the timer comes for it.
    fn size_of_block(&self, side: &mut IssueSide<Q>, staged: usize) -> usize {
        let now = self.upper.now_ns();
        let Gathering { last, beside, .. } = side.gathering;
        let since = *side.gathering.since_ns.get_or_insert(now);
        let block = Block {
            staged,
            most: self.hw.takes(&side.hw, TagBatch::<Bound>::MAX).max(1),
            expected: last.saturating_add(beside),
            waited_ns: now.saturating_sub(since),
            may_wait_ns: match self.upper.can_poll() {
                true => self.batching.most_ns(),
                false => 0,
            },
        };
        let size = self.strategy.block(self, block);
        if size != 0 || !block.may_wait() {
            return size.max(1);
        }
        let until = since.saturating_add(block.may_wait_ns);
        self.batching.until_ns.store(until, Ordering::Relaxed);
        match self.polling.is_on() {
            true => {
                self.watch();
                self.hasten_tick(now, until);
            }
            false => self.arm(now, until),
        }
        0
    }
}

/// Where issuing came to an end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IssueStop {
    /// Nothing to issue, or no tag to issue it with. Whoever changes that comes for the token.
    Idle,
    /// The first request can't be mapped at the moment. Nobody comes by himself.
    NotMapped,
    /// More than may be issued here: a tag is free for it.
    BudgetSpent,
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Lets the request of `kept`, which has to wait for that reason, and all that come after it
    /// wait in the FIFO, and issues from there.
    #[cold]
    fn issue_behind(
        &self,
        side: &mut IssueSide<Q>,
        kept: (U::Request, IssueStop),
        after: impl Iterator<Item = U::Request>,
        budget: &mut IssueBudget<U>,
    ) -> IssueStop {
        let (rq, why) = kept;
        self.push(rq, budget);
        after.for_each(|rq| self.push(rq, budget));
        match why {
            IssueStop::NotMapped => why,
            _ => self.issue_batch(side, budget),
        }
    }

    /// Puts `rq` at the end of the FIFO. The caller looks for tags, or knocks, afterwards.
    pub(crate) fn push(&self, rq: U::Request, budget: &mut IssueBudget<U>) {
        self.upper.deferred(&rq);
        budget.own = budget.own.saturating_add(1);
        if let Err(rq) = self.fifo.push(rq) {
            // More requests than the queue was made for: the caller's bug, not to be made worse by
            // losing one.
            budget
                .ended
                .end(&self.upper, rq, Err(CmdError::Io.permanent()));
        }
    }

    /// Issues from the FIFO for as long as there is something to do that is its part, or obliges
    /// the token's holder to do so; then finishes what it has ended.
    #[cold]
    pub(crate) fn issue_again(&self, budget: &mut IssueBudget<U>) {
        let mut left = IssueStop::Idle;
        let mut rounds = 0..ROUNDS;
        while let Some(mut side) = self.issue.lock_or_knock() {
            left = self.issue_batch(&mut side, budget);
            self.ring_or_defer(&mut side);
            let knocked = self.end_issue(side);
            if left == IssueStop::BudgetSpent && budget.may_issue(self.drain_budget()) == 0 {
                match self.leave_requests() {
                    true => left = IssueStop::Idle,
                    false => budget.own = usize::MAX,
                }
            }
            // Who knocks may have staged something: that is told of, whoever issues the rest.
            if !knocked && left != IssueStop::BudgetSpent {
                break;
            }
            if rounds.next().is_none() {
                left = match self.leave_requests() {
                    true => IssueStop::Idle,
                    false => IssueStop::BudgetSpent,
                };
                break;
            }
        }
        budget.ended.finish(&self.upper, Context::Sweep);
        if left != IssueStop::Idle {
            self.upper.retry_later();
        }
    }

    /// Issues from the FIFO what the caller may, and [`TagBatch::MAX`] at most, without a doorbell.
    pub(crate) fn issue_batch(
        &self,
        side: &mut IssueSide<Q>,
        budget: &mut IssueBudget<U>,
    ) -> IssueStop {
        let mut may = budget
            .may_issue(self.drain_budget())
            .min(TagBatch::<Bound>::MAX);
        loop {
            if self.fifo.is_empty() || self.is_full(side) {
                return IssueStop::Idle;
            }
            if side.free.is_empty() && !side.dead {
                self.refill(side);
            }
            if side.free.is_empty() && !side.dead {
                // The hand-over with the drainer. There: tags are released, then the token, which
                // is a fence, and the FIFO is looked at. Here: a request is in the FIFO, a fence,
                // the tags are looked at. One of the two finds what the other left.
                fence(Ordering::SeqCst);
                self.refill(side);
                if side.free.is_empty() {
                    return IssueStop::Idle;
                }
            }
            match may.checked_sub(1) {
                Some(rest) => may = rest,
                None => return IssueStop::BudgetSpent,
            }
            match (self.fifo).with_first(|rq| self.issue_first(side, rq, &mut budget.ended)) {
                Some(Ok(())) => budget.issued = budget.issued.saturating_add(1),
                Some(Err(left)) => return left,
                // Someone is still filling the place, and comes for the token then.
                None => return IssueStop::Idle,
            }
        }
    }

    /// Issues the first request of the FIFO, or fails it; gives it back with the reason when it has
    /// to stay there.
    fn issue_first(
        &self,
        side: &mut IssueSide<Q>,
        rq: U::Request,
        ended: &mut CompletionBatch<U>,
    ) -> Result<(), (U::Request, IssueStop)> {
        let tag = match side.dead {
            true => None,
            false => side.free.pop(),
        };
        let unissued = match tag {
            Some(tag) => match self.issue_one(side, tag, rq) {
                Ok(tag) => {
                    self.stage(side, tag);
                    return Ok(());
                }
                Err(unissued) => unissued,
            },
            None => Unissued::NoTag(rq),
        };
        self.end_or_keep(side, unissued, ended)
    }
}

impl Gathering {
    /// A block of so many was begun, beside those that stay staged.
    fn begun(last: usize, beside: usize) -> Self {
        Self {
            last,
            beside,
            since_ns: None,
        }
    }
}

/// How often it is tried in vain, and for how many milliseconds, until a mapping is given up: as
/// long as a device gets for its answer, as memory may be held by what other devices have in
/// flight.
const TRIES: u32 = 64;
const PATIENCE_MS: u64 = 30_000;

impl MapRetryLimit {
    /// Some data was mapped, or may be soon.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        if self.tries != 0 {
            *self = Self::default();
        }
    }

    /// Whether that a request is given up is news: once until [`MapRetryLimit::end`].
    fn is_first_report(&mut self) -> bool {
        !core::mem::replace(&mut self.told, true)
    }

    /// A mapping has failed at `now_ms`, with nothing in flight. Whether to give that request up;
    /// what comes after it is then given up at its first failure, until some data is mapped again.
    #[cold]
    fn is_exhausted(&mut self, now_ms: u64) -> bool {
        if self.tries == 0 {
            self.since_ms = now_ms;
        }
        self.tries = self.tries.saturating_add(1);
        let waited = now_ms.saturating_sub(self.since_ms);
        // Both: a clock that jumps (a machine that was suspended) alone is no reason.
        self.tries > TRIES && waited >= PATIENCE_MS
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Tells the device of everything that is staged, unless it is to wait for more.
    // Inline in each caller, as `submit` is.
    #[inline(always)]
    fn ring_or_defer(&self, side: &mut IssueSide<Q>) {
        let defers = self.batching.batch() > 1 && !self.takes_blocks();
        if defers && self.defer(side.bound.len()) {
            return;
        }
        if self.batching.is_pending() {
            self.batching.end();
        }
        self.ring(side);
    }

    /// Lets `staged` commands wait, if they are to; from then on that is seen. By the issuer.
    #[inline(never)]
    fn defer(&self, staged: usize) -> bool {
        let for_ns = match staged != 0 && (staged as u64) < self.batching.batch() {
            true => self.most_deferred_ns(Staged::Open),
            false => 0,
        };
        if for_ns != 0 {
            let begins = !self.batching.on.swap(true, Ordering::Relaxed);
            // The hand-over with who turns polling off, and with the timer, see above.
            fence(Ordering::SeqCst);
            if self.polling.is_on() {
                self.watch();
                if begins {
                    let now = self.upper.now_ns();
                    let until = now.saturating_add(for_ns);
                    self.batching.until_ns.store(until, Ordering::Relaxed);
                    self.hasten_tick(now, until);
                }
                return true;
            }
        }
        false
    }

    /// For how long what is no whole batch may wait for more, in nanoseconds; 0: it must not.
    #[inline]
    fn most_deferred_ns(&self, staged: Staged) -> u64 {
        if !self.polling.is_on() {
            return 0;
        }
        self.strategy
            .batches(self, staged)
            .min(self.batching.most_ns())
    }

    #[inline]
    fn may_defer(&self, staged: Staged) -> bool {
        // What is held back is offered whenever it may be taken.
        !self.takes_blocks() && self.most_deferred_ns(staged) != 0
    }

    /// Whether something is deferred that must not be any longer. By the drainer, after the fence
    /// that follows its count.
    #[inline]
    pub(crate) fn is_flush_due(&self) -> bool {
        self.batching.is_pending() && !self.may_defer(Staged::Open)
    }

    /// What is deferred goes to the device, unless the strategy lets it wait on.
    #[inline]
    pub(crate) fn flush_unless_deferred(&self, staged: Staged) {
        if self.batching.is_pending() && !self.may_defer(staged) {
            self.flush();
        }
    }

    /// What is deferred goes to the device.
    #[inline]
    pub(crate) fn flush(&self) {
        if self.batching.is_pending() {
            if let Some(mut side) = self.issue.lock_or_knock() {
                self.batching.end();
                self.ring(&mut side);
                self.leave(side, IssueStop::Idle, &mut IssueBudget::new());
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_takes_tries_and_time() {
        let mut map_retries = MapRetryLimit::default();
        for try_ in 0..TRIES {
            assert!(!map_retries.is_exhausted(5 + u64::from(try_)));
        }
        assert!(!map_retries.is_exhausted(4 + PATIENCE_MS), "too early");
        assert!(map_retries.is_exhausted(5 + PATIENCE_MS));
        assert!(map_retries.is_first_report() && !map_retries.is_first_report());
        assert!(
            map_retries.is_exhausted(5 + PATIENCE_MS),
            "nor the next one"
        );
        map_retries.end();
        assert!(!map_retries.is_exhausted(6 + PATIENCE_MS));
        assert!(!map_retries.is_exhausted(u64::MAX), "too few tries");
    }
}
