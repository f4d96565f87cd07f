// SPDX-License-Identifier: GPL-2.0
//! The command list: commands fetched, handed to the drive, answered with FISes.

use super::{State, Taken};
use testkit::Device;

const ST: u32 = 1;
const CLO: u32 = 1 << 3;
const FRE: u32 = 1 << 4;
const FR: u32 = 1 << 14;
const CR: u32 = 1 << 15;
const HPCP: u32 = 1 << 18;
const ESP: u32 = 1 << 21;
const DHRS: u32 = 1;
const PSS: u32 = 1 << 1;
const SDBS: u32 = 1 << 3;
const IFS: u32 = 1 << 27;
const TFES: u32 = 1 << 30;

pub fn is_queued(command: u8) -> bool {
    matches!(command, 0x60 | 0x61 | 0x64)
}

impl State {
    /// `PxCMD` is written.
    pub fn command(&mut self, at: usize, value: u32) {
        let stuck = self.config.stuck;
        let port = &mut self.ports[at];
        let was = port.cmd;
        // What the port is made for can't be written.
        let fixed = CR | FR | HPCP | ESP;
        port.cmd = value & !(fixed | CLO | (0xf << 28)) | (was & fixed);
        let wakes = value >> 28 == 1;
        if value & CLO != 0 {
            port.tfd &= !0x88;
            if stuck == 1 && value & ST == 0 {
                port.cmd &= !CR;
            }
        }
        if value & FRE != 0 {
            port.cmd |= FR;
        } else if port.cmd & CR == 0 {
            port.cmd &= !FR;
        }
        let mut complaints = Vec::new();
        let mut forgets = false;
        match (was & ST != 0, value & ST != 0) {
            (false, true) => {
                port.cmd |= CR;
                if value & FRE == 0 || port.tfd & 0x88 != 0 || !port.link {
                    complaints.push("started a port that is not ready");
                }
                if port.clb % 1024 != 0 || port.fb % 256 != 0 {
                    complaints.push("command list or FIS area is not aligned");
                }
            }
            (true, false) => {
                if stuck == 0 {
                    port.cmd &= !CR;
                }
                forgets = true;
            }
            _ => {}
        }
        for what in complaints {
            self.complain(what);
        }
        if wakes {
            self.rouse(at);
        }
        if forgets {
            self.forget(at);
        }
        self.settle();
    }

    /// `ST` is cleared: what the drive has it keeps, the host side is empty.
    fn forget(&mut self, at: usize) {
        let others = self.others(at);
        if others != 0 && !self.ports[at].stopped {
            // It was fetched when it was told; what is in its place now is no complaint.
            let complaints = self.complaints.len();
            let ghost = self.fetch(at, others.trailing_zeros() as u8);
            self.complaints.truncate(complaints);
            self.ports[at].ghosts.extend(ghost);
        }
        self.ports[at].forget();
    }

    /// `PxCI` is written.
    pub fn issue(&mut self, at: usize, bits: u32) {
        let port = &mut self.ports[at];
        let (running, again) = (port.cmd & ST != 0, port.ci & bits);
        port.ci |= bits;
        if !running {
            port.ci = 0;
            self.complain("PxCI written to a stopped port");
        }
        if again != 0 {
            self.complain(format!("slots {again:#x} told twice"));
        }
        if bits != 0 {
            self.rouse(at);
        }
        self.wake();
    }

    /// Everything that can be done now.
    pub fn work_ports(&mut self) {
        for at in 0..self.ports.len() {
            while self.step(at) {}
            if !self.hold {
                self.haunt(at);
            }
            self.doze(at);
        }
    }

    /// The drive carries out what the host has forgotten: data goes to memory that may be somebody
    /// else's by now.
    fn haunt(&mut self, at: usize) {
        for ghost in std::mem::take(&mut self.ports[at].ghosts) {
            let _ = self.carry_out(at, &ghost);
            self.complain(format!(
                "{:#x} of slot {} came back",
                ghost.command, ghost.slot
            ));
        }
    }

