// SPDX-License-Identifier: GPL-2.0
//! A port: all that it keeps, in one view, and how it is stopped and run.
//!
//! [`Port`] is what queue and controller share: the data path's face and the control path's. What
//! it is made of is defined here; what is done with it is in the file of each subject (`queue`,
//! `init`, `eh`, `lpm`, `internal`, `timeout_report`), as further methods of [`Port`].
//!
//! # Who writes what
//! Issuer, drainer and interrupt handler write `active_tags`, `irq_undrained`, `irq`, and the slots
//! and the FISes in `memory`. All else is the control path's, of which the layer above
//! makes one call at a time ([`Port::begin_control`], [`Port::end_control`]); what nobody else
//! reads is in [`State`].
//!
//! # Stopped and running
//! The command list and the FIS receiver are started and stopped in the order of AHCI 1.3.1 section
//! 10.3, with bounded waits. While the list is stopped `PxSACT` and `PxCI` read as if everything
//! were finished, so what the device has finished is kept before it is stopped
//! ([`Port::latch_finished`]).

use cell::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use cell::{Guard, Slot, TryLock};
use hal::{poll_until, Backoff, Deadline, Error, Mmio, Platform, Progress, Steps};

use crate::active::ActiveTags;
use crate::cmd::{self, CommandSet, Memory};
use crate::identify::DriveId;
use crate::irq_mask::IrqMask;
use crate::quirks::{DriveQuirks, HbaQuirks, QuirkContext};
use crate::regs::{
    self, Cap, PortRegs, Reg, CMD_CLO, CMD_CR, CMD_FR, CMD_FRE, CMD_ST, STATUS_BSY, STATUS_DF,
    STATUS_DRQ, STATUS_ERR,
};

/// Where a port's state lives, and how its control path is called for. In the kernel a counted
/// reference, with a work item.
pub trait Site: Clone + Send + Sync + 'static {
    /// The machine.
    type Platform: Platform;
    /// The HBA's registers.
    type Mmio: Mmio;

    /// The port. The same for every clone.
    fn port(&self) -> &Port<Self::Platform, Self::Mmio>;

    /// [`crate::AhciController::run_eh`] is to be called soon. Any context, with tokens held: it
    /// must not call the port or its queue back. Repeated wishes may be merged, a wish that comes
    /// after `run_eh` has begun may not.
    fn schedule_eh(&self);
}

/// One port of an HBA, with the drive at it.
pub struct Port<P: Platform, M: Mmio> {
    pub(crate) platform: P,
    pub(crate) regs: PortRegs<M>,
    pub(crate) config: PortConfig,
    /// What the HBA reads and writes: command list, FIS area, command tables.
    pub(crate) memory: Memory<P>,
    /// Which commands the device has.
    pub(crate) active_tags: ActiveTags,
    /// What the control path is doing.
    pub(crate) progress: Progress<PortStep>,
    /// The bits of the drive's [`DriveQuirks`].
    pub(crate) quirks: AtomicU64,
    /// How much the link may sleep.
    pub(crate) lpm: LpmState,
    /// Whether it interrupts.
    pub(crate) irq: IrqMask,
    /// An interrupt was taken for the answer that is in memory, which nobody has looked at since.
    pub(crate) irq_undrained: AtomicBool,
    /// The drive that was served is gone.
    pub(crate) drive_gone: AtomicBool,
    /// The drive has a command of the driver's own, or one that was told alone, and did not answer
    /// it in time.
    pub(crate) cmd_timed_out: AtomicBool,
    /// The first answer that the control path has missed.
    pub(crate) timeout_report: Slot<TimeoutReport>,
    /// A drive that has a queue is told everything singly.
    pub(crate) ncq_off: AtomicBool,
    /// How many commands the drive is given at once.
    pub(crate) depth: Depth,
    /// The link's generation is limited to this; 0: it is not.
    pub(crate) generation_max: AtomicU32,
    /// Commands were not answered in time: the link's generation at that moment, and one more.
    pub(crate) timed_out_gen: AtomicU32,
    /// What was taken, and was not told yet.
    pub(crate) speed_down: Slot<SpeedDown>,
    state: TryLock<State>,
}

