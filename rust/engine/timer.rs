// SPDX-License-Identifier: GPL-2.0
//! The poll timer of a queue without its interrupt, and the switch between the two.
//!
//! While a queue is *polled* its interrupt is off and its completions are found by whoever passes
//! by, and by a timer that ticks only while something is outstanding. Whether a queue is polled is
//! written by the drain token's holder alone: where the mode is set, with the queue at rest, and of
//! a hybrid queue by whoever has drained it.
//!
//! # The hand-over between issuer and timer
//! An issuer counts its commands as issued, passes a fence, and looks whether the timer is armed; a
//! tick that finds nothing outstanding disarms the timer, passes a fence, and looks at the count
//! again. One of the two sees the other (`tests/loom_poll.rs`). What was counted before the queue
//! became polled is found by the context that switches, in the same way.
//!
//! # When it fires, where it is predicted when commands are over
//! For the only one that is outstanding, and for what nobody has predicted:
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
//! Whatever is predicted, the timer fires an interval after the last look at the latest, or after
//! the command was issued, if that was the only one: by then a completion is noticed, as on any
//! polled queue. So it is put off by the issuer alone, and by a context that has just looked.

use cell::sync::{fence, Ordering};
use hal::{Error, Platform, Queue};

use crate::policy::{Context, Drained, Mode, Outlook, Plan, Strategy, Switches, View};
use crate::queue::{DrainSide, IoQueue, Lookout, Passage, Polling, Upper, NO_TAG};
use crate::quiesce::Paused;

/// The part of an interval before a tick in which who passes by looks, and puts the tick off: the
/// less, the more each look finds, and the more ticks come because nobody did. By `bench/run timed
/// --model sata --unheld --loads psync-64,uring-32` a half has 65,357 and 65,430 IOPS, a third
/// 67,464 and 65,230.
const LAST: u64 = 3;

