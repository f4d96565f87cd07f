// SPDX-License-Identifier: GPL-2.0
//! From any state to a port that takes commands: stopped, link up, drive ready and recognized,
//! command list running.
//!
//! The link is brought up by spin-up or COMRESET, and the drive behind it is waited for (AHCI 1.3.1
//! sections 10.1, 10.4.2, 10.10). What is there says its signature; a disk is asked what it is
//! (IDENTIFY DEVICE), and decides how it is spoken to ([`CommandSet`]).

use cell::sync::Ordering;
use hal::{Error, Mmio, Platform};

use crate::cmd::CommandSet;
use crate::identify::{self, DriveId};
use crate::port::{DriveConfig, ErrorCategory, Occupant, Port, PortStep, State};
use crate::quirks::DriveQuirks;
use crate::regs::{
    Reg, CMD_ALPM, CMD_ICC_ACTIVE, CMD_POD, CMD_SUD, DET_READY, SCTL_DET, SCTL_GEN1, SPD,
    STATUS_BSY, STATUS_DRQ,
};

/// How often a drive is asked what it is: an answer may be lost, or spoilt on the way.
const ASKED: u32 = 3;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Brings the port up. A drive that was served must be there again; at first it may be any, or
    /// none.
    pub(crate) fn bring_up(&self, state: &mut State) -> Result<(), Error> {
        self.progress.at(PortStep::Halt);
        self.stop_port()?;
        if let Some(generation) = self.timed_out_gen.swap(0, Ordering::Relaxed).checked_sub(1) {
            self.speed_down(state, ErrorCategory::Timeout, generation)?;
        }
        self.start_fis_rx()?;
        self.spin_up()?;
        state.link_resets = 0;
        let again = matches!(state.occupant, Occupant::Drive(_));
        let found = match self.is_present()? {
            true => self.probe_drive(again)?,
            false => Occupant::Nobody,
        };
        let found = match (&state.occupant, found) {
            (Occupant::Drive(before), Occupant::Drive(now)) => {
                Occupant::Drive(self.revalidate(&before.id, now)?)
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
                self.drive_gone.store(false, Ordering::SeqCst);
                self.resume_data_path();
            }
            // Left alone; a drive that comes or goes is noticed still.
            _ => {
                self.stop_port()?;
                self.regs.track_phyrdy(true);
                self.forget_errors();
            }
        }
        Ok(())
    }

    /// What is there. `reset`: after a reset of the link. A drive that is served is left with its
    /// command list running and nothing issued.
    pub(crate) fn probe_drive(&self, reset: bool) -> Result<Occupant, Error> {
        let mut reset = reset;
        let mut last = Error::Timeout;
        for _ in 0..ASKED {
            self.apply_lpm(self.initial_lpm())?;
            let Some(signature) = self.reset_until_ready(reset)? else {
                return Ok(Occupant::Nobody);
            };
            if let Some(why) = refusal(signature) {
                return Ok(Occupant::Refused(why));
            }
            match self.start_engine().and_then(|()| self.configure_drive()) {
                // Once more, at the speed that it is reset to now.
                Ok(_) if self.limit_speed()? => {}
                Ok(occupant) => return Ok(occupant),
                Err(Error::Gone) => return Err(Error::Gone),
                Err(why) => last = why,
            }
            self.stop_engine()?;
            reset = true;
        }
        Err(last)
    }

    /// Asks the drive what it is.
    fn configure_drive(&self) -> Result<Occupant, Error> {
        let (id, quirks) = match self.identity()? {
            Ok(said) => said,
            Err(why) => return Ok(Occupant::Refused(why)),
        };
        self.quirks.store(quirks.bits(), Ordering::Relaxed);
        if quirks.has(DriveQuirks::DISABLE) {
            return Ok(Occupant::Refused("it is the front of a box, and no disk"));
        }
        let sleepless = quirks.forbids_lpm(&id, &self.config.context);
        self.lpm.set_forbidden(sleepless);
        self.configure_lpm(&id)?;
        let queued_trim = match id.sends_queued && id.logs && id.trim {
            true => {
                let asked = self.read_log(identify::NCQ_SEND);
                let says = asked.as_ref().is_ok_and(identify::has_queued_trim);
                self.unless_refused(asked.map(|_| ()))?;
                says
            }
            false => false,
        };
        let slots = self.config.cap.slots();
        Ok(Occupant::Drive(DriveConfig {
            id,
            tags: id.depth.map_or(slots, |depth| depth.min(slots)),
            cmd_set: CommandSet {
                ncq: id.depth.is_some(),
                queued_trim,
                fua: id.fua,
                trim_blocks: match id.trim {
                    true => id.trim_blocks,
                    false => 0,
                },
                unit: u32::from(self.number()),
                block_shift: id.block_shift,
                dma_limit: self.config.dma_limit,
            },
        }))
    }

    /// What the drive says of itself, less what it is spared, and what it is known for.
    pub(crate) fn identity(&self) -> Result<Result<(DriveId, DriveQuirks), &'static str>, Error> {
        let id = match DriveId::decode(&self.identify()?)? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let quirks = DriveQuirks::of(&id.model, &id.firmware);
        let id = DriveId {
            depth: id.depth.filter(|_| self.config.cap.has_ncq()),
            ..id
        };
        Ok(Ok((id.with_quirks(quirks, &self.config.context), quirks)))
    }

    /// Limits the link of a drive that is lost at higher speeds, from the next reset on. Whether
    /// that is to come.
    fn limit_speed(&self) -> Result<bool, Error> {
        let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
        let fast = self.regs.get(Reg::Ssts)? & SPD > SCTL_GEN1;
        if !(fast && self.quirks().has(DriveQuirks::GEN1)) || sctl & SPD == SCTL_GEN1 {
            return Ok(false);
        }
        self.regs.write(Reg::Sctl, (sctl & !SPD) | SCTL_GEN1);
        Ok(true)
    }
}

