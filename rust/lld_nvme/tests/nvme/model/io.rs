// SPDX-License-Identifier: GPL-2.0
//! I/O commands.

use super::data::BUCKET;
use super::reservations::{CONFLICT, US};
use super::State;

impl State {
    /// Status and result.
    pub fn io(&mut self, sqe: &[u64; 8]) -> (u16, u64) {
        self.io_log.push(*sqe);
        self.use_borrowed();
        if !self.io_status.is_empty() {
            return (self.io_status.remove(0), 0);
        }
        match self.nvm(sqe) {
            Ok(()) => (0, 0),
            Err(status) => (status, 0),
        }
    }

    fn nvm(&mut self, sqe: &[u64; 8]) -> Result<(), u16> {
        let nsid = (sqe[0] >> 32) as u32;
        let at = (self.config.namespaces.iter())
            .position(|ns| ns.nsid == nsid)
            .ok_or(0x400bu16)?;
        let lbads = self.config.namespaces[at].lbads;
        let capacity = self.config.namespaces[at].blocks;
        let lba = sqe[5];
        let blocks = (sqe[6] & 0xffff) + 1;
        let bytes = blocks << lbads;
        let range = || match lba.checked_add(blocks) {
            Some(end) if end <= capacity => Ok((lba << lbads) as usize..(end << lbads) as usize),
            _ => Err(0x4080u16),
        };
        if let Some(done) = self.reservation(sqe) {
            return done;
        }
        let writes = matches!(sqe[0] as u8, 0x01 | 0x08 | 0x09);
        if sqe[0] as u8 != 0 && !self.reservations.allows(US, writes) {
            return Err(CONFLICT);
        }
        match sqe[0] as u8 {
            // Flush.
            0x00 => Ok(()),
            // Write.
            0x01 => {
                let range = range()?;
                let bytes = self.gather(sqe, bytes)?;
                self.config.namespaces[at].data[range].copy_from_slice(&bytes);
                Ok(())
            }
            // Read.
            0x02 => {
                let range = range()?;
                let data = self.config.namespaces[at].data[range].to_vec();
                self.limit(bytes)?;
                self.pieces = self.walk(sqe, bytes)?;
                let bus = self.platform.bus();
                let mut left = data.as_slice();
                for (addr, len) in &self.pieces {
                    let (now, rest) = left.split_at(*len as usize);
                    if *addr != BUCKET {
                        bus.write(*addr, now).map_err(|_| 0x0004u16)?;
                    }
                    left = rest;
                }
                Ok(())
            }
            // Write Zeroes.
            0x08 if self.config.oncs & 8 != 0 => {
                let range = range()?;
                self.config.namespaces[at].data[range].fill(0);
                Ok(())
            }
            0x09 if self.config.oncs & 4 != 0 => self.deallocate(at, sqe),
            _ => Err(0x4001),
        }
    }

    /// Dataset Management of namespace number `at`, deallocate: the ranges are filled with a mark,
    /// so that a wrong one is seen.
    fn deallocate(&mut self, at: usize, sqe: &[u64; 8]) -> Result<(), u16> {
        let lbads = self.config.namespaces[at].lbads;
        let capacity = self.config.namespaces[at].blocks;
        let ranges = (sqe[5] & 0xff) + 1;
        if (sqe[5] >> 32) & 4 == 0 {
            return Ok(());
        }
        let read = match self.config.frail.reads_all_ranges {
            true => 256,
            false => ranges,
        };
        let pieces = self.walk(sqe, read * 16)?;
        for (addr, len) in &pieces {
            let mut all = vec![0; *len as usize];
            let read = self.platform.bus().read(*addr, &mut all);
            read.map_err(|_| 0x0004u16)?;
        }
        let bus = self.platform.bus();
        let words = pieces
            .iter()
            .flat_map(|(addr, len)| (*addr..addr + u64::from(*len)).step_by(16));
        for addr in words.collect::<Vec<_>>() {
            let length = bus.read64(addr).map_err(|_| 0x0004u16)? >> 32;
            let first = bus.read64(addr + 8).map_err(|_| 0x0004u16)?;
            let end = first.checked_add(length).filter(|end| *end <= capacity);
            let end = end.ok_or(0x4080u16)?;
            let range = (first << lbads) as usize..(end << lbads) as usize;
            self.config.namespaces[at].data[range].fill(0xdd);
        }
        Ok(())
    }

    pub fn limit(&mut self, bytes: u64) -> Result<(), u16> {
        let most = 4096u64 << self.config.mpsmin << self.config.mdts;
        if self.config.mdts != 0 && bytes > most {
            self.complain(format!("a transfer of {bytes} bytes, over MDTS"));
            return Err(0x4002);
        }
        Ok(())
    }

    pub fn gather(&mut self, sqe: &[u64; 8], bytes: u64) -> Result<Vec<u8>, u16> {
        self.limit(bytes)?;
        self.pieces = self.walk(sqe, bytes)?;
        if self.pieces.iter().any(|(addr, _)| *addr == BUCKET) {
            self.complain("a bit bucket where data is taken from");
        }
        let bus = self.platform.bus();
        let mut data = Vec::new();
        for (addr, len) in &self.pieces {
            let mut part = vec![0; *len as usize];
            bus.read(*addr, &mut part).map_err(|_| 0x0004u16)?;
            data.append(&mut part);
        }
        Ok(data)
    }
}
