// SPDX-License-Identifier: GPL-2.0
//! One command between a device and a buffer, as the engine has it ([`Io`]), beside a request of
//! the block layer ([`Req`]); and where all of it is kept that has to outlive the call ([`Place`]):
//! never on its thread's stack.
//!
//! That thread never gives up: it waits until its I/O is over, which it is when the device does not
//! know the command any more (a completion, or a controller that was stopped). So no buffer is used
//! again that a device may still reach.
//!
//! ```text
//!  thread: prepare --Io--> engine --end_cmd: outcome--> chain --finish: over--> thread: outcome
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
    /// A command of bytes.
    Bytes(Io),
}

/// A hardware queue, as a thread with bytes uses it. It is there while the thread has entered.
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

/// A buffer, with the I/O that it is used for.
pub(crate) struct Place {
    pub(crate) buffer: Buffer,
    stats: Arc<DiskStats>,
    /// The thread's until there is an [`Io`], then that one's, until it is over.
    own: Own,
    /// It waits in the FIFO: looked at when it is late.
    waits: AtomicBool,
    /// It is over, and everything here is the thread's again.
    over: AtomicBool,
}

struct Own {
    command: Cell<Command>,
    segment: Cell<Segment>,
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

/// The one handle of a command that is under way; to be ended exactly once.
pub(crate) struct Io(Pinned<Place>);

impl Place {
    /// That of `buffer`, of the disk in whose `stats` it is counted.
    pub(crate) fn new(buffer: Buffer, stats: Arc<DiskStats>) -> Self {
        let command = Command {
            op: Op::Read,
            unit: 0,
            lba: 0,
            blocks: 0,
            block_shift: 0,
            fua: false,
            unmap: false,
        };
        Self {
            buffer,
            stats,
            own: Own {
                command: Cell::new(command),
                segment: Cell::new(Segment { addr: 0, len: 0 }),
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

    /// `command` is about to move `segment`, of the buffer, for `thread`, the caller, which is
    /// tracked with `waiter`.
    ///
    /// # Safety
    /// The segment is what [`Buffer::segment`] of the buffer has answered. The caller has the
    /// buffer, and keeps it, and the memory that it is in, until [`Place::is_over`]; the result
    /// goes to a queue.
    #[inline]
    pub(crate) unsafe fn prepare(
        &self,
        (command, segment): (Command, Segment),
        thread: Option<Thread>,
        waiter: Option<&'static Waiter<Offer, QueueRef>>,
    ) -> Io {
        self.own.command.set(command);
        self.own.segment.set(segment);
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
        self.0.get().own.command.get()
    }

    /// Where its data is.
    #[inline]
    pub(crate) fn segment(&self) -> Segment {
        self.0.get().own.segment.get()
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

    /// The waiter with which its thread is tracked.
    #[inline]
    pub(crate) fn waiter(&self) -> Option<&'static Waiter<Offer, QueueRef>> {
        self.0.get().own.waiter.get()
    }

    /// The device is done with it. Whether its thread is asleep.
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

    /// Gives everything back to its thread, and wakes that. With preemption off.
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

/// Commands that are over, in a row.
#[derive(Default)]
pub(crate) struct Ends(pub(crate) Option<Io>);

impl Ends {
    /// None.
    pub(crate) const EMPTY: Self = Self(None);

    /// Takes `io`, with which the device is done. Whether its thread is asleep.
    // Not inline, as requests of the block layer pass its caller.
    #[inline(never)]
    pub(crate) fn put(&mut self, io: Io, outcome: Outcome) -> bool {
        let asleep = io.conclude(outcome);
        io.0.get().own.next.set(self.0.take());
        self.0 = Some(io);
        asleep
    }

    /// Wakes all their threads. With preemption off.
    #[inline(never)]
    pub(crate) fn end(&mut self, by: Context) {
        while let Some(io) = self.0.take() {
            self.0 = io.0.get().own.next.take();
            io.end(by);
        }
    }
}
