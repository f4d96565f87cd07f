// SPDX-License-Identifier: GPL-2.0
//! From any state to a port that takes commands: stopped, link up, drive ready and recognized,
//! command list running.

use crate::command::Dialect;
use crate::decline::Trouble;
use crate::identify::DriveId;
use crate::link;
use crate::log;
use crate::port::{About, Occupant, Port, State};
use crate::quirks::Quirks;
use crate::regs::{Reg, SCTL_DET, SCTL_GEN1, SPD};
use crate::step::Step;
use cell::sync::Ordering;
use hal::{Error, Mmio, Platform};

/// How often a drive is asked what it is: an answer may be lost, or spoilt on the way.
const ASKED: u32 = 3;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Brings the port up. A drive that was served must be there again; at first it may be any, or
    /// none.
    pub(crate) fn bring_up(&self, state: &mut State) -> Result<(), Error> {
        self.progress.at(Step::Halt);
        self.put_out()?;
        if let Some(generation) = self.silent.swap(0, Ordering::Relaxed).checked_sub(1) {
            self.weigh(state, Trouble::Silence, generation)?;
        }
        self.receive()?;
        self.spin_up()?;
        state.strikes = 0;
        let again = matches!(state.occupant, Occupant::Drive(_));
        let found = match self.is_present()? {
            true => self.recognize(again)?,
            false => Occupant::Nobody,
        };
        let found = match (&state.occupant, found) {
            (Occupant::Drive(before), Occupant::Drive(now)) => {
                Occupant::Drive(self.as_promised(&before.id, now)?)
            }
            (_, found) => found,
        };
        match (&state.occupant, &found) {
            // What was promised to the layers above still has to hold.
            (Occupant::Drive(before), Occupant::Drive(now)) if !now.id.is_same(&before.id) => {
                return Err(Error::Malformed);
            }
            (Occupant::Drive(_), Occupant::Drive(_)) => {}
            (Occupant::Drive(_), _) => return Err(Error::Gone),
            _ => state.occupant = found,
        }
        match state.occupant {
            Occupant::Drive(_) => {
                self.departed.store(false, Ordering::SeqCst);
                self.open();
            }
            // Left alone; whoever comes or goes is noticed still.
            _ => {
                self.put_out()?;
                self.regs.heed_phy(true);
                self.forget_errors();
            }
        }
        Ok(())
    }

    /// What is there. `reset`: after a reset of the link. A drive that is served is left with its
    /// command list running and nothing issued.
    pub(crate) fn recognize(&self, reset: bool) -> Result<Occupant, Error> {
        let mut reset = reset;
        let mut last = Error::Timeout;
        for _ in 0..ASKED {
            self.grant(self.leave_at_first())?;
            let Some(signature) = self.awaken(reset)? else {
                return Ok(Occupant::Nobody);
            };
            if let Some(why) = link::refusal(signature) {
                return Ok(Occupant::Refused(why));
            }
            match self.run().and_then(|()| self.ask()) {
                // Once more, at the speed that it is reset to now.
                Ok(_) if self.slow_down()? => {}
                Ok(occupant) => return Ok(occupant),
                Err(Error::Gone) => return Err(Error::Gone),
                Err(why) => last = why,
            }
            self.halt()?;
            reset = true;
        }
        Err(last)
    }

    /// Asks the drive what it is.
    fn ask(&self) -> Result<Occupant, Error> {
        let (id, quirks) = match self.identity()? {
            Ok(said) => said,
            Err(why) => return Ok(Occupant::Refused(why)),
        };
        self.quirks.store(quirks.bits(), Ordering::Relaxed);
        if quirks.has(Quirks::DISABLE) {
            return Ok(Occupant::Refused("it is the front of a box, and no disk"));
        }
        let sleepless = quirks.is_sleepless(&id, &self.plan.around);
        self.power.may_not(sleepless);
        self.let_sleep(&id)?;
        let queued_trim = match id.sends_queued && id.logs && id.trim {
            true => {
                let asked = self.read_log(log::NCQ_SEND);
                let says = asked.as_ref().is_ok_and(log::has_queued_trim);
                self.unless_refused(asked.map(|_| ()))?;
                says
            }
            false => false,
        };
        let slots = self.plan.cap.slots();
        Ok(Occupant::Drive(About {
            id,
            tags: id.depth.map_or(slots, |depth| depth.min(slots)),
            dialect: Dialect {
                ncq: id.depth.is_some(),
                queued_trim,
                fua: id.fua,
                trim_blocks: match id.trim {
                    true => id.trim_blocks,
                    false => 0,
                },
                unit: u32::from(self.number()),
                block_shift: id.block_shift,
                below: self.plan.below,
            },
        }))
    }

    /// What the drive says of itself, less what it is spared, and what it is known for.
    pub(crate) fn identity(&self) -> Result<Result<(DriveId, Quirks), &'static str>, Error> {
        let id = match DriveId::decode(&self.identify()?)? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let quirks = Quirks::of(&id.model, &id.firmware);
        let id = DriveId {
            depth: id.depth.filter(|_| self.plan.cap.has_ncq()),
            ..id
        };
        Ok(Ok((id.spared(quirks, &self.plan.around), quirks)))
    }

    /// Limits the link of a drive that is lost at higher speeds, from the next reset on. Whether
    /// that is to come.
    fn slow_down(&self) -> Result<bool, Error> {
        let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
        let fast = self.regs.get(Reg::Ssts)? & SPD > SCTL_GEN1;
        if !(fast && self.quirks().has(Quirks::GEN1)) || sctl & SPD == SCTL_GEN1 {
            return Ok(false);
        }
        self.regs.write(Reg::Sctl, (sctl & !SPD) | SCTL_GEN1);
        Ok(true)
    }

    /// A refusal is an answer; anything else is an error.
    pub(crate) fn unless_refused(&self, ran: Result<(), Error>) -> Result<(), Error> {
        match ran {
            Ok(()) | Err(Error::Refused(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }
}
