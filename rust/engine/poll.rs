// SPDX-License-Identifier: GPL-2.0
//! The poll timer's ticks, and who passes by instead of them.
//!
//! While a queue is *polled* its interrupt is off and its events are found by whoever passes by,
//! and by a timer that ticks only while something is outstanding.
//!
//! # The hand-over between issuer and timer
//! An issuer counts its commands as issued, passes a fence, and looks whether the timer is armed; a
//! tick that finds nothing outstanding disarms the timer, passes a fence, and looks at the count
//! again. One of the two sees the other (`tests/loom_poll.rs`). What was counted before the queue
//! became polled is found by who switches, in the same way.

use crate::queue::IoQueue;
use crate::queued::Passage;
use crate::strategy::{Strategy, View};
use crate::{Context, Mode, Switches, Upper};
use cell::sync::{fence, AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use hal::{Platform, Queue};

/// The interval that a new queue polls at, in microseconds: within the 16 to 32 of HIOPS (ATC '14,
/// section 4).
pub const DEFAULT_POLL_INTERVAL_US: u32 = 32;

/// The part of an interval before a tick in which who passes by looks, and puts the tick off: the
/// less, the more each look finds, and the more ticks come because nobody did. By `bench/run timed
/// --model sata --unheld --loads psync-64,uring-32` a half has 65,357 and 65,430 IOPS, a third
/// 67,464 and 65,230.
const LAST: u64 = 3;

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

    pub(crate) fn set_mode(&self, mode: Mode) {
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
    /// at once, where something is left (`rest.rs`). A completion is noticed no later than that,
    /// whatever was found before. One caller at a time; any context, with preemption off.
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
    pub(crate) fn is_watched(&self) -> bool {
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

    pub(crate) fn come_again(&self) {
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

    pub(crate) fn claim_timer(&self) -> bool {
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
