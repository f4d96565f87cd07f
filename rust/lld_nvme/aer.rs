// SPDX-License-Identifier: GPL-2.0
//! Asynchronous events (Base 2.0 section 5.2), and the temperature.
//!
//! An event completes the one Asynchronous Event Request that is outstanding (`admin` sends it).
//! Its log page is read, which clears the event; it is logged; and the next request is sent. What
//! the layer above has to do is returned ([`EventAction`]), and is what the in-tree driver does
//! (`nvme_complete_async_event`, Linux 7.3); beyond that the health and error logs (sections
//! 5.16.1.2 and 5.16.1.3) are read.
//!
//! Events are rate limited ([`RateLimit`]): a burst is handled at once, then one an interval, which
//! doubles until the device has been quiet.

use core::fmt;
use hal::{
    poll_until, Backoff, Deadline, DeviceEvent, DmaMem, Error, EventAction, Mmio, Platform, Queues,
    Severity, Temperature, SENSORS,
};

use crate::admin::AdminStep;
use crate::ctrl::{
    Bounds, ControllerId, Events, HmbOutcome, NvmeController, RateLimit, State, Structure,
};
use crate::regs::{CSTS, CSTS_PP};
use crate::{admin, regs};

/// Log pages (figure "Log Page Identifiers") that are read for events: each by what clears it.
const ERROR_LOG: u8 = 0x01;
const HEALTH_LOG: u8 = 0x02;
const FIRMWARE_LOG: u8 = 0x03;
const CHANGED_LOG: u8 = 0x04;
/// Bytes of the health log, of an entry of the error log, of the firmware log, of the list of
/// changed namespaces.
const HEALTH_BYTES: usize = 512;
const ERROR_BYTES: usize = 64;
const FIRMWARE_BYTES: usize = 512;
const CHANGED_BYTES: usize = 4096;

/// How programs know the event (`nvme_aen_uevent` in tree).
const UEVENT: &str = "NVME_AEN";
/// Between two polls of whether new firmware runs.
const PAUSES: Backoff = Backoff::constant(100_000);
/// How long that may take of a controller that does not say (MTFA).
const ACTIVATION_US: u64 = 60_000_000;
/// The longest that is granted, tenths of a second.
const MTFA_MAX: u16 = 6_000;

/// Tells the operator.
type Tell<'a> = &'a mut dyn FnMut(DeviceEvent<'_>);

/// What an event is about (figure "Asynchronous Event Request, Completion Queue Entry Dword 0").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AsyncEvent {
    /// A doorbell was written that is none, or with a value that is none.
    Doorbell,
    /// The controller fails for good.
    Persistent,
    /// Another error, which the error log tells more of.
    Error(u8),
    /// The health log has a critical warning.
    Health,
    /// Namespaces have come, gone or changed.
    Namespaces,
    /// New firmware is about to run.
    Firmware,
    /// What nothing is done about: for the operator's programs.
    Other,
}

impl AsyncEvent {
    /// From dword 0.
    fn decode(dword: u32) -> Self {
        // CAST: bits 15:8.
        match (dword & 7, (dword >> 8) as u8) {
            (0, 0 | 1) => Self::Doorbell,
            (0, 3) => Self::Persistent,
            (0, info) => Self::Error(info),
            (1, _) => Self::Health,
            (2, 0) => Self::Namespaces,
            (2, 1) => Self::Firmware,
            _ => Self::Other,
        }
    }
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Enables the asynchronous events that this driver handles and the controller supports (OAES).
    /// A controller that refuses is served all the same.
    pub(crate) fn enable_async_events(&self, id: &ControllerId) -> Result<(), Error> {
        let report = admin::configure_events(wanted(id.events));
        match self.command(AdminStep::EventConfiguration, report) {
            Ok(_) | Err(Error::Refused(_)) => {}
            Err(why) => return Err(why),
        }
        self.arm_async_event();
        Ok(())
    }

    /// Sends the next Asynchronous Event Request.
    fn arm_async_event(&self) {
        self.admin.arm(&self.mmio, admin::async_event());
    }

    /// Whether an asynchronous event is pending at an interrupt on `vector`, that of the admin
    /// queue, or on the `pin`. Any context.
    #[inline]
    pub(crate) fn has_event(&self, vector: u16, pin: bool) -> bool {
        if pin {
            // An entry that nobody takes keeps the line up.
            return self.admin.collect(&self.mmio) || self.admin.event.is_pending();
        }
        vector == 0 && self.admin.has_event()
    }

