// SPDX-License-Identifier: GPL-2.0
//! The control path of a controller: start it, scan for its disks, stop it, start it again, shut it
//! down; its limits, its asynchronous events ([`DeviceEvent`]: disks that are added, removed or
//! changed, health warnings, firmware activation), its temperature, and its link power management
//! policy.
//!
//! Everything here except `limits`, `alive` and the interrupt verbs may sleep, is bounded in time
//! by the device's specification, and is called by one thread at a time (the glue holds a mutex
//! across each call). On [`Cause::AsyncEvent`] the glue schedules work that calls
//! [`Controller::handle_events`].

use core::fmt;

use crate::{Error, Queue, Reservations};

/// A disk's worldwide unique identifiers; `None` where it has none.
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

/// Discard limits of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discard {
    /// Most logical blocks of one command.
    pub max_blocks: u32,
    /// Most ranges of one command, at least 1.
    pub max_ranges: u16,
    /// Preferred granularity, in logical blocks, at least 1.
    pub granularity: u32,
}

/// I/O topology of a disk, as in the block layer's `queue_limits`: in logical blocks, 0 where the
/// device reports nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Largest write that is atomic, also across a power failure.
    pub atomic_write_max: u32,
    /// An atomic write does not cross a multiple of this, a power of two of at least
    /// `atomic_write_max`.
    pub atomic_write_boundary: u32,
    /// Minimum I/O size without a read-modify-write penalty (`io_min`).
    pub io_min: u32,
    /// Optimal I/O size (`io_opt`).
    pub io_opt: u32,
    /// I/O that crosses a multiple of this, a power of two, is slow (`chunk_sectors`).
    pub chunk: u32,
    /// First logical block that is aligned to a physical block.
    pub alignment_offset: u32,
    /// Write-zeroes may deallocate the blocks, which then read as zeroes.
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
    /// Number that addresses the disk in a [`Command`](crate::Command).
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
    /// I/O topology.
    pub topology: Topology,
    /// Writes are refused by the device.
    pub read_only: bool,
    /// The medium rotates: seeks cost time.
    pub rotational: bool,
    /// Worldwide unique identifiers.
    pub ids: UnitIds,
    /// Serial number, ASCII, padded with blanks or zeroes.
    pub serial: [u8; 20],
    /// Model, ASCII, padded with blanks or zeroes.
    pub model: [u8; 40],
    /// Firmware revision, ASCII, padded with blanks or zeroes.
    pub firmware: [u8; 8],
}

/// A disk that the driver does not support, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its [`Unit::id`].
    pub id: u32,
    /// The reason, for the operator's log.
    pub why: &'static str,
}

/// A newly created queue, with the initial states of its two sides.
pub struct NewQueue<Q: Queue> {
    /// The part that issuer and drainer share.
    pub queue: Q,
    /// State that the issue token protects.
    pub issue: Q::Issue,
    /// State that the drain token protects.
    pub drain: Q::Drain,
}

/// What an interrupt signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing: another device on the shared line raised it.
    None,
    /// Completions: the queues of this vector are to be polled.
    Queues,
    /// Completions, and an asynchronous event, for which [`Controller::handle_events`] is to be
    /// called.
    AsyncEvent,
}

/// How a controller is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Orderly: caches are flushed and the device is notified, before unbind, reboot or poweroff.
    Normal,
    /// The device is gone or hung: only host-side state is torn down.
    Dead,
}

