// SPDX-License-Identifier: GPL-2.0
//! Admin commands.

use super::queues::{Cq, Sq};
use super::{identify, State};
use hal::Platform;

const INVALID_OPCODE: u16 = 0x4001;
const INVALID_FIELD: u16 = 0x4002;
const INVALID_NAMESPACE: u16 = 0x400b;

impl State {
    /// Status and result; `None`: no answer.
    pub fn admin(&mut self, sqe: &[u64; 8]) -> Option<(u16, u64)> {
        let opcode = sqe[0] as u8;
        let nth = self.admin_log.len();
        self.admin_log.push((opcode, sqe[5] as u32));
        if self.ignore == Some(nth) {
            return None;
        }
        if let Some((_, status)) = self.refuse.filter(|(at, _)| *at == nth) {
            return Some((status, 0));
        }
        if opcode == 0x0c {
            return self.await_event((sqe[0] >> 16) as u16);
        }
        if self.platform.now_us() < self.paused_until {
            self.complain(format!("admin command {opcode:#x} while CSTS.PP is set"));
        }
        Some(match self.carry_out(opcode, sqe) {
            Ok(result) => (0, result),
            Err(status) => (status, 0),
        })
    }

    fn carry_out(&mut self, opcode: u8, sqe: &[u64; 8]) -> Result<u64, u16> {
        let dword10 = sqe[5] as u32;
        match opcode {
            0x01 => self.create_sq(sqe),
            0x04 => {
                let gone = self.cqs.remove(&(dword10 as u16));
                gone.map(|_| 0).ok_or(0x4101)
            }
            0x05 => self.create_cq(sqe),
            0x06 => self.identify(sqe),
            0x08 => self.abort(dword10),
            0x09 => self.set_features(sqe),
            0x7c if self.config.doorbell_buffer => {
                if (sqe[3] | sqe[4]) & (self.page() - 1) != 0 || sqe[3] == sqe[4] {
                    return Err(INVALID_FIELD);
                }
                self.shadow = Some((sqe[3], sqe[4]));
                Ok(0)
            }
            0x80 => self.format(sqe),
            0x02 => self.get_log_page(sqe),
            _ => Err(INVALID_OPCODE),
        }
    }

    fn set_features(&mut self, sqe: &[u64; 8]) -> Result<u64, u16> {
        let (dword10, dword11) = (sqe[5] as u32, (sqe[5] >> 32) as u32);
        match dword10 & 0xff {
            // Number of Queues.
            0x07 => {
                if self.cqs.len() > 1 {
                    self.complain("Number of Queues after queues were made");
                }
                let granted = u32::from(self.config.queues - 1);
                let sq = granted.min(dword11 & 0xffff);
                let cq = granted.min(dword11 >> 16);
                Ok(u64::from((cq << 16) | sq))
            }
            // Autonomous Power State Transition, with its table.
            0x0c if self.config.apsta => {
                let pieces = self.walk(sqe, 256)?;
                let mut table = [0xff; 256];
                let read = self.platform.bus().read(pieces[0].0, &mut table);
                match (read, dword11, table) {
                    (Ok(()), 0, table) if table == [0; 256] => Ok(0),
                    _ => Err(INVALID_FIELD),
                }
            }
            // Asynchronous Event Configuration.
            0x0b => {
                self.reporter.config = dword11;
                Ok(0)
            }
            // Host Memory Buffer.
            0x0d if self.config.host_memory.0 != 0 => self.borrow(sqe),
            // Host Behavior Support.
            0x16 => {
                let pieces = self.walk(sqe, 512)?;
                let mut bytes = vec![0; 512];
                let bus = self.platform.bus();
                let mut left = bytes.as_mut_slice();
                for (addr, len) in pieces {
                    let (now, rest) = left.split_at_mut(len as usize);
                    let _ = bus.read(addr, now);
                    left = rest;
                }
                self.host_behavior = Some(bytes);
                Ok(0)
            }
            _ => Err(INVALID_OPCODE),
        }
    }

    /// Format NVM: the third format in use gets this many bytes a block, as its number is.
    fn format(&mut self, sqe: &[u64; 8]) -> Result<u64, u16> {
        let nsid = (sqe[0] >> 32) as u32;
        let known = (self.config.namespaces.iter_mut()).find(|ns| ns.nsid == nsid);
        let ns = known.ok_or(INVALID_NAMESPACE)?;
        let bytes = ns.blocks << ns.lbads;
        ns.lbads = if sqe[5] & 0xf == 1 { 12 } else { 9 };
        ns.blocks = bytes >> ns.lbads;
        ns.data.fill(0);
        Ok(0)
    }

