// SPDX-License-Identifier: GPL-2.0
//! One request of the block layer, and what hiops keeps behind it: what is read of it ([`RqRef`]),
//! what its owner does with it ([`Rq`]), and what it is made of: bios, and the segments of memory
//! or of the disk that those are about. Several are in a row ([`Chain`]), linked by the field that
//! blk-mq has for it (`rq_next`), or end together ([`Batch`]).
//!
//! `kernel::block::mq::Request` (Linux 7.2 and 7.3) tells neither operation nor sector, size,
//! flags, segments or bios; has no room for a driver's own data; ends with success only, one at a
//! time; is in no lists; and counts its holders, for a look-up by tag that hiops has not. Here is
//! the same pair as there: a borrowed view and the one owner, without a count. All that is read of
//! a request is read in [`RqRef::fields`]. The kernel crate has neither bios nor their vectors.
//!
//! ```text
//!  queue_rq(s) --Rq--> engine --end, requeue, a batch--> blk-mq
//!                        +--swallowed (fault injection)--> nobody's --its time-out--> Rq
//! ```

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::{null, null_mut, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use engine::Waiter;
use hal::{CmdError, Command, Op, Segment};
use kernel::bindings;
use kernel::ffi::c_uint;
use kernel::str::CStr;

use crate::blk::gendisk::GenDisk;
use crate::blk::hctx::{HctxData, Late, Lent, Offer, QueueRef, Rq};
use crate::blk::latency::Kind;
use crate::compat::zeroed;
use crate::shims;

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
    /// The thread that waits for it, with which it is tracked; `None`: that is not certain.
    waiter: Cell<Option<&'static Waiter<Offer, QueueRef>>>,
    /// The `blk_status_t` with which it ends.
    status: Cell<u8>,
    /// How often it was tried again.
    pub(crate) tries: Cell<u8>,
    /// It was given back to blk-mq to be submitted anew, and was not yet.
    again: Cell<bool>,
    /// In how many milliseconds it is tried again, if it is.
    pub(crate) delay_ms: Cell<u32>,
    /// When blk-mq handed it over, by [`latency::now`](crate::blk::latency::now), if that was
    /// measured then.
    pub(crate) start: Cell<u64>,
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
    hctx: &'a HctxData,
    head: &'a Head,
}

/// A request to look at, for code that does not own it, or not for as long: it can't be ended.
///
/// # Invariants
/// `rq` is as that of an [`Rq`], or is over, but stays a request of that tag set for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct RqRef<'a> {
    rq: NonNull<bindings::request>,
    alive: PhantomData<&'a bindings::request>,
}

