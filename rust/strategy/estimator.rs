// SPDX-License-Identifier: GPL-2.0
//! When a command is over, give or take; or that this is not known.
//!
//! ```text
//!   issue: Class::of(op, bytes, outstanding) ── due(class, bytes) ──> after 80 us, give or take 2
//!                                                                     or: don't know
//!   over:  saw(class, bytes, took, Came | Found)
//!            │
//!            ├── Estimate of the class      expected, spread, seen
//!            └── Line of all its sizes      the link's time a byte
//! ```
//!
//! # Classification
//! Commands are alike that do the same ([`Class`]: read or write), move about as much, and were
//! issued to a device that had about as much to do. Each class has an [`Estimate`]. Of a flush, a
//! discard or zeroes nothing is foretold: what they take is not their own.
//!
//! # Decomposition
//! What a command takes is what the medium takes, which is the same for all sizes, and what the
//! link takes, which grows with each byte. Sizes tell them apart ([`Line`]): how much longer takes
//! what is longer, is the link's. So a command is foretold that is larger or smaller than its class
//! mostly is, and a class that was not seen yet, if others of its depth were.
//!
//! Several commands share one link, so what counts is how much goes over it before a command is
//! over: its own bytes, and those of the commands that were issued before it. A caller that knows
//! both gives their sum; one that does not gives its own, and what the others take is in what its
//! class takes.
//!
//! # Writers
//! Any number at a time, in any context: everything is relaxed, values may be of different
//! commands, and what one writer has learnt may be lost to another. Nothing but a guess depends on
//! it. Every value is kept in range where it is used.
//!
//! # The estimate of a class
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
//! that twice as much as the one before. A thread that comes too late each time never measures, and
//! comes sooner so: were it by what the look was early, which is little where the device is
//! regular, a device that became much faster would be noticed after hundreds of commands.
//!
//! Where anything counts, as the spread is as wide as the value, nothing is far. So eight in a row
//! that took less than half of the value are the value, too.
//!
//! # The line of all sizes
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

use cell::sync::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use core::fmt;
use engine::{Due, Seen};
use hal::{Error, Op, Platform};

/// How many commands of a class must have been measured before it speaks for itself.
const ENOUGH: u32 = 2;
/// How many of a depth must have been before their line speaks for a class of which there are
/// fewer.
const ENOUGH_OF_LINE: u32 = 8;
/// What is read off the line may be wrong by that part of what it adds or takes away, as a power of
/// two.
const OFF_LINE: u32 = 3;
/// How many commands of each class, the first ones, are for the line, too.
const ALL_FOR_LINE: u32 = 64;
/// After those, one in 2 to the power of this is.
const ONE_FOR_LINE: u32 = 2;

/// What is known of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Of which.
    pub class: Class,
    /// What a command of the class takes that has the size most of them have,
    pub expected_ns: u64,
    /// of which the link takes so much; 0: it can't be told, as all had one size.
    pub link_ns: u64,
    /// How far they are from it, on average.
    pub spread_ns: u64,
    /// How many were measured.
    pub seen: u32,
}

/// Whether `n` is one of 2 to the power of `of`: by the golden ratio, so that no pattern of loads
/// has always the same one picked.
#[inline(always)]
pub(crate) fn is_one_of(n: u64, of: u32) -> bool {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - of) == 0
}

/// Whether a class's n-th command is for the line, too.
#[inline(always)]
fn is_for_line(n: u32) -> bool {
    n < ALL_FOR_LINE || is_one_of(u64::from(n), ONE_FOR_LINE)
}

/// What is known of commands of one operation, issued to a device with about as much to do.
#[derive(Debug, Default)]
struct Alike {
    sizes: [Estimate; SIZES],
    line: Line,
}

/// How long something takes that has no size.
#[derive(Debug, Default)]
pub(crate) struct Delay(Estimate);

impl Delay {
    /// It took `ns`.
    pub(crate) fn came(&self, ns: u64) {
        self.0.came(0, ns, Slope::FLAT);
    }

    /// What it takes; 0 until it was measured.
    pub(crate) fn expected_ns(&self) -> u32 {
        self.0.expected_ns()
    }

    /// What it takes, and how far it is from that on average; until it was measured, `assumed`.
    pub(crate) fn or(&self, assumed: u64) -> (u64, u64) {
        match self.0.seen() {
            0 => (assumed, 0),
            _ => (
                u64::from(self.0.expected_ns()),
                u64::from(self.0.spread_ns()),
            ),
        }
    }
}

/// The forecast for one device.
pub struct Forecast<P: Platform> {
    /// For each operation, by depth.
    alike: P::Table<Alike>,
}

