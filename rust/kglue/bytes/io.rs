// SPDX-License-Identifier: GPL-2.0
//! One read of bytes, as the engine has it ([`Io`]), beside a request of the block layer ([`Req`]);
//! and where all of it is kept that has to outlive the call ([`Place`]): never on the reader's
//! stack.
//!
//! A reader never gives up: it waits until its I/O is over, which it is when the device does not
//! know the command any more (a completion, or a controller that was stopped). So no buffer is used
//! again that a device may still write to.
//!
//! ```text
//!  reader: prepare --Io--> engine --end_cmd: outcome--> chain --finish: over--> reader: outcome
//! ```

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use engine::{Context, Switches, Thread, Waiter};
use hal::{Command, Op, Outcome, Segment};
use kernel::sync::Arc;

use crate::blk::hctx::{DiskStats, Late, Offer, QueueRef, Rq};
use crate::bytes::buffer::Buffer;
use crate::work::Pinned;

/// What the engine has under way for the kernel.
pub(crate) enum Req {
    /// A request of the block layer.
    Block(Rq),
    /// A read of bytes.
    Bytes(Io),
}

/// A hardware queue, as a reader uses it. It is there while the reader has entered.
pub(crate) trait BytesQueue: Send + Sync {
    /// Takes `io` over. With preemption off.
    fn submit(&self, io: Io, switches: Switches);
    /// Whether it is of use to know which thread waits. Any context.
    fn tracks(&self, switches: Switches) -> bool;
    /// Takes completions for which no interrupt came. Any context, with preemption on.
    fn sweep(&self);
    /// `io` is late: its completion is looked for, and the device recovered if it is not there.
    /// Sleeps.
    fn late(&self, io: &dyn Late);
}

/// What is to be read.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    /// [`hal::Unit::id`] of the disk.
    pub(crate) unit: u32,
    /// The first.
    pub(crate) lba: u64,
    /// How many.
    pub(crate) count: u32,
    /// Bytes of each, as a power of two.
    pub(crate) shift: u8,
}

/// A buffer, with the I/O that it is used for.
pub(crate) struct Place {
    pub(crate) buffer: Buffer,
    stats: Arc<DiskStats>,
    /// The reader's until there is an [`Io`], then that one's, until it is over.
    own: Own,
    /// It waits in the FIFO: looked at when it is late.
    waits: AtomicBool,
    /// It is over, and everything here is the reader's again.
    over: AtomicBool,
}

struct Own {
    blocks: Cell<Blocks>,
    thread: Cell<Option<Thread>>,
    waiter: Cell<Option<&'static Waiter<Offer, QueueRef>>>,
    outcome: Cell<Outcome>,
    by: Cell<Context>,
    next: Cell<Option<Io>>,
}

// SAFETY: `own` is reached by the one who has the buffer, until it has made an `Io`, and then by
// who has that, of which there is one, until `over` gives it back. The rest is atomic or not
// changed.
unsafe impl Sync for Place {}
// SAFETY: it belongs to no thread.
unsafe impl Send for Place {}

/// The one handle of a read that is under way; to be ended exactly once.
pub(crate) struct Io(Pinned<Place>);

