// SPDX-License-Identifier: GPL-2.0
//! What its owner does with a request.

use super::{Own, Pdu, Rq, RqRef};
use crate::blk::lane::Lane;
use crate::shims;
use crate::way::{Offer, Way};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use engine::Waiter;
use kernel::bindings;
use kernel::str::CStr;

impl Rq {
    /// Takes a request over.
    ///
    /// # Safety
    /// The type's invariants, which become the handle's.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(rq: NonNull<bindings::request>) -> Self {
        // INVARIANT: the caller's promise.
        Self { rq }
    }

    /// The kernel's structure.
    #[inline(always)]
    pub(crate) fn as_raw(&self) -> *mut bindings::request {
        self.rq.as_ptr()
    }

    /// Gives the request back to who ends it.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> *mut bindings::request {
        self.rq.as_ptr()
    }

    /// The request, to be looked at.
    #[inline(always)]
    pub(crate) fn view(&self) -> RqRef<'_> {
        RqRef::of(self.rq)
    }

    /// The disk's way to its hardware queue.
    #[inline(always)]
    pub(crate) fn lane(&self) -> &Lane {
        self.view().lane()
    }

    /// What hiops keeps with the request, for who knows its type.
    #[inline(always)]
    pub(crate) fn pdu<M>(&self) -> *mut Pdu<M> {
        self.rq.as_ptr().wrapping_add(1).cast()
    }

    /// What concerns its owner alone.
    #[inline(always)]
    pub(crate) fn own(&self) -> &Own {
        &self.view().fields().head.own
    }

    /// The thread that it is enlisted with.
    #[inline(always)]
    pub(crate) fn waiter(&self) -> Option<&'static Waiter<Offer, Way>> {
        self.own().waiter.get()
    }

    /// Notes that it is enlisted with `waiter`; `None`: with nobody.
    #[inline(always)]
    pub(crate) fn set_waiter(&self, waiter: Option<&'static Waiter<Offer, Way>>) {
        self.own().waiter.set(waiter);
    }

    /// The `blk_status_t` with which it ends.
    #[inline(always)]
    pub(crate) fn status(&self) -> u8 {
        self.own().status.get()
    }

    /// Notes with which.
    #[inline(always)]
    pub(crate) fn set_status(&self, status: u8) {
        self.own().status.set(status);
    }

    /// It has just come from blk-mq: whether it was tried before, and comes again (see
    /// [`again`](crate::blk::again)). Once a submission.
    #[inline(always)]
    pub(crate) fn take_again(&self) -> bool {
        let own = self.own();
        let again = own.again.get();
        match again {
            true => own.again.set(false),
            false => own.tries.set(0),
        }
        again
    }

    /// It goes back to blk-mq, and comes again.
    pub(crate) fn set_again(&self, again: bool) {
        self.own().again.set(again);
    }

    /// It waits in the FIFO from now on, which is counted; blk-mq's timer starts.
    pub(crate) fn start_waiting(&self) {
        self.lane().stats.deferred();
        (self.view().fields().head.waits).store(true, Ordering::Relaxed);
        self.start();
    }

    /// It is about to be issued; blk-mq's timer runs from now on, if it did not before.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        let waits = &self.view().fields().head.waits;
        if waits.load(Ordering::Relaxed) {
            return waits.store(false, Ordering::Relaxed);
        }
        self.start();
    }

    #[inline(always)]
    fn start(&self) {
        // SAFETY: owned, and not started before: it waits once at most, and before it begins, which
        // it does once.
        unsafe { bindings::blk_mq_start_request(self.as_raw()) };
    }

    /// It has ended, maybe without having been issued.
    pub(crate) fn stop_waiting(&self) {
        (self.view().fields().head.waits).store(false, Ordering::Relaxed);
    }

    /// Whether its queue is going away.
    #[cold]
    pub(crate) fn is_dying(&self) -> bool {
        // SAFETY: owned, so its queue is there.
        unsafe { shims::hiops_is_dying(self.as_raw()) }
    }

    /// The name of its disk.
    #[cold]
    pub(crate) fn disk_name(&self) -> &CStr {
        self.view().disk().name()
    }

    /// Ends it with the status that was noted. Any context.
    pub(crate) fn end(self) {
        let status = self.status();
        // SAFETY: owned, hence over and ended only here.
        unsafe { bindings::blk_mq_end_request(self.into_raw(), status) };
    }

    /// Gives it back to blk-mq, which submits it anew in `delay_ms`, or earlier. Any context.
    #[cold]
    pub(crate) fn requeue(self, delay_ms: u32) {
        self.set_again(true);
        // SAFETY: owned until here; not over, and blk-mq's from here on.
        unsafe { shims::hiops_requeue(self.into_raw(), delay_ms) };
    }

    /// Lets it go, if the kernel's fault injection wants its completion to get lost: its time-out
    /// takes it ([`RqRef::take_swallowed`]).
    #[cold]
    pub(crate) fn swallow(self) -> Result<(), Self> {
        // SAFETY: owned, so its queue is there.
        if !unsafe { shims::hiops_fake_timeout(self.as_raw()) } {
            return Err(self);
        }
        // The last that is done with it.
        (self.view().fields().head.swallowed).store(true, Ordering::Release);
        Ok(())
    }
}