#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for a request that is there, or that is not over, for the right to end it,
// or for a batch of such, which the types say. One that is started again is warned of. Each is as
// its header says it: see the constants below.
unsafe extern "C" {
    /// Whether its queue is going away. Any context.
    safe fn hiops_is_dying(rq: RqRef<'_>) -> bool;
    /// Whether the kernel's fault injection wants its completion to get lost.
    safe fn hiops_fake_timeout(rq: RqRef<'_>) -> bool;
    /// blk-mq's timer runs from now on. Any context.
    safe fn blk_mq_start_request(rq: Lent<'_>);
    /// Ends it. Any context.
    safe fn blk_mq_end_request(rq: Rq, status: bindings::blk_status_t);
    /// blk-mq submits it anew in `delay_ms`, or earlier. Any context.
    safe fn hiops_requeue(rq: Rq, delay_ms: c_uint);
    /// It is over, and the batch's from now on, or comes back: it has to end by itself. Any
    /// context.
    safe fn hiops_add_to_batch(rq: Rq, batch: &mut Batch) -> Option<Rq>;
    /// Ends all that are in the batch, after which there is none. Any context.
    safe fn blk_mq_end_request_batch(batch: &mut Batch);
}

const _: [unsafe extern "C" fn(*const bindings::request) -> bool; 1] = [shims::hiops_is_dying];
const _: [unsafe extern "C" fn(*mut bindings::request) -> bool; 1] = [shims::hiops_fake_timeout];
const _: [unsafe extern "C" fn(*mut bindings::request, bindings::blk_status_t); 1] =
    [bindings::blk_mq_end_request];
const _: [unsafe extern "C" fn(*mut bindings::request, c_uint); 1] = [shims::hiops_requeue];
const _: [unsafe extern "C" fn(*mut bindings::request); 1] = [bindings::blk_mq_start_request];
const _: [unsafe extern "C" fn(
    *mut bindings::request,
    *mut bindings::io_comp_batch,
) -> *mut bindings::request; 1] = [shims::hiops_add_to_batch];
const _: [unsafe extern "C" fn(*mut bindings::io_comp_batch); 1] =
    [bindings::blk_mq_end_request_batch];

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

    /// A view of one that is known to keep the invariants.
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
        // its hardware context, whose `driver_data` is a hctx; what is read here does not change
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
                hctx: &*(*(*rq).mq_hctx).driver_data.cast::<HctxData>(),
                head: &*rq.wrapping_add(1).cast::<Head>(),
            }
        }
    }

    /// Its disk on its hardware queue.
    #[inline(always)]
    pub(crate) fn hctx(self) -> &'a HctxData {
        self.fields().hctx
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

    /// Whether its submitter may sleep for it, as one does not that polls, or must not wait.
    #[inline(always)]
    pub(crate) fn may_be_slept_for(self) -> bool {
        self.fields().cmd_flags & shims::HIOPS_REQ_NO_SLEEP == 0
    }

    /// Bytes of data, or of the disk, that it is about.
    #[inline(always)]
    pub(crate) fn bytes(self) -> u32 {
        self.fields().bytes
    }

    /// Segments of memory that its data is in, at most; of a discard, of the disk.
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

    /// What it is for who measures how long it takes.
    #[inline(always)]
    pub(crate) fn kind(self) -> Kind {
        Kind::of(self.fields().cmd_flags as u8)
    }

    /// The thread that it is tracked with.
    #[inline(always)]
    pub(crate) fn waiter(self) -> Option<&'static Waiter<Offer, QueueRef>> {
        self.fields().head.own.waiter.get()
    }

    /// When it was handed over.
    #[inline(always)]
    pub(crate) fn start(self) -> u64 {
        self.fields().head.own.start.get()
    }

    /// What it asks for. An operation that hiops does not know never comes here: `queue_rq` refuses
    /// it.
    #[inline(always)]
    pub(crate) fn command(self) -> Command {
        let Fields {
            sector,
            bytes,
            cmd_flags,
            hctx,
            ..
        } = self.fields();
        let shift = hctx.format.block_shift();
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
            unit: hctx.unit,
            lba,
            blocks,
            block_shift: shift,
            fua: cmd_flags & shims::HIOPS_REQ_FUA != 0,
            unmap: hctx.format.unmaps() && cmd_flags & shims::HIOPS_REQ_NOUNMAP == 0,
        }
    }

    /// Whether it waits in the FIFO.
    pub(crate) fn is_waiting(self) -> bool {
        self.fields().head.waits.load(Ordering::Relaxed)
    }

    /// How long it may take, by the clock of [`crate::platform::now_ms`]: the queue's `io_timeout`.
    /// For a request that was started, whose timer is not changed until it ends.
    pub(crate) fn timeout_ms(self) -> u64 {
        u64::from(self.fields().timeout).saturating_mul(crate::platform::TICK_MS)
    }

    /// The request itself, if its completion was swallowed, which left it to its time-out. Once.
    #[cold]
    pub(crate) fn take_swallowed(self) -> Option<Rq> {
        let swallowed = self.fields().head.swallowed.swap(false, Ordering::Acquire);
        // SAFETY: its owner let go of it when that was noted (`Rq::swallow`).
        swallowed.then(|| unsafe { Rq::from_raw(self.rq) })
    }
}

impl Late for RqRef<'_> {
    fn timeout_ms(&self) -> u64 {
        RqRef::timeout_ms(*self)
    }

    fn is_waiting(&self) -> bool {
        RqRef::is_waiting(*self)
    }

    fn command(&self) -> Command {
        RqRef::command(*self)
    }

    fn count(&self) {
        self.hctx().stats.timeout();
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
        Ranges::new(bios, self.hctx().format.block_shift())
    }
}

