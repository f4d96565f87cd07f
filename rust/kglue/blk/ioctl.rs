// SPDX-License-Identifier: GPL-2.0
//! How a disk's files and ioctls reach its controller: what passes through ([`AdminPath`]), what
//! the adapter does for them ([`Owner`]), and the gate on the way there ([`Gate`]), for those
//! that may outlive the adapter: a program that has the disk open.
//!
//! A caller inside the gate holds no lock, so any number are. User memory is not touched inside: a
//! page of it may never come, and [`Gate::close`](GateTo::close) waits for all that are.

use core::any::Any;
use engine::Mode;
use hal::{Answer, Error, Holder, LinkPower, Registered, Reserve, Temperature, Unit};
use kernel::error::code::ENOTTY;
use kernel::prelude::*;
use kernel::str::CStr;
use kernel::sync::{Arc, CondVar, Mutex};
use kernel::{bindings, static_lock_class};

use crate::blk::request::DiskStats;
use crate::bytes::memory::DiskMemory;
use crate::bytes::switch::Parts;
use crate::caller::TakeOff;
use crate::shims_safe::capable;
use crate::work::Pinned;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../../kunit/gate.rs"]
mod kunit;

/// `SG_IO` (`scsi/sg.h`): a SCSI command, of whose structure 32-bit programs have another.
pub const SG_IO: u32 = 0x2285;

/// The disk that an ioctl is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfDisk {
    /// [`hal::Unit::id`].
    pub unit: u32,
    /// Nothing on it may be changed: the device says so, or the operator (blockdev(8) `--setro`).
    pub read_only: bool,
    /// It was asked of one of its partitions, for which a controller's commands are too much: they
    /// reach all of the disk.
    pub is_partition: bool,
    /// Its number among all disks of hiops that have a major of its own, of which no two have the
    /// same; 0 of others.
    pub number: u32,
}

/// A controller's own ioctls, as far as it has some.
pub trait AdminPath: hal::Controller {
    /// Carries out `cmd` with the user-space argument `arg` for `disk`, `None`: for the controller
    /// itself, on behalf of the calling task, which could open the disk; what takes more than that,
    /// [`Right`] tells. ENOTTY for a command that it does not know. Sleeps.
    ///
    /// User memory is touched here and not within `access`: a page of it may have to be read from
    /// this very disk, or from a program that never answers.
    fn ioctl(
        disk: Option<OfDisk>,
        cmd: u32,
        arg: usize,
        access: &impl ControllerAccess<Self>,
    ) -> kernel::error::Result<i32>
    where
        Self: Sized,
    {
        let _ = (disk, cmd, arg, access);
        Err(ENOTTY)
    }

    /// Has `queue` be drained by `alarm` where it keeps completions back.
    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    fn wake_by(queue: &Self::Queue, alarm: crate::faults::Alarm) {
        let _ = (queue, alarm);
    }
}

/// Access to a controller that may be taken away at any time.
pub trait ControllerAccess<C> {
    /// Its control path.
    type Control: ControlPath;

    /// Lets `f` have the controller, which stays for as long; its control path is called within
    /// the other one only. ENODEV: it is gone. Sleeps.
    fn with<R>(
        &self,
        f: impl FnOnce(&C, &Self::Control) -> kernel::error::Result<R>,
    ) -> kernel::error::Result<R>;
}

/// A controller's control path, which takes one caller at a time. A caller that
/// finds the controller going away gets [`hal::Error::Gone`], and `work` is not done.
pub trait ControlPath {
    /// Has `work` done with the control path to itself. [`hal::Error::Timeout`] of it makes the
    /// controller recover. Sleeps.
    fn hold<R>(&self, work: impl FnOnce() -> Result<R, hal::Error>) -> Result<R, hal::Error>;

    /// Has a command carried out with the controller's queues at rest. After any error but
    /// [`hal::Error::Invalid`] the controller was stopped before this returns, so it touches no
    /// memory of `work` any more, and recovers. Sleeps.
    fn hold_at_rest<R>(
        &self,
        work: impl FnOnce() -> Result<R, hal::Error>,
    ) -> Result<R, hal::Error>;

    /// Has the controller reset and brought back. An error: it did not come back. Sleeps until
    /// then.
    fn reset(&self) -> Result<(), hal::Error>;

