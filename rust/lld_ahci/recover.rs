// SPDX-License-Identifier: GPL-2.0
//! Recovery from errors that the device or the link reported (AHCI 1.3.1 section 6.2, Serial ATA
//! 3.x section 13.6.2.4), with as little lost as can be: only what the device names as failed
//! fails, everything else is issued again.
//!
//! ```text
//!  error of a queued command --> restart the list --> log 10h --> fails the one, issues the others
//!                                                        |        again
//!                                                        | no answer, or no sense in it
//!                                                        v
//!  of unqueued ones: one --> fails it                  COMRESET --> all one by one, not queued,
//!                   several ------------------------------------^  each with its own outcome
//!                 (and what it has too many errors for is taken from the drive: `decline`)
//!  link or bus --> COMRESET --> same drive --> all again; the third time in short order one by one
//!                     +--> nobody, or another drive: everything fails
//! ```
//! What this ladder does not master is for the layer above: it fails everything and starts the port
//! from scratch, or gives it up.

use crate::command;
use crate::decline::{Taken, Trouble};
use crate::fis::Taskfile;
use crate::link::GRACE_US;
use crate::log;
use crate::port::{Occupant, Port, State};
use crate::regs::{Reg, IS_BROKEN, IS_HOTPLUG, IS_IF, IS_TFE, STATUS_DF, STATUS_ERR};
use crate::status;
use crate::step::Step;
use cell::sync::Ordering;
use hal::{CmdError, Deadline, Error, Mmio, Outcome, Platform};

/// What [`crate::AhciController::attend`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing that matters.
    Nothing,
    /// There were errors; what failed has failed, everything else goes on.
    Recovered,
    /// The drive is gone: its disk is to be removed. What it had has failed, and what is issued to
    /// it will not be answered.
    Left,
    /// Another drive is in its place: the disk is to be removed, and the port made anew.
    Exchanged,
    /// A drive came to a port that has none, or none that is served: the port is to be made anew.
    Came,
}

