// SPDX-License-Identifier: GPL-2.0
//! Commands that are issued alone, polled with sleeps, and what the driver does with the drive by
//! itself.
//!
//! [`Port::exec_polled`] issues one with nothing else with the device: a command of the driver's
//! own in slot 0 ([`Port::exec_internal_data`]), or one of the data path's in a recovery. While the
//! data path is up, [`Port::exclusive`] gives one caller the drive alone: what it has finishes
//! first, what comes is deferred. That serves
//! * commands of the operator's tools (IDENTIFY DEVICE, SMART, READ LOG EXT, ...), with data in
//!   memory of the caller's;
//! * the drive's volatile write cache: on or off, as the operator says (ACS-4 section 7.43.2).
//!
//! What was told of a cache that is off has to stay true: nobody flushes what has none. A drive may
//! have its cache on again after it lost power, or even a reset, so it is turned off again before
//! the first command of the data path ([`Port::revalidate`]).
//!
//! Before power goes away the write cache is flushed, and the drive parks (ACS-4 sections 7.9,
//! 7.48).

use cell::sync::Ordering;
use hal::{poll_until, Backoff, Deadline, DmaMem, Error, Mmio, Platform};

use crate::cmd::{
    self, Taskfile, IDENTIFY_DEVICE, READ_LOG_EXT, SECTOR_BYTES, SET_FEATURES, STANDBY_IMMEDIATE,
};
use crate::eh::EhOutcome;
use crate::identify::DriveId;
use crate::port::{DriveConfig, Occupant, Port, PortStep, State};
use crate::regs::{Reg, IS_BUS_ERROR, IS_ERROR, IS_HOTPLUG, IS_TFE, STATUS_DF, STATUS_ERR};

/// ATA registers of a command, those of 48 bits with both halves (ACS-4 section 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtaCommand {
    /// The opcode.
    pub command: u8,
    /// Features.
    pub features: u16,
    /// Count.
    pub count: u16,
    /// LBA, 48 bits; of a 28-bit command the upper four are in `device`.
    pub lba: u64,
    /// Device.
    pub device: u8,
}

/// The registers afterwards. Where the device has sent none (it answers data with its status only),
/// `count` and `lba` are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtaReply {
    /// Status: see [`AtaReply::is_failure`].
    pub status: u8,
    /// Error.
    pub error: u8,
    /// Count.
    pub count: u16,
    /// LBA, 48 bits.
    pub lba: u64,
    /// Device.
    pub device: u8,
}

impl AtaReply {
    /// Whether the command failed (ACS-4 section 6.2: ERROR, DEVICE FAULT).
    pub fn is_failure(&self) -> bool {
        u32::from(self.status) & (STATUS_ERR | STATUS_DF) != 0
    }
}