    /// One step of port `at`; `false`: there is none.
    fn step(&mut self, at: usize) -> bool {
        let port = &self.ports[at];
        if !port.runs() || !port.link || self.config.deaf || port.drive.is_none() {
            return false;
        }
        for slot in 0..32u8 {
            if self.ports[at].ci & (1 << slot) != 0 {
                if let Some(taken) = self.fetch(at, slot) {
                    if is_queued(taken.command) {
                        self.accept(at, taken);
                        return true;
                    }
                    let mute = self.ports[at].drive.as_ref().and_then(|drive| drive.mute);
                    let data = matches!(taken.command, 0x25 | 0x35 | 0x3d);
                    let dies = self.ports[at].drive.as_ref();
                    let dies = dies.is_some_and(|drive| drive.dies_of_dipm)
                        && (taken.command, taken.features, taken.count) == (0xef, 0x10, 3);
                    if dies || (data && mute == Some(taken.lba)) {
                        return false;
                    }
                    if data && !self.hold && self.breaks(at) {
                        return false;
                    }
                    if !self.hold {
                        self.other(at, taken);
                        return true;
                    }
                }
            }
        }
        if self.hold || self.ports[at].queue.is_empty() {
            return false;
        }
        self.queued(at);
        true
    }

    /// A queued command is taken: a D2H FIS without an interrupt says so.
    fn accept(&mut self, at: usize, taken: Taken) {
        let bit = 1u32 << taken.slot;
        if self.ports[at].sact & bit == 0 {
            self.complain(format!("slot {} is not in PxSACT", taken.slot));
        }
        let others = self.others(at);
        if others & !bit != 0 {
            self.complain("a queued command beside others");
        }
        let depth = self.ports[at].drive.as_ref().and_then(|drive| drive.depth);
        if depth.is_none_or(|depth| self.ports[at].queue.len() >= usize::from(depth)) {
            self.complain("more queued commands than the drive has room for");
        }
        if self.breaks(at) {
            return;
        }
        let before = self.ports[at].tfd;
        let harps = self.config.harps && before & 1 != 0;
        let status = if harps { before } else { 0x50 };
        self.answer(at, 0x34 | status << 16, false);
        let port = &mut self.ports[at];
        port.raise(if harps { TFES } else { 0 });
        port.ci &= !bit;
        port.queue.push(taken);
    }

    /// Whether the link breaks now rather than carry the command.
    fn breaks(&mut self, at: usize) -> bool {
        let nth = self.ports[at].count;
        self.ports[at].count += 1;
        match self.config.breaks {
            Some((which, times)) if times != 0 && nth >= which => {
                self.config.breaks = Some((which, times - 1));
                let port = &mut self.ports[at];
                port.raise(IFS);
                port.link_event(1 << 10);
                port.stopped = true;
                true
            }
            _ => false,
        }
    }

    /// Slots in PxCI whose commands are not queued ones.
    fn others(&mut self, at: usize) -> u32 {
        let ci = self.ports[at].ci;
        (0..32u8)
            .filter(|slot| ci & (1 << slot) != 0)
            .filter(|slot| {
                self.peek(at, *slot)
                    .is_some_and(|command| !is_queued(command))
            })
            .fold(0, |sum, slot| sum | 1 << slot)
    }

    fn other(&mut self, at: usize, taken: Taken) {
        let bit = 1u32 << taken.slot;
        if self.ports[at].sact != 0 {
            self.complain(format!("{:#x} beside queued commands", taken.command));
        }
        let reads = matches!(taken.command, 0xec | 0x2f);
        let header = self.ports[at].clb + u64::from(taken.slot) * 32;
        match self.carry_out(at, &taken) {
            Ok(moved) => {
                let prdbc = self.config.prdbc.unwrap_or(moved);
                let _ = self.platform.bus().write32(header + 4, prdbc);
                let port = &mut self.ports[at];
                port.tfd = 0x50;
                port.ci &= !bit;
                port.lag = (0, bit, self.config.lag);
                match reads {
                    // Data comes with a PIO Setup FIS, and ends with it.
                    true => port.raise(PSS),
                    false => self.answer(at, 0x0050_4034, true),
                }
            }
            Err(tfd) => {
                let clears = self.config.clears_failed;
                let port = &mut self.ports[at];
                port.tfd = u32::from(tfd);
                port.stopped = true;
                if clears {
                    port.ci &= !bit;
                }
                self.answer(at, 0x4034 | u32::from(tfd) << 16, true);
                self.ports[at].raise(TFES);
            }
        }
        self.log.push(taken);
    }

    /// A D2H Register FIS.
    fn answer(&mut self, at: usize, word: u32, interrupts: bool) {
        let word = self.config.garbage.unwrap_or(word);
        let at_bus = self.ports[at].fb + 0x40;
        let _ = self.platform.bus().write32(at_bus, word);
        if interrupts {
            self.ports[at].raise(DHRS);
        }
    }

