// SPDX-License-Identifier: GPL-2.0
//! The register window.

use super::State;
use testkit::Device;

impl Device for State {
    fn read(&mut self, offset: usize) -> u32 {
        self.settle();
        if self.out_of_reach {
            return 0;
        }
        match offset {
            0x100.. => self.read_port((offset - 0x100) / 0x80, offset % 0x80),
            _ => self.read_hba(offset),
        }
    }

    fn write(&mut self, offset: usize, value: u32) {
        self.settle();
        if self.out_of_reach {
            return;
        }
        match offset {
            0x100.. => {
                let at = (offset - 0x100) / 0x80;
                self.write_port(at, offset % 0x80, value);
                if matches!(offset % 0x80, 0x18 | 0x2c) && at < self.ports.len() {
                    self.doze(at);
                }
            }
            _ => self.write_hba(offset, value),
        }
    }

    fn work(&mut self) {
        self.work_ports();
    }

    fn line(&mut self) -> bool {
        self.ghc & 2 != 0 && self.pending() != 0
    }
}

impl State {
    fn read_hba(&mut self, offset: usize) -> u32 {
        let pending = self.pending();
        let config = &self.config;
        let flag = |on: bool, bit: u32| u32::from(on) << bit;
        match offset {
            0x00 => {
                (u32::from(config.slots - 1) << 8)
                    | flag(config.sxs, 5)
                    | flag(config.psc, 13)
                    | flag(config.ssc, 14)
                    | flag(config.clo, 24)
                    | flag(config.salp, 26)
                    | flag(config.sss, 27)
                    | flag(config.ncq, 30)
                    | flag(config.s64a, 31)
                    | 31
            }
            0x04 => self.ghc | flag(config.reverts, 2),
            0x08 => pending,
            0x0c => self.pi,
            0x24 => flag(config.bios.is_some(), 0),
            0x28 => self.hand_over(),
            _ => {
                self.complain(format!("read of {offset:#x}"));
                0
            }
        }
    }

    fn hand_over(&mut self) -> u32 {
        let now = self.now();
        if let (Some(asked), Some(bios)) = (self.asked_at, &self.config.bios) {
            let over = bios.lets_go_us.is_some_and(|us| now >= asked + us);
            self.bohc = match over {
                true => 2,
                false => 3 | (u32::from(bios.busy) << 4),
            };
        }
        self.bohc
    }

    fn write_hba(&mut self, offset: usize, value: u32) {
        match offset {
            0x04 => self.control(value),
            0x08 => {
                self.pending();
                self.latched &= !value;
            }
            0x0c if self.pi == 0 => self.pi = value,
            0x28 => {
                if value & 2 != 0 {
                    self.asked_at = Some(self.now());
                }
            }
            _ => self.complain(format!("write of {value:#x} to {offset:#x}")),
        }
    }

    fn control(&mut self, value: u32) {
        if value & 1 == 0 {
            self.ghc = value;
            return;
        }
        if self.ghc & 0x8000_0000 == 0 {
            self.complain("reset of an HBA that is not in AHCI mode");
        }
        if self.bohc & 1 != 0 && self.asked_at.is_none() {
            self.complain("reset of an HBA that the firmware has");
        }
        self.ghc = value;
        self.latched = 0;
        self.reset_at = self.config.reset_us.map(|us| self.now() + us);
        if self.config.forgets_ports {
            self.pi = 0;
        }
        self.reset_ports();
    }

    /// A reset that the driver did not ask for, of the ports at least.
    pub fn reset_beneath(&mut self) {
        self.reset_ports();
        for port in &mut self.ports {
            (port.clb, port.fb) = (0, 0);
        }
        let longest = self.ports.iter().filter_map(|port| port.drive.as_ref());
        let longest = longest.map(|drive| drive.link_us).max();
        self.platform.advance(longest.unwrap_or(0));
    }

    fn reset_ports(&mut self) {
        for at in 0..self.ports.len() {
            let port = &mut self.ports[at];
            port.forget();
            (port.is, port.ie, port.serr, port.cmd, port.sctl) = (0, 0, 0, 0, 0);
            port.resets = 0;
            self.begin_link(at);
            self.ports[at].resets = 0;
        }
    }

