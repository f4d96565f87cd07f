// SPDX-License-Identifier: GPL-2.0
//! Coherent memory that a device shares.

use core::mem::size_of;
use core::ptr::{read_volatile, write_volatile, NonNull};
use hal::{DmaMem, Error};
use kernel::alloc::flags::__GFP_NOWARN;
use kernel::bindings;
use kernel::device::{Bound, Device};
use kernel::dma::Coherent;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Most bytes that can be mapped for `device` at once: less than everything where data goes through
/// bounce buffers, as in confidential machines.
///
/// # Safety
/// `device` is bound to its driver, which has set its DMA mask.
pub(crate) unsafe fn max_mapping(device: *mut bindings::device) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { bindings::dma_max_mapping_size(device) as u64 }
}

/// Most bytes that are mapped for `device` at once without undue cost: behind an IOMMU, what its
/// cache of addresses holds; never more than [`max_mapping`].
///
/// # Safety
/// As [`max_mapping`].
pub(crate) unsafe fn opt_mapping(device: *mut bindings::device) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { bindings::dma_opt_mapping_size(device) as u64 }
}

/// A block of coherent memory, as words that are copied in and out, never borrowed. Clones are handles of the same memory, which is freed with the
/// last of them.
///
/// The length is a multiple of 8, so an aligned word that starts inside also ends inside: one comparison and one test of the low bits are the
/// whole bounds check.
///
/// # Invariants
/// `first` and `len` are the start and the length in bytes of `memory`, whose device address is `bus`.
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
// SAFETY: every access is one volatile load or store of a word, with no reference to the memory anywhere.
unsafe impl Sync for DmaBlock {}

impl DmaBlock {
    /// `bytes` (rounded up to a multiple of 8) of zeroed memory that `device` can reach, aligned to a page. Sleeps.
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
            bus: memory.dma_address(),
            _memory: Arc::new(memory, GFP_KERNEL).map_err(|_| Error::NoMemory)?,
        })
    }

    /// Where the word of type `T` at byte `offset` is, if it is aligned and inside. A pointer that comes from here is valid
    /// for volatile access for as long as `self` lives.
    #[inline(always)]
    fn word<T>(&self, offset: usize) -> Option<*mut T> {
        let inside = offset < self.len && offset % size_of::<T>() == 0;
        crate::mmio::report_stray(!inside);
        inside.then(|| self.first.as_ptr().wrapping_byte_add(offset).cast())
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
        match self.word::<u32>(offset) {
            // SAFETY: inside the block (see `word`); volatile, as the device may write it at any moment.
            Some(word) => u32::from_le(unsafe { read_volatile(word) }),
            None => u32::MAX,
        }
    }

    #[inline(always)]
    fn write32(&self, offset: usize, value: u32) {
        if let Some(word) = self.word::<u32>(offset) {
            // SAFETY: as in `read32`; no reference to the memory exists anywhere.
            unsafe { write_volatile(word, value.to_le()) }
        }
    }

    #[inline(always)]
    fn read64(&self, offset: usize) -> u64 {
        match self.word::<u64>(offset) {
            // SAFETY: as in `read32`.
            Some(word) => u64::from_le(unsafe { read_volatile(word) }),
            None => u64::MAX,
        }
    }

    #[inline(always)]
    fn write64(&self, offset: usize, value: u64) {
        if let Some(word) = self.word::<u64>(offset) {
            // SAFETY: as in `write32`.
            unsafe { write_volatile(word, value.to_le()) }
        }
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
                // SAFETY: all `N` words are inside, as was just checked; otherwise as in `write32`.
                unsafe { write_volatile(first.add(at), word.to_le()) }
            }
        }
    }
}
