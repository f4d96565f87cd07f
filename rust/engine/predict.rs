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

use cell::sync::{AtomicU32, AtomicU64, AtomicU8, Ordering};
use hal::{Command, Platform, Queue};

use crate::complete::Look;
use crate::policy::{Strategy, View};
use crate::queue::{DrainSide, IoQueue, IssueSide};
use crate::{Context, Upper};

/// When a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// So many nanoseconds after it was issued,
    pub after_ns: u64,
    /// by so many more or less, on average.
    pub spread_ns: u64,
}

/// When what a thread waits for is over, by the clock of [`Upper::now_ns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Then,
    pub at_ns: u64,
    /// give or take so much, on average.
    pub spread_ns: u64,
}

/// How a completion was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was seen to come: a look just before found nothing, or the interrupt brought it. What it
    /// took is measured.
    Came,
    /// It was there at the first look. It took as long at most.
    Found,
}

/// What a strategy foretells of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foretold {
    /// What the strategy is to be told with the answer; never 0.
    pub mark: u64,
    /// When the command is over; `None`: nobody knows yet.
    pub due: Option<Due>,
}

/// What a strategy answers to the question when a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foretells {
    /// That.
    This(Foretold),
    /// It can't be told, now or ever.
    Nothing,
    /// Nor is it of use to ask about so many commands after this one: none of them is foretold, nor
    /// is the strategy told when they were answered.
    NothingFor(u16),
}

/// Whether it is foretold when commands are over.
pub(crate) struct Foretelling(AtomicU8);

/// It is not.
const OFF: u8 = 0;
/// It is not of so many commands more as the issue side counts.
const PAUSED: u8 = 1;
const ON: u8 = 2;

impl Foretelling {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(OFF))
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ON
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) != OFF
    }

    /// Changes it, unless it was turned off meanwhile.
    fn change(&self, from: u8, to: u8) {
        let _ = (self.0).compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// What a thread does about I/O that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// As if nothing were known of it.
    Any,
    /// It sleeps until then, looks, and spins for a moment.
    Nap {
        /// By the clock of [`Upper::now_ns`].
        until_ns: u64,
        /// For so many nanoseconds it spins afterwards, at most.
        for_ns: u64,
    },
    /// It looks for so many nanoseconds, and then sleeps.
    Spin {
        /// From now on. The engine cuts it short at what a sleep takes ([`crate::Costs::sleep_ns`])
        /// and twice the spread.
        for_ns: u64,
    },
    /// As if nothing were known of it, but that it does not spin: that would be in vain.
    Block,
}

/// How a nap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nap {
    /// What the thread waits for came while it looked.
    Hit,
    /// It was over when the nap was, or at the first look.
    Late,
    /// It did not come while the thread looked.
    Vain,
    /// The thread was woken before.
    Woken,
}

/// What is kept of a command by its tag.
pub(crate) struct Told {
    /// [`Foretold::mark`]; 0: nothing was foretold.
    mark: AtomicU64,
    /// When it was issued.
    at_ns: AtomicU64,
    /// After how many nanoseconds it is over, and its spread, from 4 s on all alike; 0: nobody
    /// knows yet.
    after_ns: AtomicU32,
    spread_ns: AtomicU32,
}

fn kept(ns: u64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

impl Told {
    pub(crate) fn new(_: usize) -> Self {
        Self {
            mark: AtomicU64::new(0),
            at_ns: AtomicU64::new(0),
            after_ns: AtomicU32::new(0),
            spread_ns: AtomicU32::new(0),
        }
    }

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
        let to = if on { ON } else { OFF };
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
        if state == OFF {
            return;
        }
        let Some(told) = self.told.get(tag) else {
            return;
        };
        if state == ON {
            return self.foretell_of(side, told, tag, cmd, rq);
        }
        // Its answer may come when others are foretold again.
        told.mark.store(0, Ordering::Relaxed);
        side.untold = side.untold.saturating_sub(1);
        if side.untold == 0 {
            self.foretelling.change(PAUSED, ON);
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
                    self.foretelling.change(ON, PAUSED);
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
