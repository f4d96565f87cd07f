// SPDX-License-Identifier: GPL-2.0
//! What an adapter is given: a bus, and how it is to serve; what it is called, why it is reset (in
//! the log's words), and why it is put to rest.

use core::fmt;
use engine::Mode;
use hal::{Command, Error};
use kernel::bindings;
use kernel::device::Device;

use crate::blk::MapKind;
use crate::caller::TakeOff;
use crate::platform::{raw_device, BoundDevice};
use crate::shims_safe::{hiops_number_get, hiops_number_put};

/// The bus that a controller sits on, as far as serving it needs it.
pub trait Bus: Send + Sync + 'static {
    /// How a request's data reaches the controller.
    type Map: MapKind;
    /// A mapping for one hardware queue.
    fn map(&self) -> Self::Map;
    /// The parent of the disks, if they have one.
    fn device(&self) -> Option<&BoundDevice>;
    /// How many queues that interrupt are worth creating: at least 1, at most [`Limits::queues`].
    fn queues(&self) -> u16;
    /// The vector on which `queue` completes: either all queues share one, or each has its own, in
    /// order without gaps.
    fn vector(&self, queue: u16) -> u16;
    /// Which CPU uses which queue, in a map of blk-mq's own.
    fn map_queues(&self, map: &mut bindings::blk_mq_queue_map) {
        spread(map, None);
    }
    /// Most bytes of a request that the machine maps for the device at once.
    fn reach(&self) -> u64 {
        u64::MAX
    }
    /// Whether a queue's interrupt can be turned off.
    fn can_poll(&self) -> bool;
    /// Turns the interrupt on `vector` on or off, at the bus. Any context; in turns.
    fn set_interrupt(&self, vector: u16, on: bool);
    /// Whether the device is in its place: the registers of one that was taken out may read as
    /// anything. Any context.
    fn is_present(&self) -> bool {
        true
    }
    /// Cuts the device off memory, for a controller that can't be stopped otherwise. Sleeps.
    fn cut_off(&self);
    /// For a controller that is cut off and can't be brought back: whether all that it is part of
    /// is reset, and it is resumed then ([`Adapter::resume`](crate::adapter::Adapter::resume)).
    /// Sleeps.
    fn reset_all(&self) -> bool {
        false
    }
    /// Undoes [`Bus::cut_off`], before the controller, which is stopped, is started again.
    /// [`Error::Timeout`]: others that share its path to memory are cut off still. Sleeps.
    fn restore(&self) -> Result<(), Error>;
    /// For a controller that can't be stopped, although all that it is part of was just reset:
    /// others that share its path to memory go on. Its memory is kept by the caller until nothing
    /// of them all gets there any more. Sleeps.
    fn give_up(&self) {}
    /// How an operator takes its disk off and back, and nothing else of what the controller is part
    /// of; `None`: that is not done here. Any context.
    fn take_off(&self) -> Option<&TakeOff> {
        None
    }
    /// Returns when no handler of the device's interrupts runs that began before the call. Sleeps.
    fn synchronize(&self);
}

/// Spreads the queues of a map of blk-mq's own over the CPUs: as the vectors of `by` are spread,
/// from that number on, or evenly.
pub(crate) fn spread(map: &mut bindings::blk_mq_queue_map, by: Option<(&Device, u16)>) {
    // SAFETY: blk-mq has made the map, with a place for each CPU. The device is alive; one without
    // such a vector is as none.
    unsafe {
        match by {
            Some((device, first)) => {
                bindings::blk_mq_map_hw_queues(map, raw_device(device), u32::from(first));
            }
            None => bindings::blk_mq_map_queues(map),
        }
    }
}

/// How disks are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `hiops<C>n<ID>`
    Namespace,
    /// `hiops<C>d<ID>`, of an HBA whose number is C
    Port(i32),
    /// `hiops_ram<N>`
    Ram(u32),
}

/// What an operator decides for all drives alike: how queues and disks begin.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// The number of the strategy ([`engine::Selectable::NAMES`]).
    pub strategy: usize,
    /// How completions are noticed.
    pub mode: Mode,
    /// Finished I/O is ended by the thread that waits for it.
    pub lazy: bool,
    /// Threads take completions as they submit and wait.
    pub coop: bool,
    /// Its bytes can be read.
    pub bytes: bool,
    /// Microseconds between two polls.
    pub poll_interval_us: u32,
    /// It is foretold when commands are over, and threads nap by that.
    pub predict: bool,
    /// How many microseconds a thread looks after a nap, at most.
    pub predict_window_us: u32,
    /// How often a request is tried again.
    pub max_retries: u8,
}

/// What the composition decides about an adapter.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How its disks are called.
    pub naming: Naming,
    /// How long a command may be with the device.
    pub timeout_ms: u32,
    /// Requests that may be outstanding on a queue; `None`: as many as the controller has tags, but
    /// at least 128.
    pub queue_depth: Option<u16>,
    /// Queues beside those that interrupt, for polled I/O of the block layer.
    pub poll_queues: u16,
    /// How its queues and disks begin.
    pub begin: Begin,
}

/// An adapter's name in the log.
pub(crate) struct Label(pub(crate) Naming, pub(crate) i32);

impl kernel::fmt::Display for Label {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Naming::Ram(number) => write!(f, "hiops_ram{number}"),
            _ => write!(f, "hiops{}", self.1),
        }
    }
}

/// A number in disks' names: the lowest that was free.
pub(crate) struct Number(i32);

impl Number {
    /// Takes one. Sleeps.
    pub(crate) fn new() -> Result<Self, Error> {
        match hiops_number_get() {
            number @ 0.. => Ok(Self(number)),
            _ => Err(Error::NoMemory),
        }
    }

    /// The number.
    pub(crate) fn get(&self) -> i32 {
        self.0
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        hiops_number_put(self.0);
    }
}

/// Why a controller is reset.
#[derive(Clone, Copy)]
pub(crate) enum Reason {
    /// This command is not answered.
    Late(Command),
    /// This command waits, and no other was begun for as long as one may take.
    NoTag(Command),
    /// It reports completions of what it was not told.
    Lies,
    /// A command of the control path is not answered, or nothing sensible is.
    Unanswered,
    /// An operator wants it, or the device itself.
    Asked,
}

/// Why a controller is put to rest for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspend {
    /// Power may go away.
    Sleep,
    /// The function is reset next.
    Reset,
    /// Nothing gets through to it until it is reset.
    Frozen,
}

impl kernel::fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Late(cmd) => write!(
                f,
                "no answer to a {:?} of {} blocks at {} on disk {}",
                cmd.op, cmd.blocks, cmd.lba, cmd.unit
            ),
            Reason::NoTag(cmd) => write!(
                f,
                "no tag was free in time for a {:?} of {} blocks at {} on disk {}",
                cmd.op, cmd.blocks, cmd.lba, cmd.unit
            ),
            Reason::Lies => f.write_str("it reports completions of commands that it does not have"),
            Reason::Unanswered => {
                f.write_str("an administrative command was not answered as it should be")
            }
            Reason::Asked => f.write_str("a reset was asked for"),
        }
    }
}
