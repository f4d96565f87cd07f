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
//! for ever, so it fails after a number of attempts and a time ([`Starving`]).
//!
//! # Deferred doorbells
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

use cell::sync::{fence, Ordering};
use cell::Guard;
use hal::{Bound, CmdError, Free, Platform, Queue, Tag, TagBatch, Unbound};

use crate::complete::ROUNDS;
use crate::policy::{Context, Staged, Strategy, View};
use crate::queue::{Deferring, Ending, IoQueue, IssueSide, Passage, Starving, Upper};

/// A request that could not be issued directly.
enum Held<R> {
    /// Others wait before it, or no tag is free.
    Behind(R),
    /// It can't be mapped at the moment.
    NotReady(R),
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Takes `rq` over: issues it, or leaves it in the FIFO, or ends it with an error. Never fails,
    /// never waits. Any context, with preemption off. With `last == false` the doorbell may wait
    /// for [`IoQueue::commit`], which must follow.
    #[inline]
    pub fn submit(&self, rq: U::Request, last: bool) {
        let mut passage = Passage::new();
        let Some(mut side) = self.issue.try_lock() else {
            self.push(rq, &mut passage);
            return self.issue_again(&mut passage);
        };
        let left = match self.issue_direct(&mut side, rq, &mut passage) {
            Ok(()) => Left::Idle,
            Err(held) => self.issue_behind(&mut side, held, core::iter::empty(), &mut passage),
        };
        if last {
            self.ring_or_defer(&mut side);
        }
        self.leave(side, left, &mut passage);
    }

    /// As [`IoQueue::submit`], but gives `rq` back when no tag is free and others wait for one: for
    /// a layer above that has its own order of what waits. It comes again after some completion, or
    /// after a while. One may wait in the FIFO for whoever is issuing at this moment.
    #[cold]
    pub fn try_submit(&self, rq: U::Request, last: bool) -> Result<(), U::Request> {
        let mut passage = Passage::new();
        let Some(mut side) = self.issue.try_lock() else {
            if !self.fifo.is_empty() {
                return Err(rq);
            }
            self.push(rq, &mut passage);
            self.issue_again(&mut passage);
            return Ok(());
        };
        let (left, back) = match self.issue_direct(&mut side, rq, &mut passage) {
            Ok(()) => (Left::Idle, Ok(())),
            Err(Held::Behind(rq)) => (self.issue_batch(&mut side, &mut passage), Err(rq)),
            Err(held) => {
                let none = core::iter::empty();
                (
                    self.issue_behind(&mut side, held, none, &mut passage),
                    Ok(()),
                )
            }
        };
        if last || back.is_err() {
            self.ring_or_defer(&mut side);
        }
        self.leave(side, left, &mut passage);
        back
    }

    /// Takes all of `rqs` over as [`IoQueue::submit`] does, with one doorbell for each
    /// [`TagBatch::MAX`] of them. `rqs` is advanced with the issue token held.
    pub fn submit_many(&self, rqs: impl Iterator<Item = U::Request>) {
        let mut rqs = rqs;
        let mut passage = Passage::new();
        let Some(mut side) = self.issue.try_lock() else {
            rqs.for_each(|rq| self.push(rq, &mut passage));
            return self.issue_again(&mut passage);
        };
        let mut left = Left::Idle;
        loop {
            let Some(rq) = rqs.next() else { break };
            if let Err(held) = self.issue_direct(&mut side, rq, &mut passage) {
                left = self.issue_behind(&mut side, held, &mut rqs, &mut passage);
                break;
            }
        }
        self.ring_or_defer(&mut side);
        self.leave(side, left, &mut passage);
    }

    /// Tells the device of what was submitted with `last == false`. Any context, with preemption
    /// off.
    #[inline]
    pub fn commit(&self) {
        if let Some(mut side) = self.issue.lock_or_knock() {
            self.ring_or_defer(&mut side);
            self.leave(side, Left::Idle, &mut Passage::new());
        }
    }

    /// Issues `rq` with the token held, if nobody waits before it.
    #[inline(always)]
    fn issue_direct(
        &self,
        side: &mut IssueSide<Q>,
        rq: U::Request,
        passage: &mut Passage<U>,
    ) -> Result<(), Held<U::Request>> {
        if side.dead {
            passage
                .ended
                .end(&self.upper, rq, Err(CmdError::Gone.finally()));
            return Ok(());
        }
        if !self.fifo.is_empty() {
            return Err(Held::Behind(rq));
        }
        if side.free.is_empty() {
            self.refill(side);
        }
        match side.free.pop() {
            Some(tag) => {
                (self.issue_one(side, tag, rq, &mut passage.ended)).map_err(Held::NotReady)
            }
            None => Err(Held::Behind(rq)),
        }
    }

    /// Gives the issue token back after direct issue, and sees to what others wished meanwhile.
    #[inline]
    pub(crate) fn leave(
        &self,
        side: Guard<'_, IssueSide<Q>>,
        left: Left,
        passage: &mut Passage<U>,
    ) {
        if side.release() || left == Left::More {
            return self.issue_again(passage);
        }
        passage.ended.finish(&self.upper, Context::Sweep);
        if left == Left::NotReady {
            self.upper.retry_later();
        }
    }

