// SPDX-License-Identifier: GPL-2.0
//! What commands that are alike take, and how far they are from it.
//!
//! The value goes an eighth of the way to each measurement, more of it while few were seen. How far
//! one counts is bounded by the spread, which one that is further away widens by half: a command
//! that the drive had to try again moves next to nothing.
//!
//! ```text
//!              x                            x x x x
//!                                             ┌──────  two in a row, far, and alike:
//!   value  ───────────────       ─────────────┘        the device is another now
//!          x x   x x x x         x x x x  x
//!        one by itself moves nothing
//! ```
//!
//! What was there at the first look took as long at most. It pulls the value down by as much as a
//! measurement would; when four in a row were there, it is the value, and each one more takes off
//! that twice as much as the one before. Whoever comes too late each time never measures, and comes
//! sooner so: were it by what the look was early, which is little where the device is regular, a
//! device that became much faster would be noticed after hundreds of commands.
//!
//! Where anything counts, as the spread is as wide as the value, nothing is far. So eight in a row
//! that took less than half of the value are the value, too.

use super::line::Slope;
use cell::sync::{AtomicI32, AtomicU32, Ordering};

/// A measurement moves value and spread by its part of 2 to the power of so much.
const WEIGHT: u32 = 3;
/// One of the first [`EARLY`] moves them by so much.
const WEIGHT_EARLY: u32 = 2;
/// It counts as no further away than so many spreads, as a power of two,
const FAR: u32 = 2;
/// and that part of the value, as such a power: where there was no spread it has to begin.
const LEAST: u32 = 5;
/// Two are alike that differ by that part of how far they are off, as a power of two.
const ALIKE: u32 = 2;
/// So many in a row that were there at the first look: the value is too high.
const LATE: u32 = 4;
/// So many in a row that took less than half of it: likewise, however far the spread lets them
/// count. An eighth of the way each, a value of seconds takes 126 commands to come down to 2 us.
/// Where a command takes less than half as often as not, eight in a row are chance once in 256.
const MUCH_SOONER: u32 = 8;
/// However many there were, it is lowered by that part of it at most, as a power of two: what the
/// device takes now may have been passed by as much, and a nap is too short by no more.
const SOONER: u32 = 2;
/// The fifth takes off twice what one measurement moves a value by that has no spread, a 256th, and
/// each one more doubles that, so often at most: more than enough for a quarter. Where one nap in
/// four comes too late, five in a row are chance once in 1,024, and the next naps look for as much
/// longer: reasoned, not measured.
const MOST_DOUBLED: u32 = 16;
/// The spread of what was seen once is that part of it, as a power of two.
const FIRST: u32 = 2;
/// One of the first so many measurements that is less than a quarter of those before begins anew:
/// they were of a command that took long for reasons of its own.
const EARLY: u32 = 4;
/// Bytes are counted up to so many, which is more than any one command has.
const MOST_BYTES: u64 = 32 << 20;
/// Durations up to so many, some 2 s: nobody naps for longer, and how far one is off another fits
/// the 32 signed bits that it is kept in.
const MOST_NS: u32 = i32::MAX.unsigned_abs();

/// Of one class, or of several together.
///
/// Each value is kept in 32 bits and computed in 64, so no sum of two overflows.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// What a command takes of
    expected_ns: AtomicU32,
    /// so many bytes, which is what they mostly have.
    bytes: AtomicU32,
    /// How far measurements are from what was expected.
    spread_ns: AtomicU32,
    /// How many there were.
    seen: AtomicU32,
    /// How far the last one was off, if that was further than what counts; else 0.
    far_ns: AtomicI32,
    /// How many in a row were there at the first look, sooner than expected, or took less than half
    /// of that.
    late: AtomicU32,
}

/// A measurement beside what was expected, as far as it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Off {
    /// So many more bytes than mostly.
    pub(super) bytes: i64,
    /// So much longer than expected of so many.
    pub(super) ns: i64,
}

/// Nanoseconds or bytes as they are kept.
#[inline(always)]
fn kept(value: i64) -> u32 {
    // CAST: in range by then.
    value.clamp(0, i64::from(MOST_NS)) as u32
}

/// A duration as it is kept: from [`MOST_NS`] on all are alike.
#[inline(always)]
fn kept_ns(ns: u64) -> i64 {
    // CAST: fits by then.
    ns.min(u64::from(MOST_NS)) as i64
}

impl Estimate {
    /// How many measurements there were.
    #[inline(always)]
    pub(super) fn seen(&self) -> u32 {
        self.seen.load(Ordering::Relaxed)
    }

    /// What a command takes that has the size most have.
    #[inline(always)]
    pub(super) fn expected_ns(&self) -> u32 {
        self.expected_ns.load(Ordering::Relaxed)
    }

    /// How far measurements are from it.
    #[inline(always)]
    pub(super) fn spread_ns(&self) -> u32 {
        self.spread_ns.load(Ordering::Relaxed)
    }

    /// What of the expected is the link's.
    pub(super) fn link_ns(&self, slope: Slope) -> u32 {
        let bytes = i64::from(self.bytes.load(Ordering::Relaxed));
        kept(slope.of(bytes)).min(self.expected_ns())
    }

