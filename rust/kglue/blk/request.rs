// SPDX-License-Identifier: GPL-2.0
//! One request of the block layer: what is read of it ([`RqRef`]), what its owner does with it
//! ([`Rq`]), what hiops keeps behind it ([`Pdu`]), and what its hardware context points to
//! ([`HctxData`]): its disk on one hardware queue, with that disk's switches and what is counted
//! there. A thread that waits for a request finds the queue by a [`QueueRef`].
//!
//! What a request is made of, and how that is mapped, is in `upper.rs`; several requests are in
//! `batch.rs`.
//!
//! `kernel::block::mq::Request` (Linux 7.2 and 7.3) tells neither operation nor sector, size,
//! flags, segments or bios; has no room for a driver's own data; ends with success only, one at a
//! time; is in no lists; and counts its holders, for a look-up by tag that hiops has not. Here is
//! the same pair as there: a borrowed view and the one owner, without a count. All that is read of
//! a request is read in [`RqRef::fields`].
//!
//! ```text
//!  queue_rq(s) --Rq--> engine --end, requeue, a batch--> blk-mq
//!                        +--swallowed (fault injection)--> nobody's --its time-out--> Rq
//! ```

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use engine::{Context, Expected, Nap, Next, Switches, Thread, Waiter};
use hal::{CmdError, Command, Error, Op, Outcome, Unit};
use kernel::bindings;
use kernel::ffi::{c_uint, c_void};
use kernel::str::CStr;
use kernel::sync::Arc;

use crate::blk::latency::{Kind, Latency};
use crate::platform::PerCpu;
use crate::shims;
use crate::work::Pinned;

/// A request that blk-mq handed to hiops, to be ended exactly once: by what takes it by value.
///
/// # Invariants
/// `rq` is a request of a queue whose tag set has room for [`Pdu<M>`](crate::blk::request::Pdu)
/// behind each, given to `queue_rq(s)` and not ended since; this is the only owner of it. Its
/// hardware context's `driver_data` is a [`HctxData`] that outlives it.
#[repr(transparent)]
pub struct Rq {
    rq: NonNull<bindings::request>,
}

/// A request that its owner lends to what works on it, and does not end it.
///
/// # Invariants
/// `rq` is that of an [`Rq`], which is borrowed for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Lent<'a> {
    rq: NonNull<bindings::request>,
    owner: PhantomData<&'a Rq>,
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

    /// Where the kernel's structure is.
    #[inline(always)]
    pub(super) fn ptr(&self) -> NonNull<bindings::request> {
        self.rq
    }

    /// The kernel's structure.
    #[inline(always)]
    pub(crate) fn as_raw(&self) -> *mut bindings::request {
        self.rq.as_ptr()
    }

    /// The request, to be worked on by what does not end it.
    #[inline(always)]
    pub(crate) fn lend(&self) -> Lent<'_> {
        let (rq, owner) = (self.ptr(), PhantomData);
        // INVARIANT: it is this one's, which is borrowed.
        Lent { rq, owner }
    }

    /// Gives the request up: what takes it ends it.
    #[inline(always)]
    pub(super) fn into_raw(self) -> *mut bindings::request {
        self.rq.as_ptr()
    }
}

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
pub(super) struct Fields<'a> {
    /// Operation and flags. CAST: the operation is the low byte.
    cmd_flags: u32,
    rq_flags: u32,
    sector: u64,
    bytes: u32,
    pub(super) segments: u16,
    /// In ticks.
    timeout: u32,
    pub(super) bio: *const bindings::bio,
    /// Of one in a list: the next one.
    pub(super) next: *mut bindings::request,
    /// Where `next` is.
    pub(super) link: &'a Cell<Option<Rq>>,
    disk_name: &'a [u8],
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
// Safe to call: they ask for a request that is there, or that is not over, or for the right to end
// it, which the types say. One that is started again is warned of. Each is as its header says it:
// see the constants below.
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
}

const _: [unsafe extern "C" fn(*const bindings::request) -> bool; 1] = [shims::hiops_is_dying];
const _: [unsafe extern "C" fn(*mut bindings::request) -> bool; 1] = [shims::hiops_fake_timeout];
const _: [unsafe extern "C" fn(*mut bindings::request, bindings::blk_status_t); 1] =
    [bindings::blk_mq_end_request];
