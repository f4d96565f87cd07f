// SPDX-License-Identifier: GPL-2.0
//! When a hybrid queue polls: the paper's future work (ATC '14, section 6).
//!
//! Polling pays where threads pass by often enough to find the completions themselves: then an interrupt only disturbs them. A queue
//! is polled on trial when completions come fast, and find other commands outstanding or a thread at work on their CPU. It goes back when the
//! timer ticks much more often than the controller interrupted before, or where nothing is disturbed. Each failed trial makes the next one wait longer, unless the load has become
//! a much deeper one meanwhile.

use crate::Context;

/// Completions after which the load is judged.
const WINDOW: u32 = 256;
/// A queue is fast that fills a window in so many milliseconds.
const FAST_MS: u64 = 1000;
/// So many ticks are as good as one interrupt: they disturb no thread that finds its completion by itself, and touch no device.
const TICKS_FOR_ONE: u32 = 3;
/// One tick in so many may find its CPU idle: there the device's own interrupt disturbs nobody, and is cheaper than a timer that is set anew each time.
const ONE_IDLE_IN: u32 = 16;
/// So many ticks in a window are never too many.
const FEW_TICKS: u32 = WINDOW / 8;
/// A load so many times as deep as the one that the last trial failed on is another load.
const DEEPER: u64 = 4;
/// Failed trials make the next one wait for up to so many windows.
const MOST_PATIENCE: u32 = 256;

/// What was seen since the last judgement. Kept under the drain token.
#[derive(Default)]
pub(crate) struct Watch {
    since_ms: u64,
    ended: u32,
    /// Of the kind that notices completions at present: ticks, or interrupts.
    alarms: u32,
    /// Those of them that found their CPU idle.
    idle: u32,
    /// Interrupts in the window before the trial: what polling has to undercut.
    price: u32,
    /// Drains that ended something, and those of them that found the machine at work.
    visits: u32,
    busy: u32,
    /// Commands outstanding at these, summed up.
    depth: u64,
    /// How many there were on average when the last trial began.
    tried_at: u64,
    /// Windows until the next trial.
    wait: u32,
    /// Windows that the last failed trial cost.
    patience: u32,
}

