// SPDX-License-Identifier: GPL-2.0
//! Sleep of the link (AHCI 1.3.1 section 8.3, Serial ATA 3.x section 8.4.3): who may have it go to
//! Partial or to Slumber while there is nothing to do.
//!
//! The HBA does so by itself (*ALPM*: `PxCMD.ALPE`; to Slumber with `ASP`, else to Partial), or the
//! drive asks for it (*DIPM*, a feature of the drive); `PxSCTL.IPM` forbids either state. A command
//! wakes the link up.
//!
//! A link that goes to sleep and one that loses its drive look alike to the HBA: PhyRdy changes
//! (section 7.3.1). So on a link that may sleep that is not heeded. A drive that comes still
//! tells so (`PxSERR.DIAG.X`), one that goes is missed by the next command.

use crate::port::Port;
use crate::regs::{
    Reg, CMD_ALPE, CMD_ALPM, CMD_ICC_ACTIVE, SCTL_AWAKE, SCTL_DET, SCTL_IPM, SERR_PHY, SSTS_ACTIVE,
    SSTS_IPM,
};
use hal::{Error, Mmio, Platform};

/// How long a link may take to wake up. TIMEOUT: as long as libata grants it (Linux 7.3,
/// `ahci_set_lpm`); from Slumber it is 10 ms at most.
const WAKE_US: u64 = 10_000;

/// What a link may do while there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leave {
    /// `PxSCTL.IPM`.
    pub(crate) ipm: u32,
    /// `PxCMD.ALPE` and `ASP`.
    pub(crate) alpm: u32,
    /// DIPM is on.
    pub(crate) dipm: bool,
}

impl Leave {
    /// None.
    pub(crate) const NONE: Self = Self {
        ipm: SCTL_AWAKE,
        alpm: 0,
        dipm: false,
    };

    /// Whether it may go to sleep, and somebody would have it do so.
    pub(crate) const fn may_sleep(self) -> bool {
        self.ipm & SCTL_AWAKE != SCTL_AWAKE && (self.alpm & CMD_ALPE != 0 || self.dipm)
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// What the firmware of the machine had set.
    pub(crate) const fn firmwares_leave(&self) -> Leave {
        Leave {
            ipm: self.plan.firmware.sctl & SCTL_IPM,
            alpm: self.plan.firmware.cmd,
            dipm: false,
        }
    }

    /// Gives the link leave to sleep, or wakes it up and keeps it awake; the drive's part of it is
    /// the caller's. By the control path, with nothing under way. Sleeps.
    pub(crate) fn grant(&self, leave: Leave) -> Result<(), Error> {
        let sctl = self.regs.get(Reg::Sctl)? & !(SCTL_DET | SCTL_IPM) | leave.ipm;
        if leave.may_sleep() {
            self.regs.heed_phy(false);
            self.regs.write(Reg::Sctl, sctl);
            return self.regs.change_cmd(CMD_ALPM, leave.alpm);
        }
        if self.regs.heeds_phy() {
            self.regs.write(Reg::Sctl, sctl);
            return self.regs.change_cmd(CMD_ALPM, leave.alpm);
        }
        self.regs
            .change_cmd(CMD_ALPM, leave.alpm | CMD_ICC_ACTIVE)?;
        match self.wait(Reg::Ssts, SSTS_IPM, SSTS_ACTIVE, WAKE_US) {
            // A link that is down does not wake up, and that is not for here to see to.
            Ok(()) | Err(Error::Timeout) => {}
            gone => return gone,
        }
        self.regs.write(Reg::Sctl, sctl);
        // What it was until now was sleep.
        self.regs.write(Reg::Serr, SERR_PHY);
        self.regs.heed_phy(true);
        Ok(())
    }
}
