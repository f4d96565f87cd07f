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
//! over: its own bytes, and those of the commands that were issued before it. Who knows both gives
//! their sum; who does not gives its own, and what the others take is in what its class takes.
//!
//! # Writers
//! Any number at a time, in any context: everything is relaxed, values may be of different
//! commands, and what one writer has learnt may be lost to another. Nothing but a guess depends on
//! it. Every value is kept in range where it is used.

mod class;
mod estimate;
mod line;

pub use class::Class;

use class::{DEPTHS, OPS, SIZES};
use engine::{Due, Seen};
use estimate::Estimate;
use hal::{Error, Platform};
use line::{Line, Slope};

/// So many commands of a class must have been measured before it speaks for itself,
const ENOUGH: u32 = 2;
/// and so many of a depth before their line speaks for a class of which there are fewer.
const ENOUGH_OF_LINE: u32 = 8;
/// What is read off the line may be wrong by that part of what it adds or takes away, as a power of
/// two.
const OFF_LINE: u32 = 3;
/// The first so many commands of each class are for the line, too, and then
const ALL_FOR_LINE: u32 = 64;
/// one in 2 to the power of so many.
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
