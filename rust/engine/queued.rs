// SPDX-License-Identifier: GPL-2.0
//! Requests that wait for a tag, or for who is issuing: into the FIFO, and out of it again.

use crate::issue::Held;
use crate::queue::{IoQueue, IssueSide};
use crate::rest::ROUNDS;
use crate::strategy::Strategy;
use crate::upper::Ending;
use crate::{Context, Upper};
use cell::sync::{fence, Ordering};
use hal::{CmdError, Free, Platform, Queue, TagBatch};

/// What one context does for others, until it leaves the rest (`rest.rs`).
pub(crate) struct Passage<U: Upper> {
    /// What it ends.
    pub(crate) ended: Ending<U>,
    /// So many requests it may issue from the FIFO beside a budget: as many as it has left there
    /// itself, or has freed tags for.
    own: usize,
    /// So many it has.
    issued: usize,
}

impl<U: Upper> Passage<U> {
    /// Somebody passes by.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self::of(0, 0)
    }

    /// Somebody has freed `own` tags, and issued `issued` from the FIFO.
    #[inline(always)]
    pub(crate) fn of(own: usize, issued: usize) -> Self {
        Self {
            ended: Ending::new(),
            own,
            issued,
        }
    }

    /// Somebody who is here for just that.
    pub(crate) fn in_charge() -> Self {
        Self::of(usize::MAX, 0)
    }

    /// How many requests it has issued from the FIFO.
    pub(crate) fn issued(&self) -> usize {
        self.issued
    }

    /// How many more it may.
    fn may_issue(&self, budget: usize) -> usize {
        let most = self.own.saturating_add(budget);
        most.saturating_sub(self.issued)
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
    pub(crate) fn issue_behind(
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
