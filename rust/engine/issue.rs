// SPDX-License-Identifier: GPL-2.0
//! From requests to commands: what is submitted is bound, staged, and told of. What has to wait is
//! in `queued.rs`.

use crate::queue::{IoQueue, IssueSide};
use crate::queued::{Left, Passage};
use crate::strategy::{Strategy, View};
use crate::upper::Ending;
use crate::{Context, Upper};
use cell::sync::Ordering;
use cell::Guard;
use hal::{Bound, CmdError, Free, Platform, Queue, Tag, TagBatch, Unbound};

/// A request that could not be issued directly.
pub(crate) enum Held<R> {
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
    pub(crate) fn issue_one(
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
    pub(crate) fn refill(&self, side: &mut IssueSide<Q>) {
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
