// SPDX-License-Identifier: GPL-2.0
//! The drive to oneself: what it has finishes first, what comes waits.

use crate::port::{Port, State};
use crate::recover::News;
use crate::regs::Reg;
use crate::step::Step;
use cell::sync::Ordering;
use hal::{Error, Mmio, Platform};

/// How long what the drive has may take to finish: what the layer above grants a command, too.
const FINISH_US: u64 = 30_000_000;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Has `work` done with the command list running, nothing with the device, and the queue, if
    /// there is one, at rest; then the port is the data path's again. Sleeps.
    ///
    /// An error: the port was stopped, and has to be started again. [`Error::Gone`], too: it was
    /// not running.
    pub(crate) fn solo<R>(
        &self,
        state: &mut State,
        work: impl FnOnce(&mut State) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if self.flight.is_halted() {
            return Err(Error::Gone);
        }
        self.let_finish(FINISH_US);
        if self.is_troubled() {
            // First what the port has called for, or is about to: its errors are not this work's.
            match self.attend(state)? {
                News::Nothing | News::Recovered => self.let_finish(FINISH_US),
                _ => return Err(Error::Gone),
            }
        }
        let issued = self.flight.issued.load(Ordering::SeqCst);
        if issued != 0 && (self.regs.read(Reg::Sact) | self.regs.read(Reg::Ci)) & issued != 0 {
            self.progress.at(Step::LetFinish);
            self.miss(issued);
        }
        self.settle();
        if self.flight.issued.load(Ordering::SeqCst) != 0 {
            self.put_out()?;
            return Err(Error::Timeout);
        }
        let done = match work(state) {
            Ok(done) => done,
            Err(why) => {
                // Memory that it was given is the caller's again.
                self.put_out()?;
                return Err(why);
            }
        };
        self.open();
        self.give_turns();
        Ok(done)
    }
}