/// One device function. What has a default here is passed on by [`Wrapper`](crate::Wrapper), too.
pub trait Controller: Send + Sync + 'static {
    /// Queue type of its data path.
    type Queue: Queue;

    /// Resets the device from any state until it accepts commands, and re-creates the queues that
    /// were created before. Sleeps.
    fn start(&self) -> Result<(), Error>;

    /// Returns its limits, which are valid after the first `start`.
    fn limits(&self) -> Limits;

    /// Creates queue `index` (from 0, in order) whose completions interrupt on `vector`; `None`:
    /// they never interrupt. Sleeps.
    fn create_queue(&self, index: u16, vector: Option<u16>)
        -> Result<NewQueue<Self::Queue>, Error>;

    /// Scans for disks and passes each to `found`; one that the driver does not support is passed
    /// as [`Refused`], and the scan continues. Sleeps.
    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error>;

    /// Stops the device: when this returns `Ok` it does not touch memory any more. On `Err` the
    /// caller must cut it off the bus (bus-master enable) before it reaps. Sleeps.
    fn stop(&self) -> Result<(), Error>;

    /// Tells the device that power may go away, within its own bound. Sleeps.
    fn shutdown(&self, how: Shutdown) -> Result<(), Error>;

    /// Passes the name of each of the device's quirks to `named`: those of the PCI function and,
    /// after [`Controller::start`], those of the model that it identified as. Any context.
    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        let _ = named;
    }

    /// Writes one line for the log about the state of the device when a command timed out, which
    /// tells a slow device from a lost completion. Called before [`Controller::stop`], with the
    /// queues quiesced; writes nothing if there is nothing to report.
    fn timeout_report(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        let _ = to;
        Ok(())
    }

    /// Handles the asynchronous events that are pending ([`Cause::AsyncEvent`]) or that a stop has
    /// lost, and passes each to `report`. A spurious call is harmless. The rate is limited,
    /// however many events the device raises ([`EventAction::Defer`]). An error: the controller
    /// has to be recovered. Sleeps.
    fn handle_events(
        &self,
        queues: Queues,
        report: &mut dyn FnMut(DeviceEvent<'_>),
    ) -> Result<EventAction, Error> {
        let _ = (queues, report);
        Ok(EventAction::None)
    }

    /// Reads the temperature sensors; `None`: it reports none. An error other than
    /// [`Error::Refused`]: the controller has to be recovered. Sleeps.
    fn temperature(&self) -> Result<Option<Temperature>, Error> {
        Ok(None)
    }

    /// Returns its persistent reservations interface; `None`: its disks support none. Any context.
    fn reservations(&self) -> Option<&dyn Reservations> {
        None
    }

    /// Returns the link power management policy; `None`: its link has no power management. Any
    /// context.
    fn link_power(&self) -> Option<LinkPower> {
        None
    }

    /// Sets the link power management policy, which holds across stop and start. The queues are
    /// quiesced. The inner error: the policy is not supported, and why. [`Error::Invalid`]: a
    /// policy that can't be chosen. Any other error: the controller has to be recovered, and keeps
    /// its former policy. Sleeps.
    fn set_link_power(&self, policy: LinkPower) -> Result<Result<(), &'static str>, Error> {
        let _ = policy;
        Ok(Err("it has no link that could sleep"))
    }

    /// Returns the queue depth of the device; `None`: it is not adjustable. Any context.
    fn depth(&self) -> Option<u16> {
        None
    }

    /// Sets the queue depth of the device, which holds across stop and start. The queues are
    /// quiesced. [`Error::Invalid`]: 0, or more than the device accepts.
    fn set_depth(&self, depth: u16) -> Result<(), Error> {
        let _ = depth;
        Err(Error::Invalid)
    }

    /// Whether [`Controller::set_write_cache`] is implemented.
    const SETS_WRITE_CACHE: bool = false;

    /// Enables or disables the volatile write cache of its disks, which are frozen, with its queues
    /// quiesced; the setting holds across stop and start. The caller scans the disks again
    /// afterwards. The inner error: the device does not support it, and why. An error: the
    /// controller has to be recovered. Sleeps.
    fn set_write_cache(&self, on: bool) -> Result<Result<(), &'static str>, Error> {
        let _ = on;
        Ok(Err("it has no write cache that could be turned on and off"))
    }

    /// Whether [`Controller::abort`] is implemented.
    const ABORTS: bool = false;

    /// Asks the device to abort the command that `tag` of `queue` is bound to, and waits for the
    /// answer for at most `limit_us`. `true`: the command was aborted, and its completion is posted
    /// now or shortly; `false`: it was not, or it has completed already. The queues are live. An
    /// error: the controller has to be recovered. Sleeps.
    fn abort(&self, queue: &Self::Queue, tag: usize, limit_us: u64) -> Result<bool, Error> {
        let _ = (queue, tag, limit_us);
        Ok(false)
    }

    /// Checks whether the device is alive, by one register read. [`Error::Gone`], [`Error::Fatal`]:
    /// it has to be recovered. Any context.
    fn alive(&self) -> Result<(), Error>;

    /// Whether [`Controller::interrupt`] is to be called in each interrupt. `false`: not in that of
    /// a vector other than 0 which one queue has for itself, as it has no other cause.
    const ACKNOWLEDGES: bool = true;

    /// Acknowledges an interrupt on `vector` and returns its cause; called in an interrupt
    /// ([`Controller::ACKNOWLEDGES`]) before the queues are drained. Any context.
    fn interrupt(&self, vector: u16) -> Cause;

    /// Unmasks (`enabled`) or masks `vector` at the device. Does nothing for message-signalled
    /// vectors, which the bus masks. Any context.
    fn set_interrupt(&self, vector: u16, enabled: bool);
}

