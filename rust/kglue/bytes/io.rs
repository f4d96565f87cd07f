// SPDX-License-Identifier: GPL-2.0
//! One command between a device and a buffer, as the engine has it ([`Io`]), beside a request of
//! the block layer ([`Req`]); and where all of it is kept that has to outlive the call ([`Place`]):
//! never on its thread's stack.
//!
//! That thread never gives up: it waits until its I/O is over, which it is when the device does not
//! know the command any more (a completion, or a controller that was stopped). So no buffer is used
//! again that a device may still reach. Where no thread waits ([`AsyncIo`]), it is ended by the
//! context that finds it over; if it is to be tried again, by the watchdog, which waits.
//!
//! ```text
//!  thread: prepare --Io--> engine --end_cmd: outcome--> chain --finish: over--> thread: outcome
//!  begin: leave -----Io--> engine --end_cmd: outcome--> chain --finish: data--> its caller
//!                                                   or: has failed --watchdog: take_failed--> ...
//! ```

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use engine::{Context, Retry, Switches, Thread, Waiter};
use hal::{Command, Failure, Op, Outcome, Segment};
use kernel::error::Error;
use kernel::sync::Arc;

use crate::blk::request::{status, DiskStats, Late, Offer, QueueRef, Rq};
use crate::bytes::async_io::AsyncIo;
use crate::bytes::buffer::{Buffer, Part};
use crate::bytes::entered::Entered;
use crate::bytes::locks::BusyRegions;
use crate::bytes::room::Room;
use crate::bytes::watchdog::Watchdog;
use crate::platform::now_ms;
use crate::shims_safe::hiops_bytes_errno;
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
    /// Takes completions that are there. Any context, with preemption on.
    fn drain(&self, by: Context);
    /// `io` is late: its completion is looked for, and the device recovered if it is not there.
    /// Sleeps.
    fn late(&self, io: &dyn Late);
}

/// A buffer, with the I/O that it is used for.
pub(crate) struct Place {
    pub(crate) buffer: Buffer,
    /// The buffer's number in the room.
    at: usize,
    shared: Arc<LaneShared>,
    /// The thread's until there is an [`Io`], then that one's, until it is over.
    own: Own,
    /// It waits in the FIFO: looked at when it is late.
    waits: AtomicBool,
    /// It is over, and everything here is the thread's again.
    over: AtomicBool,
    /// For whom no thread waits.
    watched: Watched,
}

/// What the buffers of a hardware queue have in common.
pub(crate) struct LaneShared {
    /// [`hal::Unit::id`] of the disk.
    pub(crate) unit: u32,
    pub(crate) room: Arc<Room>,
    pub(crate) busy: Arc<BusyRegions>,
    pub(crate) stats: Arc<DiskStats>,
    pub(crate) watchdog: Arc<Watchdog>,
}

impl LaneShared {
    /// Has all threads look again that wait for a buffer or a region. Sleeps.
    pub(crate) fn wake_all(&self) {
        self.room.wake_all();
        self.busy.wake_all();
    }
}

/// What the watchdog looks at of a command for which no thread waits: never more than hints, save
/// that it has failed.
#[derive(Default)]
struct Watched {
    /// Since when it is under way, by the clock of [`now_ms`]; 0: it is not.
    since_ms: AtomicU64,
    /// Where, and how much.
    lba: AtomicU64,
    blocks: AtomicU32,
    writes: AtomicBool,
    /// It has failed, and everything here is the watchdog's.
    has_failed: AtomicBool,
}

struct Own {
    command: Cell<Command>,
    part: Cell<Part>,
    thread: Cell<Option<Thread>>,
    /// Instead of a thread.
    left: Cell<Option<AsyncIo>>,
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

/// One that was never prepared.
const NO_COMMAND: Command = Command {
    op: Op::Read,
    unit: 0,
    lba: 0,
    blocks: 0,
    block_shift: 0,
    fua: false,
    unmap: false,
};

/// That of a buffer of which nothing was asked yet.
const NO_PART: Part = Part {
    all: Segment { addr: 0, len: 0 },
    sparse: None,
};

impl Place {
    /// That of `buffer`, the one with the number `at` of those in `shared`.
    pub(crate) fn new(buffer: Buffer, at: usize, shared: Arc<LaneShared>) -> Self {
        Self {
            buffer,
            at,
            shared,
            own: Own {
                command: Cell::new(NO_COMMAND),
                part: Cell::new(NO_PART),
                thread: Cell::new(None),
                left: Cell::new(None),
                waiter: Cell::new(None),
                outcome: Cell::new(Ok(())),
                by: Cell::new(Context::Sweep),
                next: Cell::new(None),
            },
            waits: AtomicBool::new(false),
            over: AtomicBool::new(false),
            watched: Watched::default(),
        }
    }

    /// `command` is about to move `part` of the buffer for `thread`, the caller, which is
    /// tracked with `waiter`.
    ///
    /// # Safety
    /// The part is what [`Buffer::segment`] of the buffer has answered. The caller has the
    /// buffer, and keeps it, and the memory that it is in, until [`Place::is_over`]; the result
    /// goes to a queue.
    #[inline]
    pub(crate) unsafe fn prepare(
        &self,
        (command, part): (Command, Part),
        thread: Option<Thread>,
        waiter: Option<&'static Waiter<Offer, QueueRef>>,
    ) -> Io {
        self.own.command.set(command);
        self.own.part.set(part);
        self.own.thread.set(thread);
        self.own.waiter.set(waiter);
        self.over.store(false, Ordering::Relaxed);
        // SAFETY: it stays until the I/O is over, by the caller's promise, and with that the
        // handle is gone.
        Io(unsafe { Pinned::new(self) })
    }