impl Polling {
    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            mode if mode == Mode::Poll as u8 => Mode::Poll,
            mode if mode == Mode::Hybrid as u8 => Mode::Hybrid,
            _ => Mode::Irq,
        }
    }

    fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// The interrupt is off from now on, or on. With the drain token held.
    pub(crate) fn turn(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    #[inline]
    fn interval_us(&self) -> u32 {
        self.interval_us.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn interval_ns(&self) -> u64 {
        u64::from(self.interval_us()).saturating_mul(1000)
    }

    /// When the timer expires.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns.load(Ordering::Relaxed)
    }

    /// Whether the next tick is due within a third of an interval of `now_ns`.
    #[inline]
    fn is_look_due(&self, now_ns: u64) -> bool {
        let due = self.due_ns();
        now_ns.saturating_add(self.interval_ns() / LAST) >= due
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// The interval between two ticks in microseconds.
    pub fn poll_interval_us(&self) -> u32 {
        self.poll.interval_us()
    }

    /// Changes the interval; from the next tick on.
    pub fn set_poll_interval_us(&self, us: u32) {
        self.poll.interval_us.store(us.max(1), Ordering::Relaxed);
    }

    /// The poll timer has expired: takes completions under [`Context::Poll`], and says through
    /// [`Upper::arm_poll`] when to come again: while anything is outstanding, after one interval;
    /// at once, where something is left (`complete.rs`). A completion is noticed no later than
    /// that, whatever was found before. One caller at a time; any context, with preemption off.
    pub fn tick(&self) {
        let due = self.rest.has_completions();
        self.drain_in_passing(Context::Poll, due, None);
        self.flush();
        if self.rest.take_requests() {
            self.issue_again(&mut Passage::new());
        }
        if self.is_watched() {
            return self.come_again();
        }
        self.poll.armed.store(false, Ordering::Relaxed);
        // The hand-over with the issuer, see above. The one that switches to polling does as the
        // issuer does.
        fence(Ordering::SeqCst);
        if self.is_watched() && self.claim_timer() {
            self.come_again();
        }
    }

    /// Whether the timer has anything to come for.
    #[inline]
    fn is_watched(&self) -> bool {
        self.poll.is_on() && (self.outstanding() != 0 || self.is_deferred())
    }

    /// A thread has submitted, and takes completions in passing if the strategy says so; of a
    /// polled queue, where nobody has looked for a while. Any context, with preemption off.
    #[inline(always)]
    pub fn pass_by(&self, switches: Switches) {
        if !self.strategy.looks(self, switches) {
            return;
        }
        let mut was_due = None;
        if self.is_polled() {
            let now = self.upper.now_ns();
            if !self.poll.is_look_due(now) {
                return;
            }
            was_due = self.looks_at(now);
        }
        self.drain_in_passing(Context::Coop, false, was_due);
    }

    fn come_again(&self) {
        let now = self.upper.now_ns();
        self.arm(now, self.next_look(now));
        if self.rest.is_any() {
            self.tick_at_once();
        }
    }

    /// The next tick comes at once.
    #[cold]
    pub(crate) fn tick_at_once(&self) {
        let now = self.upper.now_ns();
        self.arm(now, now);
    }

    /// Somebody who passes by at `now` is going to look, or has whoever drains look again: what is
    /// deferred goes to the device, if the next look may be too late for it, and the timer need not
    /// come for an interval. When the tick would have come, if it was put off.
    #[inline]
    pub(crate) fn looks_at(&self, now: u64) -> Option<u64> {
        self.flush_in_time(now);
        self.put_off_tick(now)
    }

    /// The next tick need not come for an interval from `now`, or for as long as the strategy has
    /// it, nor before what is deferred has to go; unless something is left to it.
    #[inline]
    pub(crate) fn put_off_tick(&self, now: u64) -> Option<u64> {
        if !self.poll.armed.load(Ordering::Relaxed) || self.rest.is_any() {
            return None;
        }
        if self.poll.is_look_due(now) {
            let due = self.next_look(now);
            let until = match self.is_deferred() {
                true => self.deferring.until_ns(),
                false => due,
            };
            let was_due = self.poll.due_ns();
            if until > was_due {
                self.arm(now, due.min(until));
                return Some(was_due);
            }
        }
        None
    }

    #[inline]
    fn flush_in_time(&self, now: u64) {
        let interval = self.poll.interval_ns();
        let next = now.saturating_add(interval.saturating_sub(interval / LAST));
        if self.is_deferred() && next >= self.deferring.until_ns() {
            self.flush();
        }
    }

    /// The next tick is to come at `due` at the latest.
    #[inline]
    pub(crate) fn hasten_tick(&self, now: u64, due: u64) {
        if due < self.poll.due_ns() {
            self.arm(now, due);
        }
    }

    /// The next tick comes at `due`.
    #[inline]
    pub(crate) fn arm(&self, now: u64, due: u64) {
        self.poll.due_ns.store(due, Ordering::Relaxed);
        let us = due.saturating_sub(now) / 1000;
        self.upper
            .arm_poll(u32::try_from(us).unwrap_or(u32::MAX).max(1));
    }

    fn claim_timer(&self) -> bool {
        !self.poll.armed.swap(true, Ordering::AcqRel)
    }

    /// Sees to it that the timer runs, if it has to. By the issuer, after commands were counted as
    /// issued.
    #[inline]
    pub(crate) fn watch_issued(&self) {
        if self.poll.mode() != Mode::Irq {
            fence(Ordering::SeqCst);
            self.watch();
        }
    }

    /// Sees to it that the timer runs, if the queue is polled. After the issuer's fence.
    #[inline]
    pub(crate) fn watch(&self) {
        if !self.poll.is_on() {
            return;
        }
        if !self.poll.armed.load(Ordering::Relaxed) && self.claim_timer() {
            self.come_again();
        } else if self.is_foretelling() {
            self.aim_tick();
        }
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> Paused<'_, P, Q, U, S> {
    /// Changes the mode; [`Paused::resume`] then looks for completions that nobody announces any
    /// more. With preemption off.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: this queue's interrupt can't be turned off.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), Error> {
        let queue = self.queue();
        let polled = match mode {
            Mode::Irq => false,
            Mode::Poll => true,
            Mode::Hybrid => queue.is_polled(),
        };
        let able = mode == Mode::Irq || queue.upper.can_poll();
        if !able || (polled != queue.is_polled() && !queue.switch(polled)) {
            return Err(Error::Unsupported);
        }
        queue.poll.set_mode(mode);
        self.begin();
        Ok(())
    }

    /// The strategy is to be the one of that number ([`Strategy::NAMES`]). A hybrid queue begins by
    /// its interrupt again, and what was deferred goes to the device with [`Paused::resume`],
    /// unless the new one defers it, too. With preemption off.
    pub fn choose(&mut self, which: usize) {
        let queue = self.queue();
        queue.strategy.choose(which);
        if queue.poll.mode() == Mode::Hybrid && queue.is_polled() {
            queue.switch(false);
        }
        self.begin();
    }

    fn begin(&mut self) {
        let queue = self.queue();
        if let Some(side) = self.drain_side() {
            queue.strategy.begin(&mut side.notes, queue);
        }
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// After a drain a hybrid queue goes over to what the strategy thinks serves the load better.
    /// `true`: the caller has to look for completions again.
    #[inline(always)]
    pub(crate) fn adapt(&self, side: &mut DrainSide<Q, S>, drained: Drained) -> bool {
        let passes = matches!(drained.by, Context::Coop | Context::Sweep);
        let nothing = drained.ended == 0 && passes;
        if nothing || self.poll.mode() != Mode::Hybrid {
            return false;
        }
        let wanted = self.strategy.polls(&mut side.notes, self, drained);
        wanted != self.poll.is_on() && self.switch(wanted) && !wanted
    }

    /// Turns the interrupt off or on again; `false`: it can't be. With the drain token held.
    #[cold]
    fn switch(&self, polled: bool) -> bool {
        if !self.upper.set_interrupt(!polled) {
            return false;
        }
        self.poll.turn(polled);
        if polled {
            fence(Ordering::SeqCst);
            if self.is_watched() && self.claim_timer() {
                self.come_again();
            }
        }
        true
    }
}

/// Sooner than after so many nanoseconds no timer is set.
const LEAST_NS: u64 = 1_000;

impl Lookout {
    /// Nothing is foretold of what is issued last.
    #[inline]
    pub(crate) fn clear(&self) {
        self.tag.store(NO_TAG, Ordering::Relaxed);
    }

    /// The command of that tag is about to be issued. `awaited`: a thread is about to wait for it,
    /// and says whether the timer goes by it.
    #[inline]
    pub(crate) fn set(&self, tag: usize, awaited: bool) {
        self.tag
            .store(u16::try_from(tag).unwrap_or(NO_TAG), Ordering::Relaxed);
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
    fn next_look(&self, now: u64) -> u64 {
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
    fn aim_tick(&self) {
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
