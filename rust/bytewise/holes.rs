// SPDX-License-Identifier: GPL-2.0
//! Reads with holes: what of some blocks a device may keep to itself, as nobody wants it, and
//! whether it does that right.
//!
//! Few devices can, and none is believed: it may shift what comes behind a hole to the hole's
//! place, or move everything. So it is tried ([`trials`]), on a block that shows it
//! ([`is_telling`]), with a buffer that was spoilt before ([`spoil`]): what is wanted has to be
//! what the block has there, and everywhere else nothing may have come ([`Sparse::is_right`]).

use crate::Plan;

/// How many bytes less cross the bus at least, for a read to have holes: without, a command says by
/// itself where its data is; with holes it has a list, which the device reads first. That takes one
/// more read of the host's memory: of 64 bytes, a median of 547 ns on one machine and of 1,213 on
/// another (Neugebauer et al., "Understanding PCIe performance for end host networking", SIGCOMM
/// 2018, section 6), in which four lanes of PCIe 3.0 move some 2 and 4 KiB.
const WORTH: u32 = 2048;

/// A read of some blocks of which not all bytes are wanted: two runs of bytes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparse {
    /// Where a hole, wanted bytes, a hole, wanted bytes and a hole end, in bytes from the first
    /// block's first, in order. Each may be empty.
    ends: [u32; 5],
}

/// Some of its bytes, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first, counted from the first block's.
    pub at: u32,
    /// How many, 1 at least.
    pub len: u32,
    /// Nobody wants them.
    pub is_hole: bool,
}

impl Sparse {
    /// Its pieces, in order: all of the blocks.
    #[inline]
    pub fn pieces(self) -> Pieces {
        Pieces {
            sparse: self,
            next: 0,
            at: 0,
        }
    }

    /// How many bytes are wanted.
    #[inline]
    pub fn wanted(self) -> u32 {
        (self.pieces().filter(|piece| !piece.is_hole))
            .fold(0, |sum: u32, piece| sum.saturating_add(piece.len))
    }

    /// Whether `found` is right: all of `block` that is wanted is there, and everywhere else what
    /// [`spoil`] has left.
    pub fn is_right(self, block: &[u8], found: &[u8]) -> bool {
        block.len() == found.len()
            && self.pieces().all(|Piece { at, len, is_hole }| {
                // CAST: a `usize` has 32 bits at least.
                let (from, len) = (at as usize, len as usize);
                let pairs = block.iter().zip(found).skip(from).take(len);
                pairs.fold(true, |right, (wanted, found)| {
                    right & (*found == if is_hole { !*wanted } else { *wanted })
                })
            })
    }
}

/// The pieces of a [`Sparse`]. It has a name, as objtool takes none of over 512 bytes, and those of
/// functions have that of what they iterate over in them.
pub struct Pieces {
    sparse: Sparse,
    /// Which of `ends` is next.
    next: usize,
    /// The one before.
    at: u32,
}

impl Iterator for Pieces {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        loop {
            let (at, end) = (self.at, *self.sparse.ends.get(self.next)?);
            let is_hole = self.next % 2 == 0;
            self.next = self.next.wrapping_add(1);
            self.at = end;
            match end.saturating_sub(at) {
                0 => {}
                len => return Some(Piece { at, len, is_hole }),
            }
        }
    }
}

impl Plan {
    /// The same of a read, for a device whose pieces have lengths and places of which no bit of
    /// `align` is set, with blocks of `1 << block_shift` bytes. `None`: all of the blocks go,
    /// as holes would gain nothing.
    #[inline]
    pub fn sparse(&self, block_shift: u8, align: u32) -> Option<Sparse> {
        let all = self.blocks.checked_shl(u32::from(block_shift))?;
        let end = u32::try_from(self.skip.checked_add(self.len)?).ok()?;
        // CAST: less than `end`.
        let from = self.skip as u32 & !align;
        let to = (end.checked_add(align)? & !align).min(all);
        let unwanted = all.checked_sub(to.checked_sub(from)?)?;
        (unwanted >= WORTH).then_some(Sparse {
            ends: [from, to, to, to, all],
        })
    }
}

/// Parts of a block that a trial keeps apart.
const PARTS: usize = 8;

/// Whether a shift of any part of `block` to another's place would show.
pub fn is_telling(block: &[u8]) -> bool {
    let part = block.len() / PARTS;
    let parts = || block.chunks_exact(part.max(1)).enumerate();
    part != 0 && parts().all(|(n, a)| parts().all(|(m, b)| n == m || a != b))
}

/// What a device has to do right that is to be given holes, on blocks of `block` bytes, with pieces
/// as of [`Plan::sparse`].
pub fn trials(block: u32, align: u32) -> [Sparse; 6] {
    // CAST: a small constant.
    let part = (block / PARTS as u32) & !align;
    let at = |n: u32| part.saturating_mul(n).min(block);
    let grain = at(5).saturating_add(align).saturating_add(1).min(block);
    [
        [0, block, block, block],
        [at(4), block, block, block],
        [0, at(4), at(4), at(4)],
        [at(2), at(6), at(6), at(6)],
        [at(5), grain, grain, grain],
        [at(1), at(2), at(5), at(7)],
    ]
    .map(|[a, b, c, d]| Sparse {
        ends: [a, b, c, d, block],
    })
}

/// Makes each byte of `buffer` one that `block` does not have there.
pub fn spoil(block: &[u8], buffer: &mut [u8]) {
    (buffer.iter_mut().zip(block)).for_each(|(byte, wanted)| *byte = !*wanted);
}
