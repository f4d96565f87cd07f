// SPDX-License-Identifier: GPL-2.0
//! Requests that failed, and are tried again: blk-mq submits each anew, from a thread of its own.
//!
//! ```text
//!  end_cmd: an error --Tries::after--> no: it ends with that error
//!                           +--yes---> unmapped, parted from who waits --finish--> requeue
//! ```
//! What is given back so is blk-mq's until it is submitted again: a reset, which quiesces the
//! queues, finds it there afterwards; a dead controller ends it as soon as it comes; and a disk
//! that goes waits for it. The flag that blk-mq keeps for drivers that have prepared a request,
//! `RQF_DONTPREP`, tells a request that comes again from a new one.

use super::request::Rq;
use crate::shims;
use engine::Tries;
use hal::Failure;

/// Whether `rq` was tried before.
#[inline]
pub(crate) fn is_retry(rq: &Rq) -> bool {
    // SAFETY: owned.
    unsafe { (*rq.as_raw()).rq_flags & shims::HIOPS_RQF_DONTPREP != 0 }
}

/// Whether `rq`, which failed with `failure`, is to be tried again; if so it remembers when. Any
/// context.
#[cold]
pub(crate) fn is_worth_a_try(rq: &Rq, failure: Failure) -> bool {
    // SAFETY: owned; the head is the request's own.
    let (head, flags) = unsafe { (&mut *rq.head(), (*rq.as_raw()).cmd_flags) };
    let tries = Tries {
        done: if is_retry(rq) { head.tries } else { 0 },
        most: rq.lane().max_retries,
        fail_fast: flags & shims::HIOPS_REQ_FAILFAST != 0,
        // SAFETY: owned, so its queue is there.
        dying: unsafe { shims::hiops_is_dying(rq.as_raw()) },
    };
    let Some(retry) = tries.after(failure) else {
        return false;
    };
    head.tries = retry.done;
    head.delay_ms = retry.delay_ms;
    true
}

/// Gives `rq`, of which [`is_worth_a_try`] holds, back to blk-mq: unmapped, and with nobody
/// enlisted. Any context, no token held save by a `engine::Paused`.
#[cold]
pub(crate) fn requeue(rq: Rq) {
    rq.lane().stats.retried();
    // SAFETY: owned; the head is the request's own.
    let delay_ms = unsafe { (*rq.head()).delay_ms };
    // SAFETY: owned until here; not over, and blk-mq's from here on.
    unsafe { shims::hiops_requeue(rq.into_raw(), delay_ms) };
}
