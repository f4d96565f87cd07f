// SPDX-License-Identifier: GPL-2.0
//! What a drive does with a command.

use super::{identify, State, Taken};

/// Aborted; the address was not found.
const ABORTED: u16 = 0x0451;
const NOT_FOUND: u16 = 0x1051;

impl State {
    /// Bytes moved, or status and error.
    pub fn carry_out(&mut self, at: usize, taken: &Taken) -> Result<u32, u16> {
        let failed = self.ports[at].failed;
        if failed.is_some() && (taken.command, taken.lba) != (0x2f, 0x10) {
            return Err(ABORTED);
        }
        self.check_link(at, taken);
        let drive = self.ports[at].drive.as_ref().ok_or(ABORTED)?;
        match taken.command {
            0xec => {
                let sector = identify::device(drive);
                self.give(taken, &sector)
            }
            0x2f => {
                let sector = match taken.lba {
                    0x10 if drive.names_errors => {
                        let sector = identify::ncq_error(failed);
                        self.ports[at].failed = None;
                        sector
                    }
                    0x13 if drive.queued_trim => identify::ncq_send(),
                    _ => return Err(ABORTED),
                };
                self.give(taken, &sector)
            }
            0xef if matches!(taken.features, 0x10 | 0x90) && taken.count == 3 => {
                let drive = self.ports[at].drive.as_mut().ok_or(ABORTED)?;
                let on = taken.features == 0x10;
                if on && (!drive.has_dipm || drive.refuses_dipm) {
                    return Err(ABORTED);
                }
                drive.dipm = on;
                Ok(0)
            }
            0xef if matches!(taken.features, 0x02 | 0x82) => {
                let drive = self.ports[at].drive.as_mut().ok_or(ABORTED)?;
                if drive.keeps_cache {
                    return Err(ABORTED);
                }
                drive.write_cache = taken.features == 0x02;
                Ok(0)
            }
            0xe0 | 0xea => Ok(0),
            0x25 => self.move_out(at, taken, taken.count),
            0x60 => self.move_out(at, taken, taken.features),
            0x35 => self.move_in(at, taken, taken.count),
            0x3d if drive.fua => self.move_in(at, taken, taken.count),
            0x61 => self.move_in(at, taken, taken.features),
            0x06 if drive.trim && (taken.features, taken.count) == (1, 1) => self.trim(at, taken),
            0x64 if drive.queued_trim && taken.features == 1 && taken.auxiliary == 1 => {
                self.trim(at, taken)
            }
            _ => Err(ABORTED),
        }
    }

    /// A link that the drive does not survive, under a command of the data path.
    fn check_link(&mut self, at: usize, taken: &Taken) {
        let port = &self.ports[at];
        let Some(drive) = &port.drive else {
            return;
        };
        let may_sleep = port.sctl >> 8 & 3 != 3 || port.cmd & (3 << 26) != 0;
        let lost = (drive.sleepless && may_sleep) || (drive.slow && port.speed > 1);
        if lost && !matches!(taken.command, 0xec | 0x2f | 0xef) {
            self.complain("the drive is lost: its link sleeps, or is too fast");
        }
    }

    /// The sector goes where the PRDT says.
    fn give(&mut self, taken: &Taken, bytes: &[u8]) -> Result<u32, u16> {
        let mut said = bytes.to_vec();
        self.lies.page(&mut said);
        let mut left = said.as_slice();
        for (addr, len) in &taken.pieces {
            let (now, rest) = left.split_at(left.len().min(*len as usize));
            let _ = self.platform.bus().write(*addr, now);
            left = rest;
        }
        if !left.is_empty() {
            self.complain("a PRDT shorter than the data");
        }
        Ok(bytes.len() as u32)
    }

    /// Where on the drive; a bad sector fails.
    fn range(&mut self, at: usize, taken: &Taken, count: u16) -> Result<(usize, usize), u16> {
        let drive = self.ports[at].drive.as_mut().ok_or(ABORTED)?;
        let blocks = if count == 0 { 65_536 } else { u64::from(count) };
        let range = taken.lba..taken.lba + blocks;
        if range.end > drive.blocks {
            return Err(NOT_FOUND);
        }
        let bad = |bad: &&mut super::config::Bad| bad.times != 0 && range.contains(&bad.lba);
        if let Some(bad) = drive.bad.iter_mut().find(bad) {
            bad.times -= 1;
            return Err(bad.tfd);
        }
        let from = (range.start << drive.block_shift) as usize;
        let bytes = (blocks << drive.block_shift) as usize;
        let told: u64 = taken.pieces.iter().map(|(_, len)| u64::from(*len)).sum();
        if told != bytes as u64 {
            self.complain(format!("a PRDT of {told} bytes for {bytes}"));
            return Err(ABORTED);
        }
        Ok((from, bytes))
    }

    fn move_out(&mut self, at: usize, taken: &Taken, count: u16) -> Result<u32, u16> {
        let (mut from, bytes) = self.range(at, taken, count)?;
        let bus = self.platform.bus();
        let drive = self.ports[at].drive.as_ref().ok_or(ABORTED)?;
        for (addr, len) in &taken.pieces {
            let to = from + *len as usize;
            let _ = bus.write(*addr, &drive.data[from..to]);
            from = to;
        }
        Ok(bytes as u32)
    }

    fn move_in(&mut self, at: usize, taken: &Taken, count: u16) -> Result<u32, u16> {
        let (mut from, bytes) = self.range(at, taken, count)?;
        let bus = self.platform.bus();
        let drive = self.ports[at].drive.as_mut().ok_or(ABORTED)?;
        for (addr, len) in &taken.pieces {
            let to = from + *len as usize;
            let _ = bus.read(*addr, &mut drive.data[from..to]);
            from = to;
        }
        Ok(bytes as u32)
    }

    /// What is trimmed reads as 0xdd.
    fn trim(&mut self, at: usize, taken: &Taken) -> Result<u32, u16> {
        let (addr, len) = *taken.pieces.first().ok_or(ABORTED)?;
        let mut ranges = vec![0; len as usize];
        if len != 512 || self.platform.bus().read(addr, &mut ranges).is_err() {
            return Err(ABORTED);
        }
        let drive = self.ports[at].drive.as_mut().ok_or(ABORTED)?;
        for range in ranges.chunks_exact(8) {
            let word = u64::from_le_bytes(range.try_into().unwrap());
            let (lba, blocks) = (word & 0xffff_ffff_ffff, word >> 48);
            if blocks == 0 {
                continue;
            }
            if lba + blocks > drive.blocks {
                return Err(NOT_FOUND);
            }
            let from = (lba << drive.block_shift) as usize;
            let to = ((lba + blocks) << drive.block_shift) as usize;
            drive.data[from..to].fill(0xdd);
        }
        Ok(512)
    }
}
