// SPDX-License-Identifier: GPL-2.0
//! When commands are over: what the strategy's [`Predictor`] says of each as it is issued, what it
//! is told of each that was answered, and when the timer of a polled queue fires for it.
//!
//! ```text
//!  issue ── issued ──> mark, due      mark and time kept by tag; the layer above keeps who waits
//!    :                                and when for (Upper::predict)
//!    :      the waiter: waits ──> nap until shortly before ── poll, spin up to a window
//!    :                                  (wait.rs)
//!  answer ── completed(mark, took, Came | Found)
//! ```
//!
//! A queue whose strategy has no predictor has no code of it. While it is off on every queue,
//! [`Cpu::may_predict`](crate::Cpu::may_predict) can make a no-op of what asks; on another queue it
//! costs a load and a branch for each command, and as much for each answer. So it does while the
//! predictor wants to hear of no command ([`Prediction::NothingFor`]), which are counted.
//!
//! # When the timer fires
//! For the only command that is outstanding, and for what nobody has predicted:
//!
//! ```text
//!   issued                                        over, give or take
//!     │                                           │
//!     ├── nobody waits in the hook ───────────────┼─ poll ─ poll ── …    as the predictor says
//!     ├── its thread naps ────────────────────────┼── thread polls ─┤    the timer fires after it,
//!     │                                           │                      and if it was in vain, as
//!     └── an interval ──────────────────────────────────────────────┤    above
//!                                                            at the latest
//! ```
//!
//! Whatever is predicted, the timer fires an interval after the last poll at the latest, or after
//! the command was issued, if that was the only one: by then a completion is noticed, as on any
//! polled queue. So it is put off by the issuer alone, and by a context that has just polled.

use cell::sync::Ordering;
use hal::{Command, Platform, Queue};

use crate::complete::DrainPass;
use crate::policy::{
    Alone, Context, Due, Expected, Predicted, Prediction, Predictor, Seen, Strategy, View, WaitPlan,
};
use crate::queue::{IoQueue, IssueSide, Predict, TagPrediction, Upper};

