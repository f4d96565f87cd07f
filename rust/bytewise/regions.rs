// SPDX-License-Identifier: GPL-2.0
//! Which locks a write takes: one for each region of the disk that it touches.
//!
//! A write of part of a block reads the block, merges, and writes all of it: of two at once the
//! second would bring back what was there before the first. So one block has one writer at a time,
//! those of whole blocks, too. A region is as long as a command, and holds its blocks whole: a
//! write touches two at most, of which one is even and the other odd.
//!
//! # No deadlock
//! Whoever needs two locks takes the even region's first (`tests/loom_regions.rs`), to which
//! lockdep holds everybody: it knows the two kinds apart.

use crate::plan::SPAN;

/// A region's lock, of those of its kind; as there are fewer locks than regions, it is others',
/// too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Of the even ones.
    Even(usize),
    /// Of the odd ones.
    Odd(usize),
}

/// The regions that a write touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    first: u64,
    last: u64,
}

impl Regions {
    /// How many locks there are of each kind. Of 64 writers at random places, each in one region,
    /// one in sixteen waits for another's: 63 of 1,024.
    pub const LOCKS: usize = 512;

    /// Those of `len` bytes from `offset` on, of which only [`SPAN`] count.
    pub fn of(offset: u64, len: usize) -> Self {
        // CAST: a `usize` has 64 bits at most.
        let beyond = len.min(SPAN).saturating_sub(1) as u64;
        Self {
            first: region(offset),
            last: region(offset.saturating_add(beyond)),
        }
    }

    /// Has `lock` take each region's lock; `None`, with none of them kept, if one is not given.
    pub fn lock<G>(self, mut lock: impl FnMut(Region) -> Option<G>) -> Option<(G, Option<G>)> {
        let (first, second) = self.each();
        let first = lock(first)?;
        Some(match second {
            Some(second) => (first, Some(lock(second)?)),
            None => (first, None),
        })
    }

    /// Each of them, in that order.
    pub fn each(self) -> (Region, Option<Region>) {
        if self.first == self.last {
            (lock_of(self.first), None)
        } else if is_even(self.first) {
            (lock_of(self.first), Some(lock_of(self.last)))
        } else {
            (lock_of(self.last), Some(lock_of(self.first)))
        }
    }
}

fn region(offset: u64) -> u64 {
    offset >> SPAN.trailing_zeros()
}

fn is_even(region: u64) -> bool {
    region & 1 == 0
}

fn lock_of(region: u64) -> Region {
    // CAST: below `LOCKS`.
    let at = (region >> 1) as usize % Regions::LOCKS;
    if is_even(region) {
        Region::Even(at)
    } else {
        Region::Odd(at)
    }
}
