// SPDX-License-Identifier: GPL-2.0
//! What the link takes, told from what the medium takes by size.
//!
//! ```text
//!   took
//!     │                          . ┄ ┄  x 64 KiB
//!     │                . ┄ ┄ ┄             the slope: what the link takes for a byte
//!     │       x  ┄ ┄
//!     │  x ┄   16 KiB
//!     ├─ 4 KiB          what no byte adds: the medium
//!     └────────────────────────────────── bytes
//! ```
//!
//! The slope of the line through what commands took, by least squares: how far sizes and times go
//! up and down together, over how far sizes go up and down. Both are averages that forget. They are
//! divided for one in [`EACH`] commands, and not while sizes are so near each other that what the
//! medium takes for one or the other hides what the link does.

use super::estimate::{Estimate, Off};
use cell::sync::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Sizes are counted in sectors here, as a power of two of bytes.
const SECTOR: u32 = 9;
/// The fraction of a slope, in bits.
const FRACTION: u32 = 8;
/// A new pair goes into the averages with its part of 2 to the power of so much.
const WEIGHT: u32 = 5;
/// So many commands until the slope is made anew, once there were as many,
const EACH: u32 = 16;
/// and before.
const EACH_EARLY: u32 = 4;
/// So far apart must sizes be, squared, in sectors: 2 KiB.
const APART: u64 = 16;
/// The line is good up to so many times as far from the middle as sizes mostly are, squared.
const REACH: u64 = 16;

/// Nanoseconds a sector, with [`FRACTION`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Slope(u32);

impl Slope {
    /// Of what has no size.
    pub(super) const FLAT: Self = Self(0);

    /// What the link takes for so many bytes more, or less.
    #[inline(always)]
    pub(super) fn of(self, bytes: i64) -> i64 {
        bytes.saturating_mul(i64::from(self.0)) >> (SECTOR + FRACTION)
    }
}

/// The line through what commands of one operation and depth took, whatever their size.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// What all of them take.
    all: Estimate,
    /// Size by time, with [`FRACTION`],
    both: AtomicI64,
    /// and size by size.
    sizes: AtomicU64,
    /// See [`Slope`]; 0: there is none.
    slope: AtomicU32,
}

/// So many bytes in sectors, rounded.
#[inline(always)]
fn sectors(bytes: i64) -> i64 {
    bytes.saturating_add(1 << SECTOR >> 1) >> SECTOR
}

/// The square, with [`FRACTION`].
#[inline(always)]
fn square(sectors: i64) -> u64 {
    let sectors = sectors.unsigned_abs();
    sectors
        .saturating_mul(sectors)
        .saturating_mul(1 << FRACTION)
}

impl Line {
    /// What all of them take.
    #[inline(always)]
    pub(super) fn all(&self) -> &Estimate {
        &self.all
    }

    #[inline(always)]
    pub(super) fn slope(&self) -> Slope {
        Slope(self.slope.load(Ordering::Relaxed))
    }

    /// Whether there is a line that is good for a command of `bytes`.
    pub(super) fn reaches(&self, bytes: u64) -> bool {
        let apart = self.sizes.load(Ordering::Relaxed);
        self.slope.load(Ordering::Relaxed) != 0
            && square(sectors(self.all.more(bytes))) <= apart.saturating_mul(REACH)
    }

    /// A command of `bytes` took `took_ns`.
    #[inline]
    pub(super) fn came(&self, bytes: u64, took_ns: u64) {
        let slope = self.slope();
        let Off { bytes, ns } = self.all.came(bytes, took_ns, slope);
        let sectors = sectors(bytes);
        if sectors == 0 {
            return;
        }
        let ns = ns.saturating_add(slope.of(bytes));
        let both = sectors.saturating_mul(ns).saturating_mul(1 << FRACTION);
        let was = self.both.load(Ordering::Relaxed);
        let both = was.saturating_add(both.saturating_sub(was) >> WEIGHT);
        self.both.store(both, Ordering::Relaxed);
        let was = self.sizes.load(Ordering::Relaxed);
        let sizes = was.saturating_sub(was >> WEIGHT);
        let sizes = sizes.saturating_add(square(sectors) >> WEIGHT);
        self.sizes.store(sizes, Ordering::Relaxed);
        let seen = self.all.seen();
        let each = if seen < EACH { EACH_EARLY } else { EACH };
        if seen % each == 0 {
            self.make_slope(both, sizes);
        }
    }

    #[cold]
    fn make_slope(&self, both: i64, sizes: u64) {
        let sizes = sizes >> FRACTION;
        if sizes < APART {
            return;
        }
        // CAST: not negative by then.
        let slope = (both.max(0) as u64).checked_div(sizes).unwrap_or(0);
        // CAST: in range by then.
        let slope = slope.min(self.steepest()) as u32;
        self.slope.store(slope, Ordering::Relaxed);
    }

    /// The link takes no longer than all of it, or half as long again where the bytes of others
    /// were under way already; whatever averages that two writers have mixed up say.
    fn steepest(&self) -> u64 {
        let all = u64::from(self.all.expected_ns());
        let mostly = sectors(self.all.more(0)).unsigned_abs().max(1);
        let most = (all + (all >> 1)) << FRACTION;
        let steepest = most.checked_div(mostly).unwrap_or(0);
        steepest.min(u64::from(u32::MAX))
    }
}
