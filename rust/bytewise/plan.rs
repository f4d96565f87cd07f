// SPDX-License-Identifier: GPL-2.0
//! From a range of bytes to a range of blocks.

/// The most bytes of blocks that one command moves: 4 KiB at any offset are in so many.
pub const SPAN: usize = 8192;

/// A disk, as far as a plan needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Its size in bytes.
    pub size: u64,
    /// Bytes of a logical block, as a power of two.
    pub block_shift: u8,
    /// The most bytes that one command may move, [`SPAN`] at most.
    pub span: u32,
}

/// One command that moves whole blocks, and which of their bytes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The first block.
    pub lba: u64,
    /// How many blocks, 1 at least.
    pub blocks: u32,
    /// Bytes before the first that is wanted.
    pub skip: usize,
    /// Bytes that are wanted, 1 at least.
    pub len: usize,
}

/// Some blocks of a [`Plan`], one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first, counted from the plan's.
    pub first: u32,
    /// How many, 1 at least.
    pub count: u32,
}

impl Plan {
    /// All of its blocks.
    #[inline]
    pub fn all(&self) -> Run {
        Run {
            first: 0,
            count: self.blocks,
        }
    }
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

    /// Which blocks `wanted` bytes from `offset` on are in: as many of them as one command moves
    /// and the disk has. One that does not move them all ends with a block, so that what follows
    /// begins with one. `None`: there are none, as none are wanted or the disk ends before, or its
    /// blocks are too large ([`Geometry::is_usable`]).
    #[inline]
    pub fn plan(&self, offset: u64, wanted: usize) -> Option<Plan> {
        let block = self.block();
        let most = u64::from(self.span) / block;
        if most == 0 {
            return None;
        }
        // Whole blocks only: of one that the disk has not all of, no command can move any.
        let size = self.size & !block.wrapping_sub(1);
        let left = size.checked_sub(offset).filter(|left| *left != 0)?;
        let lba = offset >> self.block_shift;
        let skip = offset & block.wrapping_sub(1);
        // What the command moves beyond `skip`.
        let room = most.saturating_mul(block).saturating_sub(skip);
        // CAST: a `usize` has 64 bits at most.
        let len = (wanted as u64).min(left).min(room);
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

    /// What is to be read before `plan` is written: of blocks that it has not all bytes of, the
    /// others stay. In one command, be it with a whole block between two such.
    pub fn ragged(&self, plan: &Plan) -> Option<Run> {
        let within = self.block().wrapping_sub(1);
        // CAST: a `usize` has 64 bits at most.
        let end = plan.skip.saturating_add(plan.len) as u64;
        let last = plan.blocks.saturating_sub(1);
        let (first, count) = match (plan.skip != 0, end & within != 0) {
            (false, false) => return None,
            (true, false) => (0, 1),
            (false, true) => (last, 1),
            (true, true) => (0, plan.blocks),
        };
        Some(Run { first, count })
    }
}
