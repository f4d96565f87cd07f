// SPDX-License-Identifier: GPL-2.0
//! Which commands are alike.

use core::fmt;
use hal::Op;

/// Reads and writes.
pub(super) const OPS: usize = 2;
/// Up to 4, 16 and 64 KiB, and more.
pub(super) const SIZES: usize = 4;
/// 1, 2, up to 4, 8 and 16 outstanding, and more.
pub(super) const DEPTHS: usize = 6;

/// The smallest size's commands have so many bytes at most, as a power of two.
const SMALL: u32 = 12;

/// What a class's code has that no other byte has.
const CODE: u8 = 1 << 7;

/// Commands that are alike.
///
/// Sizes are told apart in bands of a factor of four: what differs within one is the link's time
/// for at most three quarters of the largest, and that the slope accounts for.
///
/// Depths: alone, and one of two, are exact, as there it pays most to know, and one command more
/// makes all the difference between an idle device and a busy one. Once a device is busy, what a
/// command takes grows in proportion to what is outstanding, so each further band goes to twice the
/// one before. Beyond 16 it is queueing that is measured, which depends on others more than on the
/// device: one class is enough to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    op: u8,
    size: u8,
    depth: u8,
}

/// How many bits `n` has up to the highest that is set.
#[inline(always)]
fn bits(n: u64) -> u32 {
    u64::BITS.saturating_sub(n.leading_zeros())
}

impl Class {
    /// Of a command of so many bytes, its own alone, with which so many are outstanding, itself
    /// counted. `None`: it can't be foretold.
    #[inline]
    pub fn of(op: Op, bytes: u64, outstanding: u64) -> Option<Self> {
        let op = match op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush | Op::Discard | Op::WriteZeroes => return None,
        };
        let size = bits(bytes.saturating_sub(1) >> SMALL).div_ceil(2);
        let depth = bits(outstanding.saturating_sub(1));
        Some(Self {
            op,
            // CAST: less than SIZES, and than DEPTHS.
            size: size.min(SIZES as u32 - 1) as u8,
            depth: depth.min(DEPTHS as u32 - 1) as u8,
        })
    }

    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        let (ops, sizes, depths) = (0..OPS as u8, 0..SIZES as u8, 0..DEPTHS as u8);
        ops.flat_map(move |op| {
            let depths = depths.clone();
            sizes
                .clone()
                .flat_map(move |size| depths.clone().map(move |depth| Self { op, size, depth }))
        })
    }

    /// As a byte; never 0.
    #[inline(always)]
    pub(crate) fn code(self) -> u8 {
        CODE | (self.op << 6) | (self.size << 4) | self.depth
    }

    /// Of such a byte.
    #[inline(always)]
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        (code & CODE != 0).then_some(Self {
            op: (code >> 6) & 1,
            size: (code >> 4) & 3,
            depth: code & 0xf,
        })
    }

    #[inline(always)]
    pub(super) fn op(self) -> usize {
        usize::from(self.op)
    }

    #[inline(always)]
    pub(super) fn size(self) -> usize {
        usize::from(self.size)
    }

    #[inline(always)]
    pub(super) fn depth(self) -> usize {
        usize::from(self.depth)
    }
}

/// As in `read 4k 3-4`: up to 4 KiB, and 3 or 4 outstanding.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            0 => "read",
            _ => "write",
        };
        let size = match self.size {
            0 => "4k",
            1 => "16k",
            2 => "64k",
            _ => "more",
        };
        let depth = match self.depth {
            0 => "1",
            1 => "2",
            2 => "3-4",
            3 => "5-8",
            4 => "9-16",
            _ => "more",
        };
        write!(f, "{op} {size} {depth}")
    }
}
