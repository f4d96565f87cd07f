// SPDX-License-Identifier: GPL-2.0
//! The link: spin-up, COMRESET, and the wait for the drive behind it (AHCI 1.3.1 sections 10.1,
//! 10.4.2, 10.10).

use crate::port::Port;
use crate::regs::{
    Reg, CMD_ALPM, CMD_ICC_ACTIVE, CMD_POD, CMD_SUD, DET_READY, SCTL_DET, SPD, STATUS_BSY,
    STATUS_DRQ,
};
use crate::step::Step;
use cell::sync::Ordering;
use hal::{Error, Mmio, Platform};

/// How long a drive takes at most to show that it is there; a device answers COMRESET in 10 ms
/// (Serial ATA 3.x section 8.4).
const PRESENT_US: u64 = 100_000;
/// How long the speed negotiation with one that is there may take.
const NEGOTIATE_US: u64 = 1_000_000;
/// How long a link that was lost may take to come back by itself, before its drive counts as gone.
pub(crate) const GRACE_US: u64 = 500_000;
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
    pub(crate) fn spin_up(&self) -> Result<(), Error> {
        let leave = self.leave_at_first();
        let sctl = self.limited(self.plan.firmware.sctl & SPD | leave.ipm);
        self.regs.heed_phy(!leave.may_sleep());
        self.regs.write(Reg::Sctl, sctl);
        let set = CMD_POD | CMD_SUD | CMD_ICC_ACTIVE | leave.alpm;
        self.regs.change_cmd(CMD_ALPM, set)
    }

    /// Waits for the link. `false`: nobody is there.
    pub(crate) fn wait_link(&self, limit_us: u64) -> Result<bool, Error> {
        self.progress.at(Step::Link);
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
    pub(crate) fn is_present(&self) -> Result<bool, Error> {
        self.wait_link(PRESENT_US)
    }

    /// Waits until the drive has told what it is and is not busy. Returns its signature.
    fn wait_ready(&self) -> Result<u32, Error> {
        self.progress.at(Step::Ready);
        let busy = STATUS_BSY | STATUS_DRQ;
        self.wait(Reg::Tfd, busy, 0, READY_US)?;
        match self.regs.read(Reg::Sig) {
            NO_SIGNATURE => Err(Error::Timeout),
            signature => Ok(signature),
        }
    }

    /// COMRESET, with the command list stopped: the drive forgets what it has.
    pub(crate) fn pulse(&self) -> Result<(), Error> {
        let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
        self.regs.write(Reg::Sctl, sctl | 1);
        self.platform.sleep_us(COMRESET_US);
        self.regs.write(Reg::Sctl, sctl);
        self.unanswered.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// COMRESET, and the wait for the link. `false`: nobody answers.
    fn comreset(&self) -> Result<bool, Error> {
        self.progress.at(Step::Link);
        self.pulse()?;
        self.is_present()
    }

    /// The ladder: waits for a drive that is there, and resets it when it does not get ready.
    /// Returns its signature, `None` when nobody is there (any more). `reset`: begins with a reset.
    pub(crate) fn awaken(&self, reset: bool) -> Result<Option<u32>, Error> {
        let mut last = Error::Timeout;
        for attempt in 0..ATTEMPTS {
            if (reset || attempt != 0) && !self.comreset()? {
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
pub(crate) fn refusal(signature: u32) -> Option<&'static str> {
    match signature {
        ATA => None,
        ATAPI => Some("it is an ATAPI device"),
        PORT_MULTIPLIER => Some("it is a port multiplier"),
        ENCLOSURE => Some("it is an enclosure management bridge"),
        _ => Some("its signature is not a disk's"),
    }
}