impl<P: Platform> Forecast<P> {
    /// One that knows nothing. Control path; may sleep.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(platform: &P) -> Result<Self, Error> {
        // Models of the engine's ask nothing of it, and each atomic is dear there.
        let len = if cfg!(loom) { 0 } else { OPS * DEPTHS };
        let alike = platform.table(len, |_| Alike::default())?;
        Ok(Self { alike })
    }

    #[inline]
    fn of(&self, class: Class) -> Option<(&Estimate, &Line)> {
        let at = class.op().wrapping_mul(DEPTHS).wrapping_add(class.depth());
        let alike = self.alike.get(at)?;
        Some((alike.sizes.get(class.size())?, &alike.line))
    }

    /// When a command of `class` that is issued now is over; `None`: nobody knows.
    ///
    /// `bytes` go over the link until then: the command's own, and, where that is known, those of
    /// commands that the device has not answered yet. [`Forecast::saw`] must be given the same.
    #[inline]
    pub fn due(&self, class: Class, bytes: u64) -> Option<Due> {
        let (estimate, line) = self.of(class)?;
        if estimate.seen() >= ENOUGH {
            let after = estimate.at(bytes, line.slope());
            return Some(Due {
                after_ns: u64::from(after),
                spread_ns: u64::from(estimate.spread_ns()),
            });
        }
        let all = line.all();
        if all.seen() < ENOUGH_OF_LINE || !line.reaches(bytes) {
            return None;
        }
        let after = all.at(bytes, line.slope());
        let off = all.expected_ns().abs_diff(after) >> OFF_LINE;
        Some(Due {
            after_ns: u64::from(after),
            spread_ns: u64::from(all.spread_ns().saturating_add(off)),
        })
    }

    /// A command of `class` was over after `took_ns`; `bytes` as [`Forecast::due`] was given.
    #[inline]
    pub fn saw(&self, class: Class, bytes: u64, took_ns: u64, seen: Seen) {
        let Some((estimate, line)) = self.of(class) else {
            return;
        };
        let slope = line.slope();
        match seen {
            Seen::Came => {
                estimate.came(bytes, took_ns, slope);
                if is_for_line(estimate.seen()) {
                    line.came(bytes, took_ns);
                }
            }
            Seen::Found => estimate.found(bytes, took_ns, slope),
        }
    }

    /// What is known of `class`; `None`: nothing was measured.
    pub fn known(&self, class: Class) -> Option<Known> {
        let (estimate, line) = self.of(class)?;
        (estimate.seen() != 0).then(|| Known {
            class,
            expected_ns: u64::from(estimate.expected_ns()),
            link_ns: u64::from(estimate.link_ns(line.slope())),
            spread_ns: u64::from(estimate.spread_ns()),
            seen: estimate.seen(),
        })
    }
}

/// Reads and writes.
const OPS: usize = 2;
/// Up to 4, 16 and 64 KiB, and more.
const SIZES: usize = 4;
/// 1, 2, up to 4, 8 and 16 outstanding, and more.
const DEPTHS: usize = 6;

