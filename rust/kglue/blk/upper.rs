// SPDX-License-Identifier: GPL-2.0
//! blk-mq as the strategy's upper layer.

use super::map::MapKind;
use super::request::Rq;
use super::retry::Retry;
use crate::context::now_ms;
use crate::errno::status;
use crate::shims;
use core::ptr::{null_mut, NonNull};
use hal::{CmdError, Command, Outcome, Segment};
use kernel::bindings;
use strategy::{Context, Upper};

/// One hardware queue's upper layer.
///
/// # Invariants
/// `retry` outlives it: the adapter keeps both, and drops the queue first.
pub(crate) struct BlkUpper<M: MapKind> {
    map: M,
    retry: NonNull<Retry>,
}

// SAFETY: `Retry` is `Sync`.
unsafe impl<M: MapKind> Send for BlkUpper<M> {}
// SAFETY: as above.
unsafe impl<M: MapKind> Sync for BlkUpper<M> {}

impl<M: MapKind> BlkUpper<M> {
    /// # Safety
    /// `retry` outlives the result.
    pub(crate) unsafe fn new(map: M, retry: &Retry) -> Self {
        // INVARIANT: the caller's promise.
        Self {
            map,
            retry: NonNull::from(retry),
        }
    }
}

/// Ended requests on their way to their submitters.
pub(crate) struct Ended {
    /// Those that blk-mq ends as a batch.
    batch: bindings::io_comp_batch,
    /// Those that it ends one by one, with the status in their PDU.
    single: Option<Chain>,
}

impl Default for Ended {
    // Inline and field by field: one is made for every drain, and bindgen's `Default` is a call and a copy.
    #[inline(always)]
    fn default() -> Self {
        Self {
            batch: bindings::io_comp_batch {
                req_list: bindings::rq_list {
                    head: null_mut(),
                    tail: null_mut(),
                },
                need_ts: false,
                complete: None,
                poll_ctx: null_mut(),
            },
            single: None,
        }
    }
}

/// Requests linked by `rq_next`, newest first.
struct Chain(NonNull<bindings::request>);

/// Where a request of hiops' own keeps the link to the next one.
///
/// # Safety
/// `rq` is alive and owned by the caller; its list node is unused.
#[inline(always)]
unsafe fn next_of(rq: *mut bindings::request) -> *mut *mut bindings::request {
    // SAFETY: alive; only an address is made.
    unsafe { &raw mut (*rq).__bindgen_anon_1.rq_next }
}

impl<M: MapKind> Upper for BlkUpper<M> {
    type Request = Rq;
    type Ended = Ended;

    #[inline(always)]
    fn command(&self, rq: &Rq) -> Command {
        rq.command()
    }

    #[inline(always)]
    fn segments<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a {
        self.map.segments(rq)
    }

    #[inline(always)]
    fn begin_cmd(&self, rq: &mut Rq) {
        // SAFETY: owned, and not started before: a request begins once.
        unsafe { bindings::blk_mq_start_request(rq.as_raw()) };
    }

    #[inline]
    fn unmap(&self, rq: &mut Rq) {
        self.map.unmap(rq);
    }

    fn deferred(&self, rq: &Rq) {
        rq.lane().stats.deferred();
    }

    #[inline]
    fn end_cmd(&self, ended: &mut Ended, rq: Rq, outcome: Outcome) {
        self.map.unmap(&rq);
        if cfg!(CONFIG_FAIL_IO_TIMEOUT) && swallow::<M>(&rq) {
            // The time-out ends it: see `Ops::timeout`.
            let _ = rq.into_raw();
            return;
        }
        // SAFETY: owned; the batch is the caller's.
        if outcome.is_ok() && unsafe { shims::hiops_add_to_batch(rq.as_raw(), &mut ended.batch) } {
            let _ = rq.into_raw();
            return;
        }
        if outcome.is_err() {
            rq.lane().stats.error();
        }
        let pdu = rq.pdu::<M::Mapped>();
        let next = ended
            .single
            .take()
            .map_or(null_mut(), |chain| chain.0.as_ptr());
        let rq = rq.into_raw();
        // SAFETY: the request was owned by this function, and is now by the chain.
        unsafe {
            (*pdu).status = status(outcome);
            *next_of(rq) = next;
        }
        ended.single = NonNull::new(rq).map(Chain);
    }

