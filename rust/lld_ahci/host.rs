// SPDX-License-Identifier: GPL-2.0
//! What the layer above holds: an HBA, and a hal controller for each of its ports.
//!
//! [`Hba`] is what all ports share. It is taken over from the firmware (AHCI 1.3.1 section 10.6)
//! and reset once, before any port; afterwards only its interrupt status is touched.
//!
//! [`AhciController`] is hal's control path of one port, and its interrupt. What it is asked for is
//! done by the port, in the file of each subject.

use cell::sync::Ordering;
use core::fmt;
use hal::{
    poll_until, Backoff, Cause, Controller, Deadline, DeviceEvent, Error, EventAction, Limits,
    LinkPower, Messages, Mmio, NewQueue, PciIds, Platform, Queues, Refused, Severity, Shutdown,
    TagTable, Unit,
};

use crate::eh::EhOutcome;
use crate::internal::{AtaCommand, AtaReply, Transfer};
use crate::port::{DriveConfig, Firmware, Occupant, Port, PortConfig, Site, State};
use crate::queue::{AhciDrain, AhciQueue};
use crate::quirks::{HbaQuirks, QuirkContext};
use crate::regs::{
    self, Cap, PortRegs, Reg, ABSENT, BOHC, BOHC_BB, BOHC_BOS, BOHC_OOS, CAP, CAP2, CAP2_BOH, GHC,
    GHC_AE, GHC_HR, GHC_IE, GHC_MRSM, IS, IS_DONE, IS_ERROR, PI, PORTS, PORTS_MAX, PORT_SHIFT,
};
use crate::{cmd, identify};

/// How long `GHC.HR` may stay set: beyond it the HBA is hung (10.4.3).
const RESET_US: u64 = 1_000_000;
/// Between two reads of the register.
const PAUSES: Backoff = Backoff::constant(100);

/// One host bus adapter.
///
/// `mmio` is its whole register window ([`HbaQuirks::bar`]).
pub struct Hba<M: Mmio> {
    mmio: M,
    cap: Cap,
    hba_quirks: HbaQuirks,
    vendor: u16,
    /// PI.
    implemented: u32,
    /// Those of them that are for SATA drives.
    ports: u32,
    firmware: [Firmware; PORTS_MAX as usize],
}

impl<M: Mmio + Clone> Hba<M> {
    /// Looks at the capabilities of an HBA made by `ids`; the device is not touched before
    /// [`Hba::start`].
    ///
    /// [`Error::Unsupported`]: [`HbaQuirks::refusal`] says why. [`Error::Gone`]: no device answers.
    /// [`Error::Malformed`]: it implements no port, or ports beyond the window.
    pub fn new(mmio: M, ids: &PciIds) -> Result<Self, Error> {
        let hba_quirks = HbaQuirks::of(ids);
        if hba_quirks.refusal().is_some() {
            return Err(Error::Unsupported);
        }
        let cap = regs::read(&mmio, CAP)?;
        let implemented = mmio.read32(PI);
        let ports = hba_quirks.sata_ports(implemented, ids);
        // All ports implemented is possible, all capabilities as well is not.
        let last = match ports.checked_ilog2() {
            Some(last) => last,
            None => return Err(Error::Malformed),
        };
        let end = PORTS.saturating_add((last as usize).saturating_add(1) << PORT_SHIFT);
        if end > mmio.len() {
            return Err(Error::Malformed);
        }
        Ok(Self {
            cap: hba_quirks.capabilities(Cap(cap)),
            hba_quirks,
            vendor: ids.vendor,
            implemented,
            ports,
            firmware: [Firmware::default(); PORTS_MAX as usize],
            mmio,
        })
    }

    /// How many bits of an address it takes, and gets right: the DMA mask, to be set before a port
    /// is made.
    pub fn dma_bits(&self) -> u8 {
        let said = if self.cap.has_64_bits() { 64 } else { 32 };
        self.hba_quirks.dma_bits(said)
    }