    /// Binds `rq` to `tag` and stages it for the doorbell, or ends it with the reason why it can't
    /// be bound. Gives it back when it can't be bound at the moment.
    #[inline]
    fn issue_one(
        &self,
        side: &mut IssueSide<Q>,
        tag: Tag<Free>,
        mut rq: U::Request,
        ended: &mut Ending<U>,
    ) -> Result<(), U::Request> {
        let upper = &self.upper;
        let cmd = upper.command(&rq);
        let tag = match (self.hw).bind_tag_cmd(&mut side.hw, tag, &cmd, upper.segments(&mut rq)) {
            Ok(tag) => tag,
            Err(Unbound { tag, why }) => {
                // It has room: the tag came from there. Were it lost, it would be one slot until
                // the next reset.
                let _ = side.free.push(tag);
                upper.unmap(&mut rq);
                if why != CmdError::NotReady {
                    ended.end(upper, rq, Err(why.finally()));
                } else if self.gives_up(side) {
                    if side.starving.is_news() {
                        upper.starved(&rq);
                    }
                    ended.end(upper, rq, Err(CmdError::Invalid.finally()));
                } else {
                    return Err(rq);
                }
                return Ok(());
            }
        };
        side.starving.end();
        upper.begin_cmd(&mut rq);
        let at = tag.index();
        if let Some(issued_at) = self.issued_at.get(at) {
            issued_at.store(upper.now_ms(), Ordering::Relaxed);
        }
        self.foretell(side, at, &cmd, &rq);
        let put = match self.slots.get(at) {
            Some(slot) => slot.put(rq),
            None => Err(rq),
        };
        if let Err(rq) = put {
            // The controller gave out a tag that is in use: neither command is mixed up with the
            // other, and the tag is not used until the next reset.
            let _ = tag.unbind();
            self.issue_strays.add(1);
            ended.end(upper, rq, Err(CmdError::Io.finally()));
            return Ok(());
        }
        // CAST: a tag is 16 bits wide.
        side.last = at as u32;
        if let Err(tag) = side.bound.push(tag) {
            self.ring_for(side, tag);
        }
        Ok(())
    }

    /// Whether a request whose data can't be mapped at the moment is to fail: nothing in flight
    /// gives memory back, and it was waited for long enough.
    #[cold]
    fn gives_up(&self, side: &mut IssueSide<Q>) -> bool {
        let in_flight = !side.bound.is_empty() || self.outstanding() != 0;
        if in_flight {
            side.starving.end();
            return false;
        }
        side.starving.gives_up(self.upper.now_ms())
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
        (self.hw).get_free_tags(&mut side.hw, TagBatch::<Free>::MAX, &mut side.free);
    }

    /// Tells the device of everything that is staged.
    #[inline(always)]
    pub(crate) fn ring(&self, side: &mut IssueSide<Q>) {
        if !side.bound.is_empty() {
            self.issued.add(side.bound.len());
            self.deferring
                .begin_sample(side.last, || self.upper.now_ns());
            let writes = self.hw.issue_tags(&mut side.hw, &mut side.bound);
            self.issue_doorbells.add(writes);
            self.watch_issued();
        }
    }
}