impl Place {
    /// That of `buffer`, of the disk in whose `stats` it is counted.
    pub(crate) fn new(buffer: Buffer, stats: Arc<DiskStats>) -> Self {
        let blocks = Blocks {
            unit: 0,
            lba: 0,
            count: 0,
            shift: 0,
        };
        Self {
            buffer,
            stats,
            own: Own {
                blocks: Cell::new(blocks),
                thread: Cell::new(None),
                waiter: Cell::new(None),
                outcome: Cell::new(Ok(())),
                by: Cell::new(Context::Sweep),
                next: Cell::new(None),
            },
            waits: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// `blocks` are about to be read into the buffer for `thread`, the caller, which is tracked
    /// with `waiter`.
    ///
    /// # Safety
    /// The caller has the buffer, and keeps it, and the memory that it is in, until
    /// [`Place::is_over`]; the result goes to a queue.
    #[inline]
    pub(crate) unsafe fn prepare(
        &self,
        blocks: Blocks,
        thread: Option<Thread>,
        waiter: Option<&'static Waiter<Offer, QueueRef>>,
    ) -> Io {
        self.own.blocks.set(blocks);
        self.own.thread.set(thread);
        self.own.waiter.set(waiter);
        self.over.store(false, Ordering::Relaxed);
        // SAFETY: it stays until the I/O is over, by the caller's promise, and with that the
        // handle is gone.
        Io(unsafe { Pinned::new(self) })
    }

    /// Where to look whether it is over, which acquires what it has left here.
    pub(crate) fn is_over(&self) -> &AtomicBool {
        &self.over
    }

    /// How it has ended. After it is over.
    #[inline]
    pub(crate) fn outcome(&self) -> (Outcome, Context) {
        (self.own.outcome.get(), self.own.by.get())
    }

    /// Whether it waits for a tag.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }
}

impl Io {
    /// What it asks for.
    #[inline]
    pub(crate) fn command(&self) -> Command {
        command(&self.0.get().own.blocks.get())
    }

    /// Where the data goes.
    #[inline]
    pub(crate) fn segment(&self) -> Segment {
        let (blocks, buffer) = (self.0.get().own.blocks.get(), &self.0.get().buffer);
        Segment {
            addr: buffer.bus(),
            len: blocks.count.wrapping_shl(u32::from(blocks.shift)),
        }
    }

    /// It waits in the FIFO from now on, which is counted.
    pub(crate) fn start_waiting(&self) {
        self.0.get().stats.deferred();
        self.0.get().waits.store(true, Ordering::Relaxed);
    }

    /// It is issued, or over.
    #[inline]
    pub(crate) fn stop_waiting(&self) {
        self.0.get().waits.store(false, Ordering::Relaxed);
    }

    /// The waiter with which its reader is tracked.
    #[inline]
    pub(crate) fn waiter(&self) -> Option<&'static Waiter<Offer, QueueRef>> {
        self.0.get().own.waiter.get()
    }

    /// The device is done with it. Whether its reader is asleep.
    #[inline]
    fn conclude(&self, outcome: Outcome) -> bool {
        let own = &self.0.get().own;
        self.stop_waiting();
        own.outcome.set(outcome);
        let Some(waiter) = own.waiter.get() else {
            return true;
        };
        let asleep = waiter.is_asleep();
        crate::wait::ended(waiter);
        asleep
    }

    /// Gives everything back to its reader, and wakes that. With preemption off.
    #[inline]
    fn end(self, by: Context) {
        let place = self.0.get();
        place.own.by.set(by);
        let thread = place.own.thread.get();
        // From here on nothing of it is touched.
        place.over.store(true, Ordering::Release);
        if let Some(thread) = thread {
            crate::wait::wake_thread(thread.address());
        }
    }
}

/// The command that reads `blocks`.
#[inline]
pub(crate) fn command(blocks: &Blocks) -> Command {
    Command {
        op: Op::Read,
        unit: blocks.unit,
        lba: blocks.lba,
        blocks: blocks.count,
        block_shift: blocks.shift,
        fua: false,
        unmap: false,
    }
}

/// Reads that are over, in a row.
#[derive(Default)]
pub(crate) struct Ends(pub(crate) Option<Io>);

impl Ends {
    /// None.
    pub(crate) const EMPTY: Self = Self(None);

    /// Takes `io`, with which the device is done. Whether its reader is asleep.
    // Not inline, as requests of the block layer pass its caller.
    #[inline(never)]
    pub(crate) fn put(&mut self, io: Io, outcome: Outcome) -> bool {
        let asleep = io.conclude(outcome);
        io.0.get().own.next.set(self.0.take());
        self.0 = Some(io);
        asleep
    }

    /// Wakes all readers. With preemption off.
    #[inline(never)]
    pub(crate) fn end(&mut self, by: Context) {
        while let Some(io) = self.0.take() {
            self.0 = io.0.get().own.next.take();
            io.end(by);
        }
    }
}
