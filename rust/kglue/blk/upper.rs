// SPDX-License-Identifier: GPL-2.0
//! blk-mq as the strategy's upper layer.

use super::again;
use super::map::MapKind;
use super::poller::Poller;
use super::request::{Ranges, Rq};
use super::retry::Retry;
use crate::context::now_ms;
use crate::errno::status;
use crate::shims;
use crate::way::Offer;
use core::ptr::{null_mut, NonNull};
use engine::{Context, Upper};
use hal::{CmdError, Command, Failure, Outcome, Segment};
use kernel::bindings;
use kernel::prelude::*;

/// One hardware queue's upper layer.
///
/// # Invariants
/// `retry` and `poller` outlive it: the adapter keeps them all, and drops the queue first.
pub(crate) struct BlkUpper<M: MapKind> {
    map: M,
    retry: NonNull<Retry>,
    poller: NonNull<Poller>,
}

// SAFETY: `Retry` is `Sync`.
unsafe impl<M: MapKind> Send for BlkUpper<M> {}
// SAFETY: as above.
unsafe impl<M: MapKind> Sync for BlkUpper<M> {}

impl<M: MapKind> BlkUpper<M> {
    /// # Safety
    /// `retry` and `poller` outlive the result.
    pub(crate) unsafe fn new(map: M, retry: &Retry, poller: &Poller) -> Self {
        // INVARIANT: the caller's promise.
        Self {
            map,
            retry: NonNull::from(retry),
            poller: NonNull::from(poller),
        }
    }

    /// Unmaps `rq`, which is over, and puts it to those that end with `ended`.
    #[inline]
    fn conclude(&self, ended: &mut Ended, rq: Rq) {
        self.map.unmap(&rq);
        if cfg!(CONFIG_FAIL_IO_TIMEOUT) && swallow(&rq) {
            // The time-out ends it: see `Ops::timeout`.
            let _ = rq.into_raw();
            return;
        }
        if let Some(waiter) = rq.waiter() {
            waiter.ended();
        }
        // SAFETY: owned; the head is the request's own.
        let good = unsafe { (*rq.head()).status } == shims::HIOPS_STS_OK;
        // SAFETY: owned; the batch is the caller's.
        if good && unsafe { shims::hiops_add_to_batch(rq.as_raw(), &mut ended.batch) } {
            let _ = rq.into_raw();
            return;
        }
        if !good {
            rq.lane().stats.error();
        }
        push(&mut ended.single, rq);
    }

    /// `rq` failed: it is over, or is tried again.
    #[cold]
    fn fail(&self, ended: &mut Ended, rq: Rq, failure: Failure) {
        if !again::is_worth_a_try(&rq, failure) {
            return self.conclude(ended, rq);
        }
        self.map.unmap(&rq);
        if let Some(waiter) = rq.waiter() {
            waiter.ended();
        }
        push(&mut ended.again, rq);
    }

    /// Offers each of `offers` to the thread that waits for it; what is not taken is the caller's to end, in `ended`.
    #[inline]
    fn offer(&self, ended: &mut Ended, offers: Chain) {
        let mut rest = Some(offers.0);
        while let Some(raw) = rest {
            // SAFETY: the chain owns its requests.
            let (rq, next) = unsafe { (Rq::from_raw(raw), *next_of(raw.as_ptr())) };
            rest = NonNull::new(next);
            let back = match rq.waiter() {
                Some(waiter) => crate::wait::offer(waiter, Offer(rq)),
                None => Some(Offer(rq)),
            };
            if let Some(Offer(rq)) = back {
                self.conclude(ended, rq);
            }
        }
    }

    /// Ends `rq`, an offer that was claimed in the context `by`. With preemption off.
    #[inline]
    pub(crate) fn end_claimed(&self, rq: Rq, by: Context) {
        let mut ended = Ended::default();
        self.conclude(&mut ended, rq);
        self.finish(&mut ended, by);
    }
}

/// What comes beside a command.
enum Pieces<D> {
    /// Its data, mapped.
    Data(D),
    /// Pieces of the disk.
    Ranges(Ranges),
}

impl<D: Iterator<Item = Result<Segment, CmdError>>> Iterator for Pieces<D> {
    type Item = Result<Segment, CmdError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Data(data) => data.next(),
            Self::Ranges(ranges) => ranges.next(),
        }
    }
}

/// Ended requests on their way to their submitters.
pub(crate) struct Ended {
    /// Those that blk-mq ends as a batch.
    batch: bindings::io_comp_batch,
    /// Those that it ends one by one, with the status in their PDU.
    single: Option<Chain>,
    /// Those whose owners are asleep.
    offers: Option<Chain>,
    /// Those that are not over, but tried again.
    again: Option<Chain>,
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
            offers: None,
            again: None,
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

/// Puts `rq` before the others of `chain`.
#[inline(always)]
fn push(chain: &mut Option<Chain>, rq: Rq) {
    let next = (chain.take()).map_or(null_mut(), |chain| chain.0.as_ptr());
    let rq = rq.into_raw();
    // SAFETY: the request was owned by this function, and is now by the chain.
    unsafe { *next_of(rq) = next };
    *chain = NonNull::new(rq).map(Chain);
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
        match rq.ranges() {
            Some(ranges) => Pieces::Ranges(ranges),
            None => Pieces::Data(self.map.segments(rq)),
        }
    }