    /// How many more `bytes` are than mostly.
    #[inline(always)]
    pub(super) fn more(&self, bytes: u64) -> i64 {
        // CAST: fits by then.
        bytes.min(MOST_BYTES) as i64 - i64::from(self.bytes.load(Ordering::Relaxed))
    }

    /// What a command of `bytes` takes.
    #[inline]
    pub(super) fn at(&self, bytes: u64, slope: Slope) -> u32 {
        let expected = i64::from(self.expected_ns());
        kept(expected.saturating_add(slope.of(self.more(bytes))))
    }

    /// How far a measurement counts.
    #[inline(always)]
    fn bound(&self, expected: i64) -> i64 {
        (i64::from(self.spread_ns()) << FAR) + (expected >> LEAST)
    }

    /// A command of `bytes` took `took_ns`.
    #[inline]
    pub(super) fn came(&self, bytes: u64, took_ns: u64, slope: Slope) -> Off {
        let (took, seen) = (kept_ns(took_ns), self.seen());
        let expected = i64::from(self.expected_ns());
        if seen == 0 || (seen < EARLY && took < expected >> 2) {
            self.begin(bytes, took);
            return Off { bytes: 0, ns: 0 };
        }
        let more = self.more(bytes);
        let by_size = slope.of(more);
        let off = took.saturating_sub(expected).saturating_sub(by_size);
        let bound = self.bound(expected);
        let counts = off.clamp(-bound, bound);
        let usual = match seen {
            1..EARLY => WEIGHT_EARLY,
            _ => WEIGHT,
        };
        let is_another = self.is_another(off, bound);
        let (moved, weight) = match self.is_much_sooner(off, expected) || is_another {
            true => {
                // Those before were sooner than a value that is no more.
                self.late.store(0, Ordering::Relaxed);
                (off, 0)
            }
            false => (counts, usual),
        };
        let expected = expected + (moved.saturating_add(by_size) >> weight);
        let mostly = i64::from(self.bytes.load(Ordering::Relaxed)) + (more >> weight);
        let spread = i64::from(self.spread_ns());
        let spread = spread + ((counts.abs() - spread) >> usual);
        self.expected_ns.store(kept(expected), Ordering::Relaxed);
        self.bytes.store(kept(mostly), Ordering::Relaxed);
        self.spread_ns.store(kept(spread), Ordering::Relaxed);
        self.seen.store(seen.saturating_add(1), Ordering::Relaxed);
        Off {
            bytes: more,
            ns: counts,
        }
    }

    #[cold]
    fn begin(&self, bytes: u64, took: i64) {
        self.expected_ns.store(kept(took), Ordering::Relaxed);
        // CAST: fits by then.
        let bytes = bytes.min(MOST_BYTES) as u32;
        self.bytes.store(bytes, Ordering::Relaxed);
        self.spread_ns.store(kept(took >> FIRST), Ordering::Relaxed);
        self.far_ns.store(0, Ordering::Relaxed);
        self.late.store(0, Ordering::Relaxed);
        self.seen.store(1, Ordering::Relaxed);
    }

    /// Whether the device is another now: this one is off by more than counts, and so was the one
    /// before, by about as much.
    #[inline(always)]
    fn is_another(&self, off: i64, bound: i64) -> bool {
        let before = i64::from(self.far_ns.load(Ordering::Relaxed));
        if off.abs() <= bound {
            if before != 0 {
                self.far_ns.store(0, Ordering::Relaxed);
            }
            return false;
        }
        let is_alike = (off - before).abs() <= off.abs() >> ALIKE;
        // CAST: in range by then.
        let off = off.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        let far = if is_alike { 0 } else { off };
        self.far_ns.store(far, Ordering::Relaxed);
        is_alike
    }

    /// Whether the value is too high, as this one and those before took less than half of it.
    #[inline(always)]
    fn is_much_sooner(&self, off: i64, expected: i64) -> bool {
        let late = self.late.load(Ordering::Relaxed);
        if off >= -(expected >> 1) {
            if late != 0 {
                self.late.store(0, Ordering::Relaxed);
            }
            return false;
        }
        self.late.store(late.saturating_add(1), Ordering::Relaxed);
        late >= MUCH_SOONER - 1
    }

    /// One of `bytes` took `took_ns` at most.
    #[inline]
    pub(super) fn found(&self, bytes: u64, took_ns: u64, slope: Slope) {
        let expected = i64::from(self.expected_ns());
        let by_size = slope.of(self.more(bytes));
        let off = kept_ns(took_ns)
            .saturating_sub(expected)
            .saturating_sub(by_size);
        // Where nothing was measured, nothing is expected.
        if off >= 0 {
            return;
        }
        let late = self.late.load(Ordering::Relaxed).saturating_add(1);
        self.late.store(late, Ordering::Relaxed);
        let bound = self.bound(expected);
        let moved = match late.checked_sub(LATE) {
            None => off.max(-bound) >> WEIGHT,
            Some(0) => off,
            Some(more) => {
                let step = (expected >> LEAST >> WEIGHT) << more.min(MOST_DOUBLED);
                off - step.min(expected.saturating_add(off) >> SOONER)
            }
        };
        let expected = kept(expected.saturating_add(moved));
        self.expected_ns.store(expected, Ordering::Relaxed);
    }
}
