// SPDX-License-Identifier: GPL-2.0
//! One request of the block layer, as hiops owns it.

use super::lane::Lane;
use crate::shims;
use crate::way::{Offer, Way};
use core::ptr::{null, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use engine::Waiter;
use hal::{CmdError, Command, Op, Segment};
use kernel::bindings;

/// What hiops keeps in each request, behind it (blk-mq's "PDU"). Zeroed by blk-mq when the tag set is made.
#[repr(C)]
pub(crate) struct Pdu<M> {
    pub(crate) head: Head,
    /// How its data is mapped.
    pub(crate) mapped: M,
}

/// The part of the PDU that is alike for all controllers.
#[repr(C)]
pub(crate) struct Head {
    /// The thread that waits for it, with which it is enlisted; null: that is not certain.
    pub(crate) waiter: *const Waiter<Offer, Way>,
    /// The `blk_status_t` with which it ends.
    pub(crate) status: u8,
    /// How often it was tried again; of one that never was, of no meaning.
    pub(crate) tries: u8,
    /// In how many milliseconds it is tried again, if it is.
    pub(crate) delay_ms: u32,
    /// It waits in the FIFO for a tag, and blk-mq's timer runs: looked at by its time-out.
    pub(crate) waits: AtomicBool,
    /// Its completion was swallowed by the kernel's fault injection; the time-out ends it.
    pub(crate) swallowed: bool,
}

/// The ranges of a discard, as [`hal::Command`] wants them.
///
/// # Invariants
/// `bio` is null or one of a request's, which is owned for as long as this is used.
pub(crate) struct Ranges {
    bio: *const bindings::bio,
    shift: u8,
}

impl Iterator for Ranges {
    type Item = Result<Segment, CmdError>;

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: by the invariant.
        let bio = unsafe { self.bio.as_ref() }?;
        self.bio = bio.bi_next;
        let shift = u32::from(self.shift);
        Some(Ok(Segment {
            addr: bio.bi_iter.bi_sector.wrapping_shr(shift.wrapping_sub(9)),
            len: bio.bi_iter.bi_size.wrapping_shr(shift),
        }))
    }
}

/// A request that blk-mq handed to hiops, to be ended exactly once.
///
/// # Invariants
/// `rq` is a request of a queue whose tag set has room for `Pdu<M>` behind each, given to `queue_rq(s)` and not ended since; this is
/// the only handle of it. Its hardware context's `driver_data` is a [`Lane`] that outlives it.
pub struct Rq {
    rq: NonNull<bindings::request>,
}

