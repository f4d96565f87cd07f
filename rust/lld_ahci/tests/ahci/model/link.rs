// SPDX-License-Identifier: GPL-2.0
//! Links and drives in time: resets, spin-up, hot-plug.

use super::{Drive, State};
use testkit::Device;

/// `PxSERR.DIAG.N` and `X`.
const PHY: u32 = 1 << 16;
const EXCHANGED: u32 = 1 << 26;

impl State {
    /// Whatever was to happen until now has happened.
    pub fn settle(&mut self) {
        let now = self.now();
        if self.release_at.is_some_and(|at| now >= at) {
            self.release_at = None;
            self.hold = false;
            self.work();
        }
        if self.reset_at.is_some_and(|at| now >= at) {
            self.reset_at = None;
            self.ghc = 0x8000_0000;
        }
        for port in &mut self.ports {
            if port.link_at.is_some_and(|at| now >= at) {
                port.link_at = None;
                port.link = port.drive.is_some();
                port.speed = match port.sctl >> 4 & 0xf {
                    0 => 2,
                    limit => limit.min(2),
                };
                port.link_event(PHY | EXCHANGED);
                port.tfd = 0xff;
                let ready = port.drive.as_ref().and_then(|drive| {
                    let enough = port.resets >= drive.resets_needed;
                    drive.ready_us.filter(|_| enough)
                });
                port.ready_at = ready.map(|us| now + us);
            }
            // The signature comes with a FIS, which is received only if somebody wants it.
            let receives = port.cmd & (1 << 4) != 0;
            if receives && port.link && port.ready_at.is_some_and(|at| now >= at) {
                port.ready_at = None;
                port.tfd = 0x50;
                port.sig = port
                    .drive
                    .as_ref()
                    .map_or(u32::MAX, |drive| drive.signature);
            }
        }
    }

    /// The link of `at` goes down and, if there is a drive, comes up again: COMRESET's end, or a
    /// new drive.
    pub fn begin_link(&mut self, at: usize) {
        let now = self.now();
        let port = &mut self.ports[at];
        port.resets += 1;
        port.link = false;
        port.sleep = 1;
        port.tfd = 0x7f;
        port.sig = u32::MAX;
        port.failed = None;
        port.ready_at = None;
        port.queue.clear();
        port.ghosts.clear();
        if let Some(drive) = &mut port.drive {
            drive.dipm &= drive.keeps_dipm;
        }
        port.link_at = port.drive.as_ref().map(|drive| now + drive.link_us);
    }

    /// The link of port `at` goes to sleep, where HBA or drive want it to and may: they have
    /// nothing to do.
    pub fn doze(&mut self, at: usize) {
        let (config, port) = (&self.config, &mut self.ports[at]);
        let Some(drive) = &port.drive else {
            return;
        };
        let idle = port.ci == 0 && port.queue.is_empty() && port.tfd & 0x88 == 0;
        if !port.link || !idle || port.sleep != 1 {
            return;
        }
        let may = [
            (2, config.psc && port.sctl & (1 << 8) == 0),
            (6, config.ssc && port.sctl & (1 << 9) == 0),
        ];
        let alpm = config.salp && drive.hipm && port.cmd & (1 << 26) != 0;
        let deepest = if port.cmd & (1 << 27) != 0 { 6 } else { 2 };
        let of_hba = may
            .iter()
            .find(|(sleep, may)| alpm && *may && *sleep == deepest);
        let of_drive = may.iter().rev().find(|(_, may)| drive.dipm && *may);
        if let Some((sleep, _)) = of_hba.or(of_drive) {
            port.sleep = *sleep;
            port.link_event(PHY);
        }
    }

    /// The link of port `at` is awake again.
    pub fn rouse(&mut self, at: usize) {
        let port = &mut self.ports[at];
        if port.sleep != 1 {
            port.sleep = 1;
            port.link_event(PHY);
        }
    }

    /// Pulls the drive of port `at`.
    pub fn unplug(&mut self, at: usize) -> Option<Drive> {
        self.settle();
        let port = &mut self.ports[at];
        let drive = port.drive.take();
        port.link = false;
        port.link_at = None;
        port.ready_at = None;
        port.queue.clear();
        port.ghosts.clear();
        port.tfd = 0x7f;
        port.link_event(PHY);
        drive
    }

    /// Plugs `drive` into port `at`, and waits until its link is up.
    pub fn plug(&mut self, at: usize, drive: Drive) {
        let link_us = drive.link_us;
        self.ports[at].drive = Some(drive);
        self.begin_link(at);
        self.platform.advance(link_us);
        self.settle();
    }
}
