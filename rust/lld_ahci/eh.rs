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
//!                 (and what it has too many errors for is taken from the drive: see below)
//!  link or bus --> COMRESET --> same drive --> all again; the third time in short order one by one
//!                     +--> nobody, or another drive: everything fails
//! ```
//! The NCQ Command Error log (10h, ACS-4 section 9.14) says which queued command failed. What this
//! ladder does not master is for the layer above: it fails everything and starts the port from
//! scratch, or gives it up.
//!
//! # A drive that fails often
//! It loses its queue first, then speed of its link, a generation at a time, and has them again
//! when it is bound anew. What counts, and how often is too often, is libata's (Linux 7.3,
//! drivers/ata/libata-eh.c, rules 4 and 5 of `ata_eh_speed_down_verdict`): more than three errors
//! in ten minutes. Its rules for drives that have not moved data yet, and for PIO, are not taken
//! over.

use cell::sync::Ordering;
use core::fmt;
use hal::{CmdError, Deadline, Error, Mmio, Outcome, Platform};

use crate::cmd::{self, Taskfile, AMNF, ICRC, IDNF, SECTOR_BYTES, UNC};
use crate::port::{History, Occupant, Port, State, Step, Taken, Trouble, ERRORS};
use crate::regs::{
    Reg, IS_BROKEN, IS_HOTPLUG, IS_IF, IS_TFE, SCTL_DET, SPD, STATUS_DF, STATUS_ERR,
};

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