/// What only the control path touches.
pub(crate) struct State {
    pub(crate) occupant: Occupant,
    /// The queue was created.
    pub(crate) has_queue: bool,
    /// Resets of the link that came soon after one another.
    pub(crate) link_resets: u32,
    /// When the last of them was.
    pub(crate) link_reset_us: u64,
    /// Errors that speak against queue or link.
    pub(crate) ering: ErrorRing,
}

/// What is at the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// Nothing, as far as is known.
    Nobody,
    /// Something that is left alone, and why.
    Refused(&'static str),
    /// A drive that is served.
    Drive(DriveConfig),
}

/// What a drive said about itself, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriveConfig {
    pub(crate) id: DriveId,
    pub(crate) cmd_set: CommandSet,
    pub(crate) tags: u8,
}

/// What a port is told of its HBA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    pub(crate) number: u8,
    pub(crate) cap: Cap,
    pub(crate) hba_quirks: HbaQuirks,
    pub(crate) context: QuirkContext,
    /// The first address that the HBA does not reach; 0: none.
    pub(crate) dma_limit: u64,
    pub(crate) firmware: Firmware,
}

impl PortConfig {
    /// The port's number, from 0.
    pub const fn number(&self) -> u8 {
        self.number
    }

    /// The same port, with FUA where the drive has it and is not known to break it.
    pub const fn with_fua(mut self, fua: bool) -> Self {
        self.context.fua = fua;
        self
    }
}

/// What a port's registers were before the HBA's reset, as far as it is the firmware's to decide:
/// link power management and speed, and what the port is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Firmware {
    pub(crate) cmd: u32,
    pub(crate) sctl: u32,
    /// The port is made for drives that come and go.
    pub(crate) external: bool,
}

/// How many commands the drive is given at once: see `queue`.
pub(crate) struct Depth {
    /// Slots from this one on are left alone.
    pub(crate) chosen: AtomicU32,
    /// The drive's own, once its queue was made; 0: it was not.
    pub(crate) most: AtomicU32,
}

impl Depth {
    pub(crate) fn new() -> Self {
        Self {
            chosen: AtomicU32::new(u32::MAX),
            most: AtomicU32::new(0),
        }
    }
}

/// How much the link may sleep: see `lpm`. The control path alone writes it.
#[derive(Default)]
pub(crate) struct LpmState {
    /// The number of a [`hal::LinkPower`].
    pub(crate) policy: AtomicU8,
    /// The drive is known to be lost by it.
    pub(crate) forbidden: AtomicBool,
    /// It was lost by it here.
    pub(crate) failed: AtomicBool,
}

/// The errors of late, in microseconds of the clock: see `eh`.
#[derive(Default)]
pub(crate) struct ErrorRing {
    pub(crate) errors: [Option<(u64, ErrorCategory)>; ERRORS],
    pub(crate) next: usize,
}

/// Errors that a [`ErrorRing`] holds, a power of two: more than any limit that they are held to.
pub(crate) const ERRORS: usize = 16;

/// An error as far as it says something about queue or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorCategory {
    /// The link spoilt something, and noticed.
    Bus,
    /// A command was not answered in time.
    Timeout,
    /// The drive failed a command without a reason in medium or address.
    Device,
}

/// What was taken from a drive that fails often: see `eh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpeedDown {
    /// Its commands are queued no more.
    NcqOff,
    /// Its link is no faster than this generation, 1 or more.
    Speed(u32),
    /// Its link stays awake.
    LpmOff,
}

/// Registers and FIS area of a port that has not answered: see `timeout_report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeoutReport {
    /// What the driver was at.
    pub(crate) step: &'static str,
    /// The slots that were waited for, one bit each.
    pub(crate) awaited: u32,
    pub(crate) tfd: u32,
    pub(crate) ci: u32,
    pub(crate) sact: u32,
    pub(crate) is: u32,
    pub(crate) serr: u32,
    pub(crate) ssts: u32,
    pub(crate) cmd: u32,
    /// The first two words of the last Set Device Bits FIS, if it was not looked at yet.
    pub(crate) sdb: [u32; 2],
    /// The first word of the last D2H Register FIS, if it was not looked at yet.
    pub(crate) rfis: u32,
}

