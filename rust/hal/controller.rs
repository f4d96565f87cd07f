// SPDX-License-Identifier: GPL-2.0
//! The control path of a controller: bring it up, name its disks, stop it, bring it back, shut it
//! down; its limits, what it reports beside its I/O ([`DeviceEvent`]: disks that come, go or
//! change, warnings about its health, firmware that it activates), its temperature, and how much
//! its link may sleep.
//!
//! Everything here except `limits`, `alive` and the interrupt verbs may sleep, is bounded in time
//! by the device's specification, and is called by one thread at a time (the glue holds a mutex
//! across each call). [`Cause::Attention`] calls for [`Controller::attend`], which a thread makes.

use core::fmt;

use crate::{Error, Queue, Reservations};

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
    /// Model, ASCII, padded with blanks or zeroes.
    pub model: [u8; 40],
    /// Firmware revision, ASCII, padded with blanks or zeroes.
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
    /// Look at the queues of this vector, and call [`Controller::attend`] soon.
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
    fn timeout_report(&self, to: &mut dyn fmt::Write) -> fmt::Result {
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

/// What a controller can do, known after [`Controller::start`]. The engine and the layer
/// above keep to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queues that can be created, at least 1.
    pub queues: u16,
    /// Tags of each queue, at least 1.
    pub tags: u16,
    /// Most bytes that one command moves.
    pub max_transfer: u32,
    /// Most data segments of one command.
    pub max_segments: u16,
    /// Most bytes of one segment.
    pub max_segment: u32,
    /// No segment boundary inside a command may fall elsewhere than where `address & mask == 0`; 0:
    /// anywhere.
    pub virt_boundary: u64,
    /// Segments start and end where `address & mask == 0`.
    pub dma_align: u32,
    /// No segment goes on beyond an address of which `address & mask == mask`: a mask of low bits;
    /// all ones: there is no such boundary.
    pub segment_boundary: u64,
}

impl Limits {
    /// These limits on a machine that maps at most `bytes` at once for the device: where that is
    /// less, whole pages of it, and never less than one.
    pub fn within(self, bytes: u64) -> Self {
        let most = match u32::try_from(bytes) {
            Ok(bytes) => (bytes & !PAGE_MASK).max(PAGE_MASK.saturating_add(1)),
            Err(_) => u32::MAX,
        };
        Self {
            max_transfer: self.max_transfer.min(most),
            max_segment: self.max_segment.min(most),
            ..self
        }
    }
}

/// Of the least that every disk has to move at once, 4 KiB.
const PAGE_MASK: u32 = 0xfff;

/// How the controller's queues are while it is attended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// I/O goes on.
    Live,
    /// Nothing is issued or drained; what was issued stays with the device.
    AtRest,
}

/// What a controller that was attended wishes of the layer above. Unless it is
/// [`EventAction::Nothing`] or [`EventAction::Later`] it is attended again afterwards: there may be
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// Nothing.
    Nothing,
    /// The disks may have come, gone or changed: see [`Controller::units`].
    LookAnew,
    /// It has to be attended with its queues at rest.
    Rest,
    /// It has to be recovered.
    Recover,
    /// It has called too often: it is attended in so many microseconds.
    Later(u32),
}

/// How much a [`DeviceEvent`] matters to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Good to know.
    Info,
    /// It should be looked after.
    Warning,
    /// Something has failed.
    Error,
}

/// Something that the device has said, for the operator's log.
#[derive(Clone, Copy)]
pub struct DeviceEvent<'a> {
    /// How much it matters.
    pub weight: Severity,
    /// One line, without its end.
    pub text: &'a dyn fmt::Display,
    /// Programs are told, too: by a variable of this name and value in a uevent of the device.
    pub uevent: Option<(&'static str, u32)>,
}

/// Places in a device that have a sensor of their own, at most.
pub const SENSORS: usize = 8;

/// Temperatures, in thousandths of a degree Celsius.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Temperature {
    /// The device as a whole.
    pub composite: i32,
    /// From where on that is too hot to work as it should, where the device says so.
    pub warning: Option<i32>,
    /// From where on it is too hot to work.
    pub critical: Option<i32>,
    /// The device itself says that it is too hot, or too cold.
    pub alarm: bool,
    /// The places that have a sensor.
    pub sensors: [Option<i32>; SENSORS],
}

/// A policy, from none to most that is saved. What each comes to on a certain link is the driver's
/// to say; the names are those of the in-tree drivers (Linux 7.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkPower {
    /// As the firmware of the machine has set it. It is where a link begins, and nothing to be
    /// chosen.
    #[default]
    Firmware,
    /// It stays awake.
    MaxPerformance,
    /// It sleeps lightly, where the host has it do so.
    MediumPower,
    /// It sleeps lightly, where the host has it do so, and as deep as the device asks for.
    MediumPowerWithDipm,
    /// It sleeps as deep as the device asks for, and lightly where the host has it sleep.
    MinPowerWithPartial,
    /// It sleeps deep.
    MinPower,
}

impl LinkPower {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Firmware,
        Self::MaxPerformance,
        Self::MediumPower,
        Self::MediumPowerWithDipm,
        Self::MinPowerWithPartial,
        Self::MinPower,
    ];

    /// What an operator calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firmware => "keep_firmware_settings",
            Self::MaxPerformance => "max_performance",
            Self::MediumPower => "medium_power",
            Self::MediumPowerWithDipm => "med_power_with_dipm",
            Self::MinPowerWithPartial => "min_power_with_partial",
            Self::MinPower => "min_power",
        }
    }

    /// The one of this name that can be chosen.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|policy| policy.name().as_bytes() == name && *policy != Self::Firmware)
    }

    /// The one of this number, from 0, in the order of [`LinkPower::ALL`].
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_maps_less_makes_commands_smaller() {
        let limits = Limits {
            queues: 1,
            tags: 1,
            max_transfer: 1 << 20,
            max_segments: 33,
            max_segment: 1 << 19,
            virt_boundary: 4095,
            dma_align: 3,
            segment_boundary: u64::MAX,
        };
        let within = |bytes| {
            let limits = limits.within(bytes);
            (limits.max_transfer, limits.max_segment)
        };
        assert_eq!(within(u64::MAX), (1 << 20, 1 << 19));
        assert_eq!(within(1 << 20), (1 << 20, 1 << 19));
        assert_eq!(within((1 << 20) - 1), ((1 << 20) - 4096, 1 << 19));
        assert_eq!(within(252 << 10), (252 << 10, 252 << 10));
        assert_eq!(within(0), (4096, 4096), "a page has to go");
        assert_eq!(limits.within(4096).max_segments, 33);
        let any = Limits {
            max_segment: u32::MAX,
            ..limits
        };
        assert_eq!(any.within(u64::MAX), any, "nothing is rounded");
    }

    #[test]
    fn names_and_numbers_lead_back() {
        for (number, policy) in (0u8..).zip(LinkPower::ALL) {
            assert_eq!(LinkPower::of_number(number), Some(policy));
            assert_eq!(policy as u8, number);
            let chosen = Some(policy).filter(|policy| *policy != LinkPower::Firmware);
            assert_eq!(LinkPower::of_name(policy.name().as_bytes()), chosen);
        }
        assert_eq!(LinkPower::of_number(6), None);
        for nonsense in [
            "",
            "min",
            "min_power ",
            "MIN_POWER",
            "min_power_with_partial_",
        ] {
            assert_eq!(LinkPower::of_name(nonsense.as_bytes()), None, "{nonsense}");
        }
    }
}