fn kept(ns: u64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

impl TagPrediction {
    /// A command is issued at `now`.
    #[inline]
    fn keep(&self, now: u64, mark: u64, due: Option<Due>) {
        let (after, spread) = due.map_or((0, 0), |due| (kept(due.after_ns), kept(due.spread_ns)));
        self.at_ns.store(now, Ordering::Relaxed);
        self.after_ns.store(after, Ordering::Relaxed);
        self.spread_ns.store(spread, Ordering::Relaxed);
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// When it was issued, and is over, if anything is predicted and it was not answered.
    fn predicted(&self) -> Option<(u64, Option<Due>)> {
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
/// Sooner than after so many nanoseconds no timer is set.
const LEAST_NS: u64 = 1_000;

impl<P: Platform> Predict<P> {
    pub(crate) fn is_wanted(&self) -> bool {
        self.state.load(Ordering::Relaxed) != Self::OFF
    }

    /// Changes it, unless it was turned off meanwhile.
    fn change(&self, from: u8, to: u8) {
        let _ = (self.state).compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Nothing is predicted of what is issued last.
    #[inline]
    fn clear(&self) {
        self.last.store(Self::NO_TAG, Ordering::Relaxed);
    }

    /// The command of that tag is about to be issued. `awaited`: a thread is about to wait for it,
    /// and says whether the timer goes by it.
    #[inline]
    fn set(&self, tag: usize, awaited: bool) {
        let tag = u16::try_from(tag).unwrap_or(Self::NO_TAG);
        self.last.store(tag, Ordering::Relaxed);
        self.is_timed.store(!awaited, Ordering::Relaxed);
    }

    fn is_timed(&self) -> bool {
        self.is_timed.load(Ordering::Relaxed)
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// From now on it is predicted, or not, when commands are over.
    pub fn set_predicting(&self, on: bool) {
        self.predict.clear();
        // What was predicted of tags that were bound anew since.
        (self.predict.told.iter()).for_each(|told| told.mark.store(0, Ordering::Relaxed));
        let to = match on {
            true => Predict::<P>::ON,
            false => Predict::<P>::OFF,
        };
        self.predict.state.store(to, Ordering::Relaxed);
    }

    /// What [`IoQueue::set_predicting`] was told last: also while the predictor wants to be left
    /// alone, and nothing is predicted.
    pub fn is_predicting_wanted(&self) -> bool {
        self.predict.is_wanted()
    }

    /// `cmd`, for `rq`, is bound to the tag with that index, and about to be issued with those that
    /// are staged on `side`.
    #[inline(never)]
    pub(crate) fn predict(&self, side: &IssueSide<Q>, tag: usize, cmd: &Command, rq: &U::Request) {
        let Some(told) = self.predict.told.get(tag) else {
            return;
        };
        if self.is_predicting() {
            return self.predict_of(side, told, tag, cmd, rq);
        }
        // Its answer may come when others are predicted again.
        told.mark.store(0, Ordering::Relaxed);
        let left = self.predict.paused_for.load(Ordering::Relaxed);
        let left = left.saturating_sub(1);
        self.predict.paused_for.store(left, Ordering::Relaxed);
        if left == 0 {
            self.predict.change(Predict::<P>::PAUSED, Predict::<P>::ON);
        }
    }

    fn predict_of(
        &self,
        side: &IssueSide<Q>,
        told: &TagPrediction,
        tag: usize,
        cmd: &Command,
        rq: &U::Request,
    ) {
        let bytes = u64::from(cmd.blocks) << cmd.block_shift.min(31);
        // CAST: usize is at most 64 bits wide.
        let beside = self.outstanding().saturating_add(side.bound.len() as u64);
        let predictor = self.strategy.predictor();
        let Predicted { mark, due } = match predictor.issued(self, cmd.op, bytes, beside) {
            Prediction::This(predicted) => predicted,
            nothing => {
                self.predict.clear();
                told.mark.store(0, Ordering::Relaxed);
                if let Prediction::NothingFor(commands) = nothing {
                    (self.predict.paused_for).store(commands, Ordering::Relaxed);
                    self.predict.change(Predict::<P>::ON, Predict::<P>::PAUSED);
                }
                return;
            }
        };
        let now = self.upper.now_ns();
        told.keep(now, mark, due);
        let over = due.map(|due| Expected {
            at_ns: now.saturating_add(due.after_ns),
            spread_ns: due.spread_ns,
        });
        self.predict.set(tag, self.upper.predict(rq, over));
    }

    /// The command of the tag with that index was answered, as a poll has found.
    #[inline(never)]
    pub(crate) fn answered(&self, tag: usize, pass: DrainPass) {
        let Some(told) = self.predict.told.get(tag) else {
            return;
        };
        let mark = told.mark.load(Ordering::Relaxed);
        if mark == 0 {
            return;
        }
        told.mark.store(0, Ordering::Relaxed);
        let at = told.at_ns.load(Ordering::Relaxed);
        // Until the poll began: what it takes to end commands is not theirs. One that was issued
        // after that is not measured.
        let Some(took) = pass.at_ns.checked_sub(at) else {
            return;
        };
        let empty_ns = self.predict.empty_ns.load(Ordering::Relaxed);
        let unsure = pass.at_ns.saturating_sub(empty_ns.max(at));
        let ticks_ns = || self.costs.get().tick_ns.saturating_mul(CLOSE_TICKS);
        let close = unsure <= took >> CLOSE || unsure <= ticks_ns();
        let seen = match pass.by == Context::Irq || close {
            true => Seen::Came,
            false => Seen::Found,
        };
        let predictor = self.strategy.predictor();
        predictor.completed(self, mark, took, seen);
    }

    /// A poll that began `at_ns` has found nothing. With the drain token held.
    #[inline]
    pub(crate) fn found_nothing(&self, at_ns: u64) {
        if self.is_predicting() {
            self.predict.empty_ns.store(at_ns, Ordering::Relaxed);
        }
    }

    /// When the timer looks next, after a look at `now` that has left nothing: after an interval at
    /// the latest.
    #[inline]
    pub(crate) fn next_poll_ns(&self, now: u64) -> u64 {
        match self.is_predicting() {
            true => self.poll_at_latest(now, self.alone(now)),
            false => now.saturating_add(self.polling.interval_ns()),
        }
    }

    /// What is predicted of the only command that is outstanding, at `now`.
    fn alone(&self, now: u64) -> Option<Alone> {
        let tag = usize::from(self.predict.last.load(Ordering::Relaxed));
        let (at_ns, due) = self.predict.told.get(tag)?.predicted()?;
        (self.outstanding() == 1).then(|| Alone {
            at_ns,
            since_ns: now.saturating_sub(at_ns),
            due,
        })
    }

    /// When the timer looks for `what`, as the strategy has it; after an interval at the latest.
    #[cold]
    fn poll_at_latest(&self, now: u64, what: Option<Alone>) -> u64 {
        let interval = self.polling.interval_ns();
        let ns = match what.is_some() && !self.predict.is_timed() {
            true => None,
            false => self.strategy.predictor().next_poll(self, what),
        };
        now.saturating_add(ns.map_or(interval, |ns| ns.max(LEAST_NS).min(interval)))
    }

    /// Commands were just issued, while the timer was armed: for others that are over, maybe.
    #[cold]
    pub(crate) fn aim_tick(&self) {
        if self.leftover.is_any() || self.batching.is_pending() {
            return;
        }
        let now = self.upper.now_ns();
        let what = self.alone(now);
        let (armed, due) = (self.polling.due_ns(), self.poll_at_latest(now, what));
        // It is put off only where nothing but what was just issued can be there.
        let until = match what {
            None => armed,
            Some(_) if self.predict.is_timed() => due,
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
    pub(crate) fn plan_ticks(&self, plan: WaitPlan) {
        if self.polling.is_on() && !matches!(plan, WaitPlan::Nap { .. }) {
            self.time_ticks();
        }
    }

    /// Nobody naps any more: the timer looks when the strategy says, if that is sooner.
    pub(crate) fn time_ticks(&self) {
        if self.predict.is_timed() {
            return;
        }
        self.predict.is_timed.store(true, Ordering::Relaxed);
        let now = self.upper.now_ns();
        self.hasten_tick(now, self.next_poll_ns(now));
    }
}
