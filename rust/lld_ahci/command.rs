// SPDX-License-Identifier: GPL-2.0
//! Commands of the data path as ATA commands (ACS-4 section 7), queued (native command queuing) and
//! not.

use crate::fis::Taskfile;
use crate::memory::Memory;
use crate::{prdt, trim};
use hal::{CmdError, Command, Op, Platform, Segment};

const READ_DMA_EXT: u8 = 0x25;
const WRITE_DMA_EXT: u8 = 0x35;
const WRITE_DMA_FUA_EXT: u8 = 0x3d;
const READ_FPDMA_QUEUED: u8 = 0x60;
const WRITE_FPDMA_QUEUED: u8 = 0x61;
const SEND_FPDMA_QUEUED: u8 = 0x64;
const DATA_SET_MANAGEMENT: u8 = 0x06;
pub(crate) const FLUSH_CACHE_EXT: u8 = 0xea;
pub(crate) const READ_LOG_EXT: u8 = 0x2f;
pub(crate) const IDENTIFY_DEVICE: u8 = 0xec;
pub(crate) const STANDBY_IMMEDIATE: u8 = 0xe0;
pub(crate) const SET_FEATURES: u8 = 0xef;

/// Device register: the address is an LBA.
const LBA: u8 = 1 << 6;
/// Device register of a queued write: force unit access.
const FUA: u8 = 1 << 7;
/// Features (or auxiliary) of DATA SET MANAGEMENT: TRIM.
const TRIM: u16 = 1;
/// Count 0: as many blocks.
pub(crate) const BLOCKS_MAX: u32 = 1 << 16;
/// Addresses have 48 bits.
pub(crate) const LBA_END: u64 = 1 << 48;

/// How a drive is spoken to: decided once, from what it says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Reads and writes are queued.
    pub(crate) ncq: bool,
    /// So is TRIM.
    pub(crate) queued_trim: bool,
    /// Writes with FUA are there.
    pub(crate) fua: bool,
    /// Most blocks of a TRIM; 0: there is none.
    pub(crate) trim_blocks: u32,
    /// The port, which is the disk's number.
    pub(crate) unit: u32,
    /// Bytes of a logical block, log2.
    pub(crate) block_shift: u8,
    /// The first address that the HBA does not reach; 0: none.
    pub(crate) below: u64,
}

/// Writes `cmd` with its `data` to `slot`, as a queued command where `ncq` (which the drive has)
/// and there is one. Returns whether it is a queued command.
#[inline]
pub(crate) fn write<P: Platform>(
    memory: &Memory<P>,
    dialect: &Dialect,
    ncq: bool,
    slot: u8,
    cmd: &Command,
    data: impl Iterator<Item = Result<Segment, CmdError>>,
) -> Result<bool, CmdError> {
    if cmd.unit != dialect.unit {
        return Err(CmdError::Invalid);
    }
    let table = memory.table(slot).ok_or(CmdError::Invalid)?;
    let write = match cmd.op {
        Op::Read => false,
        Op::Write => true,
        _ => return write_other(memory, dialect, ncq, slot, cmd, data),
    };
    let bytes = bytes(cmd, dialect)?;
    let taskfile = match (dialect.ncq, ncq) {
        (true, true) => queued(cmd, slot, write, dialect),
        (true, false) => singly(queued(cmd, slot, write, dialect)),
        (false, _) => unqueued(cmd, write),
    };
    let entries = prdt::build(data, bytes, dialect.below, &table)?;
    table.write_cfis(taskfile.encode());
    memory.write_header(slot, write, entries);
    Ok(ncq)
}

/// Commands without data of the layer above.
#[cold]
fn write_other<P: Platform>(
    memory: &Memory<P>,
    dialect: &Dialect,
    ncq: bool,
    slot: u8,
    cmd: &Command,
    ranges: impl Iterator<Item = Result<Segment, CmdError>>,
) -> Result<bool, CmdError> {
    let table = memory.table(slot).ok_or(CmdError::Invalid)?;
    let (taskfile, entries, queued) = match cmd.op {
        Op::Flush => (flush(), 0, false),
        Op::Discard if dialect.trim_blocks != 0 => {
            if cmd.blocks > dialect.trim_blocks {
                return Err(CmdError::Invalid);
            }
            trim::write_ranges(cmd, ranges, &table)?;
            prdt::point_to_ranges(&table, crate::memory::SECTOR_BYTES as u32);
            match ncq && dialect.queued_trim {
                true => (queued_trim(slot), 1, true),
                false => (unqueued_trim(), 1, false),
            }
        }
        _ => return Err(CmdError::Unsupported),
    };
    table.write_cfis(taskfile.encode());
    memory.write_header(slot, entries != 0, entries);
    Ok(queued)
}

