// SPDX-License-Identifier: GPL-2.0
//! A port's registers, and what its drive is at.

use super::{Drive, Taken};

/// A port.
pub struct Port {
    pub drive: Option<Drive>,
    pub clb: u64,
    pub fb: u64,
    /// PxIS without the bits that follow PxSERR.
    pub is: u32,
    /// How often its bits were set, or those of PxSERR.
    pub raised: usize,
    pub ie: u32,
    pub cmd: u32,
    pub tfd: u32,
    pub sig: u32,
    pub sctl: u32,
    /// Of the link, 1 to 3.
    pub speed: u32,
    /// Of the link: 1 active, 2 Partial, 6 Slumber (`PxSSTS.IPM`).
    pub sleep: u32,
    pub serr: u32,
    pub sact: u32,
    pub ci: u32,
    /// When the link comes up, and when the drive is ready, unless it is.
    pub link_at: Option<u64>,
    pub ready_at: Option<u64>,
    pub link: bool,
    /// When PxSCTL.DET became 1.
    pub held_at: Option<u64>,
    pub resets: u32,
    /// Queued commands that the drive has taken.
    pub queue: Vec<Taken>,
    /// Commands that the drive still has, and nobody knows of any more. What helps against them is
    /// a reset of the link.
    pub ghosts: Vec<Taken>,
    /// Queued commands taken so far.
    pub count: usize,
    /// Bits that the registers show for some reads yet: sact, ci, reads left.
    pub lag: (u32, u32, usize),
    /// Log 10h, and: nothing but that log or a reset helps.
    pub failed: Option<(u8, u16)>,
    /// A command failed: the list stands until ST is cleared.
    pub stopped: bool,
}

impl Port {
    pub fn new(drive: Option<Drive>) -> Self {
        let link_at = drive.as_ref().map(|drive| drive.link_us);
        Self {
            drive,
            clb: 0,
            fb: 0,
            is: 0,
            raised: 0,
            ie: 0,
            cmd: 0x0c00_0000,
            tfd: 0x7f,
            sig: u32::MAX,
            sctl: 0x300,
            speed: 2,
            sleep: 1,
            serr: 0,
            sact: 0,
            ci: 0,
            link_at,
            ready_at: None,
            link: false,
            held_at: None,
            resets: 0,
            queue: Vec::new(),
            ghosts: Vec::new(),
            count: 0,
            lag: (0, 0, 0),
            failed: None,
            stopped: false,
        }
    }

    /// Sets bits of PxIS.
    pub fn raise(&mut self, bits: u32) {
        self.is |= bits;
        self.raised += 1;
    }

    /// Sets bits of PxSERR.
    pub fn link_event(&mut self, bits: u32) {
        self.serr |= bits;
        self.raised += 1;
    }

    /// `PxIS` as it is read.
    pub fn status(&self) -> u32 {
        let connect = (self.serr >> 26 & 1) << 6;
        let phy = (self.serr >> 16 & 1) << 22;
        self.is | connect | phy
    }

    pub fn runs(&self) -> bool {
        self.cmd & 1 != 0 && !self.stopped
    }

    /// The host side forgets everything; the drive only what it has aborted.
    pub fn forget(&mut self) {
        match self.failed {
            Some(_) => self.queue.clear(),
            None => self.ghosts.append(&mut self.queue),
        }
        self.sact = 0;
        self.ci = 0;
        self.lag = (0, 0, 0);
        self.stopped = false;
    }
}