    /// Tells the names of what it is known for to `named`; its ports' controllers tell them, too.
    pub fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.hba_quirks.each(named);
    }

    /// How it may interrupt.
    pub const fn messages(&self) -> Messages {
        self.hba_quirks.messages()
    }

    /// The ports that are to be on in the register PCS of configuration space, which a reset of the
    /// HBA may have turned off; `None`: there is no such register.
    pub const fn pcs_ports(&self) -> Option<u32> {
        match self.hba_quirks.has(HbaQuirks::PCS) {
            true => Some(self.ports),
            false => None,
        }
    }

    /// The implemented ports, one bit each.
    pub const fn ports(&self) -> u32 {
        self.ports
    }

    /// What makes port `number`; `None`: it is not implemented. After [`Hba::start`].
    pub fn port(&self, number: u8) -> Option<PortConfig> {
        let bit = 1u32.checked_shl(u32::from(number))?;
        let firmware = *self.firmware.get(usize::from(number))?;
        (self.ports & bit != 0).then_some(PortConfig {
            number,
            cap: self.cap,
            hba_quirks: self.hba_quirks,
            context: QuirkContext {
                vendor: self.vendor,
                fua: false,
                sectors: self.hba_quirks.sectors(),
            },
            dma_limit: 1u64.checked_shl(u32::from(self.dma_bits())).unwrap_or(0),
            firmware,
        })
    }

    /// Takes the HBA over from the firmware, resets it and leaves all ports idle and all interrupts
    /// off. Sleeps, for 3 s at most.
    ///
    /// [`Error::Timeout`]: the reset does not end. [`Error::Gone`].
    pub fn start<P: Platform>(&mut self, platform: &P) -> Result<(), Error> {
        bios_handoff(platform, &self.mmio)?;
        // Registers below GHC are defined only now (3.1.2, AE).
        self.enable_ahci()?;
        for (number, place) in (0u8..).zip(self.firmware.iter_mut()) {
            if 1u32.wrapping_shl(u32::from(number)) & self.ports == 0 {
                continue;
            }
            let port = PortRegs::new(self.mmio.clone(), number);
            let cmd = port.get(Reg::Cmd)?;
            let esata = cmd & regs::CMD_ESP != 0 && self.cap.has_external();
            *place = Firmware {
                cmd: cmd & regs::CMD_ALPM,
                sctl: port.get(Reg::Sctl)? & regs::SCTL_FIRMWARE,
                external: esata || cmd & regs::CMD_HPCP != 0,
            };
        }
        self.reset(platform)
    }

    /// Brings back one that [`Hba::start`] had brought up, after a sleep or a reset in which its
    /// registers were lost, with what the firmware had set up before the start. Sleeps.
    ///
    /// [`Error::Timeout`]: the reset does not end. [`Error::Gone`].
    pub fn restart<P: Platform>(&self, platform: &P) -> Result<(), Error> {
        // A firmware that woke the machine may have used it (10.6.3).
        bios_handoff(platform, &self.mmio)?;
        self.enable_ahci()?;
        self.reset(platform)
    }

    /// Resets the HBA, and leaves all ports idle and all interrupts off (10.4.3). Sleeps.
    fn reset<P: Platform>(&self, platform: &P) -> Result<(), Error> {
        self.mmio.write32(GHC, GHC_AE | GHC_HR);
        poll_until(platform, Deadline::after(RESET_US), PAUSES, || {
            Ok((regs::read(&self.mmio, GHC)? & GHC_HR == 0).then_some(()))
        })?;
        self.enable_ahci()?;
        if self.mmio.read32(PI) != self.implemented {
            // Written once by the firmware; some HBAs forget it.
            self.mmio.write32(PI, self.implemented);
        }
        self.mmio.write32(IS, u32::MAX);
        Ok(())
    }

    fn enable_ahci(&self) -> Result<(), Error> {
        let ghc = regs::read(&self.mmio, GHC)?;
        if ghc & GHC_AE == 0 {
            self.mmio.write32(GHC, GHC_AE);
            // One that refuses is none.
            if regs::read(&self.mmio, GHC)? & GHC_AE == 0 {
                return Err(Error::Unsupported);
            }
        }
        Ok(())
    }

    /// Lets the HBA interrupt, or not. Before it is let, the handler is registered.
    pub fn set_interrupt(&self, enabled: bool) {
        let ie = if enabled { GHC_IE } else { 0 };
        self.mmio.write32(GHC, GHC_AE | ie);
    }

    /// Whether all ports share the first message although several were granted (`GHC.MRSM`).
    /// Otherwise each port has the message of its number, which follows the port's own status
    /// alone: `IS` is not asked, nor acknowledged (10.6.2.2).
    pub fn shares_message(&self) -> bool {
        self.mmio.read32(GHC) & GHC_MRSM != 0
    }

    /// Serves an interrupt that ports may share: a pin, or the only message. Calls `serve` for each
    /// port that may have caused it, to answer whether it did. Returns whether the HBA did. Any
    /// context; one caller at a time.
    ///
    /// `IS` costs more to read than all else here. Where one port only is `served`, and no other
    /// device may have raised the line (`shared`), that one is asked instead; what others have to
    /// tell, which is rare, makes the HBA interrupt again once this is acknowledged (10.7.2.1,
    /// 10.7.2.2). `IS` is acknowledged last, as it follows the ports' own status.
    #[inline]
    pub fn interrupt(&self, shared: bool, served: u32, mut serve: impl FnMut(u8) -> bool) -> bool {
        let alone =
            !shared && served.is_power_of_two() && !self.hba_quirks.has(HbaQuirks::ACK_FIRST);
        // CAST: below 32, or 32 of no port.
        if alone && serve(served.trailing_zeros() as u8) {
            self.mmio.write32(IS, served);
            return true;
        }
        let pending = self.mmio.read32(IS);
        // All ports at once, of an HBA that has fewer: it is gone.
        if pending == 0 || (pending == regs::ABSENT && self.ports != regs::ABSENT) {
            return false;
        }
        let first = self.hba_quirks.has(HbaQuirks::ACK_FIRST);
        if first {
            // What comes from here on interrupts again.
            self.mmio.write32(IS, pending);
        }
        let mut ours = false;
        let mut left = pending & self.ports;
        while left != 0 {
            // CAST: below 32.
            ours |= serve(left.trailing_zeros() as u8);
            left &= left.wrapping_sub(1);
        }
        if !first {
            // Of ports that had nothing to tell, too: the line goes down.
            self.mmio.write32(IS, pending);
        }
        ours || pending & !served != 0
    }
}

