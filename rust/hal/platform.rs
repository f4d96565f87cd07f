// SPDX-License-Identifier: GPL-2.0
//! What an LLD and the engine stand on: memory for tables, DMA memory, registers, time.
//!
//! In the kernel `kglue` implements these; on the host the fakes of `mock` and of the LLDs' models
//! do.

use crate::Error;
use core::ops::Deref;

/// The machine, as far as the pure crates need it.
pub trait Platform: Send + Sync + 'static {
    /// A table of fixed length, made at control time.
    type Table<T: Send + Sync + 'static>: Deref<Target = [T]> + Send + Sync + 'static;
    /// Memory shared with a device.
    type Dma: DmaMem;

    /// A table of `len` values, each made by `make` from its index. Control path; may sleep.
    fn table<T: Send + Sync + 'static>(
        &self,
        len: usize,
        make: impl FnMut(usize) -> T,
    ) -> Result<Self::Table<T>, Error>;

    /// `bytes` of zeroed, coherent, physically contiguous memory aligned to at least 4 KiB. Control
    /// path; may sleep.
    fn dma(&self, bytes: usize) -> Result<Self::Dma, Error>;

    /// Monotonic time in microseconds. Any context.
    fn now_us(&self) -> u64;

    /// Lets at least `us` microseconds pass. Control path; sleeps.
    fn sleep_us(&self, us: u64);
}

/// Coherent memory that a device may read and write at any moment.
///
/// It is never borrowed, only copied from and to, one naturally aligned little-endian word at a
/// time, each access exactly once and in program order on this CPU. Order between accesses of
/// several words is made with the fences of [`cell::sync`] (`Acquire` after reading a word that
/// says another is valid; `SeqCst` between a store and a load). An access outside the block or
/// misaligned is a bug of the LLD: reads give all ones, writes go nowhere, debug builds say so.
pub trait DmaMem: Send + Sync + 'static {
    /// The address by which the device knows the first byte.
    fn bus_addr(&self) -> u64;
    /// Length in bytes.
    fn len(&self) -> usize;
    /// Whether the block has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Reads the 32-bit word at byte `offset`.
    fn read32(&self, offset: usize) -> u32;
    /// Writes the 32-bit word at byte `offset`.
    fn write32(&self, offset: usize, value: u32);
    /// Reads the 64-bit word at byte `offset`.
    fn read64(&self, offset: usize) -> u64;
    /// Writes the 64-bit word at byte `offset`.
    fn write64(&self, offset: usize, value: u64);
    /// Writes `words` from byte `offset` on: a descriptor, in one bounds check.
    #[inline]
    fn write_words<const N: usize>(&self, offset: usize, words: [u64; N]) {
        for (at, word) in (offset..).step_by(8).zip(words) {
            self.write64(at, word);
        }
    }
    /// Copies bytes out from byte `offset` on; for control structures, not for the data path.
    fn read_bytes(&self, offset: usize, to: &mut [u8]) {
        for (at, byte) in (offset..).zip(to) {
            let word = self.read32(at & !3).to_le_bytes();
            *byte = word.get(at & 3).copied().unwrap_or(0xff);
        }
    }
    /// Fills `len` bytes from `offset` with zeroes; both multiples of 4.
    fn zero(&self, offset: usize, len: usize) {
        for at in (offset..offset.saturating_add(len)).step_by(4) {
            self.write32(at, 0);
        }
    }
}

/// A device's register window.
///
/// A write is ordered after all earlier writes to [`DmaMem`], a read before all later reads of it.
/// A register outside the window behaves as those of an absent device do: it reads as all ones, and
/// writes go nowhere.
pub trait Mmio: Send + Sync + 'static {
    /// Length of the window in bytes.
    fn len(&self) -> usize;
    /// Whether the window has no registers.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Reads the 32-bit register at byte `offset`.
    fn read32(&self, offset: usize) -> u32;
    /// Writes the 32-bit register at byte `offset`.
    fn write32(&self, offset: usize, value: u32);
    /// Reads a 64-bit register as two 32-bit halves, low first.
    fn read64(&self, offset: usize) -> u64 {
        let low = u64::from(self.read32(offset));
        low | (u64::from(self.read32(offset.wrapping_add(4))) << 32)
    }
    /// Writes a 64-bit register as two 32-bit halves, low first.
    fn write64(&self, offset: usize, value: u64) {
        // CAST: the two halves.
        self.write32(offset, value as u32);
        self.write32(offset.wrapping_add(4), (value >> 32) as u32);
    }
}
