// SPDX-License-Identifier: GPL-2.0
//! The host memory buffer, which it writes to with each command.

use super::State;

const INVALID_FIELD: u16 = 0x4002;

/// What is lent to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Borrowed {
    /// Address and bytes of each piece.
    pub pieces: Vec<(u64, u64)>,
    /// How often it was lent something, and how often it was said to be as before.
    pub times: (u32, u32),
    /// What it has written to each.
    mark: u64,
}

impl Borrowed {
    /// It was disabled, and uses it no more.
    pub fn give_back(&mut self) {
        self.pieces.clear();
    }
}

impl State {
    /// Set Features, Host Memory Buffer.
    pub fn borrow(&mut self, sqe: &[u64; 8]) -> Result<u64, u16> {
        let (dword11, pages) = ((sqe[5] >> 32) as u32, sqe[6] as u32);
        let list = (sqe[6] >> 32) | (sqe[7] << 32);
        let count = (sqe[7] >> 32) as u32;
        let (preferred, least, piece, most) = self.config.host_memory;
        let page = self.page();
        let bus = self.platform.bus();
        let word = |at: u64| bus.read64(list + at).map_err(|_| INVALID_FIELD);
        let mut pieces = Vec::new();
        for at in (0..u64::from(count)).map(|at| at * 16) {
            let (addr, pages) = (word(at)?, word(at + 8)? as u32);
            pieces.push((addr, u64::from(pages) * page));
        }
        let bytes: u64 = pieces.iter().map(|(_, bytes)| bytes).sum();
        let good = dword11 & 1 == 1
            && list & 0xf == 0
            && self.borrowed.pieces.is_empty()
            && bytes == u64::from(pages) * page
            && bytes >= u64::from(least) << 12
            && bytes <= u64::from(preferred) << 12
            && (most == 0 || pieces.len() <= usize::from(most))
            && pieces.iter().all(|(addr, bytes)| {
                addr & (page - 1) == 0 && *bytes >= u64::from(piece) << 12 && *bytes != 0
            });
        if !good {
            self.complain(format!("no good host memory: {dword11:#x}, {pieces:x?}"));
            return Err(INVALID_FIELD);
        }
        let again = dword11 & 2 != 0;
        if again {
            for (addr, bytes) in &pieces {
                for at in [*addr, addr + bytes - 8] {
                    if bus.read64(at) != Ok(self.borrowed.mark) {
                        self.complain("host memory is not what it was");
                        return Err(INVALID_FIELD);
                    }
                }
            }
        }
        self.borrowed.times.0 += 1;
        self.borrowed.times.1 += u32::from(again);
        self.borrowed.pieces = pieces;
        self.use_borrowed();
        Ok(0)
    }

    /// It keeps something at both ends of each piece, and expects it there.
    pub fn use_borrowed(&mut self) {
        let bus = self.platform.bus();
        self.borrowed.mark += 1;
        let mark = self.borrowed.mark.to_le_bytes();
        for (addr, bytes) in &self.borrowed.pieces {
            // A miss is counted by the bus.
            let _ = bus.write(*addr, &mark);
            let _ = bus.write(addr + bytes - 8, &mark);
        }
    }
}
