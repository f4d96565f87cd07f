// SPDX-License-Identifier: GPL-2.0
//! A command as the HBA finds it in memory, and what it is answered with.
//!
//! # Before the device
//! [`write()`] makes an ATA command (ACS-4 section 7) of one of the data path, queued (native
//! command queuing) or not. It goes to the slot's table: the registers as an H2D Register FIS
//! ([`Taskfile`], Serial ATA 3.x section 10.5.5), and where the data is as a physical region
//! descriptor table ([`build`], AHCI 1.3.1 section 4.2.3.3). A TRIM (DATA SET MANAGEMENT, ACS-4
//! section 7.6) has a sector of data of its own there, with the ranges of blocks that are no longer
//! needed ([`write_ranges`]).
//!
//! # Memory
//! One page of a port's ([`Memory`], AHCI 1.3.1 section 4) has the command list, the FIS area, and
//! a table and a sector of the driver's own; each slot has a page for its command table: the
//! command FIS, the PRDT, and the ranges of a TRIM behind it.
//!
//! # Answers
//! The first words of the two FISes that answer a command (Serial ATA 3.x sections 10.5.6, 10.5.7)
//! say whether it ended, and whether it failed. Status and error bytes (ACS-4 sections 6.2, 6.3)
//! become the terms of the layer above ([`failure`]). Kinds, and what is tried again, are libata's
//! in Linux 7.3: `ata_to_sense_error` in drivers/ata/libata-scsi.c and `ata_eh_analyze_tf`,
//! `ata_eh_worth_retry` in drivers/ata/libata-eh.c. A block that can't be read is not read again:
//! the drive has tried for long enough. Everything else of a file system is: the link may have
//! spoilt it.

use hal::{CmdError, Command, DmaMem, Error, Failure, Op, Outcome, Platform, Segment};

use crate::regs::{STATUS_DF, STATUS_ERR};

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
const BLOCKS_MAX: u32 = 1 << 16;
/// Addresses have 48 bits.
const LBA_END: u64 = 1 << 48;

/// How a drive is spoken to: decided once, from what it says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandSet {
    /// Reads and writes are queued.
    pub(crate) ncq: bool,
    /// TRIM is queued, too.
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
    pub(crate) dma_limit: u64,
}

/// Writes `cmd` with its `data` to `slot`, as a queued command where `ncq` (which the drive has)
/// and there is one. Returns whether it is a queued command.
#[inline]
pub(crate) fn write<P: Platform>(
    memory: &Memory<P>,
    cmd_set: &CommandSet,
    ncq: bool,
    slot: u8,
    cmd: &Command,
    data: impl Iterator<Item = Result<Segment, CmdError>>,
) -> Result<bool, CmdError> {
    if cmd.unit != cmd_set.unit {
        return Err(CmdError::Invalid);
    }
    let table = memory.table(slot).ok_or(CmdError::Invalid)?;
    let write = match cmd.op {
        Op::Read => false,
        Op::Write => true,
        _ => return write_other(memory, cmd_set, ncq, slot, cmd, data),
    };
    let bytes = bytes(cmd, cmd_set)?;
    let taskfile = match (cmd_set.ncq, ncq) {
        (true, true) => rw_fpdma(cmd, slot, write, cmd_set),
        (true, false) => to_non_ncq(rw_fpdma(cmd, slot, write, cmd_set)),
        (false, _) => rw_dma_ext(cmd, write),
    };
    let entries = build(data, bytes, cmd_set.dma_limit, &table)?;
    table.write_cfis(taskfile.encode());
    memory.write_header(slot, write, entries);
    Ok(ncq)
}

