// SPDX-License-Identifier: GPL-2.0
//! When the timer of a polled queue looks, while it is foretold when commands are over: for the
//! only one that is outstanding, and for what nobody has foretold.
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
use cell::sync::{AtomicBool, AtomicU16, Ordering};
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
const NONE: u16 = u16::MAX;

/// What the timer looks for. Relaxed: it may be of two commands at once, and moves the timer within
/// its interval.
pub(crate) struct Lookout {
    /// The tag of the command that was issued last, if anything is foretold of it; else [`NONE`].
    /// Written by the issue token's holder.
    tag: AtomicU16,
    /// The timer goes by it: no thread naps that looks for it.
    timed: AtomicBool,
}

impl Lookout {
    pub(crate) fn new() -> Self {
        Self {
            tag: AtomicU16::new(NONE),
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
        self.tag
            .store(u16::try_from(tag).unwrap_or(NONE), Ordering::Relaxed);
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
        match self.is_foretelling() {
            true => self.looks_at_latest(now, self.outlook(now)),
            false => now.saturating_add(self.interval_ns()),
        }
    }

    /// What is foretold of the only command that is outstanding, at `now`.
    fn outlook(&self, now: u64) -> Option<Outlook> {
        let tag = usize::from(self.lookout.tag.load(Ordering::Relaxed));
        let (at_ns, due) = self.told.get(tag)?.foretold()?;
        (self.outstanding() == 1).then(|| Outlook {
            at_ns,
            since_ns: now.saturating_sub(at_ns),
            due,
        })
    }

    /// When the timer looks for `what`, as the strategy has it; after an interval at the latest.
    #[cold]
    fn looks_at_latest(&self, now: u64, what: Option<Outlook>) -> u64 {
        let interval = self.interval_ns();
        let ns = match what.is_some() && !self.lookout.is_timed() {
            true => None,
            false => self.strategy.looks_in(self, what),
        };
        now.saturating_add(ns.map_or(interval, |ns| ns.max(LEAST_NS).min(interval)))
    }

    /// Commands were just issued, while the timer was armed: for others that are over, maybe.
    #[cold]
    pub(crate) fn aim_tick(&self) {
        if self.rest.is_any() || self.is_deferred() {
            return;
        }
        let now = self.upper.now_ns();
        let what = self.outlook(now);
        let (armed, due) = (self.poll.due_ns(), self.looks_at_latest(now, what));
        // It is put off only where nothing but what was just issued can be there.
        let until = match what {
            None => armed,
            Some(_) if self.lookout.is_timed() => due,
            // Whoever naps has looked by then.
            Some(what) => what.due.map_or(armed, |what| {
                let over = what.after_ns.saturating_add(what.spread_ns << 2);
                now.saturating_add(over).min(due)
            }),
        };
        let early = armed.saturating_add(LEAST_NS) < until;
        if early || armed > due.saturating_add(LEAST_NS) {
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
    pub(crate) fn time_ticks(&self) {
        if self.lookout.is_timed() {
            return;
        }
        self.lookout.timed.store(true, Ordering::Relaxed);
        let now = self.upper.now_ns();
        self.hasten_tick(now, self.next_look(now));
    }
}