/// The control path's steps, of which a failure names the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PortStep {
    Probe,
    Halt,
    Link,
    Ready,
    Run,
    Identify,
    SetFeatures,
    ReadLog,
    OneByOne,
    WaitIdle,
    PassThrough,
    Flush,
    Standby,
}

impl Steps for PortStep {
    const NAMES: &'static [&'static str] = &[
        "making the port",
        "stopping the port (PxCMD.ST, FRE = 0)",
        "waiting for the link (PxSSTS.DET)",
        "waiting for the drive (PxTFD.BSY, DRQ)",
        "starting the port (PxCMD.ST = 1)",
        "IDENTIFY DEVICE",
        "SET FEATURES",
        "READ LOG EXT",
        "telling the drive its commands one by one",
        "letting the drive finish before a command is passed through",
        "a command passed through",
        "FLUSH CACHE EXT",
        "STANDBY IMMEDIATE",
    ];

    fn number(self) -> u8 {
        // CAST: the enum is a byte.
        self as u8
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Memory for the port; its registers are not touched before [`hal::Controller::start`].
    /// Sleeps.
    ///
    /// [`Error::NoMemory`]. [`Error::Unsupported`]: the memory lies beyond the addresses of the
    /// HBA; see [`crate::Hba::dma_bits`].
    pub fn new(platform: P, mmio: M, config: PortConfig) -> Result<Self, Error> {
        let memory = Memory::new(&platform, config.cap.slots(), config.dma_limit)?;
        Ok(Self {
            platform,
            regs: PortRegs::ignoring_irqs(mmio, config.number, config.hba_quirks.ignored_irqs()),
            config,
            memory,
            active_tags: ActiveTags::new(),
            progress: Progress::new(PortStep::Probe),
            quirks: AtomicU64::new(0),
            lpm: LpmState::default(),
            irq: IrqMask::new(),
            irq_undrained: AtomicBool::new(false),
            drive_gone: AtomicBool::new(false),
            cmd_timed_out: AtomicBool::new(false),
            timeout_report: Slot::default(),
            ncq_off: AtomicBool::new(false),
            depth: Depth::new(),
            generation_max: AtomicU32::new(0),
            timed_out_gen: AtomicU32::new(0),
            speed_down: Slot::default(),
            state: TryLock::new(State {
                occupant: Occupant::Nobody,
                has_queue: false,
                link_resets: 0,
                link_reset_us: 0,
                ering: ErrorRing::default(),
            }),
        })
    }

    /// The port's number, from 0.
    pub const fn number(&self) -> u8 {
        self.config.number
    }

    /// What the control path was last doing: names the command or the step that an [`Error`] of it
    /// is about.
    pub fn step(&self) -> &'static str {
        self.progress.name()
    }

    /// What the drive is known for. Any context.
    pub(crate) fn quirks(&self) -> DriveQuirks {
        DriveQuirks::from_bits(self.quirks.load(Ordering::Relaxed))
    }

    /// The control path's state. [`Error::Invalid`]: two callers at once, against the contract.
    pub(crate) fn state(&self) -> Result<Guard<'_, State>, Error> {
        self.state.try_lock().ok_or(Error::Invalid)
    }

    /// The control path begins: it looks at the registers itself, so they interrupt nobody.
    pub(crate) fn begin_control(&self) {
        self.irq.begin_control();
        self.update_irq_mask();
    }

    /// The control path is done, and so is what it was called for.
    pub(crate) fn end_control(&self) {
        let tags = &self.active_tags;
        self.irq.end_control(|| tags.thaw(), || tags.freeze());
        self.issue_deferred();
        self.update_irq_mask();
    }

    /// `PxIE` as the port's state and the layer above want it. Any context.
    pub(crate) fn update_irq_mask(&self) {
        let enabled = || match self.active_tags.is_stopped() {
            true => regs::IS_HOTPLUG,
            false => regs::IS_DONE | regs::IS_ERROR,
        };
        self.irq
            .apply(enabled, |value| self.regs.write(Reg::Ie, value));
    }

    /// Calls for error handling: until then nothing is issued, and the port does not interrupt.
    /// Returns whether [`Site::schedule_eh`] has to be called.
    #[cold]
    pub(crate) fn request_eh(&self) -> bool {
        let first = self.irq.request_eh(|| self.active_tags.freeze());
        self.update_irq_mask();
        first
    }
}

