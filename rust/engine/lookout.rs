// SPDX-License-Identifier: GPL-2.0
//! When the timer of a polled queue looks, where a single command is outstanding and it is foretold
//! when that is over.
//!
//! ```text
//!   issued                                        over, give or take
//!     │                                           │
//!     ├── nobody waits in the hook ───────────────┼─ look ─ look ── …    as the strategy says
//!     ├── its thread naps ────────────────────────┼── thread looks ─┤    the timer comes after it,
//!     │                                           │                      and if it was in vain, as
//!     └── an interval ──────────────────────────────────────────────┤    above
//!                                                            at the latest
//! ```
//!
//! Whatever is foretold, the timer comes an interval after the last look at the latest, or after
//! the command was issued, if that was the only one: by then a completion is noticed, as on any
//! polled queue. So it is put off by the issuer alone, and by who has just looked.

use crate::foretell::{Due, Plan};
use crate::queue::IoQueue;
use crate::strategy::{Strategy, View};
use crate::Upper;
use cell::sync::{AtomicBool, AtomicU32, Ordering};
use hal::{Platform, Queue};

/// A command that nobody waits for in the hook, or not with a nap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// When it was issued, by the clock of [`Upper::now_ns`],
    pub at_ns: u64,
    /// so many nanoseconds ago.
    pub since_ns: u64,
    /// When it is over; `None`: nobody knows yet.
    pub due: Option<Due>,
}

/// Sooner than after so many nanoseconds no timer is set.
const LEAST_NS: u64 = 1_000;

/// No tag.
const NONE: u32 = u32::MAX;

/// What the timer looks for. Relaxed: it may be of two commands at once, and moves the timer within
/// its interval.
pub(crate) struct Lookout {
    /// The tag of the command that was issued last, if anything is foretold of it; else [`NONE`].
    /// Written by the issue token's holder.
    tag: AtomicU32,
    /// The timer goes by it: no thread naps that looks for it.
    timed: AtomicBool,
}

impl Lookout {
    pub(crate) fn new() -> Self {
        Self {
            tag: AtomicU32::new(NONE),
            timed: AtomicBool::new(false),
        }
    }

    /// Nothing is foretold of what is issued last.
    #[inline]
    pub(crate) fn clear(&self) {
        self.tag.store(NONE, Ordering::Relaxed);
    }

    /// The command of that tag is about to be issued. `awaited`: a thread is about to wait for it,
    /// and says whether the timer goes by it.
    #[inline]
    pub(crate) fn set(&self, tag: usize, awaited: bool) {
        // CAST: a tag is 16 bits wide.
        self.tag.store(tag as u32, Ordering::Relaxed);
        self.timed.store(!awaited, Ordering::Relaxed);
    }

    fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed)
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// When the timer looks next, after a look at `now` that has left nothing: after an interval at
    /// the latest.
    #[inline]
    pub(crate) fn next_look(&self, now: u64) -> u64 {
        let interval = self.interval_ns();
        let sooner = match self.is_foretelling() {
            true => self.looks_in(now),
            false => None,
        };
        now.saturating_add(sooner.map_or(interval, |ns| ns.min(interval)))
    }

    /// What is foretold of the only command that is outstanding, at `now`.
    fn outlook(&self, now: u64) -> Option<Outlook> {
        // CAST: as wide, at least.
        let tag = self.lookout.tag.load(Ordering::Relaxed) as usize;
        let (at_ns, due) = self.told.get(tag)?.foretold()?;
        (self.outstanding() == 1).then(|| Outlook {
            at_ns,
            since_ns: now.saturating_sub(at_ns),
            due,
        })
    }

    /// In how long the timer looks, as the strategy has it.
    #[cold]
    fn looks_in(&self, now: u64) -> Option<u64> {
        let what = self.outlook(now);
        if what.is_some() && !self.lookout.is_timed() {
            return None;
        }
        let ns = self.strategy.looks_in(self, what)?;
        Some(ns.max(LEAST_NS))
    }

    /// A command was just issued, while the timer was armed: for others that are over, maybe.
    #[cold]
    pub(crate) fn aim_tick(&self) {
        if self.rest.is_any() || self.is_deferred() {
            return;
        }
        let now = self.upper.now_ns();
        let (armed, due) = (self.poll.due_ns(), self.next_look(now));
        let is_late = armed > due.saturating_add(LEAST_NS);
        let is_early = self.outlook(now).is_some_and(|what| {
            let until = match (self.lookout.is_timed(), what.due) {
                (true, _) => due,
                // Whoever naps has looked by then.
                (false, Some(what)) => {
                    let over = what.after_ns.saturating_add(what.spread_ns << 2);
                    now.saturating_add(over).min(due)
                }
                (false, None) => armed,
            };
            armed.saturating_add(LEAST_NS) < until
        });
        if is_late || is_early {
            self.arm(now, due);
        }
    }

    /// The thread that waits for what is expected has `plan`: unless it naps, the timer looks.
    #[inline]
    pub(crate) fn plan_ticks(&self, plan: Plan) {
        if self.is_polled() && !matches!(plan, Plan::Nap { .. }) {
            self.time_ticks();
        }
    }

    /// Nobody naps any more: the timer looks when the strategy says, if that is sooner.
    #[cold]
    pub(crate) fn time_ticks(&self) {
        if self.lookout.timed.swap(true, Ordering::Relaxed) {
            return;
        }
        let now = self.upper.now_ns();
        if let Some(ns) = self.looks_in(now) {
            self.hasten_tick(now, now.saturating_add(ns));
        }
    }
}