impl Watch {
    /// Begins a window.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        self.since_ms = now_ms;
        (self.ended, self.alarms, self.idle) = (0, 0, 0);
        (self.visits, self.busy, self.depth) = (0, 0, 0);
    }

    /// Notes a drain by `by` that ended `ended` commands of `depth` that were outstanding, and says whether the queue, at present `polled`, is to be
    /// polled. `idle`: it interrupted no thread.
    #[inline]
    pub(crate) fn note(
        &mut self,
        polled: bool,
        by: Context,
        ended: usize,
        depth: u64,
        idle: bool,
        now_ms: impl FnOnce() -> u64,
    ) -> bool {
        // CAST: a batch at most.
        self.ended = self.ended.wrapping_add(ended as u32);
        if by == Context::Poll || by == Context::Irq {
            self.alarms = self.alarms.wrapping_add(1);
            self.idle = self.idle.wrapping_add(u32::from(idle));
        }
        // Who passed by was at work; so was whom the interrupt kept from it.
        let busy = depth > 1 || by != Context::Irq || !idle;
        if ended != 0 {
            self.visits = self.visits.wrapping_add(1);
            self.busy = self.busy.wrapping_add(u32::from(busy));
            self.depth = self.depth.wrapping_add(depth);
        }
        if self.ended < WINDOW && !(polled && self.is_dear()) {
            return polled;
        }
        self.judge(polled, now_ms())
    }

    /// Polling costs more than interrupts did.
    #[inline]
    fn is_dear(&self) -> bool {
        self.alarms > FEW_TICKS
            && (self.alarms > self.price.saturating_mul(TICKS_FOR_ONE)
                || self.alarms < self.idle.saturating_mul(ONE_IDLE_IN))
    }

    #[cold]
    fn judge(&mut self, polled: bool, now_ms: u64) -> bool {
        let depth = self.depth / u64::from(self.visits.max(1));
        let poll = if !polled {
            self.wait = self.wait.saturating_sub(1);
            if depth > self.tried_at.saturating_mul(DEEPER) {
                (self.wait, self.patience) = (0, 0);
            }
            let fast = now_ms.wrapping_sub(self.since_ms) <= FAST_MS;
            let busy = self.busy >= self.visits / 4 * 3;
            self.price = self.alarms;
            let poll = self.wait == 0 && fast && busy;
            if poll {
                self.tried_at = depth;
            }
            poll
        } else if self.is_dear() {
            self.patience = self.patience.saturating_mul(2).clamp(4, MOST_PATIENCE);
            self.wait = self.patience;
            false
        } else {
            self.patience = 0;
            true
        };
        self.begin(now_ms);
        poll
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const DEPTH: u64 = 8;

    /// Notes windows of completions, 4 to a drain by `by`, one window every `ms`; returns whether the queue is polled then.
    fn play(
        watch: &mut Watch,
        polled: bool,
        by: Context,
        busy: bool,
        windows: u32,
        ms: u64,
    ) -> bool {
        let mut polled = polled;
        let mut now = watch.since_ms;
        for _ in 0..windows {
            now += ms;
            for _ in 0..WINDOW / 4 {
                let depth = if busy { DEPTH } else { 1 };
                polled = watch.note(polled, by, 4, depth, !busy, || now);
            }
        }
        polled
    }

    /// Ticks that find nothing; returns whether the queue is polled still.
    fn tick(watch: &mut Watch, count: u32) -> bool {
        (0..count).all(|_| watch.note(true, Context::Poll, 0, 0, false, || 0))
    }

    #[test]
    fn a_fast_queue_on_a_busy_machine_is_polled() {
        assert!(play(
            &mut Watch::default(),
            false,
            Context::Irq,
            true,
            1,
            16
        ));
    }

    #[test]
    fn one_command_at_a_time_on_an_idle_machine_is_not() {
        assert!(!play(
            &mut Watch::default(),
            false,
            Context::Irq,
            false,
            100,
            4
        ));
    }

    #[test]
    fn a_slow_queue_is_not() {
        assert!(!play(
            &mut Watch::default(),
            false,
            Context::Irq,
            true,
            20,
            2 * FAST_MS
        ));
    }

    #[test]
    fn it_stays_polled_while_passers_by_find_the_completions() {
        assert!(play(
            &mut Watch::default(),
            true,
            Context::Coop,
            true,
            50,
            4
        ));
    }

    #[test]
    fn it_stays_polled_while_each_tick_finds_several() {
        assert!(play(
            &mut Watch::default(),
            true,
            Context::Poll,
            true,
            50,
            4
        ));
    }

    #[test]
    fn it_goes_back_when_it_ticks_more_often_than_it_was_interrupted() {
        let mut watch = Watch::default();
        assert!(play(&mut watch, false, Context::Irq, true, 1, 4));
        assert!(tick(&mut watch, WINDOW / 4 * TICKS_FOR_ONE));
        assert!(!tick(&mut watch, 1));
    }

    #[test]
    fn it_goes_back_where_ticks_find_the_cpu_idle() {
        let mut watch = Watch::default();
        assert!(play(&mut watch, false, Context::Irq, true, 1, 4));
        let stays = |watch: &mut Watch, one_in: u32| {
            (1..WINDOW / 4).all(|n| {
                let idle = n % one_in == 0;
                watch.note(true, Context::Poll, 0, 0, idle, || 0)
            })
        };
        assert!(stays(&mut watch, 2 * ONE_IDLE_IN));
        watch.begin(0);
        assert!(!stays(&mut watch, ONE_IDLE_IN / 2));
    }

    #[test]
    fn a_much_deeper_load_is_tried_at_once() {
        let mut watch = Watch::default();
        for _ in 0..3 {
            while !play(&mut watch, false, Context::Irq, true, 1, 4) {}
            assert!(!tick(&mut watch, WINDOW));
        }
        assert!(!play(&mut watch, false, Context::Irq, true, 1, 4));
        let window = |watch: &mut Watch, depth| {
            (0..WINDOW / 4).fold(false, |_, _| {
                watch.note(false, Context::Irq, 4, depth, false, || 0)
            })
        };
        assert!(!window(&mut watch, DEEPER * DEPTH));
        assert!(window(&mut watch, DEEPER * DEPTH + 1));
    }

    #[test]
    fn a_failed_trial_makes_the_next_one_wait_longer() {
        let mut watch = Watch::default();
        let mut waits = Vec::new();
        for _ in 0..4 {
            assert!(!tick(&mut watch, WINDOW));
            let mut windows = 0;
            while !play(&mut watch, false, Context::Irq, true, 1, 4) {
                windows += 1;
            }
            waits.push(windows);
        }
        assert!(waits.windows(2).all(|two| two[0] < two[1]), "{waits:?}");
    }
}