/// How long a link that was lost may take to come back by itself, before its drive counts as gone.
const GRACE_US: u64 = 500_000;
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
            let outcome = match cmd::outcome(tfd) {
                Ok(()) => Err(CmdError::Io.again()),
                failed => failed,
            };
            self.flight.judge(issued, outcome);
            self.end_failure()?;
            // CAST: the error byte.
            return self.blame(state, trouble((tfd >> 8) as u8), 0);
        }
        if unqueued {
            return self.one_by_one(state, issued);
        }
        let named = match self.read_log(NCQ_ERROR) {
            Ok(sector) => ncq_error(&sector),
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
        let failed = cmd::failure(error.status, error.error);
        self.flight.judge(bit, Err(failed));
        self.blame(state, trouble(error.error), issued & !bit)
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
        let taskfile = cmd::singly(Taskfile::decode(table.read_cfis()));
        table.write_cfis(taskfile.encode());
        match self.run_alone(slot, Deadline::after(ALONE_US)) {
            Ok(()) => Ok(Ok(())),
            Err(Error::Refused(tfd)) => Ok(match cmd::outcome(u32::from(tfd)) {
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

/// NCQ Command Error log (9.14).
const NCQ_ERROR: u8 = 0x10;

/// The queued command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NcqError {
    tag: u8,
    status: u8,
    error: u8,
}

/// Decodes log 10h. `None`: its check sum is wrong, or it is about no queued command.
fn ncq_error(sector: &[u8; SECTOR_BYTES]) -> Option<NcqError> {
    let sum = sector.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let [first, _, status, error, ..] = *sector;
    // NQ: the error is of a command that was not queued.
    if sum != 0 || first & 0x80 != 0 {
        return None;
    }
    Some(NcqError {
        tag: first & 0x1f,
        status,
        error,
    })
}

/// How long an error counts, in microseconds: ten minutes.
const WINDOW_US: u64 = 600_000_000;
/// More of a kind, or of kinds that point to the same, are too many.
const MANY: usize = 3;
/// Likewise, of those that rather speak against the drive than against its link.
const VERY_MANY: usize = 6;

/// What `error` says of queue and link, as `ata_eh_categorize_error` sees it.
fn trouble(error: u8) -> Option<Trouble> {
    match error {
        error if error & ICRC != 0 => Some(Trouble::Link),
        error if error & (UNC | AMNF | IDNF) != 0 => None,
        _ => Some(Trouble::Drive),
    }
}

impl History {
    /// Adds one that came at `now_us`; what is to be taken for it from a drive with a queue, if it
    /// is `queued`, and a link of `generation`.
    fn add(
        &mut self,
        now_us: u64,
        trouble: Trouble,
        queued: bool,
        generation: u32,
    ) -> Option<Taken> {
        if let Some(place) = self.errors.get_mut(self.next) {
            *place = Some((now_us, trouble));
        }
        self.next = self.next.wrapping_add(1) & (ERRORS - 1);
        let since = now_us.saturating_sub(WINDOW_US);
        let count = |wanted: &[Trouble]| {
            let late = self.errors.iter().flatten();
            late.filter(|(at, trouble)| *at >= since && wanted.contains(trouble))
                .count()
        };
        let queue = count(&[Trouble::Silence, Trouble::Drive]) > MANY;
        let link = count(&[Trouble::Link, Trouble::Silence]) > MANY;
        let drive = count(&[Trouble::Drive]) > VERY_MANY;
        let taken = if queued && queue {
            Taken::Queue
        } else if generation > 1 && (link || drive) {
            Taken::Speed(generation.saturating_sub(1))
        } else {
            return None;
        };
        // Judged anew from here on.
        self.errors = Default::default();
        Some(taken)
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// The generation of the link at this moment; 0: there is none.
    pub(crate) fn generation(&self) -> u32 {
        let ssts = self.regs.get(Reg::Ssts).unwrap_or(0);
        (ssts & SPD) >> SPD.trailing_zeros()
    }

    /// Notes `trouble` with a link that was of `generation`, and takes from the drive what it has
    /// too much of. Speed goes with the next reset of the link.
    pub(crate) fn weigh(
        &self,
        state: &mut State,
        trouble: Trouble,
        generation: u32,
    ) -> Result<Option<Taken>, Error> {
        let Occupant::Drive(about) = state.occupant else {
            return Ok(None);
        };
        let queued = about.dialect.ncq && !self.is_unqueued();
        let now = self.platform.now_us();
        let taken = state.history.add(now, trouble, queued, generation);
        match taken {
            None => return Ok(None),
            Some(Taken::Sleep) => self.power.give_up(),
            Some(Taken::Queue) => self.unqueued.store(true, Ordering::Relaxed),
            Some(Taken::Speed(limit)) => {
                self.generation_max.store(limit, Ordering::Relaxed);
                let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
                self.regs.write(Reg::Sctl, self.limited(sctl));
            }
        }
        if let Some(taken) = taken {
            self.tell_taken(taken);
        }
        Ok(taken)
    }

    /// The operator is told of the last one.
    pub(crate) fn tell_taken(&self, taken: Taken) {
        let _ = self.taken.take();
        let _ = self.taken.put(taken);
    }

    /// `PxSCTL` as `sctl`, with the limit of the link's speed, if there is one.
    pub(crate) fn limited(&self, sctl: u32) -> u32 {
        match self.generation_max.load(Ordering::Relaxed) {
            0 => sctl,
            limit => (sctl & !SPD) | (limit << SPD.trailing_zeros()),
        }
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Taken::Queue => f.write_str(
                "too many errors: its commands are queued no more (NCQ), until it is bound anew",
            ),
            Taken::Sleep => f.write_str(
                "it is lost when its link is given leave to sleep: that stays awake, until it is \
                 bound anew",
            ),
            Taken::Speed(generation) => write!(
                f,
                "too many errors: its link is limited to {} Gbit/s, until it is bound anew",
                match generation {
                    1 => "1.5",
                    _ => "3.0",
                }
            ),
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use Trouble::{Drive, Link, Silence};

    use super::*;
    use crate::cmd::ABRT;

    const MINUTE: u64 = 60_000_000;

    fn all(queued: bool, generation: u32, troubles: &[(u64, Trouble)]) -> Vec<Option<Taken>> {
        let mut history = History::default();
        let each = troubles.iter();
        each.map(|(at, trouble)| history.add(at * MINUTE, *trouble, queued, generation))
            .collect()
    }

    #[test]
    fn the_fourth_in_ten_minutes_is_one_too_many() {
        for (trouble, taken) in [
            (Link, Taken::Speed(2)),
            (Silence, Taken::Queue),
            (Drive, Taken::Queue),
        ] {
            let soon: Vec<_> = (0..4).map(|at| (at, trouble)).collect();
            let expected = [None, None, None, Some(taken)];
            assert_eq!(all(true, 3, &soon), expected, "{trouble:?}");
            let late: Vec<_> = (0..16).map(|at| (at * 4, trouble)).collect();
            assert_eq!(all(true, 3, &late), [None; 16], "{trouble:?}");
        }
        let mixed = [(0, Silence), (1, Drive), (2, Silence), (3, Drive)];
        assert_eq!(all(true, 3, &mixed)[3], Some(Taken::Queue));
        let mixed = [(0, Link), (1, Drive), (2, Link), (3, Drive)];
        assert_eq!(
            all(true, 3, &mixed)[3],
            None,
            "two of a kind, and two of another"
        );
    }

    #[test]
    fn without_a_queue_it_is_speed() {
        let silence: Vec<_> = (0..4).map(|at| (at, Silence)).collect();
        assert_eq!(all(false, 3, &silence)[3], Some(Taken::Speed(2)));
        assert_eq!(all(false, 2, &silence)[3], Some(Taken::Speed(1)));
        let drive: Vec<_> = (0..7).map(|at| (at, Drive)).collect();
        let mut expected = [None; 7];
        expected[6] = Some(Taken::Speed(2));
        assert_eq!(all(false, 3, &drive), expected);
    }

    #[test]
    fn the_slowest_link_stays_as_it_is() {
        for generation in [0, 1] {
            let troubles: Vec<_> = (0..40).map(|at| (at / 8, Link)).collect();
            assert!(all(false, generation, &troubles)
                .iter()
                .all(Option::is_none));
        }
    }

    #[test]
    fn after_a_verdict_it_is_judged_anew() {
        let troubles: Vec<_> = (0..8).map(|at| (at / 2, Silence)).collect();
        let taken = all(true, 3, &troubles);
        let expected = [None, None, None, Some(Taken::Queue)];
        assert_eq!(taken[..4], expected);
        assert_eq!(taken[4..], expected);
    }

    #[test]
    fn medium_and_address_speak_neither_against_queue_nor_link() {
        assert_eq!(trouble(ICRC | ABRT), Some(Trouble::Link));
        assert_eq!(trouble(ICRC | UNC), Some(Trouble::Link));
        assert_eq!([UNC, AMNF, IDNF, UNC | ABRT].map(trouble), [None; 4]);
        assert_eq!([0, ABRT].map(trouble), [Some(Trouble::Drive); 2]);
    }

    #[test]
    fn what_is_taken_is_said() {
        assert!(Taken::Queue.to_string().contains("NCQ"));
        assert!(Taken::Speed(1).to_string().contains("1.5 Gbit/s"));
        assert!(Taken::Speed(2).to_string().contains("3.0 Gbit/s"));
    }

    fn sector(bytes: &[u8]) -> [u8; SECTOR_BYTES] {
        let mut sector = [0; SECTOR_BYTES];
        sector[..bytes.len()].copy_from_slice(bytes);
        let sum = sector.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        sector[511] = 0u8.wrapping_sub(sum);
        sector
    }

    #[test]
    fn log_10h_names_a_tag_or_nothing() {
        let named = NcqError {
            tag: 31,
            status: 0x41,
            error: 0x40,
        };
        assert_eq!(ncq_error(&sector(&[0x7f, 0, 0x41, 0x40])), Some(named));
        assert_eq!(ncq_error(&sector(&[0x9f, 0, 0x41, 0x40])), None, "NQ");
        let mut wrong = sector(&[0x1f, 0, 0x41, 0x40]);
        wrong[300] = 1;
        assert_eq!(ncq_error(&wrong), None, "check sum");
    }
}