const _: [unsafe extern "C" fn(*mut bindings::request, c_uint); 1] = [shims::hiops_requeue];
const _: [unsafe extern "C" fn(*mut bindings::request); 1] = [bindings::blk_mq_start_request];

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
    pub(super) fn of(rq: NonNull<bindings::request>) -> Self {
        let alive = PhantomData;
        Self { rq, alive }
    }

    /// The one place in which a request is read.
    #[inline(always)]
    pub(super) fn fields(self) -> Fields<'a> {
        let rq = self.rq.as_ptr();
        // SAFETY: by the invariant the request is there, with our head behind it, its queue with
        // that one's disk, and its hardware context, whose `driver_data` is a hctx; what is read
        // here does not change while hiops has it. The link is a pointer to a request or null, as
        // `Option<Rq>` is.
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
                disk_name: &(*(*(*rq).q).disk).disk_name,
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

    /// The name of its disk.
    pub(crate) fn disk_name(self) -> &'a CStr {
        CStr::from_bytes_until_nul(self.fields().disk_name).unwrap_or(c"")
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

/// One disk on one hardware queue: what blk-mq's hardware context of that disk points to.
pub(crate) struct HctxData {
    /// The adapter's `HwQueue`, whose type `ops.rs` knows. It outlives every request of the hctx.
    pub(crate) queue: *const c_void,
    /// The same queue, for code that does not know the type.
    pub(crate) queue_ref: *const QueueRef,
    pub(crate) switches: Toggles,
    /// [`hal::Unit::id`] of the disk.
    pub(crate) unit: u32,
    pub(crate) format: Format,
    /// How often a request is tried again.
    pub(crate) max_retries: u8,
    /// Of the disk, all its hctxs together.
    pub(crate) stats: Arc<DiskStats>,
}

// SAFETY: the pointer is to a value that is shared between all contexts anyway (the engine's
// queue is `Sync`).
unsafe impl Send for HctxData {}
// SAFETY: as above.
unsafe impl Sync for HctxData {}

/// What an operator turns on and off, per disk: [`Switches`].
pub(crate) struct Toggles {
    on: AtomicU8,
    /// What is of use on this hctx: the rest stays off.
    may: u8,
}

impl Toggles {
    pub(crate) fn new(on: u8, may: u8) -> Self {
        Self {
            on: AtomicU8::new(on & may),
            may,
        }
    }

    /// What is on.
    #[inline(always)]
    pub(crate) fn get(&self) -> Switches {
        Switches(self.on.load(Ordering::Relaxed))
    }

    /// Turns `which` on, as far as that is of use, or off.
    pub(crate) fn turn(&self, which: u8, on: bool) {
        match on {
            true => self.on.fetch_or(which & self.may, Ordering::Relaxed),
            false => self.on.fetch_and(!which, Ordering::Relaxed),
        };
    }
}

/// What commands have to know of how a disk is formatted. It changes only while the disk is frozen.
pub(crate) struct Format(AtomicU8);

/// Zeroes may be written by giving the space back; below it, the block's shift.
const UNMAPS: u8 = 1 << 7;
/// The shift of a block that is larger than any request.
const UNKNOWN: u8 = 31;

impl Format {
    /// That of `unit`.
    pub(crate) fn new(unit: &Unit) -> Self {
        Self(AtomicU8::new(Self::of(unit)))
    }

    fn of(unit: &Unit) -> u8 {
        let unmaps = if unit.topology.zeroes_unmap {
            UNMAPS
        } else {
            0
        };
        (unit.block_shift & !UNMAPS) | unmaps
    }

    /// From now on that of `unit`. While the disk is frozen.
    pub(crate) fn set(&self, unit: &Unit) {
        self.0.store(Self::of(unit), Ordering::Relaxed);
    }

    /// Nothing is known of it: in blocks of this size every request is none, which no controller
    /// takes. While the disk is frozen.
    pub(crate) fn forget(&self) {
        self.0.store(UNKNOWN, Ordering::Relaxed);
    }

    /// Bytes of a logical block, as a power of two.
    #[inline(always)]
    pub(crate) fn block_shift(&self) -> u8 {
        self.0.load(Ordering::Relaxed) & !UNMAPS
    }

    /// [`hal::Topology::zeroes_unmap`].
    #[inline]
    pub(crate) fn unmaps(&self) -> bool {
        self.0.load(Ordering::Relaxed) & UNMAPS != 0
    }
}

