// SPDX-License-Identifier: GPL-2.0
//! Requests that failed, and are tried again: blk-mq submits each anew, from a thread of its own.
//!
//! ```text
//!  end_cmd: an error --Tries::after--> no: it ends with that error
//!                           +--yes---> unmapped, parted from who waits --finish--> requeue
//! ```
//! What is given back so is blk-mq's until it is submitted again: a reset, which quiesces the
//! queues, finds it there afterwards; a dead controller ends it as soon as it comes; and a disk
//! that goes waits for it. Whether a request comes again, or is a new one, is kept behind it:
//! blk-mq changes its own flags (`RQF_DONTPREP` is meant for this) without a lock, from a time-out
//! that goes on beside the completion, and one of the two changes may get lost.

use super::request::Rq;
use engine::Tries;
use hal::Failure;

/// Whether `rq`, which failed with `failure`, is to be tried again; if so it remembers when. Any
/// context.
#[cold]
pub(crate) fn is_worth_a_try(rq: &Rq, failure: Failure) -> bool {
    let (view, own) = (rq.view(), rq.own());
    let tries = Tries {
        done: own.tries.get(),
        most: rq.lane().max_retries,
        fail_fast: view.is_fail_fast(),
        dying: rq.is_dying(),
    };
    let Some(retry) = tries.after(failure) else {
        return false;
    };
    own.tries.set(retry.done);
    own.delay_ms.set(retry.delay_ms);
    true
}

/// Gives `rq`, of which [`is_worth_a_try`] holds, back to blk-mq: unmapped, and with nobody
/// enlisted. Any context, no token held save by a `engine::Paused`.
#[cold]
pub(crate) fn requeue(rq: Rq) {
    rq.lane().stats.retried();
    let delay_ms = rq.own().delay_ms.get();
    rq.requeue(delay_ms);
}
