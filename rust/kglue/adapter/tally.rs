// SPDX-License-Identifier: GPL-2.0
//! What is counted of a hardware queue as a whole.

use crate::blk::owner::ControllerCounts;
use crate::context::{stamp, stamps_to_ns};
use core::sync::atomic::{AtomicU64, Ordering};
use engine::Nap;

/// Counts of one queue, from its beginning or the last reset of them.
#[derive(Default)]
pub(super) struct Tally {
    /// One writer at a time, as for all up to the turns.
    pub(super) interrupts: AtomicU64,
    /// In units of [`stamp`].
    pub(super) max_irq: AtomicU64,
    /// The longest tick of the poll timer, likewise.
    pub(super) max_tick: AtomicU64,
    pub(super) ticks: AtomicU64,
    /// How often the interrupt was turned on or off.
    pub(super) turns: AtomicU64,
    /// Completions that only a time-out found.
    pub(super) missed: AtomicU64,
    /// By [`Nap`], in its order. Anybody counts.
    naps: [AtomicU64; 4],
}

/// Counts one more, where there is one writer at a time: no exchange is needed.
#[inline]
pub(super) fn count(counter: &AtomicU64) {
    let n = counter.load(Ordering::Relaxed);
    counter.store(n.wrapping_add(1), Ordering::Relaxed);
}

/// What began at `begin` is over: `longest` is how long it ever took. One writer at a time.
#[inline]
pub(super) fn took(begin: u64, longest: &AtomicU64) {
    let took = stamp().saturating_sub(begin);
    if took > longest.load(Ordering::Relaxed) {
        longest.store(took, Ordering::Relaxed);
    }
}

impl Tally {
    /// A nap has ended so.
    pub(super) fn nap(&self, nap: Nap) {
        let counter = match nap {
            Nap::Hit => &self.naps[0],
            Nap::Late => &self.naps[1],
            Nap::Vain => &self.naps[2],
            Nap::Woken => &self.naps[3],
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what was counted to `counts`.
    pub(super) fn add_to(&self, counts: &mut ControllerCounts) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        counts.interrupts = counts.interrupts.wrapping_add(get(&self.interrupts));
        counts.max_irq_ns = counts.max_irq_ns.max(stamps_to_ns(get(&self.max_irq)));
        counts.max_tick_ns = counts.max_tick_ns.max(stamps_to_ns(get(&self.max_tick)));
        counts.ticks = counts.ticks.wrapping_add(get(&self.ticks));
        counts.turns = counts.turns.wrapping_add(get(&self.turns));
        counts.missed = counts.missed.wrapping_add(get(&self.missed));
        for (sum, naps) in counts.naps.iter_mut().zip(&self.naps) {
            *sum = sum.wrapping_add(get(naps));
        }
    }

    /// Begins at zero again.
    pub(super) fn reset(&self) {
        let zero = |counter: &AtomicU64| counter.store(0, Ordering::Relaxed);
        zero(&self.interrupts);
        zero(&self.max_irq);
        zero(&self.max_tick);
        zero(&self.ticks);
        zero(&self.turns);
        zero(&self.missed);
        self.naps.iter().for_each(zero);
    }
}
