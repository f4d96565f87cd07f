// SPDX-License-Identifier: GPL-2.0
//! Sleep of the link (AHCI 1.3.1 section 8.3, Serial ATA 3.x section 8.4.3): what may have it go to
//! Partial or to Slumber while there is nothing to do.
//!
//! The HBA does so by itself (*ALPM*: `PxCMD.ALPE`; to Slumber with `ASP`, else to Partial), or the
//! drive asks for it (*DIPM*, a feature of the drive); `PxSCTL.IPM` forbids either state. A command
//! wakes the link up.
//!
//! A link that goes to sleep and one that loses its drive look alike to the HBA: PhyRdy changes
//! (section 7.3.1). So on a link that may sleep that is not heeded. A drive that comes still
//! tells so (`PxSERR.DIAG.X`), one that goes is missed by the next command.
//!
//! # Policies
//! What a policy of link power management comes to, with what HBA and drive have of it:
//!
//! | policy | Partial | Slumber | HBA (ALPM) | drive (DIPM) |
//! | --- | --- | --- | --- | --- |
//! | `max_performance` | – | – | – | – |
//! | `medium_power` | allowed | – | to Partial | – |
//! | `med_power_with_dipm`, `min_power_with_partial` | allowed | allowed | to Partial | asks |
//! | `min_power` | allowed | allowed | to Slumber | asks |
//!
//! This is libata's (Linux 7.3: `sata_link_scr_lpm`, `ahci_set_lpm`, `ata_eh_link_set_lpm`), but
//! for DevSleep, which is never entered here: in tree the last two may add it. Where the HBA lacks
//! a state it is not allowed, and no ALPM is asked for that would lead there.

use cell::sync::Ordering;
use hal::{Error, LinkPower, Mmio, Platform};

use crate::identify::DriveId;
use crate::port::{LpmState, Occupant, Port, SpeedDown, State};
use crate::quirks::HbaQuirks;
use crate::regs::{
    Cap, Reg, CMD_ALPE, CMD_ALPM, CMD_ASP, CMD_ICC_ACTIVE, SCTL_DET, SCTL_IPM, SCTL_NO_LPM,
    SCTL_NO_PARTIAL, SCTL_NO_SLUMBER, SERR_PHY, SSTS_ACTIVE, SSTS_IPM,
};

/// How long a link may take to wake up. TIMEOUT: as long as libata grants it (Linux 7.3,
/// `ahci_set_lpm`); from Slumber it is 10 ms at most.
const WAKE_US: u64 = 10_000;

/// What a link may do while there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LpmSetting {
    /// `PxSCTL.IPM`.
    pub(crate) ipm: u32,
    /// `PxCMD.ALPE` and `ASP`.
    pub(crate) alpm: u32,
    /// DIPM is on.
    pub(crate) dipm: bool,
}

impl LpmSetting {
    /// None.
    const NONE: Self = Self {
        ipm: SCTL_NO_LPM,
        alpm: 0,
        dipm: false,
    };

    /// The setting of `policy`; of the firmware's, [`LpmSetting::NONE`].
    fn of(policy: LinkPower, caps: LpmCaps) -> Self {
        let (deep, alpm) = match policy {
            LinkPower::Firmware | LinkPower::MaxPerformance => return Self::NONE,
            LinkPower::MediumPower => (false, CMD_ALPE),
            LinkPower::MediumPowerWithDipm | LinkPower::MinPowerWithPartial => (true, CMD_ALPE),
            // Without Slumber it is as deep as can be.
            LinkPower::MinPower if caps.slumber => (true, CMD_ALPE | CMD_ASP),
            LinkPower::MinPower => (true, CMD_ALPE),
        };
        let partial = if caps.partial { 0 } else { SCTL_NO_PARTIAL };
        let slumber = match deep && caps.slumber {
            true => 0,
            false => SCTL_NO_SLUMBER,
        };
        let leads_to_partial = alpm & CMD_ASP == 0;
        let leads_somewhere = caps.partial || !leads_to_partial;
        Self {
            ipm: partial | slumber,
            alpm: match caps.alpm && leads_somewhere {
                true => alpm,
                false => 0,
            },
            dipm: deep && caps.dipm,
        }
    }

    /// Whether it may go to sleep, and somebody would have it do so.
    pub(crate) const fn may_sleep(self) -> bool {
        self.ipm & SCTL_NO_LPM != SCTL_NO_LPM && (self.alpm & CMD_ALPE != 0 || self.dipm)
    }
}

/// What HBA and drive have of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LpmCaps {
    /// Partial, Slumber.
    partial: bool,
    slumber: bool,
    /// The HBA may have the link sleep.
    alpm: bool,
    /// The drive may ask for it.
    dipm: bool,
}

