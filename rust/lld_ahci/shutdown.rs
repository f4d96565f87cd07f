// SPDX-License-Identifier: GPL-2.0
//! Power may go away: the write cache is flushed, and the drive parks (ACS-4 sections 7.9, 7.48).

use crate::command::{self, STANDBY_IMMEDIATE};
use crate::fis::Taskfile;
use crate::port::{Occupant, Port, State};
use crate::recover::News;
use crate::regs::{Reg, IS_TROUBLE};
use crate::step::Step;
use cell::sync::Ordering;
use hal::{Error, Mmio, Platform};

/// How long what is under way may take to finish.
const DRAIN_US: u64 = 5_000_000;
/// How long a flush, or parking, may take. TIMEOUT: the layer above grants a command as much; the
/// standard sets no bound.
const FLUSH_US: u64 = 30_000_000;
/// The pause between two looks.
const PAUSE_US: u64 = 500;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Flushes and parks the drive, if there is one that takes commands. What is under way may
    /// finish before; what does not is not issued again. Afterwards only [`hal::Controller::stop`]
    /// and `start` are of use.
    pub(crate) fn power_off(&self, state: &mut State) -> Result<(), Error> {
        let Occupant::Drive(about) = state.occupant else {
            return Ok(());
        };
        if self.flight.is_halted() {
            return Ok(());
        }
        self.let_finish(DRAIN_US);
        self.progress.at(Step::Halt);
        self.halt()?;
        match self.flight.issued.load(Ordering::SeqCst) {
            0 => self.run()?,
            // It still has something, and takes nothing else before that is over.
            _ => match self.renew(state)? {
                News::Nothing => {}
                _ => return Err(Error::Gone),
            },
        }
        let flushed = match about.id.write_cache {
            true => self.own(Step::Flush, command::flush(), FLUSH_US),
            false => Ok(()),
        };
        let parked = match flushed {
            // The list runs again only after a refusal.
            Ok(()) | Err(Error::Refused(_)) => {
                let taskfile = Taskfile {
                    command: STANDBY_IMMEDIATE,
                    ..Taskfile::default()
                };
                self.own(Step::Standby, taskfile, FLUSH_US)
            }
            Err(why) => Err(why),
        };
        flushed.and(parked)
    }

    /// Whether there is something to attend to, a register read.
    pub(crate) fn is_troubled(&self) -> bool {
        self.regs.read(Reg::Is) & IS_TROUBLE != 0
    }

    /// Waits until the device has nothing, or something to complain of, for `limit_us` at most.
    pub(crate) fn let_finish(&self, limit_us: u64) {
        let start = self.platform.now_us();
        while self.flight.issued.load(Ordering::SeqCst) != 0 {
            let left = self.regs.read(Reg::Sact) | self.regs.read(Reg::Ci);
            let waited = self.platform.now_us().saturating_sub(start);
            // All ones are 32 queued commands as well as an absent device, which is trouble.
            if left == 0 || waited >= limit_us || self.is_troubled() {
                return;
            }
            self.platform.sleep_us(PAUSE_US);
        }
    }
}
