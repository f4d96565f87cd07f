// SPDX-License-Identifier: GPL-2.0
//! I/O commands as submission queue entries (Base 2.0 section 3.3.3.1, NVM Command Set 1.0 section
//! 3.2).

use crate::data::{Layout, RANGES_MAX};
use crate::lists::List;
use hal::{CmdError, Command, Op, Platform, Segment};

/// A submission queue entry.
pub(crate) type Sqe = [u64; 8];
/// Bytes of an entry.
pub(crate) const BYTES: usize = 64;

/// Where entry `index` is.
#[inline]
pub(crate) const fn offset(index: u16) -> usize {
    (index as usize) << 6
}

const FLUSH: u64 = 0x00;
const WRITE: u64 = 0x01;
const READ: u64 = 0x02;
const WRITE_ZEROES: u64 = 0x08;
const DATASET_MANAGEMENT: u64 = 0x09;

/// Command dword 12 of read, write, write zeroes: force unit access.
const FUA: u64 = 1 << 30;
/// Command dword 12 of write zeroes: deallocate the blocks, if they read as zeroes then (DEAC).
const DEAC: u64 = 1 << 25;
/// Command dword 11 of Dataset Management: deallocate.
const DEALLOCATE: u64 = 1 << 2;

/// Most logical blocks of a command whose length is 16 bits, less one.
pub(crate) const BLOCKS_MAX: u32 = 1 << 16;

/// Encodes `cmd` for the tag whose CID is `cid` and whose list is `list`; most commands need none.
#[inline]
pub(crate) fn encode<P: Platform>(
    cmd: &Command,
    cid: u16,
    layout: &Layout,
    data: &mut impl Iterator<Item = Result<Segment, CmdError>>,
    list: &mut List<'_, P>,
) -> Result<Sqe, CmdError> {
    let opcode = match cmd.op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Flush => return Ok(entry(FLUSH, cid, cmd.unit, [0, 0], 0, 0)),
        Op::WriteZeroes if !layout.zeroes_by_discard => {
            let deac = if cmd.unmap { DEAC } else { 0 };
            let length = length(cmd)? | deac;
            return Ok(entry(WRITE_ZEROES, cid, cmd.unit, [0, 0], cmd.lba, length));
        }
        Op::Discard | Op::WriteZeroes => {
            list.begin_page()?;
            let ranges = write_ranges(cmd, data, list)?;
            let at = [list.bus()?, 0];
            // Dword 10: ranges, less one.
            let dwords = ranges.wrapping_sub(1) | (DEALLOCATE << 32);
            return Ok(entry(DATASET_MANAGEMENT, cid, cmd.unit, at, dwords, 0));
        }
    };
    let length = length(cmd)?;
    let bytes = u64::from(cmd.blocks)
        .checked_shl(u32::from(cmd.block_shift))
        .and_then(|bytes| u32::try_from(bytes).ok())
        .filter(|&bytes| bytes <= layout.max_transfer)
        .ok_or(CmdError::Invalid)?;
    let pointer = layout.describe(data, bytes, list)?;
    let opcode = opcode | pointer.psdt;
    Ok(entry(opcode, cid, cmd.unit, pointer.words, cmd.lba, length))
}

/// Writes the ranges of a discard, those of `cmd` or that which it is itself, to `list`; says how
/// many they are, 1 to [`RANGES_MAX`].
#[cold]
fn write_ranges<P: Platform>(
    cmd: &Command,
    ranges: impl Iterator<Item = Result<Segment, CmdError>>,
    list: &mut List<'_, P>,
) -> Result<u64, CmdError> {
    let (mut count, mut left) = (0usize, cmd.blocks);
    let mut write = |range: Segment| {
        if range.len == 0 || count >= usize::from(RANGES_MAX) {
            return Err(CmdError::Invalid);
        }
        left = left.checked_sub(range.len).ok_or(CmdError::Invalid)?;
        // Context attributes and length, then the first block.
        list.write_pair(count, [u64::from(range.len) << 32, range.addr])?;
        count = count.wrapping_add(1);
        Ok(())
    };
    for range in ranges {
        write(range?)?;
    }
    if count == 0 {
        let (addr, len) = (cmd.lba, cmd.blocks);
        list.write_pair(0, [u64::from(len) << 32, addr])?;
        (count, left) = (1, u32::from(len == 0));
    }
    match left {
        0 => Ok(count as u64),
        _ => Err(CmdError::Invalid),
    }
}

/// Dword 12: blocks, less one, and FUA.
#[inline]
fn length(cmd: &Command) -> Result<u64, CmdError> {
    match cmd.blocks {
        blocks @ 1..=BLOCKS_MAX => {
            let fua = if cmd.fua { FUA } else { 0 };
            Ok(u64::from(blocks.wrapping_sub(1)) | fua)
        }
        _ => Err(CmdError::Invalid),
    }
}

#[inline]
fn entry(opcode: u64, cid: u16, nsid: u32, dptr: [u64; 2], dword10: u64, dword12: u64) -> Sqe {
    let first = opcode | (u64::from(cid) << 16) | (u64::from(nsid) << 32);
    [first, 0, 0, dptr[0], dptr[1], dword10, dword12, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_zero_based_and_bounded() {
        let mut cmd = Command {
            op: Op::Write,
            unit: 1,
            lba: 0,
            blocks: 1,
            block_shift: 9,
            fua: false,
            unmap: false,
        };
        assert_eq!(length(&cmd), Ok(0));
        cmd.blocks = BLOCKS_MAX;
        cmd.fua = true;
        assert_eq!(length(&cmd), Ok(0x4000_ffff));
        cmd.blocks = BLOCKS_MAX + 1;
        assert_eq!(length(&cmd), Err(CmdError::Invalid));
        cmd.blocks = 0;
        assert_eq!(length(&cmd), Err(CmdError::Invalid));
    }
}
