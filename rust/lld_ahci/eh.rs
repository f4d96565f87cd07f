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
use crate::port::{ErrorCategory, ErrorRing, Occupant, Port, PortStep, SpeedDown, State, ERRORS};
use crate::regs::{
    Reg, IS_BUS_ERROR, IS_HOTPLUG, IS_IF, IS_TFE, SCTL_DET, SPD, STATUS_DF, STATUS_ERR,
};

/// What [`crate::AhciController::run_eh`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EhOutcome {
    /// Nothing that matters.
    Nothing,
    /// There were errors; what failed has failed, everything else goes on.
    Recovered,
    /// The drive is gone: its disk is to be removed. What it had has failed, and what is issued to
    /// it will not be answered.
    Detached,
    /// Another drive is in its place: the disk is to be removed, and the port made anew.
    Replaced,
    /// A drive came to a port that has none, or none that is served: the port is to be made anew.
    Attached,
}

/// How long a link that was lost may take to come back by itself, before its drive counts as gone.
const GRACE_US: u64 = 500_000;
/// How long a command that is issued alone may take: what the layer above grants one, too.
const ALONE_US: u64 = 30_000_000;
/// Resets of the link after which commands are issued one by one, if each came so soon after the
/// last.
const LINK_RESETS_MAX: u32 = 3;
const LINK_RESETS_WINDOW_US: u64 = 10_000_000;
/// Commands without an answer, of those that are issued one by one, after which the drive is not
/// tried any further.
const LOST_MAX: u32 = 2;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Handles the errors and hot-plug events that the registers report. After `Ok` the port is as
    /// it was, or its drive is gone.
    pub(crate) fn run_eh(&self, state: &mut State) -> Result<EhOutcome, Error> {
        let status = self.regs.get(Reg::Is)?;
        let changed = status & IS_HOTPLUG != 0 || self.regs.has_changed();
        let link = self.has_link()?;
        let served = match state.occupant {
            Occupant::Drive(_) => !self.active_tags.is_stopped(),
            _ => false,
        };
        if !served {
            self.forget_errors();
            return Ok(if link {
                EhOutcome::Attached
            } else {
                EhOutcome::Nothing
            });
        }
        if !self.is_running() {
            // Somebody has reset the HBA: everything is to be set up anew.
            return Err(Error::Fatal);
        }
        if !link && !self.wait_link(GRACE_US)? {
            return self.detach(EhOutcome::Detached);
        }
        let failed = self.regs.get(Reg::Tfd)? & (STATUS_ERR | STATUS_DF) != 0;
        if changed || !link || status & IS_BUS_ERROR != 0 {
            let issued = self.stop_for_eh()?;
            if status & IS_IF != 0 {
                self.speed_down(state, ErrorCategory::Bus, self.generation())?;
            }
            return self.reset_link(state, issued);
        }
        if status & IS_TFE != 0 || failed {
            return self.recover(state);
        }
        self.forget_errors();
        Ok(EhOutcome::Nothing)
    }

    /// Stops the list; returns what the device has not finished.
    fn stop_for_eh(&self) -> Result<u32, Error> {
        self.progress.at(PortStep::Halt);
        self.stop_engine()?;
        Ok(self.active_tags.issued.load(Ordering::SeqCst))
    }

    /// The device reported an error of a command.
    fn recover(&self, state: &mut State) -> Result<EhOutcome, Error> {
        let unqueued = self.active_tags.has_non_ncq();
        let tfd = self.regs.get(Reg::Tfd)?;
        let issued = self.stop_for_eh()?;
        if self.start_engine().is_err() {
            return self.reset_link(state, issued);
        }
        if unqueued && issued.is_power_of_two() {
            let outcome = match cmd::outcome(tfd) {
                Ok(()) => Err(CmdError::Io.retryable()),
                failed => failed,
            };
            self.active_tags.eh_complete(issued, outcome);
            self.clear_device_error()?;
            // CAST: the error byte.
            return self.after_device_error(state, categorize((tfd >> 8) as u8), 0);
        }
        if unqueued {
            return self.reissue_one_by_one(state, issued);
        }
        let named = match self.read_log(NCQ_ERROR) {
            Ok(sector) => ncq_error(&sector),
            Err(Error::Gone) => return Err(Error::Gone),
            Err(_) => None,
        };
        let Some((bit, error)) = named.and_then(|error| Some((bit_of(error.tag, issued)?, error)))
        else {
            // Only the log or a reset ends the device's error state.
            return match self.reset_and_revalidate(state)? {
                EhOutcome::Nothing => self.reissue_one_by_one(state, issued),
                gone => Ok(gone),
            };
        };
        let failed = cmd::failure(error.status, error.error);
        self.active_tags.eh_complete(bit, Err(failed));
        self.after_device_error(state, categorize(error.error), issued & !bit)
    }

    /// Issues `issued` again after an error of the device, sped down if there were too many.
    fn after_device_error(
        &self,
        state: &mut State,
        category: Option<ErrorCategory>,
        issued: u32,
    ) -> Result<EhOutcome, Error> {
        let taken = match category {
            Some(category) => self.speed_down(state, category, self.generation())?,
            None => None,
        };
        match taken {
            None | Some(SpeedDown::LpmOff) => self.reissue(issued),
            Some(SpeedDown::NcqOff) => self.reissue_one_by_one(state, issued),
            Some(SpeedDown::Speed(_)) => match self.reset_and_revalidate(state)? {
                EhOutcome::Nothing => self.reissue(issued),
                gone => Ok(gone),
            },
        }
    }

    /// The link or the bus failed, or the drive is not ready: resets the link.
    fn reset_link(&self, state: &mut State, issued: u32) -> Result<EhOutcome, Error> {
        match self.reset_and_revalidate(state)? {
            EhOutcome::Nothing => {}
            gone => return Ok(gone),
        }
        let now = self.platform.now_us();
        state.link_resets = match now.saturating_sub(state.link_reset_us) < LINK_RESETS_WINDOW_US {
            true => state.link_resets.saturating_add(1),
            false => 1,
        };
        state.link_reset_us = now;
        let unqueued = self.active_tags.has_non_ncq() && issued != 0;
        match unqueued || state.link_resets >= LINK_RESETS_MAX {
            true => self.reissue_one_by_one(state, issued),
            false => self.reissue(issued),
        }
    }

    /// COMRESET, and is it the same drive? Then its command list runs, with nothing issued.
    pub(crate) fn reset_and_revalidate(&self, state: &State) -> Result<EhOutcome, Error> {
        let Occupant::Drive(before) = state.occupant else {
            return Err(Error::Invalid);
        };
        self.progress.at(PortStep::Halt);
        self.stop_engine()?;
        let now = match self.probe_drive(true)? {
            Occupant::Drive(now) => self.revalidate(&before.id, now)?,
            Occupant::Nobody => return self.detach(EhOutcome::Detached),
            Occupant::Refused(_) => return self.detach(EhOutcome::Replaced),
        };
        match now.id.is_same(&before.id) {
            true => Ok(EhOutcome::Nothing),
            false => self.detach(EhOutcome::Replaced),
        }
    }

    /// Issues `queued` again, and then what is deferred.
    fn reissue(&self, queued: u32) -> Result<EhOutcome, Error> {
        self.resume_data_path();
        if queued != 0 {
            self.issue_ncq(queued);
        } else {
            self.issue_deferred();
        }
        Ok(EhOutcome::Recovered)
    }

    /// Issues the commands in `issued` again, one by one and not queued, and waits for each.
    fn reissue_one_by_one(&self, state: &State, issued: u32) -> Result<EhOutcome, Error> {
        let mut left = issued;
        let mut lost = 0u32;
        let mut last = Ok(());
        while left != 0 {
            self.progress.at(PortStep::OneByOne);
            // CAST: below 32.
            let slot = left.trailing_zeros() as u8;
            let bit = left & left.wrapping_neg();
            let outcome = match self.exec_non_ncq(slot) {
                Ok(outcome) => outcome,
                Err(why) if why == Error::Gone || lost >= LOST_MAX => return Err(why),
                // It takes the link along; those after it get their chance.
                Err(why) => {
                    lost = lost.saturating_add(1);
                    match self.reset_and_revalidate(state)? {
                        EhOutcome::Nothing if why == Error::Timeout => {
                            Err(CmdError::Timeout.retryable())
                        }
                        EhOutcome::Nothing => Err(CmdError::Io.retryable()),
                        gone => return Ok(gone),
                    }
                }
            };
            self.active_tags.eh_complete(bit, outcome);
            left &= !bit;
            last = outcome;
        }
        if last.is_err() {
            self.clear_device_error()?;
        }
        self.reissue(0)
    }

    /// The outcome of the command in `slot`, issued alone.
    fn exec_non_ncq(&self, slot: u8) -> Result<Outcome, Error> {
        let table = self.memory.table(slot).ok_or(Error::Invalid)?;
        let taskfile = cmd::to_non_ncq(Taskfile::decode(table.read_cfis()));
        table.write_cfis(taskfile.encode());
        match self.exec_polled(slot, Deadline::after(ALONE_US)) {
            Ok(()) => Ok(Ok(())),
            Err(Error::Refused(tfd)) => Ok(match cmd::outcome(u32::from(tfd)) {
                Ok(()) => Err(CmdError::Io.retryable()),
                failed => failed,
            }),
            Err(why) => Err(why),
        }
    }

    /// The drive is gone: everything that it had, or was to have, fails.
    fn detach(&self, news: EhOutcome) -> Result<EhOutcome, Error> {
        self.drive_gone.store(true, Ordering::SeqCst);
        self.stop_port()?;
        let deferred = self.active_tags.state.load(Ordering::SeqCst);
        // CAST: the low half.
        let deferred = deferred as u32;
        let all = deferred | self.active_tags.issued.fetch_or(deferred, Ordering::SeqCst);
        self.active_tags.undefer(all);
        self.active_tags
            .eh_complete(all, Err(CmdError::Gone.permanent()));
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
/// More errors than this of one category, or of categories with one cause, are too many.
const ERRORS_MAX: usize = 3;
/// More errors of the device than this cost speed of the link.
const DEVICE_ERRORS_MAX: usize = 6;

/// What `error` says of queue and link, as `ata_eh_categorize_error` sees it.
fn categorize(error: u8) -> Option<ErrorCategory> {
    match error {
        error if error & ICRC != 0 => Some(ErrorCategory::Bus),
        error if error & (UNC | AMNF | IDNF) != 0 => None,
        _ => Some(ErrorCategory::Device),
    }
}

impl ErrorRing {
    /// Adds an error of `category` at `now_us`. Returns how a drive with a link of `generation`,
    /// and with NCQ if it is `queued`, is sped down for it.
    fn add(
        &mut self,
        now_us: u64,
        category: ErrorCategory,
        queued: bool,
        generation: u32,
    ) -> Option<SpeedDown> {
        if let Some(place) = self.errors.get_mut(self.next) {
            *place = Some((now_us, category));
        }
        self.next = self.next.wrapping_add(1) & (ERRORS - 1);
        let since = now_us.saturating_sub(WINDOW_US);
        let count = |wanted: &[ErrorCategory]| {
            let late = self.errors.iter().flatten();
            late.filter(|(at, category)| *at >= since && wanted.contains(category))
                .count()
        };
        let queue = count(&[ErrorCategory::Timeout, ErrorCategory::Device]) > ERRORS_MAX;
        let link = count(&[ErrorCategory::Bus, ErrorCategory::Timeout]) > ERRORS_MAX;
        let drive = count(&[ErrorCategory::Device]) > DEVICE_ERRORS_MAX;
        let taken = if queued && queue {
            SpeedDown::NcqOff
        } else if generation > 1 && (link || drive) {
            SpeedDown::Speed(generation.saturating_sub(1))
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

    /// Records an error of `category` on a link of `generation`, and speeds the drive down if there
    /// were too many. A slower link comes with its next reset.
    pub(crate) fn speed_down(
        &self,
        state: &mut State,
        category: ErrorCategory,
        generation: u32,
    ) -> Result<Option<SpeedDown>, Error> {
        let Occupant::Drive(about) = state.occupant else {
            return Ok(None);
        };
        let queued = about.cmd_set.ncq && !self.is_ncq_off();
        let now = self.platform.now_us();
        let taken = state.ering.add(now, category, queued, generation);
        match taken {
            None => return Ok(None),
            Some(SpeedDown::LpmOff) => self.lpm.mark_failed(),
            Some(SpeedDown::NcqOff) => self.ncq_off.store(true, Ordering::Relaxed),
            Some(SpeedDown::Speed(limit)) => {
                self.generation_max.store(limit, Ordering::Relaxed);
                let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
                self.regs.write(Reg::Sctl, self.limited(sctl));
            }
        }
        if let Some(taken) = taken {
            self.report_speed_down(taken);
        }
        Ok(taken)
    }

    /// Keeps `taken` for the operator's log; the last one counts.
    pub(crate) fn report_speed_down(&self, taken: SpeedDown) {
        let _ = self.speed_down.take();
        let _ = self.speed_down.put(taken);
    }

    /// `PxSCTL` as `sctl`, with the limit of the link's speed, if there is one.
    pub(crate) fn limited(&self, sctl: u32) -> u32 {
        match self.generation_max.load(Ordering::Relaxed) {
            0 => sctl,
            limit => (sctl & !SPD) | (limit << SPD.trailing_zeros()),
        }
    }
}

impl fmt::Display for SpeedDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpeedDown::NcqOff => f.write_str(
                "too many errors: its commands are queued no more (NCQ), until it is bound anew",
            ),
            SpeedDown::LpmOff => f.write_str(
                "it is lost when its link is given leave to sleep: that stays awake, until it is \
                 bound anew",
            ),
            SpeedDown::Speed(generation) => write!(
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

    use ErrorCategory::{Bus, Device, Timeout};

    use super::*;
    use crate::cmd::ABRT;

    const MINUTE: u64 = 60_000_000;

    fn all(
        queued: bool,
        generation: u32,
        errors: &[(u64, ErrorCategory)],
    ) -> Vec<Option<SpeedDown>> {
        let mut history = ErrorRing::default();
        let each = errors.iter();
        each.map(|(at, category)| history.add(at * MINUTE, *category, queued, generation))
            .collect()
    }

    #[test]
    fn the_fourth_in_ten_minutes_is_one_too_many() {
        for (category, taken) in [
            (Bus, SpeedDown::Speed(2)),
            (Timeout, SpeedDown::NcqOff),
            (Device, SpeedDown::NcqOff),
        ] {
            let soon: Vec<_> = (0..4).map(|at| (at, category)).collect();
            let expected = [None, None, None, Some(taken)];
            assert_eq!(all(true, 3, &soon), expected, "{category:?}");
            let late: Vec<_> = (0..16).map(|at| (at * 4, category)).collect();
            assert_eq!(all(true, 3, &late), [None; 16], "{category:?}");
        }
        let mixed = [(0, Timeout), (1, Device), (2, Timeout), (3, Device)];
        assert_eq!(all(true, 3, &mixed)[3], Some(SpeedDown::NcqOff));
        let mixed = [(0, Bus), (1, Device), (2, Bus), (3, Device)];
        assert_eq!(
            all(true, 3, &mixed)[3],
            None,
            "two of a kind, and two of another"
        );
    }

    #[test]
    fn without_a_queue_it_is_speed() {
        let timeouts: Vec<_> = (0..4).map(|at| (at, Timeout)).collect();
        assert_eq!(all(false, 3, &timeouts)[3], Some(SpeedDown::Speed(2)));
        assert_eq!(all(false, 2, &timeouts)[3], Some(SpeedDown::Speed(1)));
        let drive: Vec<_> = (0..7).map(|at| (at, Device)).collect();
        let mut expected = [None; 7];
        expected[6] = Some(SpeedDown::Speed(2));
        assert_eq!(all(false, 3, &drive), expected);
    }

    #[test]
    fn the_slowest_link_stays_as_it_is() {
        for generation in [0, 1] {
            let errors: Vec<_> = (0..40).map(|at| (at / 8, Bus)).collect();
            assert!(all(false, generation, &errors).iter().all(Option::is_none));
        }
    }

    #[test]
    fn after_a_verdict_it_is_judged_anew() {
        let errors: Vec<_> = (0..8).map(|at| (at / 2, Timeout)).collect();
        let taken = all(true, 3, &errors);
        let expected = [None, None, None, Some(SpeedDown::NcqOff)];
        assert_eq!(taken[..4], expected);
        assert_eq!(taken[4..], expected);
    }

    #[test]
    fn medium_and_address_speak_neither_against_queue_nor_link() {
        assert_eq!(categorize(ICRC | ABRT), Some(ErrorCategory::Bus));
        assert_eq!(categorize(ICRC | UNC), Some(ErrorCategory::Bus));
        assert_eq!([UNC, AMNF, IDNF, UNC | ABRT].map(categorize), [None; 4]);
        assert_eq!([0, ABRT].map(categorize), [Some(ErrorCategory::Device); 2]);
    }

    #[test]
    fn what_is_taken_is_said() {
        assert!(SpeedDown::NcqOff.to_string().contains("NCQ"));
        assert!(SpeedDown::Speed(1).to_string().contains("1.5 Gbit/s"));
        assert!(SpeedDown::Speed(2).to_string().contains("3.0 Gbit/s"));
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