/// How many bytes the smallest size's commands have at most, as a power of two.
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
    /// The class of a command of `bytes`, its own alone, with which `outstanding` are outstanding,
    /// itself counted. `None`: it can't be predicted.
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
    pub(crate) fn op(self) -> usize {
        usize::from(self.op)
    }

    #[inline(always)]
    fn size(self) -> usize {
        usize::from(self.size)
    }

    #[inline(always)]
    pub(crate) fn depth(self) -> usize {
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

/// A measurement moves value and spread by its part of 2 to the power of so much.
const WEIGHT: u32 = 3;
/// How much one of the first [`EARLY`] moves them.
const WEIGHT_EARLY: u32 = 2;
/// How many spreads a measurement counts as away at most, as a power of two.
const FAR: u32 = 2;
/// The same limit as a part of the value, as such a power: where there was no spread it has to
/// begin.
const LEAST: u32 = 5;
/// Two are alike that differ by that part of how far they are off, as a power of two.
const ALIKE: u32 = 2;
/// After how many in a row that were there at the first look the value is too high.
const LATE: u32 = 4;
/// The same for those that took less than half of it, however far the spread lets them count. An
/// eighth of the way each, a value of seconds takes 126 commands to come down to 2 us. Where a
/// command takes less than half as often as not, eight in a row are chance once in 256.
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
/// One of the first `EARLY` measurements that is less than a quarter of those before begins anew:
/// they were of a command that took long for reasons of its own.
const EARLY: u32 = 4;
/// The most bytes that are counted, which is more than any one command has.
const MOST_BYTES: u64 = 32 << 20;
/// The longest duration that is counted, some 2 s: nobody naps for longer, and how far one is off
/// another fits the 32 signed bits that it is kept in.
const MOST_NS: u32 = i32::MAX.unsigned_abs();

/// Of one class, or of several together.
///
/// Each value is kept in 32 bits and computed in 64, so no sum of two overflows.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    /// What a command of `bytes` takes.
    expected_ns: AtomicU32,
    /// How many bytes commands mostly have.
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
pub(crate) struct Off {
    /// How many more bytes it had than commands mostly have.
    pub(crate) bytes: i64,
    /// How much longer it took than is expected of those.
    pub(crate) ns: i64,
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
    pub(crate) fn seen(&self) -> u32 {
        self.seen.load(Ordering::Relaxed)
    }

    /// What a command takes that has the size most have.
    #[inline(always)]
    pub(crate) fn expected_ns(&self) -> u32 {
        self.expected_ns.load(Ordering::Relaxed)
    }

    /// How far measurements are from it.
    #[inline(always)]
    pub(crate) fn spread_ns(&self) -> u32 {
        self.spread_ns.load(Ordering::Relaxed)
    }

    /// What of the expected is the link's.
    fn link_ns(&self, slope: Slope) -> u32 {
        let bytes = i64::from(self.bytes.load(Ordering::Relaxed));
        kept(slope.of(bytes)).min(self.expected_ns())
    }

    /// How many more `bytes` are than mostly.
    #[inline(always)]
    pub(crate) fn more(&self, bytes: u64) -> i64 {
        // CAST: fits by then.
        bytes.min(MOST_BYTES) as i64 - i64::from(self.bytes.load(Ordering::Relaxed))
    }

    /// What a command of `bytes` takes.
    #[inline]
    pub(crate) fn at(&self, bytes: u64, slope: Slope) -> u32 {
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
    pub(crate) fn came(&self, bytes: u64, took_ns: u64, slope: Slope) -> Off {
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
    pub(crate) fn found(&self, bytes: u64, took_ns: u64, slope: Slope) {
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

/// Sizes are counted in sectors here, as a power of two of bytes.
const SECTOR: u32 = 9;
/// The fraction of a slope, in bits.
const FRACTION: u32 = 8;
/// A new pair has a part of 2 to the power of this in the averages.
const LINE_WEIGHT: u32 = 5;
/// After how many commands the slope is made anew, once there were as many.
const EACH: u32 = 16;
/// The same before.
const EACH_EARLY: u32 = 4;
/// How far apart sizes must be, squared, in sectors: 2 KiB.
const APART: u64 = 16;
/// The line is good up to this many times as far from the middle as sizes mostly are, squared.
const REACH: u64 = 16;

/// Nanoseconds a sector, with [`FRACTION`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slope(u32);

impl Slope {
    /// Of what has no size.
    const FLAT: Self = Self(0);

    /// What the link takes for `bytes` more, or less.
    #[inline(always)]
    pub(crate) fn of(self, bytes: i64) -> i64 {
        bytes.saturating_mul(i64::from(self.0)) >> (SECTOR + FRACTION)
    }
}

/// The line through what commands of one operation and depth took, whatever their size.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// What all of them take.
    all: Estimate,
    /// Size by time, with [`FRACTION`],
    both: AtomicI64,
    /// and size by size.
    sizes: AtomicU64,
    /// See [`Slope`]; 0: there is none.
    slope: AtomicU32,
}

/// `bytes` in sectors, rounded.
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
    pub(crate) fn all(&self) -> &Estimate {
        &self.all
    }

    #[inline(always)]
    fn slope(&self) -> Slope {
        Slope(self.slope.load(Ordering::Relaxed))
    }

    /// Whether there is a line that is good for a command of `bytes`.
    fn reaches(&self, bytes: u64) -> bool {
        let apart = self.sizes.load(Ordering::Relaxed);
        self.slope.load(Ordering::Relaxed) != 0
            && square(sectors(self.all.more(bytes))) <= apart.saturating_mul(REACH)
    }

    /// A command of `bytes` took `took_ns`.
    #[inline]
    pub(crate) fn came(&self, bytes: u64, took_ns: u64) {
        let slope = self.slope();
        let Off { bytes, ns } = self.all.came(bytes, took_ns, slope);
        let sectors = sectors(bytes);
        if sectors == 0 {
            return;
        }
        let ns = ns.saturating_add(slope.of(bytes));
        let both = sectors.saturating_mul(ns).saturating_mul(1 << FRACTION);
        let was = self.both.load(Ordering::Relaxed);
        let both = was.saturating_add(both.saturating_sub(was) >> LINE_WEIGHT);
        self.both.store(both, Ordering::Relaxed);
        let was = self.sizes.load(Ordering::Relaxed);
        let sizes = was.saturating_sub(was >> LINE_WEIGHT);
        let sizes = sizes.saturating_add(square(sectors) >> LINE_WEIGHT);
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
