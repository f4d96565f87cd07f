// SPDX-License-Identifier: GPL-2.0
//! Memory of hiops' own that whole blocks go to and come from: mapped once, so that neither a read
//! nor a write pins or maps anything.

use bytewise::{Pieces, Sparse, SPAN};
use core::ptr::NonNull;
use hal::{CmdError, DmaMem, Error, Platform, Segment};
use kernel::prelude::*;

use crate::platform::{DmaBlock, KernelPlatform};

/// Which part of a buffer a command moves.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// All of its blocks.
    pub(crate) all: Segment,
    /// Of a read, what of them is wanted, if not all.
    pub(crate) sparse: Option<Sparse>,
}

impl Part {
    /// How many bytes the device moves.
    #[inline]
    pub(crate) fn moved(&self) -> u32 {
        self.sparse.map_or(self.all.len, Sparse::wanted)
    }

    /// Its pieces, if it has such, in order.
    #[inline]
    pub(crate) fn pieces(&self) -> Option<PartPieces> {
        Some(PartPieces {
            first: self.all.addr,
            pieces: self.sparse?.pieces(),
        })
    }
}

/// The pieces of a part.
pub(crate) struct PartPieces {
    /// Where the part begins.
    first: u64,
    pieces: Pieces,
}

impl Iterator for PartPieces {
    type Item = Result<Segment, CmdError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.pieces.next()?;
        Some(Ok(match piece.is_hole {
            true => Segment::hole(piece.len),
            false => Segment {
                addr: self.first.wrapping_add(u64::from(piece.at)),
                len: piece.len,
            },
        }))
    }
}

/// Memory for the blocks of one command.
///
/// # Invariants
/// `first` is the beginning of [`SPAN`] bytes of `_memory`, which the device knows as `bus`.
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
        match platform.dma(SPAN) {
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
            KVec::<u64>::from_elem(0, SPAN / 8, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        let first = NonNull::from(words.as_mut_slice()).cast::<u8>();
        // INVARIANT: so many words are as many bytes; a vector that does not grow stays in place.
        Ok(Self {
            first,
            // CAST: an address.
            bus: first.as_ptr() as u64,
            _memory: Memory::Plain { _words: words },
        })
    }

    /// `len` bytes from `at` on, as the device knows them, if the buffer has those.
    #[inline]
    pub(crate) fn segment(&self, at: u32, len: u32) -> Option<Segment> {
        let end = at.checked_add(len)?;
        let addr = self.bus.checked_add(u64::from(at))?;
        // CAST: a small constant.
        (end <= SPAN as u32).then_some(Segment { addr, len })
    }

    /// Where `len` bytes from `at` on are, if the buffer has those.
    #[inline]
    pub(crate) fn part(&self, at: usize, len: usize) -> Option<*mut u8> {
        let end = at.checked_add(len)?;
        (end <= SPAN).then(|| self.first.as_ptr().wrapping_add(at))
    }
}