/// How long the firmware may take to let go, or to say that it is busy doing so.
const HANDOFF_US: u64 = 25_000;
/// How long it may be busy.
const BUSY_US: u64 = 2_000_000;
/// Between two reads of the register.
const HANDOFF_PAUSE_US: u64 = 1_000;

/// Takes the HBA over. A firmware that does not let go in its time has lost it: the reset that
/// follows takes it away.
fn bios_handoff<P: Platform>(platform: &P, mmio: &impl Mmio) -> Result<(), Error> {
    if regs::read(mmio, CAP2)? & CAP2_BOH == 0 {
        return Ok(());
    }
    let bohc = regs::read(mmio, BOHC)?;
    if bohc & BOHC_BOS == 0 {
        return Ok(());
    }
    mmio.write32(BOHC, bohc | BOHC_OOS);
    let start = platform.now_us();
    loop {
        let waited = platform.now_us().saturating_sub(start);
        let bohc = regs::read(mmio, BOHC)?;
        // TIMEOUT: 25 ms, and two seconds for one that says it is busy (10.6.3).
        let limit = match bohc & BOHC_BB {
            0 => HANDOFF_US,
            _ => BUSY_US,
        };
        if bohc & BOHC_BOS == 0 || waited >= limit {
            return Ok(());
        }
        platform.sleep_us(HANDOFF_PAUSE_US);
    }
}

/// One port of an HBA as a hal controller: one queue, and one disk if it is served.
pub struct AhciController<S: Site>(S);

impl<S: Site> AhciController<S> {
    /// The controller at `site`. The device is not touched before [`Controller::start`].
    pub fn new(site: S) -> Self {
        Self(site)
    }

