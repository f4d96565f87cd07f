// SPDX-License-Identifier: GPL-2.0
//! One request of the block layer, and what hiops keeps behind it.
//!
//! `kernel::block::mq::Request` (Linux 7.2 and 7.3) tells neither operation nor sector, size,
//! flags, segments or bios; has no room for a driver's own data; ends with success only; and counts
//! its holders, for a look-up by tag that hiops has not. Here is the same pair as there: a
//! borrowed view, [`RqRef`], and the one owner, [`Rq`], without a count. All that is read of a
//! request is read in [`RqRef::fields`].
//!
//! ```text
//!  queue_rq(s) --Rq--> engine --end, requeue, a batch--> blk-mq
//!                        +--swallowed (fault injection)--> nobody's --its time-out--> Rq
//! ```
//! [`handle`]: the two types. [`owned`]: what its owner does with a request. [`chain`]: requests in
//! a row. [`batch`]: those that end together. [`bios`]: what it is made of.

pub(crate) mod batch;
pub(crate) mod bios;
pub(crate) mod chain;
pub(crate) mod handle;
mod owned;

pub(crate) use self::handle::{Rq, RqRef};

use self::bios::{Bios, Ranges};
use super::gendisk::GenDisk;
use super::lane::Lane;
use crate::shims;
use crate::way::{Offer, Way};
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::{null, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use engine::Waiter;
use hal::{Command, Op};
use kernel::bindings;

/// What hiops keeps in each request, behind it (blk-mq's "PDU"). blk-mq zeroes it when the tag set
/// is made, and zeroes are one.
#[repr(C)]
pub(crate) struct Pdu<M> {
    pub(crate) head: Head,
    /// How its data is mapped.
    pub(crate) mapped: M,
}

/// The part of the PDU that is alike for all controllers.
#[repr(C)]
pub(crate) struct Head {
    pub(crate) own: Own,
    /// It waits in the FIFO for a tag, and blk-mq's timer runs: looked at by its time-out.
    waits: AtomicBool,
    /// Its completion was swallowed by the kernel's fault injection; the time-out ends it.
    swallowed: AtomicBool,
}

/// What concerns the request's owner alone: reached by [`Rq`] only, which no two threads share.
pub(crate) struct Own {
    /// The thread that waits for it, with which it is enlisted; `None`: that is not certain.
    waiter: Cell<Option<&'static Waiter<Offer, Way>>>,
    /// The `blk_status_t` with which it ends.
    status: Cell<u8>,
    /// How often it was tried again.
    pub(crate) tries: Cell<u8>,
    /// It was given back to blk-mq to be submitted anew, and was not yet.
    again: Cell<bool>,
    /// In how many milliseconds it is tried again, if it is.
    pub(crate) delay_ms: Cell<u32>,
}

/// What the block layer says of a request. What is not asked for costs nothing: the compiler leaves
/// it out.
struct Fields<'a> {
    /// Operation and flags. CAST: the operation is the low byte.
    cmd_flags: u32,
    rq_flags: u32,
    sector: u64,
    bytes: u32,
    segments: u16,
    /// In ticks.
    timeout: u32,
    bio: *const bindings::bio,
    /// Of one in a list: the next one.
    next: *mut bindings::request,
    /// Where `next` is.
    link: &'a Cell<Option<Rq>>,
    disk: *mut bindings::gendisk,
    lane: &'a Lane,
    head: &'a Head,
}

