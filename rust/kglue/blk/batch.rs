// SPDX-License-Identifier: GPL-2.0
//! Several requests: in a row ([`Chain`]), linked by the field that blk-mq has for it (`rq_next`),
//! or in a batch that ends at once ([`Batch`]); and what becomes of those that are over
//! ([`EndedRequests`]): they end, on their way to their submitters; or they are tried again, if
//! they failed: blk-mq submits each anew, from a thread of its own.
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

use core::marker::PhantomData;
use core::ptr::{null_mut, NonNull};
use engine::{Context, RetryCount};
use hal::Failure;
use kernel::bindings;

use crate::blk::latency::Row;
use crate::blk::request::{HctxData, Rq, RqRef};
use crate::bytes::io::Ends;
use crate::shims;
use crate::shims_safe::{hiops_bh_off, hiops_bh_on};

#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for the right to end a request, and for a batch of such, which the types
// say. Each is as its header says it: see the constants below.
unsafe extern "C" {
    /// It is over, and the batch's from now on, or comes back: it has to end by itself. Any
    /// context.
    safe fn hiops_add_to_batch(rq: Rq, batch: &mut Batch) -> Option<Rq>;
    /// Ends all that are in the batch, after which there is none. Any context.
    safe fn blk_mq_end_request_batch(batch: &mut Batch);
}

const _: [unsafe extern "C" fn(
    *mut bindings::request,
    *mut bindings::io_comp_batch,
) -> *mut bindings::request; 1] = [shims::hiops_add_to_batch];
const _: [unsafe extern "C" fn(*mut bindings::io_comp_batch); 1] =
    [bindings::blk_mq_end_request_batch];

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

    /// As [`EndedRequests::end_now`], out of line.
    #[inline(never)]
    pub(super) fn end(&mut self, by: Context) {
        self.end_now(by);
    }

    /// Ends all but the offers, and counts them under `by`. Any context.
    #[inline(always)]
    pub(super) fn end_now(&mut self, by: Context) {
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
    #[inline(always)]
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

/// Requests that the chain owns. Its owner takes all of them out.
///
/// # Invariants
/// The first one, if there is one, owns the next, and so on: their links are set.
#[derive(Default)]
pub(crate) struct Chain(Option<Rq>);

impl Chain {
    /// One with nothing in it.
    pub(crate) const EMPTY: Self = Self(None);

    /// Takes all of the requests of `list`.
    ///
    /// # Safety
    /// They are given to the caller, each as [`Rq::from_raw`] wants it.
    #[inline(always)]
    pub(crate) unsafe fn take(list: &mut bindings::rq_list) -> Self {
        let head = list.head;
        (list.head, list.tail) = (null_mut(), null_mut());
        // INVARIANT: a list of blk-mq is linked so, and ends with null.
        // SAFETY: the caller's promise.
        Self(NonNull::new(head).map(|rq| unsafe { Rq::from_raw(rq) }))
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Puts `rq` before the others.
    #[inline(always)]
    pub(crate) fn push(&mut self, rq: Rq) {
        rq.view().fields().link.set(self.0.take());
        self.0 = Some(rq);
    }

    /// Takes the first one out.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Rq> {
        let rq = self.0.take()?;
        self.0 = rq.view().fields().link.take();
        Some(rq)
    }

    /// Looks at them, from the first to the last.
    #[inline(always)]
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter::new(self.0.as_ref().map(Rq::ptr))
    }
}

/// Requests of a row, one after the other.
///
/// # Invariants
/// `next` is in a row that is not changed for `'a`, and that ends with null.
#[derive(Clone)]
pub(crate) struct Iter<'a> {
    next: Option<NonNull<bindings::request>>,
    alive: PhantomData<&'a Chain>,
}

impl<'a> Iter<'a> {
    /// From `next` on, of which the invariant holds.
    #[inline(always)]
    fn new(next: Option<NonNull<bindings::request>>) -> Self {
        let alive = PhantomData;
        Self { next, alive }
    }

    #[inline(always)]
    fn peek(&self) -> Option<RqRef<'a>> {
        // INVARIANT: owned by the row, which is there for `'a`.
        self.next.map(RqRef::of)
    }

    /// The hctx of the next one, and how many in a row are on it, which are passed.
    #[inline(always)]
    pub(crate) fn run(&mut self) -> Option<(&'a HctxData, usize)> {
        let hctx = self.next()?.hctx();
        let mut length = 1usize;
        while (self.peek()).is_some_and(|rq| core::ptr::eq(rq.hctx(), hctx)) {
            self.next();
            length = length.wrapping_add(1);
        }
        Some((hctx, length))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = RqRef<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<RqRef<'a>> {
        let rq = self.peek()?;
        self.next = NonNull::new(rq.fields().next);
        Some(rq)
    }
}

/// Requests that are over, without an error, and that blk-mq ends all at once.
///
/// # Invariants
/// It owns the requests of its list.
#[repr(transparent)]
pub(crate) struct Batch(bindings::io_comp_batch);

impl Batch {
    /// One with nothing in it.
    pub(crate) const EMPTY: Self = Self(bindings::io_comp_batch {
        req_list: bindings::rq_list {
            head: null_mut(),
            tail: null_mut(),
        },
        need_ts: false,
        complete: None,
        poll_ctx: null_mut(),
    });

    /// Takes `rq`, which is over, unless it is one that has to end by itself.
    #[inline(always)]
    pub(crate) fn add(&mut self, rq: Rq) -> Result<(), Rq> {
        match hiops_add_to_batch(rq, self) {
            None => Ok(()),
            Some(rq) => Err(rq),
        }
    }

    /// Looks at its requests.
    #[inline(always)]
    pub(crate) fn iter(&self) -> Iter<'_> {
        // INVARIANT: the batch owns them, and is borrowed.
        Iter::new(NonNull::new(self.0.req_list.head))
    }

    /// Ends all that are in it, after which there is none. Any context.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        if !self.0.req_list.head.is_null() {
            blk_mq_end_request_batch(self);
        }
    }
}