    /// Get Log Page: as many bytes as are asked for, a counting pattern.
    fn get_log_page(&mut self, sqe: &[u64; 8]) -> Result<u64, u16> {
        let (dword10, dword11) = (sqe[5] as u32, (sqe[5] >> 32) as u32);
        let dwords = u64::from((dword10 >> 16) | ((dword11 & 0xffff) << 16)) + 1;
        let mut bytes: Vec<u8> = (0..dwords * 4).map(|at| (at % 251) as u8).collect();
        if let (0x05, Some(effects)) = (dword10 & 0xff, &self.config.effects) {
            bytes.fill(0);
            for (opcode, entry) in effects {
                let at = usize::from(*opcode) * 4;
                bytes[at..at + 4].copy_from_slice(&entry.to_le_bytes());
            }
        }
        if dword10 & 0xff == 0x02 && bytes.len() >= 216 {
            bytes[0] = self.config.warnings;
            let [whole, sensors @ ..] = self.config.kelvins;
            bytes[1..3].copy_from_slice(&whole.to_le_bytes());
            bytes[200..216].fill(0);
            for (at, kelvins) in (200..).step_by(2).zip(sensors) {
                bytes[at..at + 2].copy_from_slice(&kelvins.to_le_bytes());
            }
        }
        self.lies.page(&mut bytes);
        let pieces = self.walk(sqe, bytes.len() as u64)?;
        let bus = self.platform.bus();
        let mut left = bytes.as_slice();
        for (addr, len) in pieces {
            let (now, rest) = left.split_at(len as usize);
            let _ = bus.write(addr, now);
            left = rest;
        }
        if dword10 & (1 << 15) == 0 {
            self.reporter.read(dword10 as u8);
        }
        Ok(0x1234)
    }

    fn identify(&mut self, sqe: &[u64; 8]) -> Result<u64, u16> {
        let nsid = (sqe[0] >> 32) as u32;
        let config = &self.config;
        let known = config.namespaces.iter().find(|ns| ns.nsid == nsid);
        let cns = match config.frail.one_bit_of_cns {
            true => sqe[5] as u8 & 1,
            false => sqe[5] as u8,
        };
        let mut bytes = match cns {
            0x00 if nsid == 0 || nsid > config.nn => return Err(INVALID_NAMESPACE),
            // An inactive namespace reads as zeroes.
            0x00 => known.map_or(vec![0; 4096], |ns| identify::namespace(config, ns)),
            0x01 => identify::controller(config),
            0x02 if config.version >= 0x0001_0100 => identify::active(config, nsid),
            0x03 if config.version >= 0x0001_0300 => {
                identify::descriptors(known.ok_or(INVALID_NAMESPACE)?)
            }
            0x06 if config.version >= 0x0002_0000 => identify::nvm_limits(config),
            _ => return Err(INVALID_FIELD),
        };
        self.lies.page(&mut bytes);
        let pieces = self.walk(sqe, 4096)?;
        let bus = self.platform.bus();
        let mut left = bytes.as_slice();
        for (addr, len) in pieces {
            let (now, rest) = left.split_at(len as usize);
            let _ = bus.write(addr, now);
            left = rest;
        }
        Ok(0)
    }

    fn size(&mut self, sqe: &[u64; 8]) -> Result<(u16, u16), u16> {
        let (qid, entries) = (sqe[5] as u16, (sqe[5] >> 16) as u16);
        if qid == 0 || qid > self.config.queues {
            return Err(0x4101);
        }
        if entries == 0 || entries > self.config.mqes {
            return Err(0x4102);
        }
        if sqe[3] & (self.page() - 1) != 0 || (sqe[5] >> 32) & 1 == 0 {
            return Err(INVALID_FIELD);
        }
        Ok((qid, entries + 1))
    }

    fn create_cq(&mut self, sqe: &[u64; 8]) -> Result<u64, u16> {
        let (qid, entries) = self.size(sqe)?;
        if self.cqs.contains_key(&qid) {
            return Err(0x4101);
        }
        let interrupts = (sqe[5] >> 33) & 1 != 0;
        let vector = (sqe[5] >> 48) as u16;
        // What is in the memory of a new queue must not look like an entry.
        for at in 0..u64::from(entries) {
            let word = self.platform.bus().read64(sqe[3] + at * 16 + 8);
            if (word.unwrap_or(0) >> 48) & 1 != 0 {
                self.complain(format!("a stale entry in completion queue {qid}"));
            }
        }
        self.cqs
            .insert(qid, Cq::new(sqe[3], entries, interrupts, vector));
        Ok(0)
    }

    fn create_sq(&mut self, sqe: &[u64; 8]) -> Result<u64, u16> {
        let (qid, entries) = self.size(sqe)?;
        let cq = (sqe[5] >> 48) as u16;
        if !self.cqs.contains_key(&cq) {
            return Err(0x4100);
        }
        self.priorities.push(((sqe[5] >> 33) & 3) as u8);
        self.sqs.insert(qid, Sq::new(sqe[3], entries, cq));
        Ok(0)
    }
}
