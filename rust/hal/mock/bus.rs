// SPDX-License-Identifier: GPL-2.0
//! The bus: memory as a device reaches it.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bus addresses start above what 32 bits hold, so that one cut short is noticed.
const FIRST: u64 = 0x1_0000_0000;
/// Blocks start at multiples of this.
const PAGE: u64 = 4096;

/// An access to an address where no memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusFault {
    /// The first byte of the access.
    pub addr: u64,
    /// Its length in bytes.
    pub len: usize,
}

/// A block of memory, little-endian 32-bit words, at a bus address.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) addr: u64,
    pub(super) words: Box<[AtomicU32]>,
}

impl Block {
    pub(super) fn len(&self) -> usize {
        self.words.len() * 4
    }
}

/// The address space of the devices of one [`crate::mock::MockPlatform`].
#[derive(Debug, Default)]
pub struct MockBus {
    blocks: Mutex<BTreeMap<u64, Arc<Block>>>,
    next: AtomicU64,
    faults: AtomicUsize,
}

impl MockBus {
    fn blocks(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Block>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// New zeroed memory whose first byte is `offset` into a page, behind a gap of at least one
    /// page.
    pub(super) fn insert(&self, bytes: usize, offset: usize) -> Arc<Block> {
        let offset = offset as u64 % PAGE;
        let pages = (offset + bytes as u64).div_ceil(PAGE) + 1;
        let addr = FIRST + self.next.fetch_add(pages * PAGE, Ordering::Relaxed) + offset;
        let words = (0..bytes.div_ceil(4)).map(|_| AtomicU32::new(0)).collect();
        let block = Arc::new(Block { addr, words });
        self.blocks().insert(addr, Arc::clone(&block));
        block
    }

    pub(super) fn remove(&self, addr: u64) {
        self.blocks().remove(&addr);
    }

    /// How many blocks of memory devices can reach: DMA memory that lives, mappings that were not
    /// unmapped.
    pub fn blocks_alive(&self) -> usize {
        self.blocks().len()
    }

    /// How many accesses of devices hit no memory so far.
    pub fn faults(&self) -> usize {
        self.faults.load(Ordering::Relaxed)
    }

    fn find(&self, addr: u64, len: usize) -> Result<(Arc<Block>, usize), BusFault> {
        let hit = (self.blocks().range(..=addr).next_back()).and_then(|(first, block)| {
            let offset = usize::try_from(addr - first).ok()?;
            let end = offset.checked_add(len)?;
            (end <= block.len()).then(|| (Arc::clone(block), offset))
        });
        hit.ok_or_else(|| {
            self.faults.fetch_add(1, Ordering::Relaxed);
            BusFault { addr, len }
        })
    }

    /// The device reads `to.len()` bytes at `addr`, in one block.
    pub fn read(&self, addr: u64, to: &mut [u8]) -> Result<(), BusFault> {
        let (block, offset) = self.find(addr, to.len())?;
        let mut at = offset;
        let mut to = to;
        while let Some(word) = block.words.get(at / 4).filter(|_| !to.is_empty()) {
            let bytes = word.load(Ordering::Acquire).to_le_bytes();
            let from = bytes.get(at % 4..).unwrap_or(&[]);
            let n = from.len().min(to.len());
            let (now, rest) = to.split_at_mut(n);
            now.copy_from_slice(from.get(..n).unwrap_or(&[]));
            to = rest;
            at += n;
        }
        Ok(())
    }

    /// The device writes `from` at `addr`, in one block, lowest address first: what is read as
    /// written at the end says that the rest is there.
    pub fn write(&self, addr: u64, from: &[u8]) -> Result<(), BusFault> {
        let (block, offset) = self.find(addr, from.len())?;
        let mut at = offset;
        let mut from = from;
        while let Some(word) = block.words.get(at / 4).filter(|_| !from.is_empty()) {
            let shift = at % 4;
            let n = from.len().min(4 - shift);
            let (now, rest) = from.split_at(n);
            let merge = |old: u32| {
                let mut bytes = old.to_le_bytes();
                for (byte, new) in bytes.iter_mut().skip(shift).zip(now) {
                    *byte = *new;
                }
                u32::from_le_bytes(bytes)
            };
            if n == 4 {
                word.store(merge(0), Ordering::Release);
            } else {
                let _ =
                    word.fetch_update(Ordering::Release, Ordering::Relaxed, |old| Some(merge(old)));
            }
            from = rest;
            at += n;
        }
        Ok(())
    }

    /// The device reads a 32-bit word.
    pub fn read32(&self, addr: u64) -> Result<u32, BusFault> {
        let mut bytes = [0; 4];
        self.read(addr, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The device reads a 64-bit word.
    pub fn read64(&self, addr: u64) -> Result<u64, BusFault> {
        let mut bytes = [0; 8];
        self.read(addr, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The device writes a 32-bit word.
    pub fn write32(&self, addr: u64, value: u32) -> Result<(), BusFault> {
        self.write(addr, &value.to_le_bytes())
    }
}