    /// What the control path was last doing: names the command or the step that an [`Error`] of it
    /// is about.
    pub fn step(&self) -> &'static str {
        self.0.port().step()
    }

    /// Handles what the port has called for ([`Site::schedule_eh`]): errors that device or link
    /// reported, a drive that came or went. Called as the rest of the control path is, with the
    /// queue, if there is one, at rest (`engine::Quiesced`); afterwards it is drained. Sleeps.
    ///
    /// `Err`: it could not bring the port back. Then the device has to be recovered from scratch
    /// ([`Controller::stop`], reap, start), or given up.
    pub fn run_eh(&self) -> Result<EhOutcome, Error> {
        let port = self.0.port();
        let mut state = port.state()?;
        port.begin_control();
        let news = port.run_eh(&mut state);
        if news.is_err() {
            // Whatever the registers say from here on, it is about no command.
            port.latch_finished();
        }
        port.end_control();
        news
    }

    /// Has the drive carry out a command of the operator's tools, alone: what it has finishes
    /// first. Called as [`AhciController::run_eh`] is, with the queue at rest. `timeout_ms` of 0 is
    /// the driver's own, 30 s; it is up soon where `wanted` says that the control path is
    /// ([`hal::Deadline::preemptible`]). Sleeps. A command that failed is a reply whose status says
    /// so.
    ///
    /// [`Error::Invalid`]: no drive is served; a command that would take the drive from under the
    /// driver; data that can't be described. [`Error::Gone`], [`Error::Timeout`], [`Error::Fatal`]:
    /// the port has to be stopped and started again; the memory of the data must live until it was
    /// stopped.
    pub fn command(
        &self,
        command: &AtaCommand,
        transfer: &Transfer<'_, <S::Platform as Platform>::Dma>,
        timeout_ms: u32,
        wanted: &dyn Fn() -> bool,
    ) -> Result<AtaReply, Error> {
        self.control(|port, state| port.pass(state, command, transfer, timeout_ms, wanted))
    }

    /// Whether [`AhciController::run_eh`] is called for.
    pub fn is_eh_pending(&self) -> bool {
        self.0.port().irq.is_eh_pending()
    }

    fn control<R>(
        &self,
        work: impl FnOnce(&Port<S::Platform, S::Mmio>, &mut State) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let port = self.0.port();
        let mut state = port.state()?;
        port.begin_control();
        let done = work(port, &mut state);
        port.end_control();
        done
    }

    fn about(&self) -> Option<DriveConfig> {
        match self.0.port().state().ok()?.occupant {
            Occupant::Drive(about) => Some(about),
            _ => None,
        }
    }
}

impl<S: Site> Controller for AhciController<S> {
    type Queue = AhciQueue<S>;

    fn start(&self) -> Result<(), Error> {
        self.control(|port, state| {
            let started = port.bring_up(state);
            if started.is_err() {
                // Not half alive.
                let _ = port.stop_port();
            }
            started
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            queues: 1,
            tags: self.about().map_or(1, |about| u16::from(about.tags)),
            max_transfer: self
                .about()
                .map_or(identify::TRANSFER_MAX, |about| about.id.max_transfer),
            // CAST: a small constant.
            max_segments: cmd::ENTRIES as u16,
            max_segment: cmd::ENTRY_MAX,
            virt_boundary: 0,
            dma_align: cmd::ALIGN,
            hole_align: None,
            segment_boundary: cmd::BOUNDARY,
        }
    }

    /// Its one queue, while a drive is served. `vector` is not looked at: whether the port
    /// interrupts is for [`Controller::set_interrupt`] to say.
    fn create_queue(
        &self,
        index: u16,
        _vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        let port = self.0.port();
        let mut state = port.state()?;
        let Occupant::Drive(about) = state.occupant else {
            return Err(Error::Unsupported);
        };
        if index != 0 || state.has_queue {
            return Err(Error::Invalid);
        }
        let tags = TagTable::new(&port.platform, u16::from(about.tags))?;
        state.has_queue = true;
        port.depth.begin_control(&about);
        Ok(NewQueue {
            queue: AhciQueue::new(self.0.clone(), tags, about.cmd_set),
            issue: (),
            drain: AhciDrain::default(),
        })
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        let port = self.0.port();
        let id = u32::from(port.number());
        let occupant = port.state()?.occupant;
        match occupant {
            Occupant::Nobody => {}
            Occupant::Refused(why) => found(Err(Refused { id, why })),
            Occupant::Drive(about) => found(Ok(about.id.unit(id))),
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), Error> {
        self.control(|port, _| port.stop_port())
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        match how {
            Shutdown::Dead => Ok(()),
            Shutdown::Normal => self.control(|port, state| port.power_off(state)),
        }
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        let port = self.0.port();
        port.config.hba_quirks.each(named);
        port.quirks().each(named);
        if port.is_ncq_off() && !port.depth.is_one() {
            named("noncq");
        }
        if port.lpm.has_failed() {
            named("nolpm");
        }
    }

    fn link_power(&self) -> Option<LinkPower> {
        Some(self.0.port().link_power())
    }

    fn set_link_power(&self, policy: LinkPower) -> Result<Result<(), &'static str>, Error> {
        self.control(|port, state| port.set_link_power(state, policy))
    }

    fn depth(&self) -> Option<u16> {
        Some(self.0.port().depth())
    }

    fn set_depth(&self, depth: u16) -> Result<(), Error> {
        self.0.port().set_depth(depth)
    }

    const SETS_WRITE_CACHE: bool = true;

    fn set_write_cache(&self, on: bool) -> Result<Result<(), &'static str>, Error> {
        self.control(|port, state| port.set_write_cache(state, on))
    }

