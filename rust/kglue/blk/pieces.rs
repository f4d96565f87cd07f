// SPDX-License-Identifier: GPL-2.0
//! Pieces of data that are mapped, each of which is to be unmapped by itself.

use kernel::alloc::AllocError;
use kernel::prelude::*;

/// One mapped piece.
#[derive(Clone, Copy, Zeroable)]
pub(crate) struct Piece {
    pub(crate) addr: u64,
    pub(crate) len: u32,
}

/// How many pieces lie together: most requests have fewer.
const TOGETHER: usize = 31;

/// Any number of pieces. All zeroes: none.
#[derive(Zeroable)]
pub(crate) struct Pieces {
    last: Option<KBox<Chunk>>,
    count: usize,
}

#[derive(Zeroable)]
struct Chunk {
    pieces: [Piece; TOGETHER],
    /// What came before them.
    before: Option<KBox<Chunk>>,
}

impl Pieces {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Notes `piece`. Any context.
    pub(crate) fn push(&mut self, piece: Piece) -> Result<(), AllocError> {
        let at = self.count % TOGETHER;
        if at == 0 {
            let mut chunk =
                KBox::init(pin_init::init_zeroed::<Chunk>(), GFP_ATOMIC).map_err(|_| AllocError)?;
            chunk.before = self.last.take();
            self.last = Some(chunk);
        }
        if let Some(place) = (self.last.as_mut()).and_then(|chunk| chunk.pieces.get_mut(at)) {
            *place = piece;
        }
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    /// Takes the last one out.
    pub(crate) fn pop(&mut self) -> Option<Piece> {
        let count = self.count.checked_sub(1)?;
        let at = count % TOGETHER;
        let piece = self.last.as_ref()?.pieces.get(at).copied();
        if at == 0 {
            self.last = self.last.take().and_then(|mut chunk| chunk.before.take());
        }
        self.count = count;
        piece
    }
}
