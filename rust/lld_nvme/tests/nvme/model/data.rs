// SPDX-License-Identifier: GPL-2.0
//! Where a command's data is: PRPs and SGLs walked as the specification says, and refused where
//! they break it.

use super::State;

/// PRP Offset Invalid.
const PRP_OFFSET: u16 = 0x4013;
/// Invalid SGL Segment Descriptor; Data SGL Length Invalid; SGL Descriptor Type Invalid.
const SGL_SEGMENT: u16 = 0x400d;
const SGL_LENGTH: u16 = 0x400f;
const SGL_TYPE: u16 = 0x4011;
/// Data Transfer Error.
const TRANSFER: u16 = 0x0004;

/// Where a piece is that goes nowhere.
pub const BUCKET: u64 = u64::MAX;

impl State {
    /// The pieces of `bytes` of data; [`BUCKET`]: that is not transferred.
    pub fn walk(&mut self, sqe: &[u64; 8], bytes: u64) -> Result<Vec<(u64, u32)>, u16> {
        match (sqe[0] >> 14) & 3 {
            0 => self.walk_prps(sqe[3], sqe[4], bytes),
            1 => self.walk_sgl(sqe[3], sqe[4], bytes),
            _ => Err(SGL_TYPE),
        }
    }

    fn walk_prps(&mut self, prp1: u64, prp2: u64, bytes: u64) -> Result<Vec<(u64, u32)>, u16> {
        let page = self.page();
        if prp1 & 3 != 0 {
            return Err(PRP_OFFSET);
        }
        let first = bytes.min(page - prp1 % page);
        let mut pieces = vec![(prp1, first as u32)];
        let mut left = bytes - first;
        if left == 0 {
            if prp2 != 0 {
                self.complain("PRP 2 without use");
            }
            return Ok(pieces);
        }
        if left <= page {
            if prp2 % page != 0 {
                return Err(PRP_OFFSET);
            }
            pieces.push((prp2, left as u32));
            return Ok(pieces);
        }
        let mut at = prp2;
        if at % self.config.frail.lists_at != 0 {
            return Err(PRP_OFFSET);
        }
        while left != 0 {
            let entry = self.platform.bus().read64(at).map_err(|_| TRANSFER)?;
            if entry % page != 0 {
                return Err(PRP_OFFSET);
            }
            // The last entry of a list's page points to the next one, when there is more than a
            // page left.
            if at % page == page - 8 && left > page {
                at = entry;
                continue;
            }
            let now = left.min(page);
            pieces.push((entry, now as u32));
            left -= now;
            at += 8;
        }
        Ok(pieces)
    }

    fn walk_sgl(&mut self, addr: u64, second: u64, bytes: u64) -> Result<Vec<(u64, u32)>, u16> {
        let align = match self.config.sgls & 3 {
            1 => 0,
            2 => 3,
            _ => return Err(0x4002),
        };
        let buckets = self.config.sgls & (1 << 16) != 0;
        let block = |addr: u64, second: u64| {
            let len = second & 0xffff_ffff;
            let aligned = (addr | len) & align == 0;
            match second >> 56 {
                0x00 if aligned => Ok((addr, len as u32)),
                0x10 if buckets && aligned && addr == 0 => Ok((BUCKET, len as u32)),
                0x00 | 0x10 => Err(SGL_SEGMENT),
                _ => Err(SGL_TYPE),
            }
        };
        let pieces = match second >> 56 {
            0x30 => {
                let length = second & 0xffff_ffff;
                if length == 0 || length % 16 != 0 || addr & 7 != 0 {
                    return Err(SGL_SEGMENT);
                }
                let bus = self.platform.bus();
                let read = |at: u64| bus.read64(at).map_err(|_| TRANSFER);
                (0..length / 16)
                    .map(|n| block(read(addr + n * 16)?, read(addr + n * 16 + 8)?))
                    .collect::<Result<Vec<_>, u16>>()?
            }
            _ => vec![block(addr, second)?],
        };
        let sum: u64 = pieces.iter().map(|(_, len)| u64::from(*len)).sum();
        if sum != bytes {
            return Err(SGL_LENGTH);
        }
        Ok(pieces)
    }
}
