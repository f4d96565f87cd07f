// SPDX-License-Identifier: GPL-2.0
//! How long before a command is expected a thread is to look, and how long after.
//!
//! It is learnt so that one nap in four comes too late: what is seen to come early is cut off by
//! the nap itself, so the spread alone would shrink for ever. Who comes a little late has still
//! hidden most of its wake-up; to be in time always is paid with looks by everybody.

use cell::sync::{AtomicU16, Ordering};
use engine::Nap;

/// A thread looks from so many parts of a spread before what it expects until as many after, in the
/// beginning: by then nine of ten have come, if they are off as throws of dice are.
const MARGIN: u16 = 2 * PART;
const PART: u16 = 64;
/// Whoever comes too late widens that by so many parts, whoever does not narrows it by one: so one
/// of so many and one more comes too late. With 15 a read took 1 to 8 % more CPU time, and no less
/// of its own (docs/results.md, "Threads that nap").
const WIDER: u16 = 3;
/// It is that wide at most.
const WIDEST: u16 = 8 * PART;

/// So many parts of a spread.
pub(super) struct Margin(AtomicU16);

impl Default for Margin {
    fn default() -> Self {
        Self(AtomicU16::new(MARGIN))
    }
}

impl Margin {
    /// So many nanoseconds, for that spread.
    #[inline]
    pub(super) fn of(&self, spread_ns: u64) -> u64 {
        let parts = u64::from(self.0.load(Ordering::Relaxed));
        spread_ns.saturating_mul(parts) / u64::from(PART)
    }

    /// A nap ended so.
    #[inline]
    pub(super) fn napped(&self, nap: Nap) {
        let parts = self.0.load(Ordering::Relaxed);
        let parts = match nap {
            Nap::Late => parts.saturating_add(WIDER),
            Nap::Hit => parts.saturating_sub(1),
            Nap::Vain | Nap::Woken => parts,
        };
        self.0.store(parts.min(WIDEST), Ordering::Relaxed);
    }
}