/// How long a command that is issued alone may take: what the layer above grants one, too.
const ALONE_US: u64 = 30_000_000;
/// Resets of the link after which commands are issued one by one, if each came so soon after the
/// last.
const STRIKES: u32 = 3;
const SOON_US: u64 = 10_000_000;
/// Commands without an answer, of those that are issued one by one, after which the drive is not
/// tried any further.
const PATIENCE: u32 = 2;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Sees to what happened. After `Ok` the port is as it was, or its drive is gone.
    pub(crate) fn attend(&self, state: &mut State) -> Result<News, Error> {
        let status = self.regs.get(Reg::Is)?;
        let changed = status & IS_HOTPLUG != 0 || self.regs.has_changed();
        let link = self.has_link()?;
        let served = match state.occupant {
            Occupant::Drive(_) => !self.flight.is_halted(),
            _ => false,
        };
        if !served {
            self.forget_errors();
            return Ok(if link { News::Came } else { News::Nothing });
        }
        if !self.is_running() {
            // Somebody has reset the HBA: everything is to be set up anew.
            return Err(Error::Fatal);
        }
        if !link && !self.wait_link(GRACE_US)? {
            return self.depart(News::Left);
        }
        let failed = self.regs.get(Reg::Tfd)? & (STATUS_ERR | STATUS_DF) != 0;
        if changed || !link || status & IS_BROKEN != 0 {
            let issued = self.quiesce()?;
            if status & IS_IF != 0 {
                self.weigh(state, Trouble::Link, self.generation())?;
            }
            return self.reset_link(state, issued);
        }
        if status & IS_TFE != 0 || failed {
            return self.recover(state);
        }
        self.forget_errors();
        Ok(News::Nothing)
    }

    /// Stops the list; returns what the device has not finished.
    fn quiesce(&self) -> Result<u32, Error> {
        self.progress.at(Step::Halt);
        self.halt()?;
        Ok(self.flight.issued.load(Ordering::SeqCst))
    }

    /// The device reported an error of a command.
    fn recover(&self, state: &mut State) -> Result<News, Error> {
        let unqueued = self.flight.has_unqueued();
        let tfd = self.regs.get(Reg::Tfd)?;
        let issued = self.quiesce()?;
        if self.run().is_err() {
            return self.reset_link(state, issued);
        }
        if unqueued && issued.is_power_of_two() {
            let outcome = match status::outcome(tfd) {
                Ok(()) => Err(CmdError::Io.again()),
                failed => failed,
            };
            self.flight.judge(issued, outcome);
            self.end_failure()?;
            // CAST: the error byte.
            return self.blame(state, status::trouble((tfd >> 8) as u8), 0);
        }
        if unqueued {
            return self.one_by_one(state, issued);
        }
        let named = match self.read_log(log::NCQ_ERROR) {
            Ok(sector) => log::ncq_error(&sector),
            Err(Error::Gone) => return Err(Error::Gone),
            Err(_) => None,
        };
        let Some((bit, error)) = named.and_then(|error| Some((bit_of(error.tag, issued)?, error)))
        else {
            // Only the log or a reset ends the device's error state.
            return match self.renew(state)? {
                News::Nothing => self.one_by_one(state, issued),
                gone => Ok(gone),
            };
        };
        let failed = status::failure(error.status, error.error);
        self.flight.judge(bit, Err(failed));
        self.blame(state, status::trouble(error.error), issued & !bit)
    }

    /// Goes on with `issued` after an error of the drive, without what that costs it.
    fn blame(
        &self,
        state: &mut State,
        trouble: Option<Trouble>,
        issued: u32,
    ) -> Result<News, Error> {
        let taken = match trouble {
            Some(trouble) => self.weigh(state, trouble, self.generation())?,
            None => None,
        };
        match taken {
            None | Some(Taken::Sleep) => self.go_on(issued),
            Some(Taken::Queue) => self.one_by_one(state, issued),
            Some(Taken::Speed(_)) => match self.renew(state)? {
                News::Nothing => self.go_on(issued),
                gone => Ok(gone),
            },
        }
    }

    /// The link or the bus failed, or the drive is not ready: resets the link.
    fn reset_link(&self, state: &mut State, issued: u32) -> Result<News, Error> {
        match self.renew(state)? {
            News::Nothing => {}
            gone => return Ok(gone),
        }
        let now = self.platform.now_us();
        state.strikes = match now.saturating_sub(state.struck_us) < SOON_US {
            true => state.strikes.saturating_add(1),
            false => 1,
        };
        state.struck_us = now;
        let unqueued = self.flight.has_unqueued() && issued != 0;
        match unqueued || state.strikes >= STRIKES {
            true => self.one_by_one(state, issued),
            false => self.go_on(issued),
        }
    }

    /// COMRESET, and is it the same drive? Then its command list runs, with nothing issued.
    pub(crate) fn renew(&self, state: &State) -> Result<News, Error> {
        let Occupant::Drive(before) = state.occupant else {
            return Err(Error::Invalid);
        };
        self.progress.at(Step::Halt);
        self.halt()?;
        let now = match self.recognize(true)? {
            Occupant::Drive(now) => self.as_promised(&before.id, now)?,
            Occupant::Nobody => return self.depart(News::Left),
            Occupant::Refused(_) => return self.depart(News::Exchanged),
        };
        match now.id.is_same(&before.id) {
            true => Ok(News::Nothing),
            false => self.depart(News::Exchanged),
        }
    }

    /// Issues `queued` again, and then what is deferred.
    fn go_on(&self, queued: u32) -> Result<News, Error> {
        self.open();
        if queued != 0 {
            self.issue_queued(queued);
        } else {
            self.give_turns();
        }
        Ok(News::Recovered)
    }

    /// Issues the commands in `issued` again, one by one and not queued, and waits for each.
    fn one_by_one(&self, state: &State, issued: u32) -> Result<News, Error> {
        let mut left = issued;
        let mut lost = 0u32;
        let mut last = Ok(());
        while left != 0 {
            self.progress.at(Step::OneByOne);
            // CAST: below 32.
            let slot = left.trailing_zeros() as u8;
            let bit = left & left.wrapping_neg();
            let outcome = match self.alone(slot) {
                Ok(outcome) => outcome,
                Err(why) if why == Error::Gone || lost >= PATIENCE => return Err(why),
                // It takes the link along; those after it get their chance.
                Err(why) => {
                    lost = lost.saturating_add(1);
                    match self.renew(state)? {
                        News::Nothing if why == Error::Timeout => Err(CmdError::Timeout.again()),
                        News::Nothing => Err(CmdError::Io.again()),
                        gone => return Ok(gone),
                    }
                }
            };
            self.flight.judge(bit, outcome);
            left &= !bit;
            last = outcome;
        }
        if last.is_err() {
            self.end_failure()?;
        }
        self.go_on(0)
    }

    /// The outcome of the command in `slot`, issued alone.
    fn alone(&self, slot: u8) -> Result<Outcome, Error> {
        let table = self.memory.table(slot).ok_or(Error::Invalid)?;
        let taskfile = command::singly(Taskfile::decode(table.read_cfis()));
        table.write_cfis(taskfile.encode());
        match self.run_alone(slot, Deadline::after(ALONE_US)) {
            Ok(()) => Ok(Ok(())),
            Err(Error::Refused(tfd)) => Ok(match status::outcome(u32::from(tfd)) {
                Ok(()) => Err(CmdError::Io.again()),
                failed => failed,
            }),
            Err(why) => Err(why),
        }
    }

    /// The drive is gone: everything that it had, or was to have, fails.
    fn depart(&self, news: News) -> Result<News, Error> {
        self.departed.store(true, Ordering::SeqCst);
        self.put_out()?;
        let deferred = self.flight.turns.load(Ordering::SeqCst);
        // CAST: the low half.
        let deferred = deferred as u32;
        let all = deferred | self.flight.issued.fetch_or(deferred, Ordering::SeqCst);
        self.flight.release(all);
        self.flight.judge(all, Err(CmdError::Gone.finally()));
        self.forget_errors();
        Ok(news)
    }
}

/// The bit of `tag`, if it is one of `issued`.
fn bit_of(tag: u8, issued: u32) -> Option<u32> {
    let bit = 1u32.checked_shl(u32::from(tag))?;
    (issued & bit != 0).then_some(bit)
}
