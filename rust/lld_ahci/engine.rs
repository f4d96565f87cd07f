// SPDX-License-Identifier: GPL-2.0
//! Starting and stopping the command list and the FIS receiver (AHCI 1.3.1 section 10.3), with the
//! waits that it bounds.

use crate::port::Port;
use crate::regs::{
    Reg, CMD_CLO, CMD_CR, CMD_FR, CMD_FRE, CMD_ST, STATUS_BSY, STATUS_DF, STATUS_DRQ, STATUS_ERR,
};
use crate::step::Step;
use crate::{fis, regs};
use cell::sync::Ordering;
use hal::{Error, Mmio, Platform};

/// How long `PxCMD.CR` and `FR` may stay set after `ST` and `FRE` are cleared (10.3.1, 10.3.2), and
/// `CLO` after it is set.
const STOP_US: u64 = 500_000;
/// The first and the longest pause between two looks at a register, in microseconds.
const PAUSE_US: (u64, u64) = (20, 2_000);

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Sleeps until `reg & mask == value`, for `limit_us` at most.
    pub(crate) fn wait(&self, reg: Reg, mask: u32, value: u32, limit_us: u64) -> Result<(), Error> {
        let start = self.platform.now_us();
        let mut pause = PAUSE_US.0;
        loop {
            // The clock before the register: a late wake-up is not the device's fault.
            let waited = self.platform.now_us().saturating_sub(start);
            if self.regs.get(reg)? & mask == value {
                return Ok(());
            }
            if waited >= limit_us {
                return Err(Error::Timeout);
            }
            self.platform.sleep_us(pause);
            pause = pause.saturating_mul(2).min(PAUSE_US.1);
        }
    }

    /// Nothing more is issued, and what the device has finished is kept: once the list is stopped,
    /// nobody can tell it from what it has not.
    pub(crate) fn settle(&self) {
        if !self.flight.halt() {
            return;
        }
        let issued = self.flight.issued.load(Ordering::SeqCst);
        if issued == 0 {
            return;
        }
        let (sdb, rfis) = self.memory.fises();
        let answered = self.flight.answered.load(Ordering::Relaxed);
        let left = match self.flight.has_unqueued() {
            true if answered || fis::ends_command(rfis) => self.unqueued_left(issued),
            false if sdb != 0 => self.regs.read(Reg::Sact),
            // Without a word from the drive a register says no more than that it has not heard of
            // them: what was written to it may have got lost.
            _ => issued,
        };
        // Afterwards: until then it said the truth.
        let left = if self.is_running() { left } else { issued };
        self.flight.judge(issued & !left, Ok(()));
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
    fn unqueued_left(&self, issued: u32) -> u32 {
        let ci = self.regs.read(Reg::Ci);
        let (_, rfis) = self.memory.fises();
        let status = self.regs.read(Reg::Tfd) & (STATUS_ERR | STATUS_DF);
        match fis::is_error(rfis) || status != 0 {
            true => issued,
            false => ci,
        }
    }

    /// Stops the command list. After `Ok` no command is with the device.
    pub(crate) fn halt(&self) -> Result<(), Error> {
        self.settle();
        self.stop_list()
    }

    fn stop_list(&self) -> Result<(), Error> {
        self.regs.change_cmd(CMD_ST, 0)?;
        let stopped = || self.wait(Reg::Cmd, CMD_CR, 0, STOP_US);
        match stopped() {
            Err(Error::Timeout) => {}
            waited => return waited,
        }
        if self.plan.cap.has_clo() {
            // Some HBAs wait for a busy drive.
            match self.override_busy().and_then(|()| stopped()) {
                Err(Error::Timeout) => {}
                waited => return waited,
            }
        }
        // It is hung: the drive may be reset all the same (10.4.2).
        self.pulse()?;
        stopped()
    }

    /// `PxCMD.CLO`: BSY and DRQ are cleared whatever the drive says (3.3.7).
    fn override_busy(&self) -> Result<(), Error> {
        self.regs.change_cmd(0, CMD_CLO)?;
        self.wait(Reg::Cmd, CMD_CLO, 0, STOP_US)
    }

    /// Stops the FIS receiver too: then the port touches no memory. A drive that has not finished
    /// everything is reset, lest it goes on when the port does.
    pub(crate) fn put_out(&self) -> Result<(), Error> {
        self.regs.write(Reg::Ie, 0);
        self.halt()?;
        let issued = self.flight.issued.load(Ordering::SeqCst) != 0;
        if issued || self.unanswered.load(Ordering::Relaxed) {
            self.pulse()?;
        }
        self.regs.change_cmd(CMD_FRE, 0)?;
        self.wait(Reg::Cmd, CMD_FR, 0, STOP_US)?;
        // Zeroes would have said the same of a port that runs.
        self.regs.are_there()
    }

    /// Gives a stopped port its memory, and lets it receive FISes.
    pub(crate) fn receive(&self) -> Result<(), Error> {
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
    pub(crate) fn run(&self) -> Result<(), Error> {
        self.progress.at(Step::Run);
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
    pub(crate) fn run_again(&self) -> Result<(), Error> {
        self.progress.at(Step::Halt);
        self.stop_list()?;
        self.run()
    }

    /// The port is the data path's: nothing of what the control path did is announced to it.
    pub(crate) fn open(&self) {
        self.memory.clear_sdb();
        self.memory.clear_rfis();
        // What was missed was mastered.
        let _ = self.missed.take();
        self.flight.resume();
    }

    /// Whether the link is up, a register read.
    pub(crate) fn has_link(&self) -> Result<bool, Error> {
        Ok(self.regs.get(Reg::Ssts)? & 0xf == regs::DET_READY)
    }
}