impl Rq {
    /// The request, to be looked at.
    #[inline(always)]
    pub(crate) fn view(&self) -> RqRef<'_> {
        RqRef::of(self.ptr())
    }

    /// Its disk on its hardware queue.
    #[inline(always)]
    pub(crate) fn hctx(&self) -> &HctxData {
        self.view().hctx()
    }

    /// What hiops keeps with the request, for code that knows its type.
    #[inline(always)]
    pub(crate) fn pdu<M>(&self) -> *mut Pdu<M> {
        self.as_raw().wrapping_add(1).cast()
    }

    /// What concerns its owner alone.
    #[inline(always)]
    pub(crate) fn own(&self) -> &Own {
        &self.view().fields().head.own
    }

    /// The thread that it is tracked with.
    #[inline(always)]
    pub(crate) fn waiter(&self) -> Option<&'static Waiter<Offer, QueueRef>> {
        self.own().waiter.get()
    }

    /// Notes that it is tracked with `waiter`; `None`: with none.
    #[inline(always)]
    pub(crate) fn set_waiter(&self, waiter: Option<&'static Waiter<Offer, QueueRef>>) {
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
    /// [`requeue`](crate::blk::batch::requeue)). Once a submission.
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
        self.hctx().stats.deferred();
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
        // Not started before: it waits once at most, and before it begins, which it does once.
        blk_mq_start_request(self.lend());
    }

    /// It has ended, maybe without having been issued.
    pub(crate) fn stop_waiting(&self) {
        (self.view().fields().head.waits).store(false, Ordering::Relaxed);
    }

    /// Whether its queue is going away.
    #[cold]
    pub(crate) fn is_dying(&self) -> bool {
        hiops_is_dying(self.view())
    }

    /// The name of its disk.
    #[cold]
    pub(crate) fn disk_name(&self) -> &CStr {
        self.view().disk().name()
    }

    /// Ends it with the status that was noted. Any context.
    pub(crate) fn end(self) {
        let status = self.status();
        blk_mq_end_request(self, status);
    }

    /// Gives it back to blk-mq, which submits it anew in `delay_ms`, or earlier. Any context.
    #[cold]
    pub(crate) fn requeue(self, delay_ms: u32) {
        self.set_again(true);
        hiops_requeue(self, delay_ms);
    }

    /// Lets it go, if the kernel's fault injection wants its completion to get lost: its time-out
    /// takes it ([`RqRef::take_swallowed`]).
    #[cold]
    pub(crate) fn swallow(self) -> Result<(), Self> {
        if !hiops_fake_timeout(self.view()) {
            return Err(self);
        }
        // The last that is done with it.
        (self.view().fields().head.swallowed).store(true, Ordering::Release);
        Ok(())
    }
}

/// The bios of a request, from the first to the last: each with where it begins.
///
/// # Invariants
/// `bio` is null or one of a request's, which is owned for `'a`.
pub(crate) struct Bios<'a> {
    bio: *const bindings::bio,
    alive: PhantomData<&'a bindings::bio>,
}

impl Bios<'_> {
    /// `bio` and those that follow, of which the invariant holds.
    #[inline(always)]
    fn new(bio: *const bindings::bio) -> Self {
        let alive = PhantomData;
        Self { bio, alive }
    }
}

impl Iterator for Bios<'_> {
    type Item = (NonNull<bindings::bio>, bindings::bvec_iter);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let bio = NonNull::new(self.bio.cast_mut())?;
        // SAFETY: by the invariant; they do not change while the request is owned.
        let (next, begin) = unsafe { ((*bio.as_ptr()).bi_next, (*bio.as_ptr()).bi_iter) };
        self.bio = next;
        Some((bio, begin))
    }
}

/// The ranges of a discard, as [`hal::Command`] wants them.
pub(crate) struct Ranges<'a> {
    bios: Bios<'a>,
    shift: u8,
}

impl<'a> Ranges<'a> {
    /// A range for each of `bios`, in blocks of a size of which `shift` is the power of two.
    #[inline(always)]
    fn new(bios: Bios<'a>, shift: u8) -> Self {
        Self { bios, shift }
    }
}

impl Iterator for Ranges<'_> {
    type Item = Result<Segment, CmdError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (_, begin) = self.bios.next()?;
        let shift = u32::from(self.shift);
        Some(Ok(Segment {
            addr: begin.bi_sector.wrapping_shr(shift.wrapping_sub(9)),
            len: begin.bi_size.wrapping_shr(shift),
        }))
    }
}

/// The data of a request as the CPU sees it, segment by segment.
pub(crate) struct Vecs<'a> {
    bios: Bios<'a>,
    /// Where it is; of no meaning while nothing is left of `at`.
    bio: *const bindings::bio,
    at: bindings::bvec_iter,
}

impl<'a> Vecs<'a> {
    /// The segments of all of `bios`.
    #[inline(always)]
    pub(crate) fn new(bios: Bios<'a>) -> Self {
        Self {
            bios,
            bio: null(),
            at: zeroed(),
        }
    }
}

impl Iterator for Vecs<'_> {
    type Item = Segment;

    #[inline(always)]
    fn next(&mut self) -> Option<Segment> {
        while self.at.bi_size == 0 {
            let (bio, begin) = self.bios.next()?;
            self.bio = bio.as_ptr();
            self.at = begin;
        }
        let mut seg = shims::hiops_segment { addr: 0, len: 0 };
        // SAFETY: a bio of the request's, which is owned, and a place in it that is not its end.
        unsafe { shims::hiops_vec_next(self.bio, &mut self.at, &mut seg) };
        Some(Segment {
            addr: seg.addr,
            len: seg.len,
        })
    }
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
