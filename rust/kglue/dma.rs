// SPDX-License-Identifier: GPL-2.0
//! Coherent memory that a device shares.

use core::mem::size_of;
use core::ptr::{read_volatile, write_volatile};
use hal::{DmaMem, Error};
use kernel::device::{Bound, Device};
use kernel::dma::Coherent;
use kernel::prelude::*;

/// A block of coherent memory, as words that are copied in and out, never borrowed.
///
/// Its length is a multiple of 8, so an aligned word that starts inside also ends inside: one comparison and one test of the low bits are the
/// whole bounds check.
pub struct DmaBlock(Coherent<[u64]>);

impl DmaBlock {
    /// `bytes` (rounded up to a multiple of 8) of zeroed memory that `device` can reach, aligned to a page. Sleeps.
    pub fn new(device: &Device<Bound>, bytes: usize) -> Result<Self, Error> {
        if bytes == 0 {
            return Err(Error::Invalid);
        }
        Coherent::zeroed_slice(device, bytes.div_ceil(size_of::<u64>()), GFP_KERNEL)
            .map(Self)
            .map_err(|_| Error::NoMemory)
    }

    /// Where the word of type `T` at byte `offset` is, if it is aligned and inside. A pointer that comes from here is valid
    /// for volatile access for as long as `self` lives.
    #[inline(always)]
    fn word<T>(&self, offset: usize) -> Option<*mut T> {
        let inside = offset < self.0.size() && offset % size_of::<T>() == 0;
        crate::mmio::report_stray(!inside);
        inside.then(|| self.0.as_mut_ptr().cast::<u8>().wrapping_add(offset).cast())
    }
}

impl DmaMem for DmaBlock {
    #[inline(always)]
    fn bus_addr(&self) -> u64 {
        self.0.dma_address()
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.0.size()
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
                .0
                .size()
                .checked_sub(bytes)
                .is_some_and(|last| offset <= last);
        crate::mmio::report_stray(!inside);
        if inside {
            let first = self.0.as_mut_ptr().cast::<u8>().wrapping_add(offset);
            for (at, word) in words.into_iter().enumerate() {
                // SAFETY: all `N` words are inside, as was just checked; otherwise as in `write32`.
                unsafe { write_volatile(first.cast::<u64>().add(at), word.to_le()) }
            }
        }
    }
}
