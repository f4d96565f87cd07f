// SPDX-License-Identifier: GPL-2.0
//! The register window.

use super::queues::{Cq, Sq};
use super::State;
use hal::Platform;
use testkit::Device;

const EN: u32 = 1;

impl Device for State {
    fn read(&mut self, offset: usize) -> u32 {
        self.settle();
        if self.out_of_reach {
            return 0;
        }
        match offset {
            0x00 => self.cap() as u32,
            0x04 => (self.cap() >> 32) as u32,
            0x08 => self.config.version,
            0x0c | 0x10 => {
                if !self.config.pin {
                    self.complain("the interrupt mask was read with MSI-X");
                }
                self.masked
            }
            0x14 => self.cc,
            0x1c => {
                self.is_asked_too_soon();
                let over = self.shut_down && self.platform.now_us() >= self.ready_at;
                let shst = match (self.shut_down, over) {
                    (false, _) => 0,
                    (true, false) => 1,
                    (true, true) => 2,
                };
                let quiesced = self.platform.now_us() < self.paused_until;
                u32::from(self.ready)
                    | (u32::from(self.fatal) << 1)
                    | (shst << 2)
                    | (u32::from(quiesced) << 5)
            }
            0x24 => self.aqa,
            _ => {
                self.complain(format!("read of {offset:#x}"));
                0
            }
        }
    }

    fn write(&mut self, offset: usize, value: u32) {
        self.settle();
        if self.out_of_reach {
            return;
        }
        match offset {
            0x0c | 0x10 if !self.config.pin => {
                self.complain("the interrupt mask was written with MSI-X");
            }
            0x0c => self.masked |= value,
            0x10 => self.masked &= !value,
            0x14 => self.configure(value),
            0x24..=0x34 if self.cc & EN != 0 => {
                self.complain("admin queue registers changed while enabled");
            }
            0x24 => self.aqa = value,
            0x28 => self.asq = self.asq & !0xffff_ffff | u64::from(value),
            0x2c => self.asq = self.asq & 0xffff_ffff | (u64::from(value) << 32),
            0x30 => self.acq = self.acq & !0xffff_ffff | u64::from(value),
            0x34 => self.acq = self.acq & 0xffff_ffff | (u64::from(value) << 32),
            0x1000.. => self.doorbell(offset - 0x1000, value),
            _ => self.complain(format!("write of {value:#x} to {offset:#x}")),
        }
    }

    fn work(&mut self) {
        self.work_queues();
    }

    /// The pin.
    fn line(&mut self) -> bool {
        let pending = |cq: &Cq| cq.interrupts && cq.head != cq.tail;
        self.masked & 1 == 0 && self.cqs.values().any(pending)
    }
}

impl State {
    fn cap(&self) -> u64 {
        let config = &self.config;
        u64::from(config.mqes)
            | (1 << 16)
            | (u64::from(config.to) << 24)
            | (u64::from(config.dstrd) << 32)
            | (u64::from(config.css) << 37)
            | (u64::from(config.mpsmin) << 48)
            | (u64::from(config.mpsmax) << 52)
    }

    /// It loses power, and has it again.
    pub fn power_cycle(&mut self) {
        self.configure(0);
        self.ready = false;
    }

    fn is_asked_too_soon(&mut self) {
        let rest = self.config.frail.csts_us;
        let now = self.platform.now_us();
        if self.cleared_at.is_some_and(|at| now < at + rest) {
            self.complain("CSTS was read too soon after CC.EN was cleared");
        }
    }

    fn settle(&mut self) {
        let enabled = self.cc & EN != 0;
        if self.ready != enabled
            && self.config.ready_us.is_some()
            && self.platform.now_us() >= self.ready_at
        {
            self.ready = enabled;
        }
    }

    fn configure(&mut self, cc: u32) {
        let was = std::mem::replace(&mut self.cc, cc);
        let now = self.platform.now_us();
        let delay = self.config.ready_us.unwrap_or(u64::MAX / 2);
        match (was & EN != 0, cc & EN != 0) {
            (false, true) => {
                if self.ready {
                    self.complain("enabled while still ready");
                }
                if (cc >> 16) & 0xff != 0x46 {
                    self.complain(format!("entry sizes in CC {cc:#x}"));
                }
                self.ready_at = now + delay;
                let page = self.page() - 1;
                if (self.asq | self.acq) & page != 0 {
                    self.complain("admin queues not at a page");
                }
                let (sq, cq) = (self.aqa & 0xfff, (self.aqa >> 16) & 0xfff);
                self.sqs.insert(0, Sq::new(self.asq, sq as u16 + 1, 0));
                self.cqs
                    .insert(0, Cq::new(self.acq, cq as u16 + 1, true, 0));
            }
            (true, false) => {
                self.cleared_at = Some(now);
                self.ready_at = now + delay;
                self.sqs.clear();
                self.stuck.held.clear();
                self.borrowed.give_back();
                self.cqs.clear();
                self.shadow = None;
                self.reporter.forget();
                self.masked = 0;
                self.fatal = false;
                self.shut_down = false;
            }
            (true, true) if (cc >> 14) & 3 != (was >> 14) & 3 => {
                self.shut_down = true;
                self.ready_at = now + self.config.shutdown_us;
            }
            _ => {}
        }
    }

    fn doorbell(&mut self, at: usize, value: u32) {
        self.doorbells += 1;
        let stride = 4usize << self.config.dstrd;
        if at % stride != 0 {
            return self.complain(format!("doorbell at {at:#x}, between two"));
        }
        let (number, is_cq) = (at / stride / 2, at / stride % 2 == 1);
        if !self.ready {
            // What was completed before a stop is taken after it, and then told.
            if !is_cq {
                self.complain("tail doorbell of a controller that is not ready");
            }
            return;
        }
        self.ring(number as u16, is_cq, value);
        match number {
            0 => self.work(),
            _ => self.wake(),
        }
    }
}