/// The data of such a command: the beginning of contiguous memory, an even number of bytes up to
/// 4 MiB.
#[derive(Clone, Copy)]
pub enum Transfer<'a, D> {
    /// None.
    Nothing,
    /// The device writes to the memory.
    FromDevice(&'a D, u32),
    /// It reads from it.
    ToDevice(&'a D, u32),
}

/// How long a command without much to do may take. TIMEOUT: a drive that has just been reset may be
/// busy with itself.
const QUICK_US: u64 = 5_000_000;
/// Between two polls of whether it is over.
const PAUSES: Backoff = Backoff::new(20, 2_000);

/// How a command has ended that was issued alone.
#[derive(Clone, Copy)]
enum ExecEnd {
    Done,
    /// With an error that the device names.
    Failed,
    /// With the link, or the drive.
    Lost,
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Tells the device of the command in `slot`, which is no queued one, and sleeps until it is
    /// over. The command list runs, and nothing is with the device.
    ///
    /// [`Error::Refused`]: it failed, with its error byte above its status byte; the list runs
    /// again. [`Error::Timeout`], [`Error::Fatal`]: the link has to be reset. [`Error::Gone`].
    pub(crate) fn exec_polled(&self, slot: u8, deadline: Deadline<'_>) -> Result<(), Error> {
        let ran = self.issue_and_poll(slot, deadline);
        if matches!(ran, Err(Error::Timeout | Error::Fatal)) {
            self.cmd_timed_out.store(true, Ordering::Relaxed);
        }
        ran
    }

    fn issue_and_poll(&self, slot: u8, deadline: Deadline<'_>) -> Result<(), Error> {
        let bit = 1u32.wrapping_shl(u32::from(slot));
        self.regs.write(Reg::Ci, bit);
        let over = poll_until(&self.platform, deadline, PAUSES, || {
            // The commands before the status: what ended with an error is not taken for a success.
            let ci = self.regs.read(Reg::Ci);
            let status = self.regs.get(Reg::Is)?;
            Ok(match status {
                status if status & IS_TFE != 0 => Some(ExecEnd::Failed),
                status if status & (IS_BUS_ERROR | IS_HOTPLUG) != 0 => Some(ExecEnd::Lost),
                _ if ci & bit != 0 => None,
                // It was reset, or its registers are out of reach: they say nothing.
                _ if !self.is_running() => Some(ExecEnd::Lost),
                _ => match self.regs.get(Reg::Tfd)? & (STATUS_ERR | STATUS_DF) {
                    0 => Some(ExecEnd::Done),
                    _ => Some(ExecEnd::Failed),
                },
            })
        });
        match over {
            Ok(ExecEnd::Done) => Ok(()),
            Ok(ExecEnd::Failed) => self.refused(),
            Ok(ExecEnd::Lost) => {
                self.record_timeout(bit);
                Err(Error::Fatal)
            }
            Err(Error::Timeout) => {
                self.record_timeout(bit);
                Err(Error::Timeout)
            }
            Err(why) => Err(why),
        }
    }

    fn refused(&self) -> Result<(), Error> {
        // CAST: status and error byte.
        let tfd = self.regs.get(Reg::Tfd)? as u16;
        self.restart_engine()?;
        Err(Error::Refused(tfd))
    }

    /// A command of the driver's own, in the place of what is in slot 0.
    fn exec_internal(
        &self,
        step: PortStep,
        taskfile: Taskfile,
        timeout_us: u64,
    ) -> Result<(), Error> {
        self.exec_internal_data(step, taskfile, false, None, Deadline::after(timeout_us))
    }

    /// A command of the driver's own with `data` (address and length), which the device reads if it
    /// `writes`.
    pub(crate) fn exec_internal_data(
        &self,
        step: PortStep,
        taskfile: Taskfile,
        writes: bool,
        data: Option<(u64, u32)>,
        deadline: Deadline<'_>,
    ) -> Result<(), Error> {
        self.progress.at(step);
        let was = self.memory.stage_internal(taskfile.encode(), writes, data);
        let ran = self.exec_polled(0, deadline);
        self.memory.unstage_internal(was);
        if ran.is_err() {
            // What failed is named, not what was done about it.
            self.progress.at(step);
        }
        ran
    }

    /// A command that returns a sector.
    fn sector(&self, step: PortStep, taskfile: Taskfile) -> Result<[u8; SECTOR_BYTES], Error> {
        self.memory.poison_sector();
        let data = Some(self.memory.sector_bus());
        self.exec_internal_data(step, taskfile, false, data, Deadline::after(QUICK_US))?;
        Ok(self.memory.sector())
    }

    /// IDENTIFY DEVICE.
    pub(crate) fn identify(&self) -> Result<[u8; SECTOR_BYTES], Error> {
        let taskfile = Taskfile {
            command: IDENTIFY_DEVICE,
            ..Taskfile::default()
        };
        self.sector(PortStep::Identify, taskfile)
    }

    /// A refusal is an answer; anything else is an error.
    pub(crate) fn unless_refused(&self, ran: Result<(), Error>) -> Result<(), Error> {
        match ran {
            Ok(()) | Err(Error::Refused(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Ends what is left of a command that failed: until another one has worked, some drives
    /// (QEMU's) report the error anew with each queued one that they accept.
    pub(crate) fn clear_device_error(&self) -> Result<(), Error> {
        self.unless_refused(self.identify().map(|_| ()))
    }

    /// READ LOG EXT: the first page of `log`.
    pub(crate) fn read_log(&self, log: u8) -> Result<[u8; SECTOR_BYTES], Error> {
        let taskfile = Taskfile {
            command: READ_LOG_EXT,
            count: 1,
            lba: u64::from(log),
            ..Taskfile::default()
        };
        self.sector(PortStep::ReadLog, taskfile)
    }

    /// SET FEATURES: device-initiated power management on, or off.
    pub(crate) fn set_dipm(&self, on: bool) -> Result<(), Error> {
        let taskfile = Taskfile {
            command: SET_FEATURES,
            features: if on { 0x10 } else { 0x90 },
            count: 3,
            ..Taskfile::default()
        };
        self.exec_internal(PortStep::SetFeatures, taskfile, QUICK_US)
    }
}

/// How long what the drive has may take to finish: what the layer above grants a command, too.
const FINISH_US: u64 = 30_000_000;
/// The pause between two looks.
const FINISH_PAUSE_US: u64 = 500;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Has `work` done with the command list running, nothing with the device, and the queue, if
    /// there is one, at rest; then the port is the data path's again. Sleeps.
    ///
    /// An error: the port was stopped, and has to be started again. [`Error::Gone`], too: it was
    /// not running.
    pub(crate) fn exclusive<R>(
        &self,
        state: &mut State,
        work: impl FnOnce(&mut State) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if self.active_tags.is_stopped() {
            return Err(Error::Gone);
        }
        self.wait_idle(FINISH_US);
        if self.has_eh_irq() {
            // First what the port has called for, or is about to: its errors are not this work's.
            match self.run_eh(state)? {
                EhOutcome::Nothing | EhOutcome::Recovered => self.wait_idle(FINISH_US),
                _ => return Err(Error::Gone),
            }
        }
        let issued = self.active_tags.issued.load(Ordering::SeqCst);
        if issued != 0 && (self.regs.read(Reg::Sact) | self.regs.read(Reg::Ci)) & issued != 0 {
            self.progress.at(PortStep::WaitIdle);
            self.record_timeout(issued);
        }
        self.latch_finished();
        if self.active_tags.issued.load(Ordering::SeqCst) != 0 {
            self.stop_port()?;
            return Err(Error::Timeout);
        }
        let done = match work(state) {
            Ok(done) => done,
            Err(why) => {
                // Memory that it was given is the caller's again.
                self.stop_port()?;
                return Err(why);
            }
        };
        self.resume_data_path();
        self.issue_deferred();
        Ok(done)
    }

    /// Whether there is something to attend to, a register read.
    fn has_eh_irq(&self) -> bool {
        self.regs.read(Reg::Is) & IS_ERROR != 0
    }

    /// Waits until the device has nothing, or something to complain of, for `limit_us` at most.
    fn wait_idle(&self, limit_us: u64) {
        let deadline = Deadline::after(limit_us);
        let pauses = Backoff::constant(FINISH_PAUSE_US);
        // In vain or not: the caller sees what is left.
        let _ = poll_until(&self.platform, deadline, pauses, || {
            if self.active_tags.issued.load(Ordering::SeqCst) == 0 {
                return Ok(Some(()));
            }
            let left = self.regs.read(Reg::Sact) | self.regs.read(Reg::Ci);
            // All ones are 32 queued commands as well as an absent device, which is trouble.
            Ok((left == 0 || self.has_eh_irq()).then_some(()))
        });
    }
}

/// How long a command may take whose caller says nothing.
const TIMEOUT_US: u64 = 30_000_000;

/// Opcodes that are the driver's own: what is queued, what resets the device or has it wait for a
/// reset.
const REFUSED: [u8; 9] = [0x08, 0x60, 0x61, 0x63, 0x64, 0x65, 0x90, 0x99, 0xe6];

impl<P: Platform, M: Mmio> Port<P, M> {
    /// See [`crate::AhciController::command`].
    pub(crate) fn pass(
        &self,
        state: &mut State,
        command: &AtaCommand,
        transfer: &Transfer<'_, P::Dma>,
        timeout_ms: u32,
        wanted: &dyn Fn() -> bool,
    ) -> Result<AtaReply, Error> {
        let Occupant::Drive(about) = state.occupant else {
            return Err(Error::Invalid);
        };
        if REFUSED.contains(&command.command) {
            return Err(Error::Invalid);
        }
        let (write, data) = self.data_of(transfer)?;
        let timeout_us = match timeout_ms {
            0 => TIMEOUT_US,
            ms => u64::from(ms).saturating_mul(1000),
        };
        let deadline = Deadline::preemptible(timeout_us, wanted);
        let taskfile = Taskfile {
            command: command.command,
            features: command.features,
            count: command.count,
            lba: command.lba,
            device: command.device,
            auxiliary: 0,
        };
        self.exclusive(state, |state| {
            self.memory.clear_rfis();
            let reply = match self.exec_internal_data(
                PortStep::PassThrough,
                taskfile,
                write,
                data,
                deadline,
            ) {
                Ok(()) => self.reply()?,
                Err(Error::Refused(tfd)) => self.failure(tfd)?,
                Err(why) => return Err(why),
            };
            if command.sets_cache() && !reply.is_failure() {
                state.occupant = Occupant::Drive(self.reread_id(about)?);
            }
            Ok(reply)
        })
    }

    /// Whether the memory is read, and where it is.
    fn data_of(
        &self,
        transfer: &Transfer<'_, P::Dma>,
    ) -> Result<(bool, Option<(u64, u32)>), Error> {
        let (write, memory, bytes) = match *transfer {
            Transfer::Nothing => return Ok((false, None)),
            Transfer::FromDevice(memory, bytes) => (false, memory, bytes),
            Transfer::ToDevice(memory, bytes) => (true, memory, bytes),
        };
        let fits = bytes as usize <= memory.len() && bytes <= cmd::ENTRY_MAX;
        let even = bytes & cmd::ALIGN == 0 && memory.bus_addr() & u64::from(cmd::ALIGN) == 0;
        let end = memory.bus_addr().saturating_add(u64::from(bytes));
        let near = self.config.dma_limit == 0 || end <= self.config.dma_limit;
        match bytes != 0 && fits && even && near {
            true => Ok((write, Some((memory.bus_addr(), bytes)))),
            false => Err(Error::Invalid),
        }
    }

    /// What the device answered to a command that did not fail.
    fn reply(&self) -> Result<AtaReply, Error> {
        let [first, second, third, fourth] = self.memory.rfis();
        let tfd = self.regs.get(Reg::Tfd)?;
        // CAST: bytes, and a word of 16 bits.
        let mut reply = AtaReply {
            status: tfd as u8,
            error: (tfd >> 8) as u8,
            ..AtaReply::default()
        };
        if cmd::ends_command(first) {
            reply.count = fourth as u16;
            reply.lba = u64::from(second & 0xff_ffff) | (u64::from(third & 0xff_ffff) << 24);
            reply.device = (second >> 24) as u8;
        }
        Ok(reply)
    }

    /// What it answered to one that did, with its status and its error in `tfd`.
    fn failure(&self, tfd: u16) -> Result<AtaReply, Error> {
        self.clear_device_error()?;
        let [status, error] = tfd.to_le_bytes();
        Ok(AtaReply {
            status,
            error,
            ..AtaReply::default()
        })
    }
}

/// SET FEATURES: the subcommands.
const ON: u16 = 0x02;
const OFF: u16 = 0x82;
/// How long a drive may take to turn it off. TIMEOUT: it writes first what is in it, as by a flush.
const OFF_US: u64 = 30_000_000;

impl AtaCommand {
    /// Turns the cache on or off.
    fn setting_cache(on: bool) -> Self {
        Self {
            command: SET_FEATURES,
            features: if on { ON } else { OFF },
            ..Self::default()
        }
    }

    /// Whether it turns the drive's write cache on or off.
    pub fn sets_cache(&self) -> bool {
        // Of the features, 28-bit commands have the lower half.
        self.command == SET_FEATURES && matches!(self.features & 0xff, ON | OFF)
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// See [`hal::Controller::set_write_cache`].
    pub(crate) fn set_write_cache(
        &self,
        state: &mut State,
        on: bool,
    ) -> Result<Result<(), &'static str>, Error> {
        let command = AtaCommand::setting_cache(on);
        let reply = self.pass(state, &command, &Transfer::Nothing, 0, &|| false)?;
        Ok(match reply.is_failure() {
            true => Err("the drive refuses that"),
            false => Ok(()),
        })
    }

    /// The drive that was just asked what it is, without a cache if the one `before` was told of as
    /// one without, and it is that. The command list runs, and nothing is with the device.
    pub(crate) fn revalidate(
        &self,
        before: &DriveId,
        now: DriveConfig,
    ) -> Result<DriveConfig, Error> {
        let cache_is_back = now.id.write_cache && !before.write_cache;
        if !cache_is_back || !now.id.with_cache_of(before).is_same(before) {
            return Ok(now);
        }
        let command = AtaCommand::setting_cache(false);
        let taskfile = Taskfile {
            command: command.command,
            features: command.features,
            ..Taskfile::default()
        };
        // One that refuses is not what was promised.
        self.unless_refused(self.exec_internal(PortStep::SetFeatures, taskfile, OFF_US))?;
        self.reread_id(now)
    }

    /// The drive `before`, which was told to change, as it is now.
    fn reread_id(&self, before: DriveConfig) -> Result<DriveConfig, Error> {
        let (id, _) = self.identity()?.map_err(|_| Error::Malformed)?;
        match id.with_cache_of(&before.id).is_same(&before.id) {
            true => Ok(DriveConfig { id, ..before }),
            false => Err(Error::Malformed),
        }
    }
}

impl DriveId {
    /// This one, with what `other` says of its cache.
    fn with_cache_of(self, other: &Self) -> Self {
        Self {
            write_cache: other.write_cache,
            ..self
        }
    }
}

/// How long what is under way may take to finish.
const DRAIN_US: u64 = 5_000_000;
/// How long a flush, or parking, may take. TIMEOUT: the layer above grants a command as much; the
/// standard sets no bound.
const FLUSH_US: u64 = 30_000_000;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Flushes and parks the drive, if there is one that takes commands. What is under way may
    /// finish before; what does not is not issued again. Afterwards only [`hal::Controller::stop`]
    /// and `start` are of use.
    pub(crate) fn power_off(&self, state: &mut State) -> Result<(), Error> {
        let Occupant::Drive(about) = state.occupant else {
            return Ok(());
        };
        if self.active_tags.is_stopped() {
            return Ok(());
        }
        self.wait_idle(DRAIN_US);
        self.progress.at(PortStep::Halt);
        self.stop_engine()?;
        match self.active_tags.issued.load(Ordering::SeqCst) {
            0 => self.start_engine()?,
            // It still has something, and takes nothing else before that is over.
            _ => match self.reset_and_revalidate(state)? {
                EhOutcome::Nothing => {}
                _ => return Err(Error::Gone),
            },
        }
        let flushed = match about.id.write_cache {
            true => self.exec_internal(PortStep::Flush, cmd::flush(), FLUSH_US),
            false => Ok(()),
        };
        let parked = match flushed {
            // The list runs again only after a refusal.
            Ok(()) | Err(Error::Refused(_)) => {
                let taskfile = Taskfile {
                    command: STANDBY_IMMEDIATE,
                    ..Taskfile::default()
                };
                self.exec_internal(PortStep::Standby, taskfile, FLUSH_US)
            }
            Err(why) => Err(why),
        };
        flushed.and(parked)
    }
}
