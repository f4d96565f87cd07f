// SPDX-License-Identifier: GPL-2.0
//! Coherent memory that a device shares.
//!
//! It is the kernel crate's (`kernel::dma::Coherent`). The words in it are read and written here:
//! what the crate has for that is another thing in each of Linux 7.2 and 7.3, and is meant for
//! fields whose place is known when the driver is compiled.

use crate::device::raw;
use core::mem::size_of;
use core::ptr::{read_volatile, write_volatile, NonNull};
use hal::{DmaMem, Error};
use kernel::alloc::flags::__GFP_NOWARN;
use kernel::bindings;
use kernel::device::{Bound, Device};
use kernel::dma::Coherent;
use kernel::prelude::*;
use kernel::sync::Arc;

/// How much is mapped for a device at once.
pub(crate) enum Mapping {
    /// What can be: less than everything where data goes through bounce buffers, as in confidential
    /// machines.
    AtAll,
    /// What can be without undue cost: behind an IOMMU, what its cache of addresses holds.
    Well,
}

/// Most bytes that are mapped for `device` at once, whose driver has set its DMA mask.
pub(crate) fn mapping(device: &Device<Bound>, how: Mapping) -> u64 {
    let device = raw(device);
    // SAFETY: it is bound.
    let bytes = unsafe {
        match how {
            Mapping::AtAll => bindings::dma_max_mapping_size(device),
            Mapping::Well => bindings::dma_opt_mapping_size(device),
        }
    };
    // CAST: a `usize` has 64 bits at most.
    bytes as u64
}

/// A block of coherent memory, as words that are copied in and out, never borrowed. Clones are
/// handles of the same memory, which is freed with the last of them.
///
/// The length is a multiple of 8, so an aligned word that starts inside also ends inside: one
/// comparison and one test of the low bits are the whole bounds check.
///
/// # Invariants
/// `first` and `len` are the start and the length in bytes of `memory`, whose device address is
/// `bus`.
#[derive(Clone)]
pub struct DmaBlock {
    first: NonNull<u64>,
    len: usize,
    bus: u64,
    /// Keeps the memory.
    _memory: Arc<Coherent<[u64]>>,
}

// SAFETY: the memory belongs to no thread.
unsafe impl Send for DmaBlock {}
// SAFETY: every access is one volatile load or store of a word, with no reference to the memory
// anywhere.
unsafe impl Sync for DmaBlock {}

/// What is read and written at once, whatever bits it has.
trait Word: Copy {}
impl Word for u32 {}
impl Word for u64 {}

impl DmaBlock {
    /// `bytes` (rounded up to a multiple of 8) of zeroed memory that `device` can reach, aligned to
    /// a page. Sleeps.
    pub fn new(device: &Device<Bound>, bytes: usize) -> Result<Self, Error> {
        if bytes == 0 {
            return Err(Error::Invalid);
        }
        // That there is none is told where it is missed, or there is a way without.
        let flags = GFP_KERNEL | __GFP_NOWARN;
        let memory = Coherent::zeroed_slice(device, bytes.div_ceil(size_of::<u64>()), flags)
            .map_err(|_| Error::NoMemory)?;
        // INVARIANT: asked of the memory itself.
        Ok(Self {
            first: NonNull::new(memory.as_mut_ptr().cast()).ok_or(Error::NoMemory)?,
            len: memory.size(),
            bus: crate::compat::dma_address(&memory),
            _memory: Arc::new(memory, GFP_KERNEL).map_err(|_| Error::NoMemory)?,
        })
    }

    /// Where the word of type `T` at byte `offset` is, if it is aligned and inside. A pointer that
    /// comes from here is valid for volatile access for as long as `self` lives.
    #[inline(always)]
    fn word<T>(&self, offset: usize) -> Option<*mut T> {
        let inside = offset < self.len && offset % size_of::<T>() == 0;
        crate::mmio::report_stray(!inside);
        inside.then(|| self.first.as_ptr().wrapping_byte_add(offset).cast())
    }

    /// The word at byte `offset`, as it is there now.
    #[inline(always)]
    fn load<T: Word>(&self, offset: usize) -> Option<T> {
        // SAFETY: inside the block (see `word`); volatile, as the device may write it at any
        // moment.
        self.word(offset).map(|word| unsafe { read_volatile(word) })
    }

    /// Writes the word at byte `offset`, if that is inside.
    #[inline(always)]
    fn store<T: Word>(&self, offset: usize, value: T) {
        if let Some(word) = self.word(offset) {
            // SAFETY: as in `load`; no reference to the memory exists anywhere.
            unsafe { write_volatile(word, value) }
        }
    }
}

impl DmaMem for DmaBlock {
    #[inline(always)]
    fn bus_addr(&self) -> u64 {
        self.bus
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn read32(&self, offset: usize) -> u32 {
        self.load(offset).map_or(u32::MAX, u32::from_le)
    }

    #[inline(always)]
    fn write32(&self, offset: usize, value: u32) {
        self.store(offset, value.to_le());
    }

    #[inline(always)]
    fn read64(&self, offset: usize) -> u64 {
        self.load(offset).map_or(u64::MAX, u64::from_le)
    }

    #[inline(always)]
    fn write64(&self, offset: usize, value: u64) {
        self.store(offset, value.to_le());
    }

    #[inline(always)]
    fn write_words<const N: usize>(&self, offset: usize, words: [u64; N]) {
        let bytes = const { N * size_of::<u64>() };
        let inside = offset % size_of::<u64>() == 0
            && self
                .len
                .checked_sub(bytes)
                .is_some_and(|last| offset <= last);
        crate::mmio::report_stray(!inside);
        if inside {
            let first = self.first.as_ptr().wrapping_byte_add(offset);
            for (at, word) in words.into_iter().enumerate() {
                // SAFETY: all `N` words are inside, as was just checked; otherwise as in `store`.
                unsafe { write_volatile(first.add(at), word.to_le()) }
            }
        }
    }
}
