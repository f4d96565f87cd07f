// SPDX-License-Identifier: GPL-2.0
//! Memory of hiops' own that a device reads whole blocks into: mapped once, so that a read neither
//! pins nor maps anything.

use core::ptr::NonNull;
use hal::{DmaMem, Error, Platform};
use kernel::prelude::*;

use crate::platform::{DmaBlock, KernelPlatform};

/// Bytes of a buffer: those that are wanted, with what is before and behind them in their blocks.
pub(crate) const BUFFER: usize = 8192;

/// Memory that a device reads blocks into.
///
/// # Invariants
/// `first` is the beginning of [`BUFFER`] bytes of `_memory`, which the device knows as `bus`.
pub(crate) struct Buffer {
    first: NonNull<u8>,
    bus: u64,
    _memory: Memory,
}

/// What it is in.
enum Memory {
    Dma {
        _block: DmaBlock,
    },
    /// Of a controller made of software, which sees memory as the CPU does.
    Plain {
        _words: KVec<u64>,
    },
}

// SAFETY: memory belongs to no thread.
unsafe impl Send for Buffer {}
// SAFETY: nothing but addresses is got of a shared reference.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// One of zeroes, for the device of `platform`. Sleeps.
    pub(crate) fn new(platform: &KernelPlatform) -> Result<Self, Error> {
        match platform.dma(BUFFER) {
            Ok(block) => Ok(Self {
                first: block.start(),
                bus: block.bus_addr(),
                // INVARIANT: so long is the block.
                _memory: Memory::Dma { _block: block },
            }),
            Err(Error::Unsupported) => Self::plain(),
            Err(error) => Err(error),
        }
    }

    fn plain() -> Result<Self, Error> {
        let mut words =
            KVec::<u64>::from_elem(0, BUFFER / 8, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        let first = NonNull::from(words.as_mut_slice()).cast::<u8>();
        // INVARIANT: so many words are as many bytes; a vector that does not grow stays in place.
        Ok(Self {
            first,
            // CAST: an address.
            bus: first.as_ptr() as u64,
            _memory: Memory::Plain { _words: words },
        })
    }

    /// Its address, as the device knows it.
    #[inline]
    pub(crate) fn bus(&self) -> u64 {
        self.bus
    }

    /// Where `len` bytes from `skip` on are, if the buffer has those.
    #[inline]
    pub(crate) fn part(&self, skip: usize, len: usize) -> Option<*const u8> {
        let end = skip.checked_add(len)?;
        (end <= BUFFER).then(|| self.first.as_ptr().wrapping_add(skip).cast_const())
    }
}