    /// See [`hal::Controller::handle_events`].
    pub(crate) fn handle_async_events(
        &self,
        state: &mut State<P, M>,
        queues: Queues,
        tell: Tell<'_>,
    ) -> Result<EventAction, Error> {
        self.admin.collect(&self.mmio);
        if let Some(lent) = state.hmb_outcome.take() {
            let severity = match lent {
                HmbOutcome::Enabled(..) => Severity::Info,
                _ => Severity::Warning,
            };
            say(tell, severity, format_args!("{lent}"));
        }
        if core::mem::take(&mut state.events.missed) {
            return Ok(EventAction::Rescan);
        }
        if state.events.firmware {
            return self.handle_firmware_activation(state, queues, tell);
        }
        if !self.admin.event.is_pending() {
            return Ok(EventAction::None);
        }
        if let Err(us) = state.events.rate_limit.admit(self.platform.now_us()) {
            return Ok(EventAction::Defer(us));
        }
        let Some((dword, status)) = self.admin.event.take() else {
            return Ok(EventAction::None);
        };
        if status != 0 {
            // Another one would fare no better.
            say(
                tell,
                Severity::Warning,
                format_args!(
                    "it takes no Asynchronous Event Request (status {status:#x}): what changes is \
                     not noticed until the controller is asked (hiops/rescan_controller)"
                ),
            );
            return Ok(EventAction::None);
        }
        let action = self.handle_event(state, dword, tell)?;
        match action {
            // The reset sends the next request. The firmware takes no commands.
            EventAction::Recover => return Ok(action),
            EventAction::Quiesce => state.events.firmware = true,
            _ => self.arm_async_event(),
        }
        Ok(action)
    }

    fn handle_event(
        &self,
        state: &mut State<P, M>,
        dword: u32,
        tell: Tell<'_>,
    ) -> Result<EventAction, Error> {
        let uevent = Some((UEVENT, dword));
        let mut warn = |text: fmt::Arguments<'_>| {
            tell(DeviceEvent {
                severity: Severity::Warning,
                text: &text,
                uevent,
            });
        };
        match AsyncEvent::decode(dword) {
            AsyncEvent::Namespaces => {
                // All of it is read, so that it is reported anew; the list itself is not needed.
                self.log_page(CHANGED_LOG, CHANGED_BYTES)?;
                return Ok(EventAction::Rescan);
            }
            AsyncEvent::Firmware => return Ok(EventAction::Quiesce),
            AsyncEvent::Doorbell => {
                warn(format_args!("it reports a doorbell that is none"));
                return Ok(EventAction::Recover);
            }
            AsyncEvent::Persistent => {
                warn(format_args!("it reports an internal error that persists"));
                return Ok(EventAction::Recover);
            }
            AsyncEvent::Error(info) => match self.log_page(ERROR_LOG, ERROR_BYTES)? {
                Some(entry) => warn(format_args!("{}", ErrorEntry::decode(info, &entry))),
                None => warn(format_args!("it reports an error (kind {info})")),
            },
            AsyncEvent::Health => {
                let said = self.log_page(HEALTH_LOG, HEALTH_BYTES)?;
                let warnings = said.map_or(0, |log| log.u8(0));
                let before = core::mem::replace(&mut state.events.warnings, warnings);
                match warnings {
                    0 => warn(format_args!(
                        "it reports on its health, and has no warning (nvme smart-log)"
                    )),
                    // Whatever else moved it, the operator knows.
                    same if same == before => {}
                    _ => warn(format_args!("critical warning: {}", Warnings(warnings))),
                }
            }
            AsyncEvent::Other => warn(format_args!("it reports an event ({dword:#010x})")),
        }
        Ok(EventAction::None)
    }

    /// Waits until new firmware is active: no command is processed before (Base 2.0 section 3.11).
    fn handle_firmware_activation(
        &self,
        state: &mut State<P, M>,
        queues: Queues,
        tell: Tell<'_>,
    ) -> Result<EventAction, Error> {
        if queues != Queues::Quiesced {
            return Ok(EventAction::Quiesce);
        }
        state.events.firmware = false;
        self.progress.at(AdminStep::Activation);
        // TIMEOUT: MTFA, tenths of a second.
        let mtfa = state.about.map_or(0, |about| about.id.mtfa);
        let limit = match mtfa.min(MTFA_MAX) {
            0 => ACTIVATION_US,
            tenths => u64::from(tenths).saturating_mul(100_000),
        };
        let active = poll_until(&self.platform, Deadline::after(limit), PAUSES, || {
            let csts = regs::read(&self.mmio, CSTS)?;
            Ok((csts & CSTS_PP == 0).then_some(()))
        });
        match active {
            Err(Error::Timeout) => {
                say(
                    tell,
                    Severity::Error,
                    format_args!("its new firmware does not run within {} ms", limit / 1000),
                );
                return Ok(EventAction::Recover);
            }
            active => active?,
        }
        self.log_page(FIRMWARE_LOG, FIRMWARE_BYTES)?;
        state.effects = None;
        self.arm_async_event();
        say(
            tell,
            Severity::Info,
            format_args!("it has activated new firmware; I/O goes on"),
        );
        Ok(EventAction::Rescan)
    }

    /// Reads the log page `id` into the second page, which has the controller report the next event
    /// about it. `None`: it has none.
    fn log_page(&self, id: u8, bytes: usize) -> Result<Option<Structure<'_, P::Dma>>, Error> {
        let base = self.page();
        let to = self.pages.bus_addr().wrapping_add(base as u64);
        match self.command(AdminStep::EventLog, admin::log_page(id, bytes, to)) {
            Ok(_) => Ok(Some(Structure {
                memory: &self.pages,
                base,
            })),
            Err(Error::Refused(_)) => Ok(None),
            Err(why) => Err(why),
        }
    }
}