/// What is counted for one disk. Each CPU counts by itself; sums are taken when a reader asks for
/// them.
pub(crate) struct DiskStats {
    /// By [`Count`].
    counts: PerCpu<COUNTS>,
    /// How long its requests take.
    pub(crate) latency: Latency,
}

/// The sums of a disk.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) submitted: u64,
    /// By [`Context`], in its order.
    pub(crate) completed: [u64; 5],
    pub(crate) deferred: u64,
    pub(crate) errors: u64,
    pub(crate) retried: u64,
    pub(crate) timeouts: u64,
    /// Its bytes.
    pub(crate) bytes: BytesSums,
}

/// What threads have done with a disk's bytes (`crate::bytes`).
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct BytesSums {
    /// Commands that have read for a caller.
    pub(crate) reads: u64,
    /// Commands that have written.
    pub(crate) writes: u64,
    /// Those of them for which blocks were read before.
    pub(crate) merged: u64,
    /// Bytes that callers have read and written.
    pub(crate) wanted: u64,
    /// Bytes that went to the device or came from it.
    pub(crate) moved: u64,
}

/// Which of the counts, by its number.
#[derive(Clone, Copy)]
enum Count {
    Submitted = 0,
    Irq = 1,
    Lazy = 2,
    Coop = 3,
    Poll = 4,
    Sweep = 5,
    Deferred = 6,
    Errors = 7,
    Retried = 8,
    Timeouts = 9,
    BytesReads = 10,
    BytesWrites = 11,
    BytesMerged = 12,
    BytesWanted = 13,
    BytesMoved = 14,
}

/// How many there are.
const COUNTS: usize = Count::BytesMoved as usize + 1;

impl DiskStats {
    /// All of them 0. Sleeps.
    pub(crate) fn new() -> Result<Self, Error> {
        let counts = PerCpu::new()?;
        let latency = Latency::new();
        Ok(Self { counts, latency })
    }

    #[inline(always)]
    fn add(&self, which: Count, n: u64) {
        self.counts.add(which as usize, n);
    }

    fn sum(&self, which: Count) -> u64 {
        self.counts.sum(which as usize)
    }

    #[inline(always)]
    pub(crate) fn submitted(&self, n: u64) {
        self.add(Count::Submitted, n);
    }

    /// One that was counted as submitted has not been.
    pub(crate) fn not_submitted(&self) {
        self.add(Count::Submitted, 1u64.wrapping_neg());
    }

    #[inline(always)]
    pub(crate) fn completed(&self, n: u64, by: Context) {
        let which = match by {
            Context::Irq => Count::Irq,
            Context::Lazy => Count::Lazy,
            Context::Coop => Count::Coop,
            Context::Poll => Count::Poll,
            Context::Sweep => Count::Sweep,
        };
        self.add(which, n);
    }

    #[inline]
    pub(crate) fn deferred(&self) {
        self.add(Count::Deferred, 1);
    }

    #[cold]
    pub(crate) fn error(&self) {
        self.add(Count::Errors, 1);
    }

    #[cold]
    pub(crate) fn retried(&self) {
        self.add(Count::Retried, 1);
    }

    #[cold]
    pub(crate) fn timeout(&self) {
        self.add(Count::Timeouts, 1);
    }

    /// A read of a caller's has got `len` of the bytes that it wants.
    #[inline]
    pub(crate) fn bytes_read(&self, len: usize) {
        self.add(Count::BytesReads, 1);
        // CAST: a `usize` has 64 bits at most.
        self.add(Count::BytesWanted, len as u64);
    }

    /// `len` bytes of a caller's were written, `merged` with others of their blocks.
    #[inline]
    pub(crate) fn bytes_written(&self, len: usize, merged: bool) {
        self.add(Count::BytesWrites, 1);
        self.add(Count::BytesMerged, u64::from(merged));
        // CAST: a `usize` has 64 bits at most.
        self.add(Count::BytesWanted, len as u64);
    }

    /// A command for bytes has moved `len` of them.
    #[inline]
    pub(crate) fn bytes_moved(&self, len: u32) {
        self.add(Count::BytesMoved, u64::from(len));
    }

