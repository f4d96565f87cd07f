// SPDX-License-Identifier: GPL-2.0
//! Requests that wait for a tag, or for who is issuing: into the FIFO, and out of it again.

use crate::issue::Held;
use crate::queue::{IoQueue, IssueSide};
use crate::strategy::Strategy;
use crate::upper::Ending;
use crate::{Context, Upper};
use cell::sync::{fence, Ordering};
use hal::{CmdError, Free, Platform, Queue, TagBatch};

/// How many batches one context issues at the wish of others before it leaves the rest to
/// [`Upper::retry_later`].
const ROUNDS: usize = 16;

/// Where issuing came to an end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing to issue, or no tag to issue it with. Whoever changes that comes for the token.
    Idle,
    /// The first request can't be mapped at the moment. Nobody comes by himself.
    NotReady,
    /// A full batch was issued; there may be more.
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
        ended: &mut Ending<U>,
    ) -> Left {
        let (rq, ready) = match held {
            Held::Behind(rq) => (rq, true),
            Held::NotReady(rq) => (rq, false),
        };
        self.push(rq, ended);
        after.for_each(|rq| self.push(rq, ended));
        if ready {
            self.issue_batch(side, ended)
        } else {
            Left::NotReady
        }
    }

    /// Puts `rq` at the end of the FIFO. The caller looks for tags, or knocks, afterwards.
    pub(crate) fn push(&self, rq: U::Request, ended: &mut Ending<U>) {
        self.upper.deferred(&rq);
        if let Err(rq) = self.fifo.push(rq) {
            // More requests than the queue was made for: the caller's bug, not to be made worse by
            // losing one.
            ended.end(&self.upper, rq, Err(CmdError::Io.finally()));
        }
    }

    /// Issues from the FIFO for as long as there is something to do, or obliges the token's holder
    /// to do so; then finishes `ended`.
    #[cold]
    pub(crate) fn issue_again(&self, ended: &mut Ending<U>) {
        let mut left = Left::Idle;
        let mut rounds = 0..ROUNDS;
        while let Some(mut side) = self.issue.lock_or_knock() {
            left = self.issue_batch(&mut side, ended);
            self.ring_or_defer(&mut side);
            let knocked = side.release();
            if !knocked && left != Left::More {
                break;
            }
            if rounds.next().is_none() {
                left = Left::More;
                break;
            }
        }
        ended.finish(&self.upper, Context::Sweep);
        if left != Left::Idle {
            self.upper.retry_later();
        }
    }

    /// Issues at most [`TagBatch::MAX`] requests from the FIFO, without a doorbell.
    pub(crate) fn issue_batch(&self, side: &mut IssueSide<Q>, ended: &mut Ending<U>) -> Left {
        for _ in 0..TagBatch::<Free>::MAX {
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
            }
            match (self.fifo).with_first(|rq| self.issue_first(side, rq, ended)) {
                Some(Ok(())) => {}
                Some(Err(left)) => return left,
                // Someone is still filling the place, and comes for the token then.
                None => return Left::Idle,
            }
        }
        Left::More
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