/// Where issuing came to an end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing to issue, or no tag to issue it with. Whoever changes that comes for the token.
    Idle,
    /// The first request can't be mapped at the moment. Nobody comes by himself.
    NotReady,
    /// More than may be issued here: a tag is free for it.
    More,
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Lets `held` and all that come after it wait in the FIFO, and issues from there.
    #[cold]
    fn issue_behind(
        &self,
        side: &mut IssueSide<Q>,
        held: Held<U::Request>,
        after: impl Iterator<Item = U::Request>,
        passage: &mut Passage<U>,
    ) -> Left {
        let (rq, ready) = match held {
            Held::Behind(rq) => (rq, true),
            Held::NotReady(rq) => (rq, false),
        };
        self.push(rq, passage);
        after.for_each(|rq| self.push(rq, passage));
        if ready {
            self.issue_batch(side, passage)
        } else {
            Left::NotReady
        }
    }

    /// Puts `rq` at the end of the FIFO. The caller looks for tags, or knocks, afterwards.
    pub(crate) fn push(&self, rq: U::Request, passage: &mut Passage<U>) {
        self.upper.deferred(&rq);
        passage.own = passage.own.saturating_add(1);
        if let Err(rq) = self.fifo.push(rq) {
            // More requests than the queue was made for: the caller's bug, not to be made worse by
            // losing one.
            passage
                .ended
                .end(&self.upper, rq, Err(CmdError::Io.finally()));
        }
    }

    /// Issues from the FIFO for as long as there is something to do that is its part, or obliges
    /// the token's holder to do so; then finishes what it has ended.
    #[cold]
    pub(crate) fn issue_again(&self, passage: &mut Passage<U>) {
        let mut left = Left::Idle;
        let mut rounds = 0..ROUNDS;
        while let Some(mut side) = self.issue.lock_or_knock() {
            left = self.issue_batch(&mut side, passage);
            self.ring_or_defer(&mut side);
            let knocked = side.release();
            if left == Left::More && passage.may_issue(self.budget()) == 0 {
                match self.leave_requests() {
                    true => left = Left::Idle,
                    false => passage.own = usize::MAX,
                }
            }
            // Who knocks may have staged something: that is told of, whoever issues the rest.
            if !knocked && left != Left::More {
                break;
            }
            if rounds.next().is_none() {
                left = match self.leave_requests() {
                    true => Left::Idle,
                    false => Left::More,
                };
                break;
            }
        }
        passage.ended.finish(&self.upper, Context::Sweep);
        if left != Left::Idle {
            self.upper.retry_later();
        }
    }

    /// Issues from the FIFO what the caller may, and [`TagBatch::MAX`] at most, without a doorbell.
    pub(crate) fn issue_batch(&self, side: &mut IssueSide<Q>, passage: &mut Passage<U>) -> Left {
        let mut may = passage.may_issue(self.budget()).min(TagBatch::<Free>::MAX);
        loop {
            if self.fifo.is_empty() {
                return Left::Idle;
            }
            if side.free.is_empty() && !side.dead {
                self.refill(side);
            }
            if side.free.is_empty() && !side.dead {
                // The hand-over with the drainer. There: tags are released, a fence, the FIFO is
                // looked at. Here: a request is in the FIFO, a fence, the tags are looked at. One
                // of the two finds what the other left.
                fence(Ordering::SeqCst);
                self.refill(side);
                if side.free.is_empty() {
                    return Left::Idle;
                }
            }
            match may.checked_sub(1) {
                Some(rest) => may = rest,
                None => return Left::More,
            }
            match (self.fifo).with_first(|rq| self.issue_first(side, rq, &mut passage.ended)) {
                Some(Ok(())) => passage.issued = passage.issued.saturating_add(1),
                Some(Err(left)) => return left,
                // Someone is still filling the place, and comes for the token then.
                None => return Left::Idle,
            }
        }
    }

    /// Issues the first request of the FIFO, or fails it; gives it back with the reason when it has
    /// to stay there.
    fn issue_first(
        &self,
        side: &mut IssueSide<Q>,
        rq: U::Request,
        ended: &mut Ending<U>,
    ) -> Result<(), (U::Request, Left)> {
        if side.dead {
            ended.end(&self.upper, rq, Err(CmdError::Gone.finally()));
            return Ok(());
        }
        match side.free.pop() {
            Some(tag) => (self.issue_one(side, tag, rq, ended)).map_err(|rq| (rq, Left::NotReady)),
            None => Err((rq, Left::Idle)),
        }
    }
}

/// How often it is tried in vain, and for how many milliseconds, until a mapping is given up: as
/// long as a device gets for its answer, as memory may be held by what other devices have in
/// flight.
const TRIES: u32 = 64;
const PATIENCE_MS: u64 = 30_000;

impl Starving {
    /// Some data was mapped, or may be soon.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        if self.tries != 0 {
            *self = Self::default();
        }
    }

    /// Whether that a request is given up is news: once until [`Starving::end`].
    fn is_news(&mut self) -> bool {
        !core::mem::replace(&mut self.told, true)
    }

    /// A mapping has failed at `now_ms`, with nothing in flight. Whether to give that request up;
    /// what comes after it is then given up at its first failure, until some data is mapped again.
    #[cold]
    fn gives_up(&mut self, now_ms: u64) -> bool {
        if self.tries == 0 {
            self.since_ms = now_ms;
        }
        self.tries = self.tries.saturating_add(1);
        let waited = now_ms.saturating_sub(self.since_ms);
        // Both: a clock that jumps (a machine that was suspended) alone is no reason.
        self.tries > TRIES && waited >= PATIENCE_MS
    }
}

/// The part of a command's time that it may be late by.
const SHARE: u64 = 10;
/// How much of a new measurement goes into the average: the part of 2 to the power of so much.
const WEIGHT: u32 = 3;

impl Deferring {
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
    fn begin_sample(&self, tag: u32, now_ns: impl FnOnce() -> u64) {
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
    fn ring_or_defer(&self, side: &mut IssueSide<Q>) {
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
    fn it_takes_tries_and_time() {
        let mut starving = Starving::default();
        for try_ in 0..TRIES {
            assert!(!starving.gives_up(5 + u64::from(try_)));
        }
        assert!(!starving.gives_up(4 + PATIENCE_MS), "too early");
        assert!(starving.gives_up(5 + PATIENCE_MS));
        assert!(starving.is_news() && !starving.is_news());
        assert!(starving.gives_up(5 + PATIENCE_MS), "nor the next one");
        starving.end();
        assert!(!starving.gives_up(6 + PATIENCE_MS));
        assert!(!starving.gives_up(u64::MAX), "too few tries");
    }

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