/// How long a drive takes at most to show that it is there; a device answers COMRESET in 10 ms
/// (Serial ATA 3.x section 8.4).
const PRESENT_US: u64 = 100_000;

/// How long the speed negotiation with one that is there may take.
const NEGOTIATE_US: u64 = 1_000_000;

/// How long a drive may be busy after a reset. TIMEOUT: the standard's own 31 s are for disks that
/// spin up.
const READY_US: u64 = 10_000_000;

/// How long `PxSCTL.DET` is 1 for a COMRESET (10.4.2: at least 1 ms).
const COMRESET_US: u64 = 1_000;

/// How often a drive is reset before it is given up.
const ATTEMPTS: u32 = 3;

/// `PxSIG` before a drive has sent its signature.
const NO_SIGNATURE: u32 = u32::MAX;

/// What the signature says is there.
const ATA: u32 = 0x0000_0101;

const ATAPI: u32 = 0xeb14_0101;

const PORT_MULTIPLIER: u32 = 0x9669_0101;

const ENCLOSURE: u32 = 0xc33c_0101;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Powers the drive and brings up the link, at the speed that the firmware had. One port after
    /// the other, so drives spin up one by one where the HBA wants that (`CAP.SSS`).
    fn spin_up(&self) -> Result<(), Error> {
        let setting = self.initial_lpm();
        let sctl = self.limited(self.config.firmware.sctl & SPD | setting.ipm);
        self.regs.track_phyrdy(!setting.may_sleep());
        self.regs.write(Reg::Sctl, sctl);
        let set = CMD_POD | CMD_SUD | CMD_ICC_ACTIVE | setting.alpm;
        self.regs.change_cmd(CMD_ALPM, set)
    }

    /// Waits for the link. `false`: nobody is there.
    pub(crate) fn wait_link(&self, limit_us: u64) -> Result<bool, Error> {
        self.progress.at(PortStep::Link);
        // Present at least, with or without communication.
        match self.wait(Reg::Ssts, 1, 1, limit_us) {
            Err(Error::Timeout) => return Ok(false),
            waited => waited?,
        }
        match self.wait(Reg::Ssts, SCTL_DET, DET_READY, NEGOTIATE_US) {
            Err(Error::Timeout) => Ok(false),
            waited => waited.map(|()| true),
        }
    }

    /// Whether a drive is there after power-up.
    fn is_present(&self) -> Result<bool, Error> {
        self.wait_link(PRESENT_US)
    }

    /// Waits until the drive has told what it is and is not busy. Returns its signature.
    fn wait_ready(&self) -> Result<u32, Error> {
        self.progress.at(PortStep::Ready);
        let busy = STATUS_BSY | STATUS_DRQ;
        self.wait(Reg::Tfd, busy, 0, READY_US)?;
        match self.regs.read(Reg::Sig) {
            NO_SIGNATURE => Err(Error::Timeout),
            signature => Ok(signature),
        }
    }

    /// COMRESET, with the command list stopped: the drive forgets what it has.
    pub(crate) fn send_comreset(&self) -> Result<(), Error> {
        let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
        self.regs.write(Reg::Sctl, sctl | 1);
        self.platform.sleep_us(COMRESET_US);
        self.regs.write(Reg::Sctl, sctl);
        self.cmd_timed_out.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// COMRESET, and the wait for the link. `false`: nobody answers.
    fn hardreset(&self) -> Result<bool, Error> {
        self.progress.at(PortStep::Link);
        self.send_comreset()?;
        self.is_present()
    }

    /// The ladder: waits for a drive that is there, and resets it when it does not get ready.
    /// Returns its signature, `None` when nobody is there (any more). `reset`: begins with a reset.
    fn reset_until_ready(&self, reset: bool) -> Result<Option<u32>, Error> {
        let mut last = Error::Timeout;
        for attempt in 0..ATTEMPTS {
            if (reset || attempt != 0) && !self.hardreset()? {
                return Ok(None);
            }
            self.forget_errors();
            match self.wait_ready() {
                Ok(signature) => return Ok(Some(signature)),
                Err(Error::Gone) => return Err(Error::Gone),
                Err(why) => last = why,
            }
            if !self.has_link()? {
                return Ok(None);
            }
        }
        Err(last)
    }
}

/// Why what has this signature is left alone.
fn refusal(signature: u32) -> Option<&'static str> {
    match signature {
        ATA => None,
        ATAPI => Some("it is an ATAPI device"),
        PORT_MULTIPLIER => Some("it is a port multiplier"),
        ENCLOSURE => Some("it is an enclosure management bridge"),
        _ => Some("its signature is not a disk's"),
    }
}
