// SPDX-License-Identifier: GPL-2.0
//! From a range of bytes to a range of blocks.

/// The most bytes that one read yields; a longer one is cut short.
pub const MOST: usize = 4096;

/// A disk, as far as a plan needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Its size in bytes.
    pub size: u64,
    /// Bytes of a logical block, as a power of two.
    pub block_shift: u8,
    /// The most bytes that one command may read.
    pub span: u32,
}

/// One command that reads whole blocks, and which of their bytes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The first block.
    pub lba: u64,
    /// How many blocks, 1 at least.
    pub blocks: u32,
    /// Bytes before the first that is wanted.
    pub skip: usize,
    /// Bytes that are wanted, from 1 to [`MOST`].
    pub len: usize,
}

impl Geometry {
    /// Whether a block of the disk fits into a command.
    pub fn is_usable(&self) -> bool {
        self.block() <= u64::from(self.span)
    }

    /// Bytes of a block. One that no number holds is larger than any command.
    fn block(&self) -> u64 {
        1u64.checked_shl(u32::from(self.block_shift))
            .unwrap_or(u64::MAX)
    }

    /// What to read for `wanted` bytes from `offset` on: as many of them as one command reads and
    /// the disk has. `None`: there is nothing to read, as none are wanted or the disk ends before,
    /// or its blocks are too large ([`Geometry::is_usable`]).
    pub fn plan(&self, offset: u64, wanted: usize) -> Option<Plan> {
        let block = self.block();
        let most = u64::from(self.span) / block;
        if most == 0 {
            return None;
        }
        // Whole blocks only: of one that the disk has not all of, no command can read any.
        let size = self.size & !block.wrapping_sub(1);
        let left = size.checked_sub(offset).filter(|left| *left != 0)?;
        // CAST: a `usize` has 64 bits at most.
        let wanted = wanted.min(MOST) as u64;
        let lba = offset >> self.block_shift;
        let skip = offset & block.wrapping_sub(1);
        // What the command reads beyond `skip`.
        let room = most.saturating_mul(block).saturating_sub(skip);
        let len = wanted.min(left).min(room);
        if len == 0 {
            return None;
        }
        let blocks = skip.saturating_add(len).div_ceil(block);
        Some(Plan {
            lba,
            // CAST: `most`, a `u32`, at most.
            blocks: blocks as u32,
            // CAST: both are below `span`, a `u32`.
            skip: skip as usize,
            len: len as usize,
        })
    }
}