impl<'a> RqRef<'a> {
    /// A view of `rq`.
    ///
    /// # Safety
    /// The type's invariants, which become the view's.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(rq: NonNull<bindings::request>) -> Self {
        // INVARIANT: the caller's promise.
        Self::of(rq)
    }

    /// Likewise, of one that is known to keep the invariants.
    #[inline(always)]
    fn of(rq: NonNull<bindings::request>) -> Self {
        let alive = PhantomData;
        Self { rq, alive }
    }

    /// The one place in which a request is read.
    #[inline(always)]
    fn fields(self) -> Fields<'a> {
        let rq = self.rq.as_ptr();
        // SAFETY: by the invariant the request is there, with our head behind it, its queue, and
        // its hardware context, whose `driver_data` is a lane; what is read here does not change
        // while hiops has it. The link is a pointer to a request or null, as `Option<Rq>` is.
        unsafe {
            let next = &raw mut (*rq).__bindgen_anon_1.rq_next;
            Fields {
                cmd_flags: (*rq).cmd_flags,
                rq_flags: (*rq).rq_flags,
                sector: (*rq).__sector,
                bytes: (*rq).__data_len,
                segments: (*rq).nr_phys_segments,
                timeout: (*rq).timeout,
                bio: (*rq).bio,
                next: *next,
                link: &*next.cast(),
                disk: (*(*rq).q).disk,
                lane: &*(*(*rq).mq_hctx).driver_data.cast::<Lane>(),
                head: &*rq.wrapping_add(1).cast::<Head>(),
            }
        }
    }

    /// The disk's way to its hardware queue.
    #[inline(always)]
    pub(crate) fn lane(self) -> &'a Lane {
        self.fields().lane
    }

    /// Its disk.
    pub(crate) fn disk(self) -> GenDisk<'a> {
        // SAFETY: a request's disk, which is there for as long as the request is.
        unsafe { GenDisk::from_raw(self.fields().disk) }
    }

    /// Whether it comes from an elevator.
    #[inline(always)]
    pub(crate) fn is_scheduled(self) -> bool {
        self.fields().rq_flags & shims::HIOPS_RQF_SCHED_TAGS != 0
    }

    /// Whether its submitter wants to know of a failure rather than have it tried again.
    pub(crate) fn is_fail_fast(self) -> bool {
        self.fields().cmd_flags & shims::HIOPS_REQ_FAILFAST != 0
    }

    /// Bytes of data, or of the disk, that it is about.
    #[inline(always)]
    pub(crate) fn bytes(self) -> u32 {
        self.fields().bytes
    }

    /// Pieces of memory that its data is in, at most; of a discard, of the disk.
    #[inline(always)]
    pub(crate) fn segments(self) -> u16 {
        self.fields().segments
    }

    /// The operation, if hiops knows it.
    #[inline(always)]
    pub(crate) fn op(self) -> Option<Op> {
        match u32::from(self.fields().cmd_flags as u8) {
            bindings::req_op_REQ_OP_READ => Some(Op::Read),
            bindings::req_op_REQ_OP_WRITE => Some(Op::Write),
            bindings::req_op_REQ_OP_FLUSH => Some(Op::Flush),
            bindings::req_op_REQ_OP_DISCARD => Some(Op::Discard),
            bindings::req_op_REQ_OP_WRITE_ZEROES => Some(Op::WriteZeroes),
            _ => None,
        }
    }

    /// What it asks for. An operation that hiops does not know never comes here: `queue_rq` refuses
    /// it.
    #[inline(always)]
    pub(crate) fn command(self) -> Command {
        let Fields {
            sector,
            bytes,
            cmd_flags,
            lane,
            ..
        } = self.fields();
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
            fua: cmd_flags & shims::HIOPS_REQ_FUA != 0,
            unmap: lane.format.unmaps() && cmd_flags & shims::HIOPS_REQ_NOUNMAP == 0,
        }
    }

    /// Whether it comes with ranges rather than data: [`Rq::ranges`].
    #[inline(always)]
    pub(crate) fn is_discard(self) -> bool {
        u32::from(self.fields().cmd_flags as u8) == bindings::req_op_REQ_OP_DISCARD
    }

    /// Whether it waits in the FIFO.
    pub(crate) fn is_waiting(self) -> bool {
        self.fields().head.waits.load(Ordering::Relaxed)
    }

    /// How long it may take, by the clock of [`crate::context::now_ms`]: the queue's `io_timeout`.
    /// For a request that was started, whose timer is not changed until it ends.
    pub(crate) fn timeout_ms(self) -> u64 {
        u64::from(self.fields().timeout).saturating_mul(crate::context::TICK_MS)
    }

    /// The request itself, if its completion was swallowed, which left it to its time-out. Once.
    #[cold]
    pub(crate) fn take_swallowed(self) -> Option<Rq> {
        let swallowed = self.fields().head.swallowed.swap(false, Ordering::Acquire);
        // INVARIANT: `Rq::is_swallowed` was asked by the owner, who let go of it then.
        swallowed.then_some(Rq { rq: self.rq })
    }
}

impl Rq {
    /// The bios of its data.
    #[inline(always)]
    pub(crate) fn bios(&self) -> Bios<'_> {
        Bios::new(self.view().fields().bio)
    }

    /// The ranges of a discard: a bio each, where it has several; else it is its one range itself.
    #[inline(always)]
    pub(crate) fn ranges(&self) -> Ranges<'_> {
        let Fields { segments, bio, .. } = self.view().fields();
        let bios = Bios::new(if segments > 1 { bio } else { null() });
        Ranges::new(bios, self.lane().format.block_shift())
    }
}
