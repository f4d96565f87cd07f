// SPDX-License-Identifier: GPL-2.0
//! What a controller is asked to do.

/// The operations of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Device to memory.
    Read,
    /// Memory to device.
    Write,
    /// Everything acknowledged so far becomes durable.
    Flush,
    /// The range's content is no longer needed (deallocate, TRIM).
    Discard,
    /// The range reads as zeroes afterwards.
    WriteZeroes,
}

impl Op {
    /// Whether the operation moves data between memory and the device.
    pub const fn has_data(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }
}

/// One command. Its data, if [`Op::has_data`], comes beside it as [`Segment`]s whose lengths add up
/// to `blocks` logical blocks. So do the ranges of a discard that has several, `blocks` in sum:
/// there, a segment's address is a range's first logical block, and its length is in logical
/// blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// Which disk of the controller: [`crate::Unit::id`].
    pub unit: u32,
    /// First logical block; 0 for a flush.
    pub lba: u64,
    /// Length in logical blocks; 0 for a flush.
    pub blocks: u32,
    /// Bytes of one logical block, as a power of two.
    pub block_shift: u8,
    /// Force unit access: the data of a write is durable when it completes.
    pub fua: bool,
    /// Of [`Op::WriteZeroes`]: the device may give the blocks' space back, as long as they read as
    /// zeroes. Only where [`crate::Shape::zeroes_unmap`].
    pub unmap: bool,
}

/// A contiguous piece of memory as the device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bus address of the first byte.
    pub addr: u64,
    /// Length in bytes, never 0.
    pub len: u32,
}
