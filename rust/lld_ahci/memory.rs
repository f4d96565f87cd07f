// SPDX-License-Identifier: GPL-2.0
//! A port's memory: command list, received FISes, command tables (AHCI 1.3.1 section 4).
//!
//! One page has the command list, the FIS area, and a table and a sector of the driver's own; each
//! slot has a page for its command table: the command FIS, the PRDT, and the ranges of a TRIM
//! behind it.

use crate::fis::Cfis;
use crate::prdt;
use hal::{DmaMem, Error, Platform};

/// Command slots of a port at most.
pub(crate) const SLOTS_MAX: u8 = 32;
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
/// In a command table: where the PRDT begins (4.2.3),
pub(crate) const PRDT: usize = 0x80;
/// and where the ranges do.
const RANGES: usize = PRDT + prdt::ENTRIES * prdt::BYTES;
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
    pub(crate) fn new(platform: &P, slots: u8, below: u64) -> Result<Self, Error> {
        let reached = |memory: P::Dma| {
            let end = memory.bus_addr().saturating_add(memory.len() as u64);
            match below == 0 || end <= below {
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
    pub(crate) fn write_header(&self, slot: u8, write: bool, entries: u16) {
        let flags = if write { HEADER_WRITE } else { 0 };
        let word = HEADER_CFL | flags | (u64::from(entries) << 16);
        self.page.write64(header(slot), word);
    }

    /// Writes a command of the driver's own to slot 0, with `data` as address and length, which the
    /// device reads if it `writes`; [`Memory::give_back`] undoes it. Returns what it replaces.
    pub(crate) fn borrow(&self, cfis: Cfis, writes: bool, data: Option<(u64, u32)>) -> u64 {
        let was = self.page.read64(header(0));
        self.page.write_words(OWN_TABLE, cfis);
        if let Some((addr, len)) = data {
            let entry = [addr, u64::from(prdt::count(len)) << 32];
            self.page.write_words(OWN_TABLE + PRDT, entry);
        }
        let table = self.page.bus_addr().wrapping_add(OWN_TABLE as u64);
        self.page.write64(header(0) | 8, table);
        self.write_header(0, writes, u16::from(data.is_some()));
        was
    }

    /// Gives slot 0 back.
    pub(crate) fn give_back(&self, was: u64) {
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
    pub(crate) fn spoil_sector(&self) {
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

    /// Likewise the D2H Register FIS.
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
    pub(crate) fn bus(&self) -> u64 {
        self.memory.bus_addr().wrapping_add(self.at as u64)
    }

    /// Where the HBA finds the ranges.
    pub(crate) fn ranges_bus(&self) -> u64 {
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

    /// Writes entry `index`, below [`prdt::ENTRIES`].
    #[inline]
    pub(crate) fn write_entry(&self, index: usize, entry: [u64; 2]) {
        let at = PRDT.wrapping_add(index.wrapping_mul(prdt::BYTES));
        self.memory.write_words(self.at.wrapping_add(at), entry);
    }

    /// Writes range `index`, below [`crate::trim::RANGES_MAX`].
    pub(crate) fn write_range(&self, index: usize, range: u64) {
        let at = RANGES.wrapping_add(index.wrapping_mul(8));
        self.memory.write64(self.at.wrapping_add(at), range);
    }
}

// The ranges end with the page, and a table begins where the HBA wants it (a multiple of 128).
const _: () = assert!(RANGES + SECTOR_BYTES == 1 << TABLE_SHIFT && OWN_TABLE % 128 == 0);