fn say(tell: Tell<'_>, severity: Severity, text: fmt::Arguments<'_>) {
    tell(DeviceEvent {
        severity,
        text: &text,
        uevent: None,
    });
}

/// Bits of Asynchronous Event Configuration, and of OAES: namespace attributes, firmware
/// activation. The low byte is that of the health log's critical warnings, of which 1.0 has five.
const NAMESPACES: u32 = 1 << 8;
const FIRMWARE: u32 = 1 << 9;
const WARNINGS: u32 = 0x1f;

/// What a controller is asked to report that says `offered` in OAES.
fn wanted(offered: u32) -> u32 {
    WARNINGS | (offered & (NAMESPACES | FIRMWARE))
}

impl Events {
    /// Notes a start of the controller: with every one but the first, events may have been lost,
    /// and a firmware activation is over.
    pub(crate) fn on_start(&mut self) {
        self.missed = core::mem::replace(&mut self.begun, true);
        self.firmware = false;
    }
}

/// Number of events that are handled without delay.
const BURST: u8 = 32;
/// The first and the longest interval after those, in microseconds.
const INTERVAL_US: (u32, u32) = (1_000_000, 64_000_000);
/// After so long without an event the device gets a burst again.
const QUIET_US: u64 = 60_000_000;

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            left: BURST,
            interval_us: INTERVAL_US.0,
            last_us: 0,
            waits: false,
        }
    }
}

impl RateLimit {
    /// Whether an event may be handled at `now_us`. `Err`: in how many microseconds it may be.
    fn admit(&mut self, now_us: u64) -> Result<(), u32> {
        let since = now_us.saturating_sub(self.last_us);
        // One that had to wait does not show that the device was quiet.
        if !self.waits && since >= QUIET_US {
            *self = Self::default();
        }
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if since < u64::from(self.interval_us) => {
                self.waits = true;
                let us = u64::from(self.interval_us).saturating_sub(since);
                return Err(u32::try_from(us).unwrap_or(u32::MAX));
            }
            None => self.interval_us = self.interval_us.saturating_mul(2).min(INTERVAL_US.1),
        }
        self.last_us = now_us;
        self.waits = false;
        Ok(())
    }
}

/// What the critical warnings mean, from bit 0 on (figure "SMART / Health Information Log").
const WARNING_NAMES: [&str; 6] = [
    "its spare blocks are below the threshold",
    "its temperature is beyond a threshold",
    "its reliability is degraded",
    "its media are read-only",
    "the backup of its volatile memory has failed",
    "its persistent memory region is read-only or unreliable",
];

/// Critical warnings by name.
struct Warnings(u8);

impl fmt::Display for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (bit, name) in (0u32..).zip(WARNING_NAMES) {
            if self.0 & 1u8.wrapping_shl(bit) != 0 {
                write!(f, "{comma}{name}")?;
                comma = ", ";
            }
        }
        write!(f, " ({:#04x}; nvme smart-log)", self.0)
    }
}

/// The newest entry of the error log (figure "Error Information Log Entry").
struct ErrorEntry {
    info: u8,
    count: u64,
    queue: u16,
    cid: u16,
    status: u16,
    lba: u64,
    namespace: u32,
}

impl ErrorEntry {
    fn decode<D: DmaMem>(info: u8, at: &Structure<'_, D>) -> Self {
        Self {
            info,
            count: at.u64(0),
            queue: at.u16(8),
            cid: at.u16(10),
            // Bit 0 is the phase.
            status: at.u16(12) >> 1,
            lba: at.u64(16),
            namespace: at.u32(24),
        }
    }
}