    /// The drive carries out queued commands, one or all that it has.
    fn queued(&mut self, at: usize) {
        let mut finished = 0;
        while let Some(taken) = self.next(at) {
            let bit = 1u32 << taken.slot;
            if let Some((_, tfd)) = self.ports[at].failed {
                // It wants the log to be read.
                return self.fail(at, 0, tfd);
            }
            let result = self.carry_out(at, &taken);
            self.log.push(taken.clone());
            match result {
                Ok(_) => finished |= bit,
                Err(tfd) => {
                    if finished != 0 {
                        self.finish(at, finished);
                    }
                    self.ports[at].failed = Some((taken.slot, tfd));
                    return self.fail(at, 0, tfd);
                }
            }
            if !self.config.batches {
                break;
            }
        }
        self.finish(at, finished);
    }

    fn next(&mut self, at: usize) -> Option<Taken> {
        let reverses = self.config.reverses;
        let queue = &mut self.ports[at].queue;
        match (queue.is_empty(), reverses) {
            (true, _) => None,
            (false, true) => queue.pop(),
            (false, false) => Some(queue.remove(0)),
        }
    }

    fn finish(&mut self, at: usize, bits: u32) {
        self.set_device_bits(at, 0x0040_40a1, bits);
        let lag = self.config.lag;
        let port = &mut self.ports[at];
        port.sact &= !bits;
        port.lag = (port.lag.0 | bits, 0, lag);
        port.tfd = 0x40;
        port.raise(SDBS);
    }

    fn fail(&mut self, at: usize, bits: u32, tfd: u16) {
        self.set_device_bits(at, 0x40a1 | u32::from(tfd) << 16, bits);
        let port = &mut self.ports[at];
        port.tfd = u32::from(tfd);
        port.queue.clear();
        port.stopped = true;
        port.raise(SDBS | TFES);
    }

    fn set_device_bits(&mut self, at: usize, word: u32, bits: u32) {
        let bus = self.platform.bus();
        let fis = self.ports[at].fb + 0x58;
        let _ = bus.write32(fis + 4, bits);
        let _ = bus.write32(fis, self.config.garbage.unwrap_or(word));
    }

    fn peek(&mut self, at: usize, slot: u8) -> Option<u8> {
        let bus = self.platform.bus();
        let header = self.ports[at].clb + u64::from(slot) * 32;
        let table = bus.read64(header + 8).ok()?;
        bus.read32(table).ok().map(|word| (word >> 16) as u8)
    }

    /// The command in `slot`, as the HBA fetches it.
    pub fn fetch(&mut self, at: usize, slot: u8) -> Option<Taken> {
        let bus = self.platform.bus();
        let header = self.ports[at].clb + u64::from(slot) * 32;
        let flags = bus.read32(header).ok()?;
        let table = bus.read64(header + 8).ok()?;
        let mut fis = [0u8; 20];
        bus.read(table, &mut fis).ok()?;
        let entries = u64::from(flags >> 16);
        let mut pieces = Vec::new();
        for n in 0..entries {
            let entry = table + 0x80 + n * 16;
            let addr = bus.read64(entry).ok()?;
            let count = bus.read32(entry + 12).ok()?;
            if addr & 1 != 0 || count & 1 == 0 || count & !0x3f_ffff != 0 {
                self.complain(format!("PRDT entry {addr:#x}, {count:#x}"));
            }
            pieces.push((addr, (count & 0x3f_ffff) + 1));
        }
        let byte = |at: usize| u64::from(fis[at]);
        let taken = Taken {
            port: at,
            slot,
            command: fis[2],
            features: (byte(3) | byte(11) << 8) as u16,
            count: (byte(12) | byte(13) << 8) as u16,
            lba: byte(4)
                | byte(5) << 8
                | byte(6) << 16
                | byte(8) << 24
                | byte(9) << 32
                | byte(10) << 40,
            device: fis[7],
            auxiliary: u32::from_le_bytes([fis[16], fis[17], fis[18], fis[19]]),
            pieces,
        };
        let writes = matches!(taken.command, 0x61 | 0x64 | 0x35 | 0x3d | 0x06);
        if flags & 0x1f != 5 || (flags >> 6 & 1 != 0) != writes || table % 128 != 0 {
            self.complain(format!("command header {flags:#x} of {:#x}", taken.command));
        }
        if fis[0] != 0x27 || fis[1] != 0x80 {
            self.complain(format!("command FIS {fis:x?}"));
        }
        if is_queued(taken.command) && taken.count >> 3 & 0x1f != u16::from(slot) {
            self.complain(format!("tag {} in slot {slot}", taken.count >> 3));
        }
        Some(taken)
    }
}