    #[inline(always)]
    fn begin_cmd(&self, rq: &mut Rq) {
        rq.begin();
    }

    #[inline]
    fn unmap(&self, rq: &mut Rq) {
        self.map.unmap(rq);
    }

    fn deferred(&self, rq: &Rq) {
        rq.start_waiting();
    }

    #[cold]
    fn starved(&self, rq: &Rq) {
        // SAFETY: owned, so its queue and that queue's disk are there.
        let (name, bytes) = unsafe {
            let rq = rq.as_raw();
            let disk = &*(*(*rq).q).disk;
            (
                CStr::from_char_ptr(disk.disk_name.as_ptr()),
                (*rq).__data_len,
            )
        };
        kernel::pr_err!(
            "{}: no memory to map {} bytes for DMA in half a minute, with nothing in flight that \
             holds any: the I/O fails. Give the machine more (swiotlb= on the kernel's command line \
             where data goes through bounce buffers), or lower queue/max_sectors_kb\n",
            name,
            bytes
        );
    }

    #[inline]
    fn end_cmd(&self, ended: &mut Ended, rq: Rq, outcome: Outcome) {
        // SAFETY: owned; the head is the request's own.
        unsafe { (*rq.head()).status = status(outcome) };
        if let Err(failure) = outcome {
            rq.stop_waiting();
            return self.fail(ended, rq, failure);
        }
        match rq.waiter() {
            // What is left to do is its own, if it is asleep still when the token is free.
            Some(waiter) if waiter.is_asleep() && rq.lane().switches.get().lazy() => {
                push(&mut ended.offers, rq);
            }
            _ => self.conclude(ended, rq),
        }
    }

    #[inline]
    fn finish(&self, ended: &mut Ended, by: Context) {
        if let Some(offers) = ended.offers.take() {
            self.offer(ended, offers);
        }
        count(&ended.batch, by);
        // SAFETY: may be called in any context. Bottom halves are off while bios end, as behind any driver.
        let bh_off = by != Context::Irq && unsafe { shims::hiops_bh_off() };
        if !ended.batch.req_list.head.is_null() {
            // SAFETY: all requests of the batch are owned by it, over, and end here.
            unsafe { bindings::blk_mq_end_request_batch(&mut ended.batch) };
        }
        if let Some(chain) = ended.single.take() {
            end_one_by_one(chain, by);
        }
        if let Some(chain) = ended.again.take() {
            requeue_all(chain);
        }
        if bh_off {
            // SAFETY: pairs with `hiops_bh_off`.
            unsafe { shims::hiops_bh_on() };
        }
    }

    fn can_poll(&self) -> bool {
        // SAFETY: by the invariant.
        unsafe { self.poller.as_ref() }.can_poll()
    }

    fn interrupts_thread(&self) -> bool {
        // SAFETY: may be called in any context.
        unsafe { !shims::hiops_on_idle_cpu() }
    }

    #[inline]
    fn is_crowded(&self) -> bool {
        crate::wait::is_crowded()
    }

    fn set_interrupt(&self, on: bool) -> bool {
        // SAFETY: by the invariant.
        unsafe { self.poller.as_ref() }.set_interrupt(on)
    }

    fn arm_poll(&self, us: u32) {
        // SAFETY: by the invariant.
        unsafe { self.poller.as_ref() }.start(us);
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
fn swallow(rq: &Rq) -> bool {
    // SAFETY: owned; the PDU is the request's own.
    unsafe {
        let swallowed = shims::hiops_fake_timeout(rq.as_raw());
        (*rq.head()).swallowed = swallowed;
        swallowed
    }
}

/// Ends a request whose completion was swallowed, if `rq` is one. From its time-out.
///
/// # Safety
/// Called by blk-mq's time-out handling of `rq`, a request of a tag set of hiops'.
#[cold]
pub(crate) unsafe fn end_swallowed(rq: NonNull<bindings::request>) -> bool {
    // SAFETY: alive, by the caller's promise; used as a handle only if it is one.
    let handle = unsafe { Rq::from_raw(rq) };
    let head = handle.head();
    // SAFETY: the PDU is alive with the request; a request that was swallowed has no other owner.
    if !core::mem::take(unsafe { &mut (*head).swallowed }) {
        return false;
    }
    handle.lane().stats.completed(1, Context::Coop);
    if let Some(waiter) = handle.waiter() {
        waiter.ended();
    }
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
fn end_one_by_one(chain: Chain, by: Context) {
    let mut rest = Some(chain.0);
    while let Some(raw) = rest {
        // SAFETY: the chain owns its requests.
        let (rq, next) = unsafe { (Rq::from_raw(raw), *next_of(raw.as_ptr())) };
        rest = NonNull::new(next);
        rq.lane().stats.completed(1, by);
        // SAFETY: the PDU is the request's own, and zeroed or set by hiops.
        let status = unsafe { (*rq.head()).status };
        // SAFETY: owned, over, and ended only here.
        unsafe { bindings::blk_mq_end_request(rq.into_raw(), status) };
    }
}

#[cold]
fn requeue_all(chain: Chain) {
    let mut rest = Some(chain.0);
    while let Some(raw) = rest {
        // SAFETY: the chain owns its requests.
        let (rq, next) = unsafe { (Rq::from_raw(raw), *next_of(raw.as_ptr())) };
        rest = NonNull::new(next);
        again::requeue(rq);
    }
}