impl LpmCaps {
    /// Those of a drive behind an HBA of `cap`, known as `board`.
    fn of(cap: Cap, board: HbaQuirks, id: &DriveId) -> Self {
        let (partial, slumber) = (cap.has_partial(), cap.has_slumber());
        Self {
            partial,
            slumber,
            alpm: cap.has_alpm() && id.hipm,
            // Some drives are upset by a state that is denied to them: all or nothing.
            dipm: id.has_dipm && partial && slumber && !board.has(HbaQuirks::NO_DIPM),
        }
    }
}

impl LpmState {
    fn policy(&self) -> LinkPower {
        LinkPower::from_number(self.policy.load(Ordering::Relaxed)).unwrap_or_default()
    }

    fn set(&self, policy: LinkPower) {
        // CAST: the enum is a byte.
        self.policy.store(policy as u8, Ordering::Relaxed);
    }

    /// The drive is known to be lost by it, or not.
    pub(crate) fn set_forbidden(&self, forbidden: bool) {
        self.forbidden.store(forbidden, Ordering::Relaxed);
    }

    /// The drive was lost by it.
    pub(crate) fn mark_failed(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// See [`hal::Controller::set_link_power`].
    pub(crate) fn set_link_power(
        &self,
        state: &mut State,
        policy: LinkPower,
    ) -> Result<Result<(), &'static str>, Error> {
        let (Occupant::Drive(about), false) = (state.occupant, policy == LinkPower::Firmware)
        else {
            return Err(Error::Invalid);
        };
        if let Some(why) = self.lpm_refusal() {
            return Ok(Err(why));
        }
        let before = self.lpm.policy();
        self.lpm.set(policy);
        let id = about.id;
        let set = self.exclusive(state, |_| self.set_lpm(&id, id.has_dipm || id.dipm));
        if set.is_err() {
            self.lpm.set(before);
        }
        set.map(Ok)
    }

    /// Has link and drive sleep as the policy says, after a reset. A drive that does not survive
    /// that is not asked again.
    pub(crate) fn configure_lpm(&self, id: &DriveId) -> Result<(), Error> {
        let arranged = self.set_lpm(id, id.dipm);
        let chosen = !matches!(
            self.link_power(),
            LinkPower::Firmware | LinkPower::MaxPerformance
        );
        if chosen && matches!(arranged, Err(Error::Timeout | Error::Fatal)) {
            self.lpm.mark_failed();
            self.report_speed_down(SpeedDown::LpmOff);
        }
        arranged
    }

    /// `asks`: DIPM may be on. The drive does not ask while the link is changed.
    fn set_lpm(&self, id: &DriveId, asks: bool) -> Result<(), Error> {
        let caps = LpmCaps::of(self.config.cap, self.config.hba_quirks, id);
        let setting = match self.link_power() {
            LinkPower::Firmware => self.firmware_lpm(),
            policy => LpmSetting::of(policy, caps),
        };
        if asks {
            // A drive that keeps it is served all the same.
            self.unless_refused(self.set_dipm(false))?;
        }
        self.apply_lpm(setting)?;
        if !setting.dipm {
            return Ok(());
        }
        match self.set_dipm(true) {
            Err(Error::Refused(_)) => self.apply_lpm(LpmSetting {
                dipm: false,
                ..setting
            }),
            turned => turned,
        }
    }

    /// Applies `setting` to link and HBA; DIPM, the drive's part of it, is set by the caller. By
    /// the control path, with nothing under way. Sleeps.
    pub(crate) fn apply_lpm(&self, setting: LpmSetting) -> Result<(), Error> {
        if !self.regs.tracks_phyrdy() {
            // It may be deeper asleep than it may be from now on.
            self.wake_link()?;
        }
        let sctl = self.regs.get(Reg::Sctl)? & !(SCTL_DET | SCTL_IPM);
        self.regs.track_phyrdy(!setting.may_sleep());
        self.regs.write(Reg::Sctl, sctl | setting.ipm);
        self.regs.change_cmd(CMD_ALPM, setting.alpm)
    }

    /// Wakes up the link, and keeps it awake.
    fn wake_link(&self) -> Result<(), Error> {
        let sctl = self.regs.get(Reg::Sctl)? & !(SCTL_DET | SCTL_IPM);
        // First nothing lets it fall asleep again.
        self.regs.write(Reg::Sctl, sctl | SCTL_NO_LPM);
        self.regs.change_cmd(CMD_ALPM, CMD_ICC_ACTIVE)?;
        match self.wait(Reg::Ssts, SSTS_IPM, SSTS_ACTIVE, WAKE_US) {
            // What it was until now was sleep.
            Ok(()) => self.regs.write(Reg::Serr, SERR_PHY),
            // It is down: heeded from now on.
            Err(Error::Timeout) => {}
            gone => return gone,
        }
        self.regs.track_phyrdy(true);
        Ok(())
    }