/// The bytes of a read or write, if it can be said in one command.
#[inline]
fn bytes(cmd: &Command, dialect: &Dialect) -> Result<u32, CmdError> {
    let fits = cmd.blocks != 0 && cmd.blocks <= BLOCKS_MAX;
    if !fits || cmd.block_shift != dialect.block_shift {
        return Err(CmdError::Invalid);
    }
    within(cmd)?;
    // At most 2^16 blocks of 2^12 bytes.
    Ok(cmd.blocks.wrapping_shl(u32::from(cmd.block_shift)))
}

/// An address beyond what a drive can have is no command's.
#[inline]
fn within(cmd: &Command) -> Result<(), CmdError> {
    let end = cmd.lba.checked_add(u64::from(cmd.blocks));
    match end.is_some_and(|end| end <= LBA_END) {
        true => Ok(()),
        false => Err(CmdError::Range),
    }
}

/// READ or WRITE FPDMA QUEUED (7.23, 7.63): the count is in the features, the tag in the count.
#[inline]
fn queued(cmd: &Command, slot: u8, write: bool, dialect: &Dialect) -> Taskfile {
    let (command, fua) = match write {
        true => (WRITE_FPDMA_QUEUED, cmd.fua && dialect.fua),
        false => (READ_FPDMA_QUEUED, false),
    };
    Taskfile {
        command,
        // CAST: 65,536 is said as 0.
        features: cmd.blocks as u16,
        count: u16::from(slot) << 3,
        lba: cmd.lba,
        device: if fua { LBA | FUA } else { LBA },
        auxiliary: 0,
    }
}

/// READ DMA EXT, WRITE DMA EXT (7.20, 7.58): a drive without queues has no FUA that is trusted.
#[inline]
fn unqueued(cmd: &Command, write: bool) -> Taskfile {
    Taskfile {
        command: match write {
            false => READ_DMA_EXT,
            true => WRITE_DMA_EXT,
        },
        // CAST: 65,536 is said as 0.
        count: cmd.blocks as u16,
        lba: cmd.lba,
        device: LBA,
        ..Taskfile::default()
    }
}

/// FLUSH CACHE EXT (7.9).
pub(crate) fn flush() -> Taskfile {
    Taskfile {
        command: FLUSH_CACHE_EXT,
        device: LBA,
        ..Taskfile::default()
    }
}

/// DATA SET MANAGEMENT with one sector of ranges (7.6).
fn unqueued_trim() -> Taskfile {
    Taskfile {
        command: DATA_SET_MANAGEMENT,
        features: TRIM,
        count: 1,
        device: LBA,
        ..Taskfile::default()
    }
}

/// SEND FPDMA QUEUED, subcommand 0 (7.44): the same, queued.
fn queued_trim(slot: u8) -> Taskfile {
    Taskfile {
        command: SEND_FPDMA_QUEUED,
        features: 1,
        count: u16::from(slot) << 3,
        device: LBA,
        auxiliary: u32::from(TRIM),
        ..Taskfile::default()
    }
}

/// The same command as one that is not queued, for a device that is to get commands one by one.
/// What is no queued command stays.
pub(crate) fn singly(queued: Taskfile) -> Taskfile {
    let plain = |command| Taskfile {
        command,
        count: queued.features,
        lba: queued.lba,
        device: LBA,
        ..Taskfile::default()
    };
    match (queued.command, queued.device & FUA) {
        (READ_FPDMA_QUEUED, _) => plain(READ_DMA_EXT),
        (WRITE_FPDMA_QUEUED, 0) => plain(WRITE_DMA_EXT),
        (WRITE_FPDMA_QUEUED, _) => plain(WRITE_DMA_FUA_EXT),
        (SEND_FPDMA_QUEUED, _) => unqueued_trim(),
        _ => queued,
    }
}