    /// Has `work`, which may change the controller's disks, done with no I/O under way on any of
    /// them; it holds the control path itself. Afterwards they are what the controller says then:
    /// block size, capacity and limits; some may be gone, some new. Not even then does a request
    /// get to the device that was counted in other blocks than the device's. [`hal::Error::Gone`]:
    /// the disks are going away. Sleeps.
    fn change<R>(&self, work: impl FnOnce() -> Result<R, hal::Error>) -> Result<R, hal::Error>;

    /// A reset or a removal waits for the control path. A command of `work` that takes long is then
    /// given up. Sleeps.
    fn is_wanted(&self) -> bool;
}

/// A right that a task may have beyond those to files (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// CAP_SYS_ADMIN.
    Administer,
    /// CAP_SYS_RAWIO.
    RawIo,
}

impl Right {
    /// Whether the calling task has it.
    pub fn is_held(self) -> bool {
        let capability = match self {
            Self::Administer => bindings::CAP_SYS_ADMIN,
            Self::RawIo => bindings::CAP_SYS_RAWIO,
        };
        // CAST: both are below 64.
        capable(capability as i32)
    }
}

/// The gate to an adapter, for its disks' files and its own.
pub(crate) type Gate = GateTo<dyn Owner>;

/// Carries out an ioctl for that disk, or for the controller, whose owner is behind the
/// gate and of a kind that the function knows.
pub(crate) type Ioctl = fn(&Gate, Option<OfDisk>, u32, usize) -> kernel::error::Result<i32>;

