// SPDX-License-Identifier: GPL-2.0
//! When commands are over: what a strategy foretells of each as it is issued, what it is told of
//! each that was answered, and a thread that sleeps until shortly before (a *nap*).
//!
//! ```text
//!  issue ── foretells ──> mark, due     mark and time kept by tag; the layer above notes who
//!    :                                  waits, and when for (Upper::expect)
//!    :      the waiter: plans ──> nap until shortly before ── look, spin up to a window
//!    :                                  (wait.rs)
//!  answer ── answered(mark, took, Came | Found)
//! ```
//!
//! Off, it costs a load and a branch for each command, and as much for each answer. So it does
//! while the strategy wants to hear of no command ([`Foretells::NothingFor`]), which are counted.

use cell::sync::Ordering;
use hal::{Command, Platform, Queue};

use crate::complete::Look;
use crate::policy::{Context, Due, Expected, Foretells, Foretold, Seen, Strategy, View};
use crate::queue::{
    DrainSide, Foretelling, IoQueue, IssueSide, Told, Upper, FORETELLING_OFF, FORETELLING_ON,
    FORETELLING_PAUSED,
};

impl Foretelling {
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FORETELLING_ON
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) != FORETELLING_OFF
    }

    /// Changes it, unless it was turned off meanwhile.
    fn change(&self, from: u8, to: u8) {
        let _ = (self.0).compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn kept(ns: u64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

impl Told {
    /// A command is issued at `now`.
    #[inline]
    fn keep(&self, now: u64, mark: u64, due: Option<Due>) {
        let (after, spread) = due.map_or((0, 0), |due| (kept(due.after_ns), kept(due.spread_ns)));
        self.at_ns.store(now, Ordering::Relaxed);
        self.after_ns.store(after, Ordering::Relaxed);
        self.spread_ns.store(spread, Ordering::Relaxed);
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// When it was issued, and is over, if anything is foretold and it was not answered.
    pub(crate) fn foretold(&self) -> Option<(u64, Option<Due>)> {
        let due = Due {
            after_ns: u64::from(self.after_ns.load(Ordering::Relaxed)),
            spread_ns: u64::from(self.spread_ns.load(Ordering::Relaxed)),
        };
        let at_ns = self.at_ns.load(Ordering::Relaxed);
        let known = self.mark.load(Ordering::Relaxed) != 0;
        known.then(|| (at_ns, (due.after_ns != 0).then_some(due)))
    }
}

/// A look that found nothing shows when a command was over ([`Seen::Came`]), if it was no longer
/// before than that part of what the command took, as a power of two: half of what one measurement
/// moves an average by.
pub const CLOSE: u32 = 4;
/// Within what so many ticks take, it is measured whatever it took: no timer looks more often.
const CLOSE_TICKS: u64 = 2;

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// From now on it is foretold, or not, when commands are over.
    pub fn set_foretelling(&self, on: bool) {
        self.lookout.clear();
        // What was foretold of tags that were bound anew since.
        (self.told.iter()).for_each(|told| told.mark.store(0, Ordering::Relaxed));
        let to = if on { FORETELLING_ON } else { FORETELLING_OFF };
        self.foretelling.0.store(to, Ordering::Relaxed);
    }

    /// `cmd`, for `rq`, is bound to the tag with that index, and about to be issued with those that
    /// are staged on `side`.
    #[inline(always)]
    pub(crate) fn foretell(
        &self,
        side: &mut IssueSide<Q>,
        tag: usize,
        cmd: &Command,
        rq: &U::Request,
    ) {
        let state = self.foretelling.0.load(Ordering::Relaxed);
        if state == FORETELLING_OFF {
            return;
        }
        let Some(told) = self.told.get(tag) else {
            return;
        };
        if state == FORETELLING_ON {
            return self.foretell_of(side, told, tag, cmd, rq);
        }
        // Its answer may come when others are foretold again.
        told.mark.store(0, Ordering::Relaxed);
        side.untold = side.untold.saturating_sub(1);
        if side.untold == 0 {
            self.foretelling.change(FORETELLING_PAUSED, FORETELLING_ON);
        }
    }

    fn foretell_of(
        &self,
        side: &mut IssueSide<Q>,
        told: &Told,
        tag: usize,
        cmd: &Command,
        rq: &U::Request,
    ) {
        let bytes = u64::from(cmd.blocks) << cmd.block_shift.min(31);
        // CAST: usize is at most 64 bits wide.
        let beside = self.outstanding().saturating_add(side.bound.len() as u64);
        let Foretold { mark, due } = match self.strategy.foretells(self, cmd.op, bytes, beside) {
            Foretells::This(foretold) => foretold,
            nothing => {
                self.lookout.clear();
                told.mark.store(0, Ordering::Relaxed);
                if let Foretells::NothingFor(commands) = nothing {
                    side.untold = commands;
                    self.foretelling.change(FORETELLING_ON, FORETELLING_PAUSED);
                }
                return;
            }
        };
        let now = self.upper.now_ns();
        self.lookout.set(tag, self.upper.is_awaited(rq));
        told.keep(now, mark, due);
        if let Some(Due {
            after_ns,
            spread_ns,
        }) = due
        {
            let at_ns = now.saturating_add(after_ns);
            self.upper.expect(rq, Expected { at_ns, spread_ns });
        }
    }

    /// The command of the tag with that index was answered, as a `look` has found.
    #[inline]
    pub(crate) fn answered(&self, side: &DrainSide<Q, S>, tag: usize, look: Look) {
        let Some(told) = self.told.get(tag) else {
            return;
        };
        let mark = told.mark.load(Ordering::Relaxed);
        if mark == 0 {
            return;
        }
        told.mark.store(0, Ordering::Relaxed);
        let at = told.at_ns.load(Ordering::Relaxed);
        // Until the look began: what it takes to end commands is not theirs. One that was issued
        // after that is not measured.
        let Some(took) = look.at_ns.checked_sub(at) else {
            return;
        };
        let unsure = look.at_ns.saturating_sub(side.empty_ns.max(at));
        let ticks_ns = || self.costs.get().tick_ns.saturating_mul(CLOSE_TICKS);
        let close = unsure <= took >> CLOSE || unsure <= ticks_ns();
        let seen = match look.by == Context::Irq || close {
            true => Seen::Came,
            false => Seen::Found,
        };
        self.strategy.answered(self, mark, took, seen);
    }

    /// When a look begins, while that matters.
    #[inline]
    pub(crate) fn look_ns(&self) -> u64 {
        match self.is_foretelling() {
            true => self.upper.now_ns(),
            false => 0,
        }
    }
}