impl<P: Platform, M: Mmio> Drop for Port<P, M> {
    fn drop(&mut self) {
        // Its memory is not freed under an HBA that may write to it. Where the port can't be
        // stopped the caller has cut it off the bus.
        let _ = self.stop_port();
    }
}

/// How long `PxCMD.CR` and `FR` may stay set after `ST` and `FRE` are cleared (10.3.1, 10.3.2), and
/// `CLO` after it is set.
const STOP_US: u64 = 500_000;
/// Between two reads of a register.
const PAUSES: Backoff = Backoff::new(20, 2_000);

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Sleeps until `reg & mask == value`, for `limit_us` at most.
    pub(crate) fn wait(&self, reg: Reg, mask: u32, value: u32, limit_us: u64) -> Result<(), Error> {
        poll_until(&self.platform, Deadline::after(limit_us), PAUSES, || {
            Ok((self.regs.get(reg)? & mask == value).then_some(()))
        })
    }

    /// Nothing more is issued, and what the device has finished is kept: once the list is stopped,
    /// nobody can tell it from what it has not.
    pub(crate) fn latch_finished(&self) {
        if !self.active_tags.stop() {
            return;
        }
        let issued = self.active_tags.issued.load(Ordering::SeqCst);
        if issued == 0 {
            return;
        }
        let (sdb, rfis) = self.memory.fises();
        let answered = self.active_tags.answered.load(Ordering::Relaxed);
        let left = match self.active_tags.has_non_ncq() {
            true if answered || cmd::ends_command(rfis) => self.non_ncq_left(issued),
            false if sdb != 0 => self.regs.read(Reg::Sact),
            // Without a word from the drive a register says no more than that it has not heard of
            // them: what was written to it may have got lost.
            _ => issued,
        };
        // Afterwards: until then it said the truth.
        let left = if self.is_running() { left } else { issued };
        self.active_tags.eh_complete(issued & !left, Ok(()));
    }

    /// Whether the command list runs. One that does not, and was not stopped from here, was reset
    /// by somebody else: then the registers say that everything is finished.
    #[cold]
    pub(crate) fn is_running(&self) -> bool {
        self.regs.get(Reg::Cmd).is_ok_and(|cmd| cmd & CMD_ST != 0)
    }

    /// Of the unqueued commands in `issued`, those that the device has not finished for certain.
    /// One error makes them all uncertain. All of them are in the register: nobody tells the device
    /// anything at the same time.
    fn non_ncq_left(&self, issued: u32) -> u32 {
        let ci = self.regs.read(Reg::Ci);
        let (_, rfis) = self.memory.fises();
        let status = self.regs.read(Reg::Tfd) & (STATUS_ERR | STATUS_DF);
        match cmd::is_error(rfis) || status != 0 {
            true => issued,
            false => ci,
        }
    }

    /// Stops the command list. After `Ok` no command is with the device.
    pub(crate) fn stop_engine(&self) -> Result<(), Error> {
        self.latch_finished();
        self.clear_st()
    }

    fn clear_st(&self) -> Result<(), Error> {
        self.regs.change_cmd(CMD_ST, 0)?;
        let stopped = || self.wait(Reg::Cmd, CMD_CR, 0, STOP_US);
        match stopped() {
            Err(Error::Timeout) => {}
            waited => return waited,
        }
        if self.config.cap.has_clo() {
            // Some HBAs wait for a busy drive.
            match self.override_busy().and_then(|()| stopped()) {
                Err(Error::Timeout) => {}
                waited => return waited,
            }
        }
        // It is hung: the drive may be reset all the same (10.4.2).
        self.send_comreset()?;
        stopped()
    }

    /// `PxCMD.CLO`: BSY and DRQ are cleared whatever the drive says (3.3.7).
    fn override_busy(&self) -> Result<(), Error> {
        self.regs.change_cmd(0, CMD_CLO)?;
        self.wait(Reg::Cmd, CMD_CLO, 0, STOP_US)
    }

    /// Stops the FIS receiver too: then the port touches no memory. A drive that has not finished
    /// everything is reset, lest it goes on when the port does.
    pub(crate) fn stop_port(&self) -> Result<(), Error> {
        self.regs.write(Reg::Ie, 0);
        self.stop_engine()?;
        let issued = self.active_tags.issued.load(Ordering::SeqCst) != 0;
        if issued || self.cmd_timed_out.load(Ordering::Relaxed) {
            self.send_comreset()?;
        }
        self.regs.change_cmd(CMD_FRE, 0)?;
        self.wait(Reg::Cmd, CMD_FR, 0, STOP_US)?;
        // Zeroes would have said the same of a port that runs.
        self.regs.check_present()
    }

    /// Gives a stopped port its memory, and lets it receive FISes.
    pub(crate) fn start_fis_rx(&self) -> Result<(), Error> {
        self.memory.rewind();
        // CAST: the two halves.
        let (list, fis) = (self.memory.list_bus(), self.memory.fis_bus());
        self.regs.write(Reg::Clb, list as u32);
        self.regs.write(Reg::Clbu, (list >> 32) as u32);
        self.regs.write(Reg::Fb, fis as u32);
        self.regs.write(Reg::Fbu, (fis >> 32) as u32);
        self.regs.change_cmd(0, CMD_FRE)
    }

    /// Starts the command list of a port whose drive is ready; earlier errors are forgotten.
    pub(crate) fn start_engine(&self) -> Result<(), Error> {
        self.progress.at(PortStep::Run);
        if self.regs.get(Reg::Tfd)? & (STATUS_BSY | STATUS_DRQ) != 0 {
            return Err(Error::Timeout);
        }
        self.forget_errors();
        self.memory.clear_sdb();
        self.memory.clear_rfis();
        self.regs.change_cmd(0, CMD_ST)
    }

    /// Clears `PxSERR` and `PxIS`, in this order: some bits of the latter follow the former.
    pub(crate) fn forget_errors(&self) {
        self.regs.write(Reg::Serr, u32::MAX);
        self.regs.write(Reg::Is, u32::MAX);
    }

    /// Starts the command list anew after a command that failed: nothing is with the device
    /// afterwards. [`Error::Timeout`]: it takes a reset of the link.
    pub(crate) fn restart_engine(&self) -> Result<(), Error> {
        self.progress.at(PortStep::Halt);
        self.clear_st()?;
        self.start_engine()
    }

    /// The port is the data path's: nothing of what the control path did is announced to it.
    pub(crate) fn resume_data_path(&self) {
        self.memory.clear_sdb();
        self.memory.clear_rfis();
        // What was missed was mastered.
        let _ = self.timeout_report.take();
        self.active_tags.resume();
    }

    /// Whether the link is up, a register read.
    pub(crate) fn has_link(&self) -> Result<bool, Error> {
        Ok(self.regs.get(Reg::Ssts)? & 0xf == regs::DET_READY)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_name() {
        assert_eq!(PortStep::Standby as usize + 1, PortStep::NAMES.len());
        let progress = Progress::new(PortStep::Probe);
        progress.at(PortStep::Identify);
        assert_eq!(progress.name(), "IDENTIFY DEVICE");
        progress.at(PortStep::Standby);
        assert_eq!(progress.name(), "STANDBY IMMEDIATE");
    }
}