    /// The command that is about to be prepared is for `io`, not for a thread. By who has the
    /// buffer.
    #[inline]
    pub(crate) fn leave(&self, io: AsyncIo) {
        let Watched { lba, blocks, .. } = &self.watched;
        lba.store(io.plan.lba, Ordering::Relaxed);
        blocks.store(io.plan.blocks, Ordering::Relaxed);
        (self.watched.writes).store(io.writes.is_some(), Ordering::Relaxed);
        self.own.left.set(Some(io));
        // A clock that says 0 said so for a moment only.
        (self.watched.since_ms).store(now_ms().max(1), Ordering::Relaxed);
        self.shared.watchdog.arm();
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

/// For the watchdog, which has entered the disk.
impl Place {
    /// Since when a command is under way for which no thread waits.
    pub(crate) fn since_ms(&self) -> Option<u64> {
        match self.watched.since_ms.load(Ordering::Relaxed) {
            0 => None,
            since => Some(since),
        }
    }

    /// It has been seen to be late that began at `since_ms`: it has as long again.
    pub(crate) fn extend(&self, since_ms: u64) {
        let (since, now) = (&self.watched.since_ms, now_ms().max(1));
        // It may be over by now.
        let _ = since.compare_exchange(since_ms, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// What that command asks for, of the disk `unit`.
    pub(crate) fn asked(&self, unit: u32) -> Command {
        let watched = &self.watched;
        Command {
            op: match watched.writes.load(Ordering::Relaxed) {
                true => Op::Write,
                false => Op::Read,
            },
            unit,
            lba: watched.lba.load(Ordering::Relaxed),
            blocks: watched.blocks.load(Ordering::Relaxed),
            ..NO_COMMAND
        }
    }

    /// A command that has failed and is to be tried again, and what it was for: the
    /// buffer is the caller's with it.
    pub(crate) fn take_failed(&self) -> Option<(Command, Part, AsyncIo)> {
        let Self { own, watched, .. } = self;
        // Acquires what was left here.
        if !watched.has_failed.swap(false, Ordering::Acquire) {
            return None;
        }
        Some((own.command.get(), own.part.get(), own.left.take()?))
    }

    /// When that command is tried again, if it is; else how it has failed.
    pub(crate) fn retry(&self, io: &AsyncIo) -> Result<Retry, Outcome> {
        let outcome = self.own.outcome.get();
        let retry = outcome.err().and_then(|failure| io.retry(failure));
        retry.ok_or(outcome)
    }

    /// That command is not tried again, as `error` says.
    #[cold]
    pub(crate) fn count_failed(&self, error: Error) -> Error {
        self.shared.stats.error();
        self.shared.stats.completed(1, Context::Sweep);
        error
    }

    /// What was read is in the buffer, or what was there is written, or `result` says why not: it
    /// is over, and all that it had given back. The caller has the buffer, until then. Any context.
    #[inline]
    pub(crate) fn finish(&self, io: AsyncIo, result: Result<(), Error>) {
        let shared = &*self.shared;
        let result = result.and_then(|()| io.fill(&self.buffer));
        if let Ok(len) = result {
            match io.writes {
                Some(_) => shared.stats.bytes_written(len, false),
                None => shared.stats.bytes_read(len),
            }
        }
        self.watched.since_ms.store(0, Ordering::Relaxed);
        let waits = (io.writes).is_some_and(|regions| shared.busy.end_all(regions));
        if shared.room.give(self.at) || waits {
            // Who waits there can't be woken in any context.
            shared.watchdog.call();
        }
        io.end(result);
    }

    /// The command of `io` is over, by the device: so is that, if it is not tried again. Any
    /// context.
    #[inline]
    fn end_left(&self, io: AsyncIo, by: Context) {
        let (own, shared) = (&self.own, &*self.shared);
        let result = match own.outcome.get() {
            Ok(()) => {
                shared.stats.bytes_moved(own.part.get().moved());
                Ok(())
            }
            Err(failure) if io.retry(failure).is_some() => {
                let stays = Entered::beside(io.entered.disk());
                own.left.set(Some(io));
                self.watched.since_ms.store(0, Ordering::Relaxed);
                // Releases all of it: it may be over at once, and the disk gone.
                self.watched.has_failed.store(true, Ordering::Release);
                shared.watchdog.call();
                return drop(stays);
            }
            Err(failure) => {
                shared.stats.error();
                Err(errno(failure))
            }
        };
        shared.stats.completed(1, by);
        self.finish(io, result);
    }
}

/// As the block layer tells it.
#[cold]
pub(crate) fn errno(failure: Failure) -> Error {
    Error::from_errno(hiops_bytes_errno(status(Err(failure))))
}

impl Io {
    /// What it asks for.
    #[inline]
    pub(crate) fn command(&self) -> Command {
        self.0.get().own.command.get()
    }

    /// Where its data is.
    #[inline]
    pub(crate) fn part(&self) -> Part {
        self.0.get().own.part.get()
    }

    /// It waits in the FIFO from now on, which is counted.
    pub(crate) fn start_waiting(&self) {
        self.0.get().shared.stats.deferred();
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
            return own.thread.get().is_some();
        };
        let asleep = waiter.is_asleep();
        crate::wait::ended(waiter);
        asleep
    }

    /// Gives everything back to its thread, and wakes that. With preemption off.
    #[inline]
    fn end(self, by: Context) {
        let place = self.0.get();
        let thread = place.own.thread.get();
        if thread.is_none() {
            if let Some(io) = place.own.left.take() {
                return place.end_left(io, by);
            }
        }
        place.own.by.set(by);
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
