// SPDX-License-Identifier: GPL-2.0
//! What becomes of requests that are over: they end, in a batch where that can be, on their way to
//! their submitters; or they are tried again, if they failed: blk-mq submits each anew, from a
//! thread of its own.
//!
//! ```text
//!  end_cmd: an error --RetryCount::after--> no: it ends with that error
//!                           +--yes---> unmapped, parted from its waiter --finish--> requeue
//! ```
//! What is given back so is blk-mq's until it is submitted again: a reset, which quiesces the
//! queues, finds it there afterwards; a dead controller ends it as soon as it comes; and a disk
//! that goes waits for it. Whether a request comes again, or is a new one, is kept behind it:
//! blk-mq changes its own flags (`RQF_DONTPREP` is meant for this) without a lock, from a time-out
//! that goes on beside the completion, and one of the two changes may get lost.

use engine::{Context, RetryCount};
use hal::Failure;

use crate::blk::hctx::{HctxData, Rq};
use crate::blk::latency::Row;
use crate::blk::request::{Batch, Chain, RqRef};
use crate::bytes::io::Ends;
use crate::shims;
use crate::shims_safe::{hiops_bh_off, hiops_bh_on};

/// Requests that one context has ended, by what becomes of them.
pub(crate) struct EndedRequests {
    /// Those that blk-mq ends as a batch.
    batch: Batch,
    /// Those that it ends one by one, with the status in their PDU.
    single: Chain,
    /// Those whose owners are asleep.
    pub(super) offers: Chain,
    /// Those that are not over, but tried again.
    pub(super) again: Chain,
    /// Reads of bytes.
    pub(super) bytes: Ends,
    /// The owner of one of them all is asleep.
    pub(super) wakes: bool,
}

impl Default for EndedRequests {
    // Inline and field by field: one is made for every drain, and the derived one is a copy.
    #[inline(always)]
    fn default() -> Self {
        Self {
            batch: Batch::EMPTY,
            single: Chain::EMPTY,
            offers: Chain::EMPTY,
            again: Chain::EMPTY,
            bytes: Ends::EMPTY,
            wakes: false,
        }
    }
}

impl EndedRequests {
    /// Takes `rq`, which is over.
    #[inline(always)]
    pub(super) fn put(&mut self, rq: Rq) {
        let rq = match rq.status() {
            shims::HIOPS_STS_OK => match self.batch.add(rq) {
                Ok(()) => return,
                Err(rq) => rq,
            },
            _ => {
                rq.hctx().stats.error();
                rq
            }
        };
        self.single.push(rq);
    }

    /// Ends all but the offers, and counts them under `by`. Any context.
    #[inline]
    pub(super) fn end(&mut self, by: Context) {
        self.count(by);
        // While bios end, as behind any driver.
        let bh_off = by != Context::Irq && hiops_bh_off();
        self.batch.end();
        if !self.single.is_empty() {
            self.end_one_by_one(by);
        }
        if !self.again.is_empty() {
            self.requeue_all();
        }
        if self.bytes.0.is_some() {
            self.bytes.end(by);
        }
        if bh_off {
            hiops_bh_on();
        }
    }

    /// Counts the requests of the batch, run by run of the same hctx.
    #[inline]
    fn count(&self, by: Context) {
        let mut rest = self.batch.iter();
        let mut run = rest.clone();
        while let Some((hctx, n)) = rest.run() {
            hctx.stats.completed(n as u64, by);
            if hctx.switches.get().latency() {
                measure(hctx, run.take(n), by);
            }
            run = rest.clone();
        }
    }

    #[cold]
    fn end_one_by_one(&mut self, by: Context) {
        while let Some(rq) = self.single.pop() {
            count_one(&rq, by);
            rq.end();
        }
    }

    #[cold]
    fn requeue_all(&mut self) {
        while let Some(rq) = self.again.pop() {
            requeue(rq);
        }
    }
}

/// Counts `rq`, which ends by itself, in the context `by`.
#[cold]
fn count_one(rq: &Rq, by: Context) {
    let hctx = rq.hctx();
    hctx.stats.completed(1, by);
    if hctx.switches.get().latency() {
        measure(hctx, core::iter::once(rq.view()), by);
    }
}

/// Counts how long `ended` took, which are of `hctx` and end in the context `by`.
#[inline(always)]
fn measure<'a>(hctx: &HctxData, ended: impl Iterator<Item = RqRef<'a>>, by: Context) {
    let Some(table) = hctx.stats.latency.table() else {
        return;
    };
    let (over, row) = (table.over(hctx.switches.get()), Row::of(by));
    let is_nap = |rq: RqRef<'_>| {
        by == Context::Coop && rq.waiter().is_some_and(crate::wait::looks_after_nap)
    };
    for rq in ended {
        let row = if is_nap(rq) { Row::NAP } else { row };
        over.count(rq.kind(), row, rq.start());
    }
}

/// Ends `rq`, whose completion was swallowed. From its time-out.
#[cold]
pub(crate) fn end_swallowed(rq: Rq) {
    count_one(&rq, Context::Sweep);
    if let Some(waiter) = rq.waiter() {
        crate::wait::ended(waiter);
    }
    rq.set_status(shims::HIOPS_STS_OK);
    rq.end();
}

/// Whether `rq`, which failed with `failure`, is to be tried again; if so it remembers when. Any
/// context.
#[cold]
pub(crate) fn is_worth_a_try(rq: &Rq, failure: Failure) -> bool {
    let (view, own) = (rq.view(), rq.own());
    let tries = RetryCount {
        done: own.tries.get(),
        most: rq.hctx().max_retries,
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
/// waiting for it. Any context, no token held save by a `engine::Quiesced`.
#[cold]
pub(crate) fn requeue(rq: Rq) {
    rq.hctx().stats.retried();
    let delay_ms = rq.own().delay_ms.get();
    rq.requeue(delay_ms);
}