// SAFETY: a request belongs to no thread; its one owner may be any.
unsafe impl Send for Rq {}

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

    /// What hiops keeps with the request.
    #[inline(always)]
    pub(crate) fn pdu<M>(&self) -> *mut Pdu<M> {
        self.rq.as_ptr().wrapping_add(1).cast()
    }

    /// The part of [`Rq::pdu`] that needs no type.
    #[inline(always)]
    pub(crate) fn head(&self) -> *mut Head {
        self.rq.as_ptr().wrapping_add(1).cast()
    }

    /// The thread that it is enlisted with.
    #[inline(always)]
    pub(crate) fn waiter(&self) -> Option<&'static Waiter<Offer, Way>> {
        // SAFETY: set when the request was taken over, to null or to a place that outlives all requests.
        unsafe { (*self.head()).waiter.as_ref() }
    }

    /// The disk's way to its hardware queue.
    #[inline(always)]
    pub(crate) fn lane(&self) -> &Lane {
        // SAFETY: by the invariants both pointers are valid and the lane outlives the request.
        unsafe { &*(*(*self.as_raw()).mq_hctx).driver_data.cast::<Lane>() }
    }

    /// Whether it comes from an elevator.
    #[inline(always)]
    pub(crate) fn is_scheduled(&self) -> bool {
        // SAFETY: owned.
        unsafe { (*self.as_raw()).rq_flags & shims::HIOPS_RQF_SCHED_TAGS != 0 }
    }

    /// The operation, if hiops knows it.
    #[inline(always)]
    pub(crate) fn op(&self) -> Option<Op> {
        // SAFETY: the request is alive and its operation does not change while hiops owns it.
        let flags = unsafe { (*self.as_raw()).cmd_flags };
        // CAST: the operation is the low byte.
        match u32::from(flags as u8) {
            bindings::req_op_REQ_OP_READ => Some(Op::Read),
            bindings::req_op_REQ_OP_WRITE => Some(Op::Write),
            bindings::req_op_REQ_OP_FLUSH => Some(Op::Flush),
            bindings::req_op_REQ_OP_DISCARD => Some(Op::Discard),
            bindings::req_op_REQ_OP_WRITE_ZEROES => Some(Op::WriteZeroes),
            _ => None,
        }
    }

    /// The ranges of a discard: a bio each, where it has several; else it is its one range itself.
    #[inline(always)]
    pub(crate) fn ranges(&self) -> Option<Ranges> {
        // SAFETY: the request is alive, and hiops owns it.
        let (flags, count, bio) = unsafe {
            let rq = self.as_raw();
            ((*rq).cmd_flags, (*rq).nr_phys_segments, (*rq).bio)
        };
        // CAST: the operation is the low byte.
        let discard = u32::from(flags as u8) == bindings::req_op_REQ_OP_DISCARD;
        // INVARIANT: the request's own bios.
        discard.then(|| Ranges {
            bio: if count > 1 { bio } else { null() },
            shift: self.lane().format.block_shift(),
        })
    }

    /// It waits in the FIFO from now on, which is counted; blk-mq's timer starts.
    pub(crate) fn start_waiting(&self) {
        self.lane().stats.deferred();
        // SAFETY: owned; the head is the request's own.
        unsafe { (*self.head()).waits.store(true, Ordering::Relaxed) };
        // SAFETY: owned, and not started before: it waits once at most, and before it begins.
        unsafe { bindings::blk_mq_start_request(self.as_raw()) };
    }

    /// It is about to be issued; blk-mq's timer runs from now on, if it did not before.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        // SAFETY: owned; the head is the request's own.
        let waits = unsafe { &(*self.head()).waits };
        if waits.load(Ordering::Relaxed) {
            return waits.store(false, Ordering::Relaxed);
        }
        // SAFETY: owned, and not started before: a request begins once.
        unsafe { bindings::blk_mq_start_request(self.as_raw()) };
    }

    /// It has ended, maybe without having been issued.
    pub(crate) fn stop_waiting(&self) {
        // SAFETY: owned; the head is the request's own.
        unsafe { (*self.head()).waits.store(false, Ordering::Relaxed) };
    }

    /// Whether it waits in the FIFO. For a time-out, which does not own it.
    pub(crate) fn is_waiting(&self) -> bool {
        // SAFETY: the PDU is there as long as the request is.
        unsafe { (*self.head()).waits.load(Ordering::Relaxed) }
    }

    /// How long it may take, by the clock of [`crate::context::now_ms`]: the queue's `io_timeout`. For a request that was started.
    pub(crate) fn timeout_ms(&self) -> u64 {
        // SAFETY: the request is alive; its timer, set when it was started, is not changed until it ends.
        u64::from(unsafe { (*self.as_raw()).timeout }).saturating_mul(crate::context::TICK_MS)
    }

    /// What it asks for. An operation that hiops does not know never comes here: `queue_rq` refuses it.
    #[inline(always)]
    pub(crate) fn command(&self) -> Command {
        let lane = self.lane();
        // SAFETY: the request is alive, and hiops owns it.
        let (sector, bytes, flags) = unsafe {
            let rq = self.as_raw();
            ((*rq).__sector, (*rq).__data_len, (*rq).cmd_flags)
        };
        let shift = lane.format.block_shift();
        let op = self.op().unwrap_or(Op::Flush);
        let (lba, blocks) = match op {
            // A flush carries no range; blk-mq leaves all ones in its sector.
            Op::Flush => (0, 0),
            _ => (
                sector.wrapping_shr(u32::from(shift).wrapping_sub(9)),
                bytes.wrapping_shr(u32::from(shift)),
            ),
        };
        Command {
            op,
            unit: lane.unit,
            lba,
            blocks,
            block_shift: shift,
            fua: flags & shims::HIOPS_REQ_FUA != 0,
            unmap: lane.format.unmaps() && flags & shims::HIOPS_REQ_NOUNMAP == 0,
        }
    }
}