    /// Says what was taken from the drive. (What the port calls for is seen to by
    /// [`AhciController::run_eh`].)
    fn handle_events(
        &self,
        _queues: Queues,
        tell: &mut dyn FnMut(DeviceEvent<'_>),
    ) -> Result<EventAction, Error> {
        if let Some(taken) = self.0.port().speed_down.take() {
            tell(DeviceEvent {
                severity: Severity::Warning,
                text: &taken,
                uevent: None,
            });
        }
        Ok(EventAction::None)
    }

    fn timeout_report(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        let port = self.0.port();
        let report = port.take_timeout_report();
        if report.awaited != 0 {
            // The next start weighs it.
            let generation = port.generation().saturating_add(1);
            port.timed_out_gen.store(generation, Ordering::Relaxed);
        }
        write!(to, "{report}")
    }

    fn alive(&self) -> Result<(), Error> {
        let port = self.0.port();
        let link = port.has_link()?;
        match port.drive_gone.load(Ordering::SeqCst) || (!link && !port.active_tags.is_stopped()) {
            true => Err(Error::Gone),
            false => Ok(()),
        }
    }

    /// Usually one register write: that a command is over is seen in memory, so the status is
    /// acknowledged unread. The drain that follows clears what was seen, so the next interrupt is
    /// not taken for one of the same kind. Where no drain has followed, as the thread that is at it
    /// was interrupted, the next one looks closer: an error that keeps the line up would keep that
    /// thread from ever going on.
    #[inline]
    fn interrupt(&self, _vector: u16) -> Cause {
        let port = self.0.port();
        let (sdb, rfis) = port.memory.fises();
        let ended = sdb != 0 || cmd::ends_command(rfis);
        let good = ended && !cmd::is_error(sdb) && !cmd::is_error(rfis);
        if good && port.active_tags.has_issued() && !port.irq_undrained.load(Ordering::Relaxed) {
            port.irq_undrained.store(true, Ordering::Relaxed);
            // What else came stays in the register, and keeps the line up.
            port.regs.write(Reg::Is, IS_DONE);
            return Cause::Queues;
        }
        self.interrupt_slow(port)
    }

    fn set_interrupt(&self, _vector: u16, enabled: bool) {
        let port = self.0.port();
        port.irq.enable(enabled);
        port.update_irq_mask();
    }
}

impl<S: Site> AhciController<S> {
    #[cold]
    fn interrupt_slow(&self, port: &Port<S::Platform, S::Mmio>) -> Cause {
        if port.irq.is_control_active() {
            // The control path looks itself, and nothing may be taken away from it.
            port.update_irq_mask();
            return Cause::None;
        }
        let status = port.regs.read(Reg::Is);
        if status == ABSENT {
            self.request_eh(port);
            return Cause::None;
        }
        if status & IS_DONE != 0 {
            port.regs.write(Reg::Is, status & IS_DONE);
        }
        if status & IS_ERROR != 0 {
            self.request_eh(port);
        }
        match status & (regs::IS_DONE | IS_ERROR) {
            0 => Cause::None,
            _ => Cause::Queues,
        }
    }

    #[cold]
    fn request_eh(&self, port: &Port<S::Platform, S::Mmio>) {
        if port.request_eh() {
            self.0.schedule_eh();
        }
    }
}
