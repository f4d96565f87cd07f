// SPDX-License-Identifier: GPL-2.0
//! The control path: bring up, name the disks, stop, bring back, shut down.
//!
//! Everything here except `limits`, `alive` and the interrupt verbs may sleep, is bounded in time
//! by the device's specification, and is called by one thread at a time (the glue holds a mutex
//! across each call).

use crate::{
    DeviceEvent, Error, EventAction, Limits, LinkPower, Queue, Queues, Reservations, Temperature,
};
use core::fmt;

/// Names by which a disk is known for ever, as far as it has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitIds {
    /// IEEE EUI-64.
    pub eui64: Option<[u8; 8]>,
    /// NVMe namespace globally unique identifier.
    pub nguid: Option<[u8; 16]>,
    /// UUID.
    pub uuid: Option<[u8; 16]>,
    /// ATA world-wide name.
    pub wwn: Option<u64>,
}

/// How much a disk lets one discard, and in which grain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discard {
    /// Most logical blocks of one command.
    pub max_blocks: u32,
    /// Most ranges of one command, at least 1.
    pub max_ranges: u16,
    /// Preferred grain, in logical blocks, at least 1.
    pub granularity: u32,
}

/// How I/O to a disk is best cut, and what of it is whole: in logical blocks, 0 where nothing is
/// said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Most that is written all or nothing, even when power fails.
    pub atomic: u32,
    /// Such a write does not cross a multiple of this, a power of two no less than `atomic`.
    pub atomic_boundary: u32,
    /// The least that is written well.
    pub least: u32,
    /// What is written best.
    pub best: u32,
    /// I/O that crosses a multiple of this, a power of two, is slow.
    pub stripe: u32,
    /// The first block at which a physical block begins.
    pub aligned_at: u32,
    /// Zeroes may be written by giving the blocks' space back.
    pub zeroes_unmap: bool,
}

/// What a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// An NVMe namespace, whose [`Unit::id`] is its NSID.
    Namespace {
        /// The controller's PCI vendor, as it says itself (Identify Controller, VID).
        vendor: u16,
    },
    /// The drive at an AHCI port, whose [`Unit::id`] is the port's, from 0.
    Drive,
    /// Memory.
    Ram,
}

/// One disk behind a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What it is.
    pub kind: UnitKind,
    /// The number that commands carry.
    pub id: u32,
    /// Bytes of a logical block, as a power of two (9 or more).
    pub block_shift: u8,
    /// Bytes of a physical block, as a power of two, at least `block_shift`.
    pub physical_shift: u8,
    /// Capacity in logical blocks.
    pub blocks: u64,
    /// A volatile write cache: acknowledged writes need a flush to be durable.
    pub write_cache: bool,
    /// Writes with FUA are honoured.
    pub fua: bool,
    /// Discard, where the device has it.
    pub discard: Option<Discard>,
    /// Most logical blocks of one write-zeroes; 0: the device has none.
    pub max_write_zeroes: u32,
    /// What is best for it.
    pub shape: Shape,
    /// Writes are refused by the device.
    pub read_only: bool,
    /// The medium rotates: seeks cost time.
    pub rotational: bool,
    /// Lasting names.
    pub ids: UnitIds,
    /// Serial number, ASCII, padded with blanks or zeroes.
    pub serial: [u8; 20],
    /// Model, likewise.
    pub model: [u8; 40],
    /// Firmware revision, likewise.
    pub firmware: [u8; 8],
}

/// A disk that is there but is not served, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its [`Unit::id`].
    pub id: u32,
    /// The reason, for the operator's log.
    pub why: &'static str,
}

/// A queue fresh from the controller, with the two sides' first states.
pub struct NewQueue<Q: Queue> {
    /// The shared part.
    pub queue: Q,
    /// For the issue token.
    pub issue: Q::Issue,
    /// For the drain token.
    pub drain: Q::Drain,
}

/// What an interrupt was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Not this device (a shared line).
    None,
    /// Look at the queues of this vector.
    Queues,
    /// Likewise; and [`Controller::attend`] is to be called soon.
    Attention,
}

/// How the machine goes on after a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// There is time to flush and to notify the device: unbind, reboot, poweroff.
    Normal,
    /// The device is gone or hung: only host-side state is put away.
    Dead,
}

