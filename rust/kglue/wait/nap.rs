// SPDX-License-Identifier: GPL-2.0
//! What the hook keeps of a place for naps: when what its thread waits for is over, as far as that
//! was foretold, and how its last nap ended.
//!
//! The queue can be told of that only while something is outstanding on it, as it is there for no
//! longer. So of a nap after which nothing is, it is told when the thread next waits for it.

use crate::context::now_ns;
use crate::way::{Offer, Way};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicU8, Ordering};
use engine::{Expected, Nap, Thread, Waiter};

/// What a place is to who naps there. The owner of the place writes all but what is expected.
#[derive(Default)]
pub(super) struct Naps {
    /// The latest of what was foretold; 0: nothing was.
    due_ns: AtomicU64,
    spread_ns: AtomicU64,
    /// Of so many.
    foretold: AtomicU64,
    /// The nap's end, and for how long the thread then looks.
    until_ns: AtomicU64,
    for_ns: AtomicU64,
    /// The last nap was in vain: a sleep follows.
    vain: AtomicBool,
    /// How the last nap ended: a [`Nap`]; [`TOLD`]: that was told.
    ended: AtomicU8,
    /// How late that was, and on which way.
    late_ns: AtomicU64,
    way: AtomicPtr<Way>,
}

/// A nap that was told of.
const TOLD: u8 = 0;
/// The others, as numbers from 1 on.
const NAPS: [Nap; 4] = [Nap::Hit, Nap::Late, Nap::Vain, Nap::Woken];

impl Naps {
    /// Something is foretold of one that is enlisted here, the only one or one of several. Any
    /// context.
    #[inline]
    pub(super) fn expect(&self, what: Expected, only: bool) {
        if only {
            self.due_ns.store(what.at_ns, Ordering::Relaxed);
            self.foretold.store(1, Ordering::Relaxed);
            // Of a wait that went on elsewhere.
            self.vain.store(false, Ordering::Relaxed);
        } else {
            self.due_ns.fetch_max(what.at_ns, Ordering::Relaxed);
            self.foretold.fetch_add(1, Ordering::Relaxed);
        }
        self.spread_ns.store(what.spread_ns, Ordering::Relaxed);
    }

    /// When all of `outstanding` are over; `None`: of some nothing is foretold.
    #[inline]
    pub(super) fn expected(&self, outstanding: u64) -> Option<Expected> {
        let at_ns = self.due_ns.load(Ordering::Relaxed);
        if at_ns == 0 || self.foretold.load(Ordering::Relaxed) < outstanding {
            return None;
        }
        let spread_ns = self.spread_ns.load(Ordering::Relaxed);
        Some(Expected { at_ns, spread_ns })
    }

    /// The wait is over.
    #[inline]
    pub(super) fn forget(&self) {
        if self.due_ns.load(Ordering::Relaxed) != 0 {
            self.due_ns.store(0, Ordering::Relaxed);
        }
    }

    /// A nap begins.
    #[inline]
    pub(super) fn begin(&self, until_ns: u64, for_ns: u64, way: *mut Way) {
        self.until_ns.store(until_ns, Ordering::Relaxed);
        self.for_ns.store(for_ns, Ordering::Relaxed);
        self.way.store(way, Ordering::Relaxed);
    }

    /// Whether a nap was in vain, and a sleep follows; once.
    #[inline]
    pub(super) fn take_vain(&self) -> bool {
        self.vain.load(Ordering::Relaxed) && self.vain.swap(false, Ordering::Relaxed)
    }

    /// How the last nap ended, and how late, if it was one on `way` that was not told of.
    #[inline]
    pub(super) fn take_ended(&self, way: *mut Way) -> Option<(Nap, u64)> {
        let ended = self.ended.load(Ordering::Relaxed);
        if ended == TOLD {
            return None;
        }
        self.ended.store(TOLD, Ordering::Relaxed);
        let at = usize::from(ended).checked_sub(1)?;
        let late_ns = self.late_ns.load(Ordering::Relaxed);
        let same = self.way.load(Ordering::Relaxed) == way;
        (NAPS.get(at).copied())
            .filter(|_| same)
            .map(|nap| (nap, late_ns))
    }

    /// `thread`'s nap here, in the place of `waiter`, is over: it was `woken` before its time, or
    /// looks now, if there is anything to look for still, and may. With preemption off.
    pub(super) fn end(
        &self,
        waiter: &Waiter<Offer, Way>,
        thread: Thread,
        woken: bool,
        may_drain: bool,
    ) {
        let until_ns = self.until_ns.load(Ordering::Relaxed);
        let way = match may_drain && !woken {
            true => waiter.way(thread),
            false => null_mut(),
        };
        // SAFETY: the way is this thread's own, and something is outstanding on it: its adapter is
        // there, and stays for as long as preemption is off.
        if let Some(way) = unsafe { way.as_ref() } {
            let for_ns = self.for_ns.load(Ordering::Relaxed);
            let nap = way.queue().look_again(waiter, thread, until_ns, for_ns);
            self.vain.store(nap == Nap::Vain, Ordering::Relaxed);
            return;
        }
        let nap = if woken { Nap::Woken } else { Nap::Late };
        self.late_ns
            .store(now_ns().saturating_sub(until_ns), Ordering::Relaxed);
        let at = NAPS.iter().position(|known| *known == nap);
        // CAST: one of four.
        self.ended
            .store(at.map_or(TOLD, |at| at as u8 + 1), Ordering::Relaxed);
    }
}