    fn known(&mut self, at: usize) -> bool {
        let known = at < self.ports.len() && self.config.ports & (1 << at) != 0;
        if !known {
            self.complain(format!("port {at} is not implemented"));
        }
        if self.ghc & 0x8000_0000 == 0 {
            self.complain("a port's register while not in AHCI mode");
        }
        known
    }

    fn read_port(&mut self, at: usize, offset: usize) -> u32 {
        if !self.known(at) {
            return 0;
        }
        let phantoms = self.config.phantoms;
        let port = &mut self.ports[at];
        if matches!(offset, 0x34 | 0x38) {
            port.lag.2 = port.lag.2.saturating_sub(1);
            if port.lag.2 == 0 {
                (port.lag.0, port.lag.1) = (0, 0);
            }
        }
        match offset {
            0x10 => port.status(),
            0x14 => port.ie,
            0x18 => port.cmd,
            0x20 => port.tfd,
            0x24 => port.sig,
            0x28 if port.link => 3 | (port.speed << 4) | (port.sleep << 8),
            0x28 => 0,
            0x2c => port.sctl,
            0x30 => port.serr,
            0x34 => port.sact | port.lag.0 | phantoms,
            0x38 => port.ci | port.lag.1 | phantoms,
            _ => {
                self.complain(format!("read of port register {offset:#x}"));
                0
            }
        }
    }

    fn write_port(&mut self, at: usize, offset: usize, value: u32) {
        if !self.known(at) {
            return;
        }
        let port = &mut self.ports[at];
        match offset {
            0x00..=0x0c => self.write_base(at, offset, value),
            0x10 => port.is &= !value,
            0x14 => port.ie = value,
            0x18 => self.command(at, value),
            0x2c => self.write_sctl(at, value),
            0x30 => port.serr &= !value,
            0x34 => self.write_sact(at, value),
            0x38 => self.issue(at, value),
            _ => self.complain(format!("write of {value:#x} to port register {offset:#x}")),
        }
    }

    /// Where the command list is, and where FISes are received: PxCLB and PxFB, with their upper
    /// halves.
    fn write_base(&mut self, at: usize, offset: usize, value: u32) {
        let port = &mut self.ports[at];
        let low = |old: u64| old & !0xffff_ffff | u64::from(value);
        let high = |old: u64| old & 0xffff_ffff | (u64::from(value) << 32);
        let busy = port.cmd & ((1 << 15) | (1 << 14) | (1 << 4) | 1) != 0;
        match offset {
            0x00 => port.clb = low(port.clb),
            0x04 => port.clb = high(port.clb),
            0x08 => port.fb = low(port.fb),
            _ => port.fb = high(port.fb),
        }
        if busy {
            self.complain("memory of a running port is changed");
        }
    }

    /// PxSCTL: DET set to 1 and back to 0 is a COMRESET.
    fn write_sctl(&mut self, at: usize, value: u32) {
        let now = self.now();
        let port = &mut self.ports[at];
        let was = std::mem::replace(&mut port.sctl, value) & 0xf;
        match (was, value & 0xf) {
            (0, 1) => {
                port.held_at = Some(now);
                port.link = false;
                // One that hangs may be.
                let runs = match self.config.stuck {
                    0 => (1 << 15) | 1,
                    _ => 1,
                };
                if port.cmd & runs != 0 {
                    self.complain("COMRESET of a running port");
                }
            }
            (1, 0) => {
                if port.held_at.is_none_or(|since| now < since + 1_000) {
                    self.complain("COMRESET of less than 1 ms");
                }
                if self.config.stuck < 3 {
                    self.ports[at].cmd &= !(1 << 15);
                }
                self.begin_link(at);
            }
            _ => {}
        }
    }

    /// PxSACT: tags of queued commands, which are to be told once, and to a port that runs.
    fn write_sact(&mut self, at: usize, value: u32) {
        let port = &mut self.ports[at];
        let (stopped, again) = (port.cmd & 1 == 0, port.sact & value);
        if !stopped {
            port.sact |= value;
        }
        if stopped || again != 0 {
            self.complain(format!("PxSACT: stopped {stopped}, told twice {again:#x}"));
        }
    }
}