/// Limits of a controller, valid after [`Controller::start`]. The engine and the layer above keep
/// to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of queues, at least 1.
    pub queues: u16,
    /// Tags of each queue, at least 1.
    pub tags: u16,
    /// Maximum bytes of one command.
    pub max_transfer: u32,
    /// Maximum data segments of one command.
    pub max_segments: u16,
    /// Maximum bytes of one segment.
    pub max_segment: u32,
    /// No segment boundary inside a command may fall elsewhere than where `address & mask == 0`; 0:
    /// anywhere.
    pub virt_boundary: u64,
    /// Segments start and end where `address & mask == 0`.
    pub dma_align: u32,
    /// Segments of a read may be holes ([`crate::Segment::hole`]), which don't cross the bus; they
    /// and the others then have lengths, and the others addresses, of which no bit of this mask is
    /// set. `None`: none may.
    pub hole_align: Option<u32>,
    /// No segment goes on beyond an address of which `address & mask == mask`: a mask of low bits;
    /// all ones: there is no such boundary.
    pub segment_boundary: u64,
}

impl Limits {
    /// Returns these limits reduced to the `bytes` that the machine can map for the device at once:
    /// whole pages, and at least one.
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

/// Offset bits of a page of 4 KiB, which every device can transfer with one command.
const PAGE_MASK: u32 = 0xfff;

/// State of the queues while asynchronous events are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// Commands are issued and completions drained.
    Live,
    /// Nothing is issued or drained; commands in flight stay with the device.
    Quiesced,
}

/// What the layer above has to do about the events that were handled. After any action but
/// [`EventAction::None`] and [`EventAction::Defer`] it calls [`Controller::handle_events`] again,
/// as more events may be pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// Nothing.
    None,
    /// Scan for disks again ([`Controller::units`]): some may be new, changed or removed.
    Rescan,
    /// Handle the events with [`Queues::Quiesced`].
    Quiesce,
    /// Recover the controller.
    Recover,
    /// Handle the events after this many microseconds: the rate limit is exceeded.
    Defer(u32),
}

/// Log level of a [`DeviceEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// `KERN_INFO`.
    Info,
    /// `KERN_WARNING`.
    Warning,
    /// `KERN_ERR`.
    Error,
}

/// An asynchronous event of the device, for the log.
#[derive(Clone, Copy)]
pub struct DeviceEvent<'a> {
    /// Log level.
    pub severity: Severity,
    /// One line, without the newline.
    pub text: &'a dyn fmt::Display,
    /// Name and value of a variable, with which a uevent of the device is sent, too.
    pub uevent: Option<(&'static str, u32)>,
}

/// Maximum number of temperature sensors of a device.
pub const SENSORS: usize = 8;

/// Temperatures, in millidegrees Celsius, as hwmon has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Temperature {
    /// Composite temperature of the device.
    pub composite: i32,
    /// Warning threshold of the composite temperature, where the device has one.
    pub warning: Option<i32>,
    /// Critical threshold of the composite temperature, where the device has one.
    pub critical: Option<i32>,
    /// The device reports that a temperature is beyond a threshold.
    pub alarm: bool,
    /// Readings of the sensors.
    pub sensors: [Option<i32>; SENSORS],
}

/// A link power management policy (`enum ata_lpm_policy`), from most performance to most power
/// saved. The driver decides which states of its link each policy permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkPower {
    /// The machine's firmware settings, which hold until a policy is chosen.
    #[default]
    Firmware,
    /// No power saving.
    MaxPerformance,
    /// Partial, initiated by the host.
    MediumPower,
    /// Partial, initiated by the host, and any state that the device initiates.
    MediumPowerWithDipm,
    /// Any state that the device initiates, and partial, initiated by the host.
    MinPowerWithPartial,
    /// Slumber.
    MinPower,
}

impl LinkPower {
    /// All policies, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Firmware,
        Self::MaxPerformance,
        Self::MediumPower,
        Self::MediumPowerWithDipm,
        Self::MinPowerWithPartial,
        Self::MinPower,
    ];

    /// Returns its name in sysfs.
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

    /// Returns the policy of this name, if it can be chosen.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|policy| policy.name().as_bytes() == name && *policy != Self::Firmware)
    }

    /// Returns the policy of this number, from 0, in the order of [`LinkPower::ALL`].
    pub fn from_number(number: u8) -> Option<Self> {
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
            hole_align: None,
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
            assert_eq!(LinkPower::from_number(number), Some(policy));
            assert_eq!(policy as u8, number);
            let chosen = Some(policy).filter(|policy| *policy != LinkPower::Firmware);
            assert_eq!(LinkPower::from_name(policy.name().as_bytes()), chosen);
        }
        assert_eq!(LinkPower::from_number(6), None);
        for nonsense in [
            "",
            "min",
            "min_power ",
            "MIN_POWER",
            "min_power_with_partial_",
        ] {
            assert_eq!(
                LinkPower::from_name(nonsense.as_bytes()),
                None,
                "{nonsense}"
            );
        }
    }
}