/// Commands without data of the layer above.
#[cold]
fn write_other<P: Platform>(
    memory: &Memory<P>,
    cmd_set: &CommandSet,
    ncq: bool,
    slot: u8,
    cmd: &Command,
    ranges: impl Iterator<Item = Result<Segment, CmdError>>,
) -> Result<bool, CmdError> {
    let table = memory.table(slot).ok_or(CmdError::Invalid)?;
    let (taskfile, entries, queued) = match cmd.op {
        Op::Flush => (flush(), 0, false),
        Op::Discard if cmd_set.trim_blocks != 0 => {
            if cmd.blocks > cmd_set.trim_blocks {
                return Err(CmdError::Invalid);
            }
            write_ranges(cmd, ranges, &table)?;
            point_to_ranges(&table, SECTOR_BYTES as u32);
            match ncq && cmd_set.queued_trim {
                true => (trim_ncq(slot), 1, true),
                false => (trim_non_ncq(), 1, false),
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
fn bytes(cmd: &Command, cmd_set: &CommandSet) -> Result<u32, CmdError> {
    let fits = cmd.blocks != 0 && cmd.blocks <= BLOCKS_MAX;
    if !fits || cmd.block_shift != cmd_set.block_shift {
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
fn rw_fpdma(cmd: &Command, slot: u8, write: bool, cmd_set: &CommandSet) -> Taskfile {
    let (command, fua) = match write {
        true => (WRITE_FPDMA_QUEUED, cmd.fua && cmd_set.fua),
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
fn rw_dma_ext(cmd: &Command, write: bool) -> Taskfile {
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
fn trim_non_ncq() -> Taskfile {
    Taskfile {
        command: DATA_SET_MANAGEMENT,
        features: TRIM,
        count: 1,
        device: LBA,
        ..Taskfile::default()
    }
}

/// SEND FPDMA QUEUED, subcommand 0 (7.44): the same, queued.
fn trim_ncq(slot: u8) -> Taskfile {
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
pub(crate) fn to_non_ncq(queued: Taskfile) -> Taskfile {
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
        (SEND_FPDMA_QUEUED, _) => trim_non_ncq(),
        _ => queued,
    }
}

/// An H2D Register FIS, five dwords, as 64-bit words.
type Cfis = [u64; 3];

/// H2D Register FIS: its type.
const H2D: u8 = 0x27;
/// H2D Register FIS: the command register was written.
const COMMAND: u64 = 1 << 15;

/// ATA registers of a 48-bit command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taskfile {
    pub(crate) command: u8,
    pub(crate) features: u16,
    pub(crate) count: u16,
    /// 48 bits.
    pub(crate) lba: u64,
    pub(crate) device: u8,
    pub(crate) auxiliary: u32,
}

impl Taskfile {
    /// The FIS that carries it.
    #[inline]
    pub(crate) const fn encode(&self) -> Cfis {
        let low = self.lba & 0xff_ffff;
        let high = (self.lba >> 24) & 0xff_ffff;
        let features = self.features as u64;
        [
            (H2D as u64)
                | COMMAND
                | ((self.command as u64) << 16)
                | ((features & 0xff) << 24)
                | (low << 32)
                | ((self.device as u64) << 56),
            high | ((features >> 8) << 24) | ((self.count as u64) << 32),
            self.auxiliary as u64,
        ]
    }

    /// The registers in a FIS that [`Taskfile::encode`] made, whatever became of it in memory that
    /// the HBA can write.
    pub(crate) const fn decode(cfis: Cfis) -> Self {
        let [first, second, third] = cfis;
        // CAST: fields of their widths.
        Self {
            command: (first >> 16) as u8,
            features: (((first >> 24) & 0xff) | (((second >> 24) & 0xff) << 8)) as u16,
            count: (second >> 32) as u16,
            lba: ((first >> 32) & 0xff_ffff) | ((second & 0xff_ffff) << 24),
            device: (first >> 56) as u8,
            auxiliary: third as u32,
        }
    }
}

/// Entries of a slot's table: what a page holds beside the command FIS and the ranges of a TRIM.
pub(crate) const ENTRIES: usize = 216;
/// Bytes of an entry.
const BYTES: usize = 16;
/// Most bytes of an entry's data (`DBC`, 22 bits).
pub(crate) const ENTRY_MAX: u32 = 1 << 22;
/// What an address and a length must not have: data is moved in words of 16 bits.
pub(crate) const ALIGN: u32 = 1;

/// No entry's data crosses 4 GiB, as libata has it (`AHCI_DMA_BOUNDARY`, Linux 7.3): there are HBAs
/// that carry no address bit from the lower half to the upper.
pub(crate) const BOUNDARY: u64 = 0xffff_ffff;

/// `DBC` of `len` bytes, 1 to [`ENTRY_MAX`].
#[inline]
pub(crate) const fn count(len: u32) -> u32 {
    len.wrapping_sub(1)
}

/// An entry, if `segment` can be one; `below` is the first address that the HBA does not reach, 0
/// for none.
#[inline]
fn entry(segment: Segment, dma_limit: u64) -> Result<[u64; 2], CmdError> {
    let odd = (segment.addr as u32 | segment.len) & ALIGN != 0;
    let end = segment.addr.checked_add(u64::from(segment.len));
    let far = match dma_limit {
        0 => end.is_none(),
        dma_limit => end.is_none_or(|end| end > dma_limit),
    };
    if odd || far || segment.len == 0 || segment.len > ENTRY_MAX {
        return Err(CmdError::Invalid);
    }
    Ok([segment.addr, u64::from(count(segment.len)) << 32])
}

/// Writes `bytes` of `data` to `table`. Returns how many entries they take.
///
/// [`CmdError::Invalid`]: the segments are odd, too many, out of reach, or not `bytes` in sum.
#[inline]
fn build<D: DmaMem>(
    mut data: impl Iterator<Item = Result<Segment, CmdError>>,
    bytes: u32,
    dma_limit: u64,
    table: &Table<'_, D>,
) -> Result<u16, CmdError> {
    let mut left = bytes;
    let mut entries = 0u16;
    while left != 0 {
        let mut segment = data.next().ok_or(CmdError::Invalid)??;
        left = left.checked_sub(segment.len).ok_or(CmdError::Invalid)?;
        // An IOMMU may have made one range of all of the data: more than an entry says.
        while segment.len > ENTRY_MAX {
            let part = Segment {
                len: ENTRY_MAX,
                ..segment
            };
            add(part, &mut entries, dma_limit, table)?;
            let next = segment.addr.checked_add(u64::from(ENTRY_MAX));
            segment = Segment {
                addr: next.ok_or(CmdError::Invalid)?,
                len: segment.len.wrapping_sub(ENTRY_MAX),
            };
        }
        add(segment, &mut entries, dma_limit, table)?;
    }
    Ok(entries)
}

#[inline(always)]
fn add<D: DmaMem>(
    segment: Segment,
    entries: &mut u16,
    dma_limit: u64,
    table: &Table<'_, D>,
) -> Result<(), CmdError> {
    let index = usize::from(*entries);
    if index >= ENTRIES {
        return Err(CmdError::Invalid);
    }
    table.write_entry(index, entry(segment, dma_limit)?);
    *entries = entries.wrapping_add(1);
    Ok(())
}

/// Writes the one entry of a TRIM's ranges, `bytes` of them.
fn point_to_ranges<D: DmaMem>(table: &Table<'_, D>, bytes: u32) {
    let entry = [table.ranges_bus(), u64::from(count(bytes)) << 32];
    table.write_entry(0, entry);
}

/// Ranges of one command: a sector of them, 8 bytes each.
const RANGES_MAX: usize = SECTOR_BYTES / 8;
/// Blocks of a range (16 bits).
const RANGE_BLOCKS: u32 = 0xffff;
/// Most blocks of one command.
pub(crate) const TRIM_BLOCKS_MAX: u32 = RANGE_BLOCKS * RANGES_MAX as u32;

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
fn write_ranges<D: DmaMem>(
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

/// Command slots of a port at most.
const SLOTS_MAX: u8 = 32;
/// Where the FIS area begins (its alignment: 256).
const FIS: usize = 0x400;
/// In the FIS area: the D2H Register FIS and the Set Device Bits FIS (4.2.1).
const RFIS: usize = FIS + 0x40;
const SDBFIS: usize = FIS + 0x58;
/// Bytes of the FIS area.
const FIS_BYTES: usize = 0x100;
/// The sector and the command table of the driver's own commands.
const SECTOR: usize = 0x800;
const OWN_TABLE: usize = 0xa00;
/// Bytes of a sector of an IDENTIFY or of a log.
pub(crate) const SECTOR_BYTES: usize = 512;

/// Bytes of a slot's command table with its ranges, log2: a page.
const TABLE_SHIFT: u32 = 12;
/// In a command table: where the PRDT begins (4.2.3).
const PRDT: usize = 0x80;
/// In a command table: where the ranges of a TRIM begin.
const RANGES: usize = PRDT + ENTRIES * BYTES;
/// Tables in one allocation, log2: 32 KiB, which a fragmented machine still has in one piece.
const CHUNK_SHIFT: u32 = 3;

/// Command header: a command FIS of five dwords (4.2.2).
const HEADER_CFL: u64 = 5;
/// Command header: memory to device.
const HEADER_WRITE: u64 = 1 << 6;

/// What a port and its HBA share.
pub(crate) struct Memory<P: Platform> {
    page: P::Dma,
    chunks: P::Table<Option<P::Dma>>,
}

impl<P: Platform> Memory<P> {
    /// Memory for `slots` slots. [`Error::Unsupported`]: it does not lie below `below`, the first
    /// address that the HBA does not reach; 0: it reaches all.
    pub(crate) fn new(platform: &P, slots: u8, dma_limit: u64) -> Result<Self, Error> {
        let reached = |memory: P::Dma| {
            let end = memory.bus_addr().saturating_add(memory.len() as u64);
            match dma_limit == 0 || end <= dma_limit {
                true => Ok(memory),
                false => Err(Error::Unsupported),
            }
        };
        let page = reached(platform.dma(1 << TABLE_SHIFT)?)?;
        let slots = usize::from(slots);
        let mut failed = None;
        let chunks = platform.table(slots.div_ceil(1 << CHUNK_SHIFT), |at| {
            let left = slots.saturating_sub(at << CHUNK_SHIFT);
            let tables = left.min(1 << CHUNK_SHIFT);
            match platform.dma(tables << TABLE_SHIFT).and_then(reached) {
                Ok(chunk) => Some(chunk),
                Err(why) => {
                    failed = Some(why);
                    None
                }
            }
        })?;
        match failed {
            Some(why) => Err(why),
            None => Ok(Self { page, chunks }),
        }
    }

    /// Where the command list is.
    pub(crate) fn list_bus(&self) -> u64 {
        self.page.bus_addr()
    }

    /// Where the FIS area is.
    pub(crate) fn fis_bus(&self) -> u64 {
        self.page.bus_addr().wrapping_add(FIS as u64)
    }

    /// Points every slot to its table, and forgets all FISes. While the HBA does not look.
    pub(crate) fn rewind(&self) {
        self.page.zero(FIS, FIS_BYTES);
        for slot in 0..SLOTS_MAX {
            let table = self.table(slot).map_or(0, |table| table.bus());
            self.page.write_words(header(slot), [0, table]);
        }
    }

    /// The command table of `slot`.
    #[inline]
    pub(crate) fn table(&self, slot: u8) -> Option<Table<'_, P::Dma>> {
        let slot = usize::from(slot);
        let memory = self.chunks.get(slot >> CHUNK_SHIFT)?.as_ref()?;
        Some(Table {
            memory,
            at: (slot & ((1 << CHUNK_SHIFT) - 1)) << TABLE_SHIFT,
        })
    }

    /// Writes the first half of the header of `slot`, which also zeroes PRDBC.
    #[inline]
    fn write_header(&self, slot: u8, write: bool, entries: u16) {
        let flags = if write { HEADER_WRITE } else { 0 };
        let word = HEADER_CFL | flags | (u64::from(entries) << 16);
        self.page.write64(header(slot), word);
    }

    /// Writes a command of the driver's own to slot 0, with `data` as address and length, which the
    /// device reads if it `writes`. Returns what it replaces, for [`Memory::unstage_internal`].
    pub(crate) fn stage_internal(&self, cfis: Cfis, writes: bool, data: Option<(u64, u32)>) -> u64 {
        let was = self.page.read64(header(0));
        self.page.write_words(OWN_TABLE, cfis);
        if let Some((addr, len)) = data {
            let entry = [addr, u64::from(count(len)) << 32];
            self.page.write_words(OWN_TABLE + PRDT, entry);
        }
        let table = self.page.bus_addr().wrapping_add(OWN_TABLE as u64);
        self.page.write64(header(0) | 8, table);
        self.write_header(0, writes, u16::from(data.is_some()));
        was
    }

    /// Gives slot 0 back.
    pub(crate) fn unstage_internal(&self, was: u64) {
        let table = self.table(0).map_or(0, |table| table.bus());
        // PRDBC starts from zero again.
        let words = [was & 0xffff_ffff, table];
        self.page.write_words(header(0), words);
    }

    /// Address and length of the sector.
    pub(crate) fn sector_bus(&self) -> (u64, u32) {
        let bus = self.page.bus_addr().wrapping_add(SECTOR as u64);
        (bus, SECTOR_BYTES as u32)
    }

    /// Fills the sector with what no device answers: one that writes less than it says is found out
    /// by the check sums.
    pub(crate) fn poison_sector(&self) {
        for at in (SECTOR..SECTOR + SECTOR_BYTES).step_by(4) {
            self.page.write32(at, 0x5a5a_a55b);
        }
    }

    /// The sector as the device left it, each word read once.
    pub(crate) fn sector(&self) -> [u8; SECTOR_BYTES] {
        let mut bytes = [0; SECTOR_BYTES];
        self.page.read_bytes(SECTOR, &mut bytes);
        bytes
    }

    /// The first words of the last Set Device Bits FIS and of the last D2H Register FIS.
    #[inline]
    pub(crate) fn fises(&self) -> (u32, u32) {
        (self.page.read32(SDBFIS), self.page.read32(RFIS))
    }

    /// The last D2H Register FIS, as far as registers are in it.
    pub(crate) fn rfis(&self) -> [u32; 4] {
        [0, 4, 8, 12].map(|word: usize| self.page.read32(RFIS.wrapping_add(word)))
    }

    /// The SActive word of the last Set Device Bits FIS.
    #[inline]
    pub(crate) fn sdb_active(&self) -> u32 {
        self.page.read32(SDBFIS + 4)
    }

    /// Forgets the Set Device Bits FIS, so that the next one is noticed.
    #[inline]
    pub(crate) fn clear_sdb(&self) {
        self.page.write32(SDBFIS, 0);
    }

    /// Forgets the D2H Register FIS, so that the next one is noticed.
    #[inline]
    pub(crate) fn clear_rfis(&self) {
        self.page.write32(RFIS, 0);
    }
}

/// Where the header of `slot` is.
#[inline]
const fn header(slot: u8) -> usize {
    (slot as usize) << 5
}

/// A slot's command table.
pub(crate) struct Table<'a, D> {
    memory: &'a D,
    at: usize,
}

impl<D: DmaMem> Table<'_, D> {
    /// Where the HBA finds it.
    fn bus(&self) -> u64 {
        self.memory.bus_addr().wrapping_add(self.at as u64)
    }

    /// Where the HBA finds the ranges.
    fn ranges_bus(&self) -> u64 {
        self.bus().wrapping_add(RANGES as u64)
    }

    /// Writes the command FIS.
    #[inline]
    pub(crate) fn write_cfis(&self, cfis: Cfis) {
        self.memory.write_words(self.at, cfis);
    }

    /// The command FIS that was written last, or what the HBA made of it.
    pub(crate) fn read_cfis(&self) -> Cfis {
        [0, 8, 16].map(|word: usize| self.memory.read64(self.at.wrapping_add(word)))
    }

    /// Writes entry `index`, below [`ENTRIES`].
    #[inline]
    fn write_entry(&self, index: usize, entry: [u64; 2]) {
        let at = PRDT.wrapping_add(index.wrapping_mul(BYTES));
        self.memory.write_words(self.at.wrapping_add(at), entry);
    }

    /// Writes range `index`, below [`RANGES_MAX`].
    fn write_range(&self, index: usize, range: u64) {
        let at = RANGES.wrapping_add(index.wrapping_mul(8));
        self.memory.write64(self.at.wrapping_add(at), range);
    }
}

// The ranges end with the page, and a table begins where the HBA wants it (a multiple of 128).
const _: () = assert!(RANGES + SECTOR_BYTES == 1 << TABLE_SHIFT && OWN_TABLE % 128 == 0);

/// Types of the FISes that answer: D2H Register, Set Device Bits.
const D2H: u32 = 0x34;
const SDB: u32 = 0xa1;
/// In either: the device asks for an interrupt.
const INTERRUPT: u32 = 1 << 14;

/// Whether the first word of the D2H Register FIS ends a command: a device also accepts each queued
/// one with such a FIS, silently.
#[inline]
pub(crate) const fn ends_command(rfis: u32) -> bool {
    rfis & INTERRUPT != 0 || is_error(rfis)
}

/// Whether the first word of a D2H Register FIS, or of a Set Device Bits FIS, reports an error.
#[inline]
pub(crate) const fn is_error(word: u32) -> bool {
    word & ((STATUS_ERR | STATUS_DF) << 16) != 0
}

/// Whether the first word of a Set Device Bits FIS has an error's code, whatever its status says:
/// that of an earlier one, perhaps, which this one has covered. Without an error the standard
/// leaves it open what stands there.
#[inline]
pub(crate) const fn has_error_code(sdb: u32) -> bool {
    sdb >> 24 != 0
}

/// Whether what is in the places of the two FISes is no such FIS at all.
#[inline]
pub(crate) const fn is_garbage(sdb: u32, rfis: u32) -> bool {
    (sdb != 0 && sdb & 0xff != SDB) || (rfis != 0 && rfis & 0xff != D2H)
}

/// Error: interface CRC; without `ABRT`, on old drives, a block marked bad.
pub(crate) const ICRC: u8 = 1 << 7;
/// Error: uncorrectable.
pub(crate) const UNC: u8 = 1 << 6;
/// Error: the address was not found.
pub(crate) const IDNF: u8 = 1 << 4;
/// Error: aborted.
pub(crate) const ABRT: u8 = 1 << 2;
/// Error: no address mark, on old drives.
pub(crate) const AMNF: u8 = 1;

/// What `status` and `error` mean for a command that the device names as failed.
pub(crate) fn failure(status: u8, error: u8) -> Failure {
    let faulty = u32::from(status) & STATUS_DF != 0;
    match error {
        error if error & (UNC | AMNF) != 0 => CmdError::Medium.permanent(),
        error if error & (ICRC | ABRT) == ICRC => CmdError::Medium.retryable(),
        error if error & IDNF != 0 => CmdError::Range.retryable(),
        0 if faulty => CmdError::Fault.retryable(),
        // Aborted, spoilt on the way, or nothing said: not known, or not possible now.
        _ => CmdError::Io.retryable(),
    }
}

/// `PxTFD`, with the status in its first byte and the error in its second, as an outcome.
pub(crate) fn outcome(tfd: u32) -> Outcome {
    match tfd & (STATUS_ERR | STATUS_DF) {
        0 => Ok(()),
        // CAST: the two bytes.
        _ => Err(failure(tfd as u8, (tfd >> 8) as u8)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn registers_are_where_the_standard_has_them() {
        let taskfile = Taskfile {
            command: 0x60,
            features: 0x1234,
            count: 0xabcd,
            lba: 0x6655_4433_2211,
            device: 0x40,
            auxiliary: 0x8765_4321,
        };
        let cfis = taskfile.encode();
        let bytes: Vec<u8> = cfis.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(
            bytes[..20],
            [
                0x27, 0x80, 0x60, 0x34, 0x11, 0x22, 0x33, 0x40, 0x44, 0x55, 0x66, 0x12, 0xcd, 0xab,
                0, 0, 0x21, 0x43, 0x65, 0x87
            ]
        );
        assert_eq!(bytes[20..], [0; 4]);
        assert_eq!(Taskfile::decode(cfis), taskfile);
    }

    #[test]
    fn answers_are_told_apart() {
        assert!(!ends_command(0x0050_0034), "a queued command was accepted");
        assert!(ends_command(0x0050_4034));
        assert!(ends_command(0x0451_0034));
        assert!(is_error(0x4041_40a1) && !is_error(0x0040_40a1));
        assert!(has_error_code(0x0440_40a1) && !has_error_code(0x0040_40a1));
        assert!(!is_garbage(0, 0) && !is_garbage(0x40a1, 0x34));
        assert!(is_garbage(0x4034, 0) && is_garbage(0, 0xa1));
    }

    #[test]
    fn edges_of_an_entry() {
        let at = |addr, len| entry(Segment { addr, len }, 0);
        assert_eq!(at(0x1000, 512), Ok([0x1000, 511 << 32]));
        assert_eq!(at(2, 2), Ok([2, 1 << 32]));
        assert_eq!(at(0, ENTRY_MAX), Ok([0, 0x3f_ffff << 32]));
        for bad in [
            (0, 0),
            (0, ENTRY_MAX + 2),
            (1, 2),
            (0, 1),
            (u64::MAX - 1, 2),
        ] {
            assert_eq!(at(bad.0, bad.1), Err(CmdError::Invalid), "{bad:?}");
        }
        let low = |addr, len| entry(Segment { addr, len }, 1 << 32);
        assert!(low(0xffff_fe00, 512).is_ok());
        assert_eq!(low(0xffff_fe02, 512), Err(CmdError::Invalid));
        assert_eq!(low(1 << 32, 512), Err(CmdError::Invalid));
    }

    #[test]
    fn whatever_their_lengths_the_ranges_fit() {
        for blocks in [
            1,
            RANGE_BLOCKS,
            1 << 18,
            TRIM_BLOCKS_MAX / 2,
            TRIM_BLOCKS_MAX,
        ] {
            let ranges = u32::from(max_ranges(blocks));
            // The worst: all but one of a block, and the rest in the last.
            let last = blocks.saturating_sub(ranges - 1).div_ceil(RANGE_BLOCKS);
            assert!(ranges - 1 + last <= RANGES_MAX as u32, "{blocks}");
        }
        assert_eq!(max_ranges(TRIM_BLOCKS_MAX), 1);
        // 128 MiB of 512 bytes.
        assert_eq!(max_ranges(1 << 18), 60);
    }

    #[test]
    fn bytes_become_kinds() {
        let cases = [
            (0x50, Ok(())),
            (0x0450, Ok(())),
            (0x0451, Err(CmdError::Io.retryable())),
            (0x4051, Err(CmdError::Medium.permanent())),
            (0x4451, Err(CmdError::Medium.permanent())),
            (0x0151, Err(CmdError::Medium.permanent())),
            (0xc451, Err(CmdError::Medium.permanent())),
            (0x1051, Err(CmdError::Range.retryable())),
            (0x8451, Err(CmdError::Io.retryable())),
            (0x8051, Err(CmdError::Medium.retryable())),
            (0x4071, Err(CmdError::Medium.permanent())),
            (0x0070, Err(CmdError::Fault.retryable())),
            (0x0471, Err(CmdError::Io.retryable())),
        ];
        for (tfd, expected) in cases {
            assert_eq!(outcome(tfd), expected, "{tfd:#x}");
        }
    }
}
