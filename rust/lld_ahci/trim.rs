// SPDX-License-Identifier: GPL-2.0
//! DATA SET MANAGEMENT, TRIM (ACS-4 section 7.6): ranges of blocks that are no longer needed, as a sector of data.

use crate::memory::{Table, SECTOR_BYTES};
use hal::{CmdError, Command, DmaMem};

/// Ranges of one command: a sector of them, 8 bytes each.
pub(crate) const RANGES_MAX: usize = SECTOR_BYTES / 8;
/// Blocks of a range (16 bits).
pub(crate) const RANGE_BLOCKS: u32 = 0xffff;
/// Most blocks of one command.
pub(crate) const BLOCKS_MAX: u32 = RANGE_BLOCKS * RANGES_MAX as u32;

/// Writes the ranges of `cmd` to its table, the rest of the sector as none. Its blocks are checked to be on a disk of 48 bits.
pub(crate) fn write_ranges<D: DmaMem>(cmd: &Command, table: &Table<'_, D>) -> Result<(), CmdError> {
    if cmd.blocks == 0 || cmd.blocks > BLOCKS_MAX {
        return Err(CmdError::Invalid);
    }
    let (mut at, mut left) = (cmd.lba, cmd.blocks);
    for index in 0..RANGES_MAX {
        let now = left.min(RANGE_BLOCKS);
        let range = match now {
            0 => 0,
            now => (at & 0xffff_ffff_ffff) | (u64::from(now) << 48),
        };
        table.write_range(index, range);
        at = at.wrapping_add(u64::from(now));
        left = left.wrapping_sub(now);
    }
    Ok(())
}