    #[inline]
    fn finish(&self, mut ended: Ended, by: Context) {
        count(&ended.batch, by);
        // SAFETY: may be called in any context. Bottom halves are off while bios end, as behind any driver.
        let bh_off = by != Context::Irq && unsafe { shims::hiops_bh_off() };
        if !ended.batch.req_list.head.is_null() {
            // SAFETY: all requests of the batch are owned by it, over, and end here.
            unsafe { bindings::blk_mq_end_request_batch(&mut ended.batch) };
        }
        if let Some(chain) = ended.single.take() {
            end_one_by_one::<M>(chain, by);
        }
        if bh_off {
            // SAFETY: pairs with `hiops_bh_off`.
            unsafe { shims::hiops_bh_on() };
        }
    }

    #[cold]
    fn retry_later(&self) {
        // SAFETY: by the invariant.
        unsafe { self.retry.as_ref() }.arm();
    }

    #[inline(always)]
    fn now_ms(&self) -> u64 {
        now_ms()
    }
}

/// Whether the kernel's fault injection wants this completion to get lost.
#[cold]
fn swallow<M: MapKind>(rq: &Rq) -> bool {
    // SAFETY: owned; the PDU is the request's own.
    unsafe {
        let swallowed = shims::hiops_fake_timeout(rq.as_raw());
        (*rq.pdu::<M::Mapped>()).swallowed = swallowed;
        swallowed
    }
}

/// Ends a request whose completion was swallowed, if `rq` is one. From its time-out.
///
/// # Safety
/// Called by blk-mq's time-out handling of `rq`, a request of a tag set with room for `Pdu<M::Mapped>`.
#[cold]
pub(crate) unsafe fn end_swallowed<M: MapKind>(rq: NonNull<bindings::request>) -> bool {
    // SAFETY: alive, by the caller's promise; used as a handle only if it is one.
    let handle = unsafe { Rq::from_raw(rq) };
    let pdu = handle.pdu::<M::Mapped>();
    // SAFETY: the PDU is alive with the request; a request that was swallowed has no other owner.
    if !core::mem::take(unsafe { &mut (*pdu).swallowed }) {
        return false;
    }
    handle.lane().stats.completed(1, Context::Coop);
    // SAFETY: over, owned by nobody else since it was swallowed, and ended only here.
    unsafe { bindings::blk_mq_end_request(handle.into_raw(), shims::HIOPS_STS_OK) };
    true
}

/// Counts the requests of `batch` under `by`, run by run of the same lane.
#[inline]
fn count(batch: &bindings::io_comp_batch, by: Context) {
    let mut rq = batch.req_list.head;
    while let Some(first) = NonNull::new(rq) {
        // SAFETY: the batch owns its requests; the handle is forgotten again.
        let first = unsafe { Rq::from_raw(first) };
        let lane = first.lane();
        let mut n = 1u64;
        // SAFETY: as above; the list ends with null.
        rq = unsafe { *next_of(rq) };
        while let Some(next) = NonNull::new(rq) {
            // SAFETY: as above.
            if !core::ptr::eq(unsafe { Rq::from_raw(next) }.lane(), lane) {
                break;
            }
            n = n.wrapping_add(1);
            // SAFETY: as above.
            rq = unsafe { *next_of(rq) };
        }
        lane.stats.completed(n, by);
    }
}

#[cold]
fn end_one_by_one<M: MapKind>(chain: Chain, by: Context) {
    let mut rest = Some(chain.0);
    while let Some(raw) = rest {
        // SAFETY: the chain owns its requests.
        let (rq, next) = unsafe { (Rq::from_raw(raw), *next_of(raw.as_ptr())) };
        rest = NonNull::new(next);
        rq.lane().stats.completed(1, by);
        // SAFETY: the PDU is the request's own, and zeroed or set by hiops.
        let status = unsafe { (*rq.pdu::<M::Mapped>()).status };
        // SAFETY: owned, over, and ended only here.
        unsafe { bindings::blk_mq_end_request(rq.into_raw(), status) };
    }
}
