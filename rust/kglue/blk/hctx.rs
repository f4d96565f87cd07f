// SPDX-License-Identifier: GPL-2.0
//! What blk-mq's hardware context of a disk points to ([`HctxData`]): the disk on one hardware
//! queue, with its switches and what is counted there; and what leads to that queue: a request
//! ([`Rq`]), and a [`QueueRef`], by which a thread that waits for a request finds the queue.
//!
//! What can be done with a request is in `request.rs`, which reads it by way of its hctx.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use engine::{Context, Expected, Nap, Next, Switches, Thread, Waiter};
use hal::Unit;
use kernel::bindings;
use kernel::ffi::c_void;

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

    /// Gives the request back to who ends it.
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
    pub(crate) stats: HctxStats,
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
        let unmaps = if unit.shape.zeroes_unmap { UNMAPS } else { 0 };
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

    /// [`hal::Shape::zeroes_unmap`].
    #[inline]
    pub(crate) fn unmaps(&self) -> bool {
        self.0.load(Ordering::Relaxed) & UNMAPS != 0
    }
}

/// What is counted for one disk on one hardware queue. Anybody counts; sums are taken when somebody
/// reads them.
#[derive(Default)]
pub(crate) struct HctxStats {
    submitted: AtomicU64,
    /// By [`Context`].
    completed: [AtomicU64; 5],
    deferred: AtomicU64,
    errors: AtomicU64,
    retried: AtomicU64,
    timeouts: AtomicU64,
}

/// Sums over the hctxs of a disk.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) submitted: u64,
    /// By [`Context`], in its order.
    pub(crate) completed: [u64; 5],
    pub(crate) deferred: u64,
    pub(crate) errors: u64,
    pub(crate) retried: u64,
    pub(crate) timeouts: u64,
}

#[inline(always)]
fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl HctxStats {
    #[inline(always)]
    pub(crate) fn submitted(&self, n: u64) {
        count(&self.submitted, n);
    }

    /// One that was counted as submitted has not been.
    pub(crate) fn not_submitted(&self) {
        self.submitted.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn completed(&self, n: u64, by: Context) {
        let place = match by {
            Context::Irq => &self.completed[0],
            Context::Lazy => &self.completed[1],
            Context::Coop => &self.completed[2],
            Context::Poll => &self.completed[3],
            Context::Sweep => &self.completed[4],
        };
        count(place, n);
    }

    #[inline]
    pub(crate) fn deferred(&self) {
        count(&self.deferred, 1);
    }

    #[cold]
    pub(crate) fn error(&self) {
        count(&self.errors, 1);
    }

    #[cold]
    pub(crate) fn retried(&self) {
        count(&self.retried, 1);
    }

    #[cold]
    pub(crate) fn timeout(&self) {
        count(&self.timeouts, 1);
    }

    /// Adds what was counted here to `sums`.
    pub(crate) fn add_to(&self, sums: &mut Sums) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        sums.submitted = sums.submitted.wrapping_add(get(&self.submitted));
        for (sum, counter) in sums.completed.iter_mut().zip(&self.completed) {
            *sum = sum.wrapping_add(get(counter));
        }
        sums.deferred = sums.deferred.wrapping_add(get(&self.deferred));
        sums.errors = sums.errors.wrapping_add(get(&self.errors));
        sums.retried = sums.retried.wrapping_add(get(&self.retried));
        sums.timeouts = sums.timeouts.wrapping_add(get(&self.timeouts));
    }

    /// Begins at zero again.
    pub(crate) fn reset(&self) {
        let zero = |counter: &AtomicU64| counter.store(0, Ordering::Relaxed);
        zero(&self.submitted);
        self.completed.iter().for_each(zero);
        zero(&self.deferred);
        zero(&self.errors);
        zero(&self.retried);
        zero(&self.timeouts);
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
