// SPDX-License-Identifier: GPL-2.0
//! Interrupts or polling: the modes, the poll timer's ticks, and the switch between the two.
//!
//! While a queue is *polled* its interrupt is off and its events are found by whoever passes by,
//! and by a timer that ticks only while something is outstanding. Whether it is polled is written
//! by the drain token's holder alone.
//!
//! # The hand-over between issuer and timer
//! An issuer counts its commands as issued, passes a fence, and looks whether the timer is armed; a
//! tick that finds nothing outstanding disarms the timer, passes a fence, and looks at the count
//! again. One of the two sees the other (`tests/loom_poll.rs`). What was counted before the queue
//! became polled is found by who switches, in the same way.

use crate::gate::Paused;
use crate::queue::{DrainSide, IoQueue};
use crate::queued::Passage;
use crate::strategy::{Drained, Strategy, View};
use crate::{Context, Switches, Upper};
use cell::sync::{fence, AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use hal::{Error, Platform, Queue};

/// The interval that a new queue polls at, in microseconds: within the 16 to 32 of HIOPS (ATC '14,
/// section 4).
pub const DEFAULT_POLL_INTERVAL_US: u32 = 32;

/// How completions are noticed when nobody passes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the controller's interrupt.
    Irq,
    /// By a timer.
    Poll,
    /// By whichever of the two serves the present load better.
    Hybrid,
}

/// A queue's mode, and where its timer is.
pub(crate) struct Polling {
    mode: AtomicU8,
    interval_us: AtomicU32,
    /// The interrupt is off. Written by the drain token's holder.
    on: AtomicBool,
    /// The timer is armed, or its tick is under way.
    armed: AtomicBool,
    /// When the timer expires, by the clock of [`Upper::now_ns`]: an interval after the last look
    /// that left nothing, at the latest.
    due_ns: AtomicU64,
}

impl Polling {
    pub(crate) fn new() -> Self {
        Self {
            mode: AtomicU8::new(Mode::Irq as u8),
            interval_us: AtomicU32::new(DEFAULT_POLL_INTERVAL_US),
            on: AtomicBool::new(false),
            armed: AtomicBool::new(false),
            due_ns: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            mode if mode == Mode::Poll as u8 => Mode::Poll,
            mode if mode == Mode::Hybrid as u8 => Mode::Hybrid,
            _ => Mode::Irq,
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    fn interval_us(&self) -> u32 {
        self.interval_us.load(Ordering::Relaxed)
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        u64::from(self.interval_us()).saturating_mul(1000)
    }

    /// Whether the next tick is due within half an interval of `now_ns`.
    #[inline]
    pub(crate) fn is_look_due(&self, now_ns: u64) -> bool {
        let due = self.due_ns.load(Ordering::Relaxed);
        now_ns.saturating_add(self.interval_ns() / 2) >= due
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
        queue.poll.mode.store(mode as u8, Ordering::Relaxed);
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
    /// at once, where something is left (`rest.rs`). A completion is noticed no later than that,
    /// whatever was found before. One caller at a time; any context, with preemption off.
    pub fn tick(&self) {
        self.visit(Context::Poll, self.rest.has_completions());
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

    /// A thread has submitted, and takes completions in passing if the strategy says so. Any
    /// context, with preemption off.
    #[inline(always)]
    pub fn pass_by(&self, switches: Switches) {
        if self.strategy.looks(self, switches) {
            self.visit(Context::Coop, false);
        }
    }

    fn come_again(&self) {
        let due = self.upper.now_ns().saturating_add(self.poll.interval_ns());
        self.poll.due_ns.store(due, Ordering::Relaxed);
        self.upper.arm_poll(self.poll.interval_us());
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

    /// Somebody who passes by looks now: the timer need not, for an interval, nor before what is
    /// deferred has to go; unless something is left to it. It is put off at most twice in one. When
    /// the tick would have come, if it was put off.
    #[inline]
    pub(crate) fn put_off_tick(&self) -> Option<u64> {
        if !self.poll.armed.load(Ordering::Relaxed) || self.rest.is_any() {
            return None;
        }
        let now = self.upper.now_ns();
        if self.poll.is_look_due(now) {
            let due = now.saturating_add(self.poll.interval_ns());
            let until = match self.is_deferred() {
                true => self.deferring.until_ns(),
                false => due,
            };
            let was_due = self.poll.due_ns.load(Ordering::Relaxed);
            if until > was_due {
                self.arm(now, due.min(until));
                return Some(was_due);
            }
        }
        None
    }

    /// Somebody who passes by looks now: what is deferred goes to the device, if the next look may
    /// be too late for it.
    #[inline]
    pub(crate) fn flush_in_time(&self) {
        let next = self
            .upper
            .now_ns()
            .saturating_add(self.poll.interval_ns() / 2);
        if next >= self.deferring.until_ns() {
            self.flush();
        }
    }

    /// The next tick is to come at `due` at the latest.
    #[inline]
    pub(crate) fn hasten_tick(&self, now: u64, due: u64) {
        if due < self.poll.due_ns.load(Ordering::Relaxed) {
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
        if self.poll.is_on() && !self.poll.armed.load(Ordering::Relaxed) && self.claim_timer() {
            self.come_again();
        }
    }

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
        self.poll.on.store(polled, Ordering::Relaxed);
        if polled {
            fence(Ordering::SeqCst);
            if self.is_watched() && self.claim_timer() {
                self.come_again();
            }
        }
        true
    }
}