/// What the adapter does for a disk's files, behind one pointer: the control path's only
/// indirection.
pub(crate) trait Owner: Send + Sync {
    /// Itself, for code that knows of what kind it is.
    fn as_any(&self) -> &dyn Any;
    /// Counts that belong to the controller, on top of those of the disk's hctxs.
    fn counts(&self) -> ControllerCounts;
    /// Begins them at zero again.
    fn reset_counts(&self);
    /// How completions are noticed.
    fn mode(&self) -> Mode;
    /// Changes that. Sleeps.
    fn set_mode(&self, mode: Mode) -> Result<(), Error>;
    /// The number of the strategy ([`engine::Selectable::NAMES`]).
    fn strategy(&self) -> usize;
    /// Chooses another. Sleeps.
    fn choose(&self, which: usize);
    /// Writes what the strategy has learnt, a line for each of the first queues.
    fn learned(&self, to: &mut dyn core::fmt::Write) -> core::fmt::Result;
    /// The interval between two polls, in microseconds.
    fn poll_interval_us(&self) -> u32;
    /// Changes it.
    fn set_poll_interval_us(&self, us: u32);
    /// Makes the buffers through which the bytes of the disk `unit` are read, which are counted in
    /// `stats`, around the `parts` that are there. [`Error::Unsupported`]: its blocks are too
    /// large, or there are as many such disks as may be. Sleeps.
    fn bytes_memory(
        &self,
        unit: &Unit,
        stats: &Arc<DiskStats>,
        parts: Parts<'_>,
    ) -> Result<KBox<DiskMemory>, Error> {
        let _ = (unit, stats, parts);
        Err(Error::Unsupported)
    }
    /// Whether threads nap, by when their I/O is expected.
    fn predicts(&self) -> bool;
    /// Has them do so, or not.
    fn set_predict(&self, on: bool);
    /// How many microseconds they look after a nap, at most.
    fn window_us(&self) -> u32;
    /// Changes that.
    fn set_window_us(&self, us: u32);
    /// Writes when commands are over, as far as is known, a line a class.
    fn forecast(&self, to: &mut dyn core::fmt::Write) -> core::fmt::Result;
    /// Has the controller asked anew which disks it has, and what they are, soon.
    fn rescan(&self);
    /// How its disk is taken off, and nothing else of what the controller is part of; `None`: that
    /// is not done here.
    fn take_off(&self) -> Option<&TakeOff>;
    /// How hot the controller is; `None`: it does not say. Sleeps.
    fn temperature(&self) -> Result<Option<Temperature>, Error>;
    /// How much the link may sleep; `None`: there is none that could.
    fn link_power(&self) -> Option<LinkPower>;
    /// Changes that. [`Error::Unsupported`]: it can't be; why is in the log. Sleeps.
    fn set_link_power(&self, policy: LinkPower) -> Result<(), Error>;
    /// How many commands its disk is given at once at most; `None`: that is not for an operator to
    /// say.
    fn depth(&self) -> Option<u16>;
    /// Changes that. [`Error::Invalid`]: none, or more than it takes. Sleeps.
    fn set_depth(&self, depth: u16) -> Result<(), Error>;
    /// Whether the write caches of the disks can be turned on and off.
    fn turns_cache(&self) -> bool;
    /// Whether disk `unit` has its write cache on. Sleeps.
    fn has_cache(&self, unit: u32) -> Result<bool, Error>;
    /// Turns the disks' write caches on or off. [`Error::Unsupported`]: it can't be; why is in the
    /// log. For the files of a controller whose disks change in nothing else by that. Sleeps.
    fn set_write_cache(&self, on: bool) -> Result<(), Error>;
    /// Tells the names of the controller's quirks to `named`.
    fn quirks(&self, named: &mut dyn FnMut(&'static str));
    /// Resets the controller; an error: it did not come back. Sleeps until then.
    fn reset(&self) -> Result<(), Error>;
    /// Has `what` done with the reservations of disk `unit`. [`Error::Unsupported`]: its disks have
    /// none. Sleeps.
    fn reserve(&self, unit: u32, what: &Reserve) -> Result<Answer<()>, Error>;
    /// Writes the keys that are registered there to `keys`. Sleeps.
    fn registered(&self, unit: u32, keys: &mut [u64]) -> Result<Answer<Registered>, Error>;
    /// The holder of the reservation there. Sleeps.
    fn holder(&self, unit: u32) -> Result<Answer<Holder>, Error>;
    /// What carries out the ioctls of its disks, and of its node, that are not the block layer's
    /// own.
    fn ioctls(&self) -> Ioctl;
}

/// What is counted for a controller as a whole.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct ControllerCounts {
    pub(crate) interrupts: u64,
    pub(crate) doorbell_writes: u64,
    pub(crate) resets: u64,
    /// Of these, those that an operator has asked for.
    pub(crate) asked: u64,
    pub(crate) max_irq_ns: u64,
    pub(crate) max_tick_ns: u64,
    pub(crate) ticks: u64,
    /// By [`engine::Nap`], in its order.
    pub(crate) naps: [u64; 4],
    pub(crate) turns: u64,
    pub(crate) missed: u64,
    pub(crate) aborts: u64,
}

/// lockdep wants all locks of a class to have the same name, by its address; a literal in a generic
/// function has one for each type.
static NAME: &CStr = c"hiops_gate";

/// The gate of one adapter, which is an `O` to its callers.
#[pin_data]
pub(crate) struct GateTo<O: ?Sized> {
    #[pin]
    state: Mutex<State<O>>,
    /// Told when the last one leaves.
    #[pin]
    empty: CondVar,
}

struct State<O: ?Sized> {
    /// `None`: the gate is closed.
    owner: Option<Pinned<O>>,
    /// How many are inside.
    inside: usize,
}

impl<O: ?Sized> GateTo<O> {
    /// A closed gate.
    pub(crate) fn new() -> Result<Arc<Self>, Error> {
        let closed = State {
            owner: None,
            inside: 0,
        };
        let init = pin_init!(Self {
            state <- Mutex::new(closed, NAME, static_lock_class!()),
            empty <- CondVar::new(NAME, static_lock_class!()),
        });
        Arc::pin_init(init, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// Opens it. [`Gate::close`] silences all callers.
    pub(crate) fn open(&self, owner: Pinned<O>) {
        self.state.lock().owner = Some(owner);
    }

    /// Closes it; returns when no caller is inside any more. Sleeps.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.owner = None;
        while state.inside != 0 {
            self.empty.wait(&mut state);
        }
    }

    /// It is closed, or about to be: callers that are inside are waited for. Sleeps.
    pub(crate) fn is_closing(&self) -> bool {
        self.state.lock().owner.is_none()
    }

    /// Lets `f` have the owner, without a lock; `None` when the gate is closed. Sleeps.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&O) -> R) -> Option<R> {
        let visit = Visit::new(self)?;
        Some(f(visit.owner.get()))
    }
}

/// A caller inside a gate.
struct Visit<'a, O: ?Sized> {
    gate: &'a GateTo<O>,
    owner: Pinned<O>,
}

impl<'a, O: ?Sized> Visit<'a, O> {
    fn new(gate: &'a GateTo<O>) -> Option<Self> {
        let mut state = gate.state.lock();
        let owner = state.owner?;
        state.inside = state.inside.saturating_add(1);
        Some(Self { gate, owner })
    }
}

impl<O: ?Sized> Drop for Visit<'_, O> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.inside = state.inside.saturating_sub(1);
        if state.inside == 0 {
            self.gate.empty.notify_all();
        }
    }
}
