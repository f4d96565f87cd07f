// SPDX-License-Identifier: GPL-2.0
//! What a disk's files and its ioctls have of the adapter.

use super::gate;
use super::ioctl::OfDisk;
use crate::taken_off::TakeOff;
use core::any::Any;
use engine::Mode;
use hal::{Answer, Error, Heat, Holder, LinkPower, Registered, Reserve};

/// The gate to one.
pub(crate) type Gate = gate::Gate<dyn Owner>;

/// Carries out an ioctl for that disk, or for the controller, whose owner is behind the
/// gate and of a kind that the function knows.
pub(crate) type Ioctl = fn(&Gate, Option<OfDisk>, u32, usize) -> kernel::error::Result<i32>;

/// What the adapter does for a disk's files, behind one pointer: the control path's only
/// indirection.
pub(crate) trait Owner: Send + Sync {
    /// Itself, for who knows of what kind it is.
    fn as_any(&self) -> &dyn Any;
    /// Counts that belong to the controller, on top of those of the disk's lanes.
    fn counts(&self) -> ControllerCounts;
    /// Begins them at zero again.
    fn reset_counts(&self);
    /// How completions are noticed.
    fn mode(&self) -> Mode;
    /// Changes that. Sleeps.
    fn set_mode(&self, mode: Mode) -> Result<(), Error>;
    /// The number of the strategy ([`engine::Strategy::NAMES`]).
    fn strategy(&self) -> usize;
    /// Chooses another. Sleeps.
    fn choose(&self, which: usize);
    /// Writes what the strategy has learnt, a line for each of the first queues.
    fn learned(&self, to: &mut dyn core::fmt::Write) -> core::fmt::Result;
    /// The interval between two polls, in microseconds.
    fn poll_interval_us(&self) -> u32;
    /// Changes it.
    fn set_poll_interval_us(&self, us: u32);
    /// Whether threads nap, by when their I/O is expected.
    fn predicts(&self) -> bool;
    /// Has them do so, or not.
    fn set_predict(&self, on: bool);
    /// For so many microseconds they look after a nap, at most.
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
    fn heat(&self) -> Result<Option<Heat>, Error>;
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
    /// Writes the keys that are registered there to `keys`, likewise.
    fn registered(&self, unit: u32, keys: &mut [u64]) -> Result<Answer<Registered>, Error>;
    /// Who holds the reservation there, likewise.
    fn holder(&self, unit: u32) -> Result<Answer<Holder>, Error>;
    /// Who carries out the ioctls of its disks, and of its node, that are not the block layer's
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