    /// What the link may do before the drive was asked what it is.
    pub(crate) fn initial_lpm(&self) -> LpmSetting {
        match self.link_power() {
            LinkPower::Firmware => self.firmware_lpm(),
            _ => LpmSetting::NONE,
        }
    }

    /// What the firmware of the machine had set.
    const fn firmware_lpm(&self) -> LpmSetting {
        LpmSetting {
            ipm: self.config.firmware.sctl & SCTL_IPM,
            alpm: self.config.firmware.cmd,
            dipm: false,
        }
    }

    /// How much the link may sleep. Any context.
    pub(crate) fn link_power(&self) -> LinkPower {
        match self.lpm_refusal() {
            Some(_) => LinkPower::MaxPerformance,
            None => self.lpm.policy(),
        }
    }

    /// Why the link stays awake, whatever anybody wants.
    fn lpm_refusal(&self) -> Option<&'static str> {
        if let Some(why) = refusal(self.config.cap, self.config.firmware.external) {
            Some(why)
        } else if self.lpm.forbidden.load(Ordering::Relaxed) {
            Some("the drive is known to be lost by it (see hiops/quirks)")
        } else if self.lpm.has_failed() {
            Some("the drive was lost by it; bind it anew to try again")
        } else {
            None
        }
    }
}

/// Why no link of an HBA of `cap` is ever given leave to sleep, at a port that is `external`.
fn refusal(cap: Cap, external: bool) -> Option<&'static str> {
    if !cap.has_partial() && !cap.has_slumber() {
        Some("the controller has neither Partial nor Slumber (CAP.PSC, SSC)")
    } else if external {
        Some("the port is for hot-plug (PxCMD.HPCP, ESP), which a link that sleeps does not notice")
    } else {
        None
    }
}

const _: () = assert!(SCTL_NO_LPM == SCTL_NO_PARTIAL | SCTL_NO_SLUMBER);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use LinkPower::*;

    use super::*;

    const ALL: LpmCaps = LpmCaps {
        partial: true,
        slumber: true,
        alpm: true,
        dipm: true,
    };

    /// IPM, ALPE, ASP, DIPM.
    fn setting(policy: LinkPower, caps: LpmCaps) -> (u32, bool, bool, bool) {
        let setting = LpmSetting::of(policy, caps);
        assert_eq!(setting.ipm & !SCTL_NO_LPM, 0);
        assert!(setting.alpm & CMD_ASP == 0 || setting.alpm & CMD_ALPE != 0);
        let sleeps = setting.ipm >> 8 != 3 && (setting.alpm != 0 || setting.dipm);
        assert_eq!(setting.may_sleep(), sleeps);
        let has = |bit| setting.alpm & bit != 0;
        (setting.ipm >> 8, has(CMD_ALPE), has(CMD_ASP), setting.dipm)
    }

    #[test]
    fn policies_are_what_they_are_in_tree() {
        let cases = [
            (Firmware, (3, false, false, false)),
            (MaxPerformance, (3, false, false, false)),
            (MediumPower, (2, true, false, false)),
            (MediumPowerWithDipm, (0, true, false, true)),
            (MinPowerWithPartial, (0, true, false, true)),
            (MinPower, (0, true, true, true)),
        ];
        for (policy, wanted) in cases {
            assert_eq!(setting(policy, ALL), wanted, "{policy:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_used() {
        let no_partial = LpmCaps {
            partial: false,
            dipm: false,
            ..ALL
        };
        assert_eq!(setting(MediumPower, no_partial), (3, false, false, false));
        assert_eq!(
            setting(MinPowerWithPartial, no_partial),
            (1, false, false, false)
        );
        assert_eq!(setting(MinPower, no_partial), (1, true, true, false));
        let no_slumber = LpmCaps {
            slumber: false,
            dipm: false,
            ..ALL
        };
        assert_eq!(setting(MediumPower, no_slumber), (2, true, false, false));
        assert_eq!(setting(MinPower, no_slumber), (2, true, false, false));
        let no_alpm = LpmCaps { alpm: false, ..ALL };
        assert_eq!(setting(MediumPower, no_alpm), (2, false, false, false));
        assert_eq!(setting(MinPower, no_alpm), (0, false, false, true));
        let no_dipm = LpmCaps { dipm: false, ..ALL };
        assert_eq!(
            setting(MediumPowerWithDipm, no_dipm),
            (0, true, false, false)
        );
    }

    #[test]
    fn ports_and_controllers_that_may_not_are_named() {
        let states = |bits: u32| Cap(bits << 13);
        assert!(refusal(states(0), false).is_some_and(|why| why.contains("Partial")));
        assert!(refusal(states(3), true).is_some_and(|why| why.contains("hot-plug")));
        assert_eq!(refusal(states(1), false), None);
        assert_eq!(refusal(states(2), false), None);
    }
}
