// SPDX-License-Identifier: GPL-2.0
//! How long requests take, as a histogram has it: which bucket a time falls in.
//!
//! ```text
//!  µs  0     1     1.5   2     3     4     6     8        8,388,608   12,582,912   16,777,216
//!      |  0  |  1  |  2  |  3  |  4  |  5  |  6  |  ...  |     47     |     48     |  49 ...
//! ```
//! There are two buckets of equal width for each power of two of microseconds, one for what is
//! below a microsecond, and one for what takes 16.8 seconds or longer. So a percentile that is
//! read from a histogram is at most half as long again as the true one.
//!
//! Times are measured in *stamps*, the unit of some counter, and never converted to nanoseconds on
//! the data path: [`PerStamp`] makes quarters of microseconds of them by one multiplication.

/// Buckets of a histogram.
pub const BUCKETS: usize = 50;

/// Nanoseconds in the unit of what is below: a quarter of a microsecond, so that each power of two
/// has two bits at least that say in which of its buckets a time is.
const UNIT_NS: u64 = 250;

/// The shortest time of which that is asked, and the bucket that it would be, were there two for
/// each power of two below a microsecond, too.
const SHORTEST: u64 = 3;
const FIRST: u64 = 5;
/// The longest one, where the last bucket begins.
const LONGEST: u64 = 1 << 26;

/// The number of stamps that [`PerStamp::new`] is told the length of.
pub const PROBE: u64 = 1 << 40;

/// How long a stamp is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerStamp(
    /// Units in 2⁶⁴ stamps, rounded up: what is a whole number of them stays one.
    u64,
);

impl PerStamp {
    /// Of a counter of nanoseconds.
    pub const NS: Self = Self::new(PROBE);

    /// Of a counter of which [`PROBE`] stamps take `probe_ns`. One that is slower than 70 MHz has
    /// all its times too short.
    pub const fn new(probe_ns: u64) -> Self {
        // What is behind the last of these bits makes a stamp of difference in hours.
        let in_part = probe_ns.saturating_mul(1 << 20) / UNIT_NS;
        Self(in_part.saturating_add(1).saturating_mul(1 << 4))
    }

    /// The bucket of a time in stamps: below [`BUCKETS`].
    #[inline(always)]
    pub const fn bucket(self, stamps: u64) -> usize {
        // CAST: the upper half of 128 bits.
        bucket_of(((stamps as u128 * self.0 as u128) >> 64) as u64)
    }
}

/// The bucket of a time in units.
#[inline(always)]
const fn bucket_of(units: u64) -> usize {
    let units = match units {
        ..SHORTEST => SHORTEST,
        LONGEST.. => LONGEST,
        _ => units,
    };
    // The number of its highest bit, of 64, written so that it is one instruction.
    let log = units.leading_zeros() ^ 63;
    // Two a power of two: the two highest bits are 2 or 3.
    let half = units.wrapping_mul(2).wrapping_shr(log);
    // CAST: small numbers, and the sum is not below what is taken off.
    (log as u64)
        .wrapping_mul(2)
        .wrapping_add(half)
        .wrapping_sub(FIRST) as usize
}

/// Where `bucket` ends, in nanoseconds: its times are below that, and not below the end of the one
/// before. `None`: it has no end, or there is no such bucket.
pub const fn end_ns(bucket: usize) -> Option<u64> {
    if bucket >= BUCKETS - 1 {
        return None;
    }
    // CAST: below BUCKETS.
    let bucket = bucket as u32;
    let units = match bucket % 2 {
        0 => 4 << (bucket / 2),
        _ => 6 << (bucket / 2),
    };
    Some(units * UNIT_NS)
}