    /// What was counted so far.
    pub(crate) fn sums(&self) -> Sums {
        use Count::{Coop, Irq, Lazy, Poll, Sweep};
        Sums {
            submitted: self.sum(Count::Submitted),
            completed: [Irq, Lazy, Coop, Poll, Sweep].map(|which| self.sum(which)),
            deferred: self.sum(Count::Deferred),
            errors: self.sum(Count::Errors),
            retried: self.sum(Count::Retried),
            timeouts: self.sum(Count::Timeouts),
            bytes: BytesSums {
                reads: self.sum(Count::BytesReads),
                writes: self.sum(Count::BytesWrites),
                merged: self.sum(Count::BytesMerged),
                wanted: self.sum(Count::BytesWanted),
                moved: self.sum(Count::BytesMoved),
            },
        }
    }

    /// Begins at zero again.
    pub(crate) fn reset(&self) {
        self.counts.reset(0..COUNTS);
        self.latency.reset_all();
    }
}

/// A finished request on its way to the thread that waits for it; its status is in its PDU.
pub(crate) struct Offer(pub(crate) Rq);

/// What a thread knows as it begins to wait.
#[derive(Clone, Copy)]
pub(crate) struct WaitStart {
    /// Whether what it waits for was over after it last yielded, if it has.
    pub(crate) yielded: Option<bool>,
    /// It may do so on this CPU.
    pub(crate) may_yield: bool,
    /// When its I/O is over.
    pub(crate) expected: Option<Expected>,
    /// How its last nap ended, and how late.
    pub(crate) napped: Option<(Nap, u64)>,
}

/// An I/O that takes longer than it may, for who finds out why.
pub(crate) trait Late {
    /// How long it may take, by the clock of [`crate::platform::now_ms`].
    fn timeout_ms(&self) -> u64;
    /// Whether it waits in the FIFO.
    fn is_waiting(&self) -> bool;
    /// What it asks for.
    fn command(&self) -> Command;
    /// It is counted as a time-out of its disk.
    fn count(&self);
}

/// A hardware queue, as the hook uses it. With preemption off.
pub(crate) trait Waited: Send + Sync {
    /// Takes completions for a while, and says what the caller, who waits for I/O of its own on the
    /// queue, does next.
    fn wait(&self, start: WaitStart) -> Next;
    /// `thread`, the caller, has napped until `until_ns`: looks for I/O of its own on the queue,
    /// for up to `for_ns`. `waiter`: where that is tracked.
    fn look_again(
        &self,
        waiter: &Waiter<Offer, QueueRef>,
        thread: Thread,
        until_ns: u64,
        for_ns: u64,
    ) -> Nap;
    /// Ends a request of the queue's that was offered.
    fn end(&self, rq: Rq, by: Context);
}

/// What leads to a hardware queue, in the room of a thin pointer. A thread that uses it is silenced
/// when nothing that was tracked with it is outstanding any more, and no thread has preemption off
/// that saw that something was.
pub(crate) struct QueueRef(Pinned<dyn Waited>);

impl QueueRef {
    /// A reference to `queue`.
    pub(crate) fn new<Q: Waited + 'static>(queue: Pinned<Q>) -> Self {
        Self(queue.map(|queue| queue))
    }

    /// The queue. For a thread that has something outstanding which was tracked with it.
    #[inline(always)]
    pub(crate) fn queue(&self) -> &dyn Waited {
        self.0.get()
    }
}

/// The block layer's word for how a command ended.
#[inline]
pub(crate) fn status(outcome: Outcome) -> u8 {
    match outcome {
        Ok(()) => shims::HIOPS_STS_OK,
        Err(failure) => failed(failure.error),
    }
}

#[cold]
fn failed(error: CmdError) -> u8 {
    match error {
        CmdError::Medium => shims::HIOPS_STS_MEDIUM,
        CmdError::Range | CmdError::NotReady | CmdError::Fault => shims::HIOPS_STS_TARGET,
        CmdError::Protection => shims::HIOPS_STS_PROTECTION,
        CmdError::NoSpace => shims::HIOPS_STS_NOSPC,
        CmdError::Reserved => shims::HIOPS_STS_RESV_CONFLICT,
        CmdError::Unsupported => shims::HIOPS_STS_NOTSUPP,
        CmdError::Invalid => shims::HIOPS_STS_INVAL,
        CmdError::Timeout => shims::HIOPS_STS_TIMEOUT,
        CmdError::Gone => shims::HIOPS_STS_OFFLINE,
        CmdError::Path => shims::HIOPS_STS_TRANSPORT,
        CmdError::Aborted | CmdError::Io => shims::HIOPS_STS_IOERR,
    }
}