/// One device function. What has a default here is passed on by [`Around`](crate::Around), too.
pub trait Controller: Send + Sync + 'static {
    /// Its data path.
    type Queue: Queue;

    /// Resets the device and brings it to where it takes commands; re-creates the queues that exist
    /// already. From any state. Sleeps.
    fn start(&self) -> Result<(), Error>;

    /// What it can do; meaningful after the first `start`.
    fn limits(&self) -> Limits;

    /// Creates queue `index` (from 0, in order) whose completions interrupt on `vector`; `None`:
    /// they never interrupt. Sleeps.
    fn create_queue(&self, index: u16, vector: Option<u16>)
        -> Result<NewQueue<Self::Queue>, Error>;

    /// Names the disks to `found`, one by one; one that can't be served comes as [`Refused`], the
    /// others still come. Sleeps.
    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error>;

    /// Stops the device: when this returns `Ok` it does not touch memory any more. On `Err` the
    /// caller must cut it off the bus (bus-master enable) before it reaps. Sleeps.
    fn stop(&self) -> Result<(), Error>;

    /// Tells the device that power may go away, within its own bound. Sleeps.
    fn shutdown(&self, how: Shutdown) -> Result<(), Error>;

    /// Tells the names of the device's quirks to `named`, those that it was made with and, after
    /// [`Controller::start`], those of what it named itself. Any context.
    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        let _ = named;
    }

    /// Says in one line, for the operator's log, what the device was doing when a command timed
    /// out, so that a device that is slow is told from a completion that was lost. Before
    /// [`Controller::stop`], with the queues at rest; says nothing if there is nothing to say.
    fn silence(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        let _ = to;
        Ok(())
    }

    /// Handles what the device has called for ([`Cause::Attention`]), or would have called for
    /// while it was stopped, and reports it to `tell`. A spurious call is harmless. Bounded work,
    /// however often the device calls ([`EventAction::Later`]). An error: it has to be recovered.
    /// Sleeps.
    fn attend(
        &self,
        queues: Queues,
        tell: &mut dyn FnMut(DeviceEvent<'_>),
    ) -> Result<EventAction, Error> {
        let _ = (queues, tell);
        Ok(EventAction::Nothing)
    }

    /// How hot it is; `None`: it does not say. An error that is none of [`Error::Refused`]: it has
    /// to be recovered. Sleeps.
    fn temperature(&self) -> Result<Option<Temperature>, Error> {
        Ok(None)
    }

    /// The way to its disks' reservations; `None`: disks of this kind have none. Any context.
    fn reservations(&self) -> Option<&dyn Reservations> {
        None
    }

    /// How much its link may sleep; `None`: it has none that could. Any context.
    fn link_power(&self) -> Option<LinkPower> {
        None
    }

    /// Has its link sleep as much as `policy` says, from now on, whatever is stopped and started;
    /// with its queues at rest. The inner error: that can't be, and why. [`Error::Invalid`]: a
    /// policy that is not to be chosen. Any other error: it has to be recovered, and keeps to the
    /// policy before. Sleeps.
    fn set_link_power(&self, policy: LinkPower) -> Result<Result<(), &'static str>, Error> {
        let _ = policy;
        Ok(Err("it has no link that could sleep"))
    }

    /// How many commands the device is given at once at most; `None`: that is not for an operator
    /// to say. Any context.
    fn depth(&self) -> Option<u16> {
        None
    }

    /// Limits the commands that the device is given at once to `depth`, over stops and starts.
    /// The queues are at rest. [`Error::Invalid`]: none, or more than it takes.
    fn set_depth(&self, depth: u16) -> Result<(), Error> {
        let _ = depth;
        Err(Error::Invalid)
    }

    /// Whether [`Controller::set_write_cache`] may help.
    const TURNS_CACHE: bool = false;

    /// Turns the volatile write cache of its disks on or off, with no I/O under way on any of them
    /// and its queues at rest. Its disks are then asked for anew, and what they say holds, whatever
    /// is stopped and started. The inner error: that can't be, and why. An error: it has to be
    /// recovered. Sleeps.
    fn set_write_cache(&self, on: bool) -> Result<Result<(), &'static str>, Error> {
        let _ = on;
        Ok(Err("it has no write cache that could be turned on and off"))
    }

    /// Whether [`Controller::abort`] may help.
    const ABORTS: bool = false;

    /// Asks the device to give up the command that `tag` of `queue` is bound to, and waits for its
    /// word, `limit_us` at most. `true`: it has, and the command's completion is to be drained, now
    /// or within a moment; `false`: it has not, or has no such command any more. The queues are
    /// live. An error: it has to be recovered. Sleeps.
    fn abort(&self, queue: &Self::Queue, tag: usize, limit_us: u64) -> Result<bool, Error> {
        let _ = (queue, tag, limit_us);
        Ok(false)
    }

    /// Whether and how the device is alive: a cheap register read. `Err(Gone | Fatal)` is a reason
    /// to recover. Any context.
    fn alive(&self) -> Result<(), Error>;

    /// Called first in every interrupt on `vector`, before the queues are drained. Any context.
    fn interrupt(&self, vector: u16) -> Cause;

    /// Lets `vector` interrupt, or not, at the device. For message-signalled vectors that the bus
    /// masks it does nothing. Any context.
    fn set_interrupt(&self, vector: u16, enabled: bool);
}
