// SPDX-License-Identifier: GPL-2.0
//! A hybrid queue without its interrupt, as naps carry it.
//!
//! The interrupt comes just as the thread looks, and its handler is what a nap does not hide. So
//! the queue is polled while naps find what they are for one after the other, and an interval is
//! long enough that no tick comes meanwhile.

use cell::sync::{AtomicBool, AtomicU16, AtomicU8, Ordering};
use engine::{Nap, View, DEFAULT_POLL_INTERVAL_US};

/// After so many naps in a row that were of use they do without the interrupt.
const IN_A_ROW: u8 = 32;
/// Meanwhile the timer comes after so many nanoseconds for what is not foretold, however long the
/// interval is: nobody is to wait for long who did not ask for this.
const UNFORETOLD_NS: u64 = DEFAULT_POLL_INTERVAL_US as u64 * 1_000;
/// So many commands are outstanding on such a queue, at most.
const ALONE: u64 = super::ALONE;

/// Whether naps carry a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// It is polled.
    Yes,
    /// They did until now: it takes interrupts again.
    NoMore,
    /// It is not theirs to say.
    No,
}

/// What one queue's naps were like of late. Small, as queues are made on a stack.
#[derive(Default)]
pub(crate) struct Carrying {
    /// For so many microseconds at most the last nap was to leave its queue alone.
    reach_us: AtomicU16,
    /// Naps in a row that were neither vain nor cut short.
    row: AtomicU8,
    /// They carried it, when last asked. Written with the drain token held.
    on: AtomicBool,
}

impl Carrying {
    /// The queue is left alone for so many nanoseconds.
    #[inline]
    pub(super) fn set_reach(&self, ns: u64) {
        let us = u16::try_from(ns / 1_000).unwrap_or(u16::MAX);
        self.reach_us.store(us, Ordering::Relaxed);
    }

    /// A nap ended so.
    #[inline]
    pub(super) fn napped(&self, nap: Nap) {
        let row = match nap {
            Nap::Hit | Nap::Late => self.row.load(Ordering::Relaxed).saturating_add(1),
            Nap::Vain | Nap::Woken => 0,
        };
        self.row.store(row, Ordering::Relaxed);
    }

    /// A wait is slept through without a nap: naps don't carry the queue.
    #[inline]
    pub(super) fn slept_through(&self) {
        self.row.store(0, Ordering::Relaxed);
    }

    /// The mode was set: what was is over.
    pub(crate) fn begin(&self) {
        self.row.store(0, Ordering::Relaxed);
        self.on.store(false, Ordering::Relaxed);
    }

    /// Whether naps carry the hybrid queue, on which so many commands were outstanding when some
    /// ended. With the drain token held.
    #[inline]
    pub(crate) fn carries(&self, view: &impl View, depth: u64) -> Carried {
        let was = self.on.load(Ordering::Relaxed);
        if !was && !view.is_foretelling() {
            return Carried::No;
        }
        if depth > ALONE {
            self.row.store(0, Ordering::Relaxed);
        }
        let in_a_row = self.row.load(Ordering::Relaxed) >= IN_A_ROW;
        let reach_us = u64::from(self.reach_us.load(Ordering::Relaxed));
        let is = view.is_foretelling() && in_a_row && reach_us < view.interval_ns() / 1_000;
        if is != was {
            self.on.store(is, Ordering::Relaxed);
        }
        match (is, was) {
            (true, _) => Carried::Yes,
            (false, true) => Carried::NoMore,
            (false, false) => Carried::No,
        }
    }

    /// In how long the timer looks for what is not foretold; `None`: after an interval.
    #[inline]
    pub(super) fn looks_in(&self) -> Option<u64> {
        let on = self.on.load(Ordering::Relaxed);
        on.then_some(UNFORETOLD_NS)
    }
}
