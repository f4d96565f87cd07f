// SPDX-License-Identifier: GPL-2.0
//! Commands of the driver's own, and commands that are issued one by one: with nothing else with
//! the device, polled with sleeps.

use crate::command::{IDENTIFY_DEVICE, READ_LOG_EXT, SET_FEATURES};
use crate::fis::Taskfile;
use crate::memory::SECTOR_BYTES;
use crate::port::Port;
use crate::regs::{Reg, IS_BROKEN, IS_HOTPLUG, IS_TFE, STATUS_DF, STATUS_ERR};
use crate::step::Step;
use cell::sync::Ordering;
use hal::{Deadline, Error, Mmio, Platform};

/// How long a command without much to do may take. TIMEOUT: a drive that has just been reset may be
/// busy with itself.
const QUICK_US: u64 = 5_000_000;
/// The first and the longest pause between two looks, in microseconds.
const PAUSE_US: (u64, u64) = (20, 2_000);

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Tells the device of the command in `slot`, which is no queued one, and sleeps until it is
    /// over. The command list runs, and nothing is with the device.
    ///
    /// [`Error::Refused`]: it failed, with its error byte above its status byte; the list runs
    /// again. [`Error::Timeout`], [`Error::Fatal`]: the link has to be reset. [`Error::Gone`].
    pub(crate) fn run_alone(&self, slot: u8, deadline: Deadline<'_>) -> Result<(), Error> {
        let ran = self.issue_alone(slot, deadline);
        if matches!(ran, Err(Error::Timeout | Error::Fatal)) {
            self.unanswered.store(true, Ordering::Relaxed);
        }
        ran
    }

    fn issue_alone(&self, slot: u8, mut deadline: Deadline<'_>) -> Result<(), Error> {
        let bit = 1u32.wrapping_shl(u32::from(slot));
        self.regs.write(Reg::Ci, bit);
        let start = self.platform.now_us();
        let mut pause = PAUSE_US.0;
        loop {
            let waited = self.platform.now_us().saturating_sub(start);
            // The commands before the status: what ended with an error is not taken for a success.
            let ci = self.regs.read(Reg::Ci);
            let status = self.regs.get(Reg::Is)?;
            if status & IS_TFE != 0 {
                return self.refused();
            }
            if status & (IS_BROKEN | IS_HOTPLUG) != 0 {
                self.miss(bit);
                return Err(Error::Fatal);
            }
            if ci & bit == 0 {
                if !self.is_running() {
                    // It was reset, or its registers are out of reach: they say nothing.
                    self.miss(bit);
                    return Err(Error::Fatal);
                }
                return match self.regs.get(Reg::Tfd)? & (STATUS_ERR | STATUS_DF) {
                    0 => Ok(()),
                    _ => self.refused(),
                };
            }
            if deadline.has_come(waited) {
                self.miss(bit);
                return Err(Error::Timeout);
            }
            self.platform.sleep_us(pause);
            pause = pause.saturating_mul(2).min(PAUSE_US.1);
        }
    }

    fn refused(&self) -> Result<(), Error> {
        // CAST: status and error byte.
        let tfd = self.regs.get(Reg::Tfd)? as u16;
        self.run_again()?;
        Err(Error::Refused(tfd))
    }

    /// A command of the driver's own, in the place of what is in slot 0.
    pub(crate) fn own(&self, step: Step, taskfile: Taskfile, timeout_us: u64) -> Result<(), Error> {
        self.command(step, taskfile, false, None, Deadline::after(timeout_us))
    }

    /// Likewise, with `data`, which the device reads if it `writes`.
    pub(crate) fn command(
        &self,
        step: Step,
        taskfile: Taskfile,
        writes: bool,
        data: Option<(u64, u32)>,
        deadline: Deadline<'_>,
    ) -> Result<(), Error> {
        self.progress.at(step);
        let was = self.memory.borrow(taskfile.encode(), writes, data);
        let ran = self.run_alone(0, deadline);
        self.memory.give_back(was);
        if ran.is_err() {
            // What failed is named, not what was done about it.
            self.progress.at(step);
        }
        ran
    }

    /// A command that returns a sector.
    fn sector(&self, step: Step, taskfile: Taskfile) -> Result<[u8; SECTOR_BYTES], Error> {
        self.memory.spoil_sector();
        let data = Some(self.memory.sector_bus());
        self.command(step, taskfile, false, data, Deadline::after(QUICK_US))?;
        Ok(self.memory.sector())
    }

    /// IDENTIFY DEVICE.
    pub(crate) fn identify(&self) -> Result<[u8; SECTOR_BYTES], Error> {
        let taskfile = Taskfile {
            command: IDENTIFY_DEVICE,
            ..Taskfile::default()
        };
        self.sector(Step::Identify, taskfile)
    }

    /// Ends what is left of a command that failed: until another one has worked, some drives
    /// (QEMU's) report the error anew with each queued one that they accept.
    pub(crate) fn end_failure(&self) -> Result<(), Error> {
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
        self.sector(Step::ReadLog, taskfile)
    }

    /// SET FEATURES: device-initiated power management on, or off.
    pub(crate) fn turn_dipm(&self, on: bool) -> Result<(), Error> {
        let taskfile = Taskfile {
            command: SET_FEATURES,
            features: if on { 0x10 } else { 0x90 },
            count: 3,
            ..Taskfile::default()
        };
        self.own(Step::SetFeatures, taskfile, QUICK_US)
    }
}
