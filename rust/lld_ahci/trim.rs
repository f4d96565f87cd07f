// SPDX-License-Identifier: GPL-2.0
//! DATA SET MANAGEMENT, TRIM (ACS-4 section 7.6): ranges of blocks that are no longer needed, as a
//! sector of data.

use crate::command::LBA_END;
use crate::memory::{Table, SECTOR_BYTES};
use hal::{CmdError, Command, DmaMem, Segment};

/// Ranges of one command: a sector of them, 8 bytes each.
pub(crate) const RANGES_MAX: usize = SECTOR_BYTES / 8;
/// Blocks of a range (16 bits).
pub(crate) const RANGE_BLOCKS: u32 = 0xffff;
/// Most blocks of one command.
pub(crate) const BLOCKS_MAX: u32 = RANGE_BLOCKS * RANGES_MAX as u32;

/// Most ranges of the layer above in a command of up to `blocks` blocks: whatever their lengths,
/// they fit the sector, where each takes an entry for every [`RANGE_BLOCKS`] that it begins.
pub(crate) fn max_ranges(blocks: u32) -> u16 {
    let full = usize::try_from(blocks / RANGE_BLOCKS).unwrap_or(RANGES_MAX);
    // CAST: at most 64.
    RANGES_MAX.saturating_sub(full).max(1) as u16
}

/// Writes `ranges`, or, if there are none, that which `cmd` is itself, to its table, the rest of
/// the sector as none. [`CmdError::Range`]: not on a disk of 48 bits. [`CmdError::Invalid`]: they
/// are not the blocks of `cmd`, or don't fit.
pub(crate) fn write_ranges<D: DmaMem>(
    cmd: &Command,
    ranges: impl Iterator<Item = Result<Segment, CmdError>>,
    table: &Table<'_, D>,
) -> Result<(), CmdError> {
    let mut sector = Sector { table, count: 0 };
    let mut left = cmd.blocks;
    for range in ranges {
        let range = range?;
        left = left.checked_sub(range.len).ok_or(CmdError::Invalid)?;
        sector.add(range.addr, range.len)?;
    }
    if sector.count == 0 {
        sector.add(cmd.lba, core::mem::take(&mut left))?;
    }
    if left != 0 {
        return Err(CmdError::Invalid);
    }
    for index in sector.count..RANGES_MAX {
        table.write_range(index, 0);
    }
    Ok(())
}

/// A sector of entries, filled from the front.
struct Sector<'a, 'b, D> {
    table: &'a Table<'b, D>,
    count: usize,
}

impl<D: DmaMem> Sector<'_, '_, D> {
    fn add(&mut self, mut at: u64, mut left: u32) -> Result<(), CmdError> {
        if left == 0 {
            return Err(CmdError::Invalid);
        }
        let end = at.checked_add(u64::from(left));
        if end.is_none_or(|end| end > LBA_END) {
            return Err(CmdError::Range);
        }
        while left != 0 {
            if self.count >= RANGES_MAX {
                return Err(CmdError::Invalid);
            }
            let now = left.min(RANGE_BLOCKS);
            self.table
                .write_range(self.count, at | (u64::from(now) << 48));
            self.count = self.count.wrapping_add(1);
            at = at.wrapping_add(u64::from(now));
            left = left.wrapping_sub(now);
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn whatever_their_lengths_the_ranges_fit() {
        for blocks in [1, RANGE_BLOCKS, 1 << 18, BLOCKS_MAX / 2, BLOCKS_MAX] {
            let ranges = u32::from(max_ranges(blocks));
            // The worst: all but one of a block, and the rest in the last.
            let last = blocks.saturating_sub(ranges - 1).div_ceil(RANGE_BLOCKS);
            assert!(ranges - 1 + last <= RANGES_MAX as u32, "{blocks}");
        }
        assert_eq!(max_ranges(BLOCKS_MAX), 1);
        // 128 MiB of 512 bytes.
        assert_eq!(max_ranges(1 << 18), 60);
    }
}
