// SPDX-License-Identifier: GPL-2.0
//! What blk-mq's hardware context of a disk points to ([`HctxData`]): the disk on one hardware
//! queue, with its switches and what is counted there; and what leads to that queue: a request
//! ([`Rq`]), and a [`QueueRef`], by which a thread that waits for a request finds the queue.
//!
//! What can be done with a request is in `request.rs`, which reads it by way of its hctx.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};
use engine::{Context, Expected, Nap, Next, Switches, Thread, Waiter};
use hal::{Command, Error, Unit};
use kernel::bindings;
use kernel::ffi::c_void;
use kernel::sync::Arc;

use crate::blk::latency::Latency;
use crate::platform::{this_cpu_add, PerCpu};
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

// SAFETY: the pointer is to a value that is shared between all contexts anyway (the strategy's
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
        // SAFETY: `which` is one of the numbers there.
        unsafe { this_cpu_add(self.counts.at(which as usize), n) };
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
    pub(crate) calm: bool,
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