impl fmt::Display for ErrorEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.info {
            2 => "its diagnosis found an error",
            4 => "it reports an internal error that has passed",
            5 => "it could not load its firmware",
            _ => "it reports an error",
        })?;
        write!(
            f,
            "; the newest of its log, number {}: queue {}, CID {:#x}, status {:#x}, LBA {}, \
             namespace {} (nvme error-log)",
            self.count, self.queue, self.cid, self.status, self.lba, self.namespace
        )
    }
}

/// In the first byte of the health log: a temperature is beyond a threshold.
const BEYOND: u8 = 1 << 1;
/// Where the temperatures are in the health log: of the whole, and of each sensor.
const COMPOSITE: usize = 1;
const SENSOR: usize = 200;

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// See [`hal::Controller::temperature`]. What the log says besides is reported all the same.
    pub(crate) fn read_temperature(&self) -> Result<Option<Temperature>, Error> {
        let state = self.state()?;
        let bounds = state
            .about
            .map_or(Bounds::default(), |about| about.id.temperature);
        let base = self.page();
        let to = self.pages.bus_addr().wrapping_add(base as u64);
        let read = admin::log_page_retaining_event(HEALTH_LOG, HEALTH_BYTES, to);
        match self.command(AdminStep::HealthLog, read) {
            Ok(_) => {}
            Err(Error::Refused(_)) => return Ok(None),
            Err(why) => return Err(why),
        }
        let log = Structure {
            memory: &self.pages,
            base,
        };
        Ok(decode(&log, bounds))
    }
}

/// `None`: the composite temperature is not there.
fn decode<D: DmaMem>(log: &Structure<'_, D>, bounds: Bounds) -> Option<Temperature> {
    let mut sensors = [None; SENSORS];
    for (at, sensor) in (SENSOR..).step_by(2).zip(sensors.iter_mut()) {
        *sensor = celsius(log.u16(at));
    }
    Some(Temperature {
        composite: celsius(log.u16(COMPOSITE))?,
        warning: celsius(bounds.warning),
        critical: celsius(bounds.critical),
        alarm: log.u8(0) & BEYOND != 0,
        sensors,
    })
}

/// Kelvins in thousandths of a degree Celsius; 0: no temperature.
fn celsius(kelvins: u16) -> Option<i32> {
    let thousandths = i32::from(kelvins).saturating_mul(1000);
    (kelvins != 0).then(|| thousandths.saturating_sub(273_150))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn events_are_what_the_specification_has() {
        let cases = [
            (0x0001_0000, AsyncEvent::Doorbell),
            (0x0001_0100, AsyncEvent::Doorbell),
            (0x0001_0200, AsyncEvent::Error(2)),
            (0x0001_0300, AsyncEvent::Persistent),
            (0x0001_0400, AsyncEvent::Error(4)),
            (0x0002_0001, AsyncEvent::Health),
            (0x0004_0002, AsyncEvent::Namespaces),
            (0x0003_0102, AsyncEvent::Firmware),
            (0x0007_0202, AsyncEvent::Other),
            (0x00c0_0007, AsyncEvent::Other),
            (0xffff_ffff, AsyncEvent::Other),
        ];
        for (dword, event) in cases {
            assert_eq!(AsyncEvent::decode(dword), event, "{dword:#x}");
        }
        assert_eq!(wanted(0), 0x1f);
        assert_eq!(wanted(u32::MAX), 0x31f);
    }

    #[test]
    fn who_never_stops_is_listened_to_ever_more_rarely() {
        let mut rate_limit = RateLimit::default();
        let mut now = 5;
        (0..BURST).for_each(|_| assert_eq!(rate_limit.admit(now), Ok(())));
        for interval in [1, 2, 4, 8, 16, 32, 64, 64, 64] {
            assert_eq!(rate_limit.admit(now), Err(interval * 1_000_000));
            now += u64::from(interval) * 1_000_000 - 1;
            assert_eq!(rate_limit.admit(now), Err(1));
            now += 1;
            assert_eq!(rate_limit.admit(now), Ok(()));
        }
        // Quiet, and as at first.
        now += QUIET_US;
        (0..BURST).for_each(|_| assert_eq!(rate_limit.admit(now), Ok(())));
        assert_eq!(rate_limit.admit(now), Err(1_000_000));
    }

    #[test]
    fn a_clock_that_goes_back_is_no_panic() {
        let mut rate_limit = RateLimit::default();
        (0..BURST).for_each(|_| assert_eq!(rate_limit.admit(u64::MAX), Ok(())));
        assert_eq!(rate_limit.admit(0), Err(1_000_000));
    }

    #[test]
    fn kelvins_as_in_tree() {
        assert_eq!(celsius(0), None);
        assert_eq!(celsius(323), Some(49_850));
        assert_eq!(celsius(1), Some(-272_150));
        assert_eq!(celsius(u16::MAX), Some(65_261_850));
    }
}
