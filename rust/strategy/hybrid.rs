// SPDX-License-Identifier: GPL-2.0
//! When a hybrid queue polls: the paper's future work (ATC '14, section 6).
//!
//! Polling pays where threads pass by often enough to find the completions themselves: then an interrupt only disturbs them. A queue
//! is polled on trial when completions come fast, and find other commands outstanding or a thread at work on their CPU. It goes back when the
//! timer's ticks cost more than the interrupts did before, some windows together: loads come in bursts. Each failed trial makes the next one wait longer, unless the load
//! has become a much deeper one meanwhile.

/// Completions after which the load is judged.
const WINDOW: u32 = 256;
/// A queue is fast that fills a window in so many milliseconds.
const FAST_MS: u64 = 1000;
/// What an interrupt costs, in units of its own.
pub(crate) const INTERRUPT: u32 = 3;
/// Ticks may cost so much in a window, whatever interrupts did.
const LITTLE: u32 = WINDOW / 8 * INTERRUPT;
/// What ticks save in one window may be spent in later ones: no more than so many windows' interrupts at once, which is also what a trial may spend.
const MOST_SAVED: u32 = 4;
/// A load so many times as deep as the one that the last trial failed on is another load.
const DEEPER: u64 = 4;
/// Failed trials make the next one wait for up to so many windows.
const MOST_PATIENCE: u32 = 256;

/// What was seen since the last judgement. Kept under the drain token.
#[derive(Default)]
pub(crate) struct Watch {
    since_ms: u64,
    ended: u32,
    /// On ticks or interrupts, whichever notices completions at present.
    spent: u32,
    /// What interrupts cost in the window before the trial: what polling has to undercut.
    price: u32,
    /// What ticks may cost in this window.
    budget: u32,
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

/// What a tick costs beside interrupts that are `dear`, or not. It disturbs no thread that finds its completion by itself, and touches no device, which a dear interrupt
/// does; but where the CPU is `idle` an interrupt disturbs nobody, and is cheaper than a timer that is set anew each time.
#[inline]
pub(crate) fn tick(dear: bool, idle: bool) -> u32 {
    match (dear, idle) {
        (true, _) => INTERRUPT / 3,
        (false, false) => INTERRUPT,
        (false, true) => INTERRUPT * 2,
    }
}

impl Watch {
    /// Begins a window.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        self.since_ms = now_ms;
        (self.ended, self.spent) = (0, 0);
        (self.visits, self.busy, self.depth) = (0, 0, 0);
    }

    /// Notes a drain that cost `cost` and ended `ended` commands of `depth` that were outstanding, and says whether the queue, at present `polled`, is to be
    /// polled. `busy`: the machine was at work.
    #[inline]
    pub(crate) fn note(
        &mut self,
        polled: bool,
        cost: u32,
        ended: usize,
        depth: u64,
        busy: bool,
        now_ms: impl FnOnce() -> u64,
    ) -> bool {
        // CAST: a batch at most.
        self.ended = self.ended.wrapping_add(ended as u32);
        self.spent = self.spent.wrapping_add(cost);
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
        self.spent > self.budget.max(LITTLE)
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
            let poll = self.wait == 0 && fast && busy;
            if poll {
                self.tried_at = depth;
                self.price = self.spent;
                self.budget = self.price.saturating_mul(MOST_SAVED);
            }
            poll
        } else if self.is_dear() {
            self.patience = self.patience.saturating_mul(2).clamp(4, MOST_PATIENCE);
            self.wait = self.patience;
            false
        } else {
            self.patience = 0;
            let left = self.budget.saturating_sub(self.spent);
            let most = self.price.saturating_mul(MOST_SAVED);
            self.budget = left.saturating_add(self.price).min(most);
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
    /// In a window of [`play`].
    const INTERRUPTS: u32 = WINDOW / 4;
    const TICK: u32 = INTERRUPT;

    /// Notes windows of completions, 4 to a drain that costs `cost`, one window every `ms`; returns whether the queue is polled then.
    fn play(watch: &mut Watch, polled: bool, cost: u32, busy: bool, windows: u32, ms: u64) -> bool {
        let mut polled = polled;
        let mut now = watch.since_ms;
        for _ in 0..windows {
            now += ms;
            for _ in 0..WINDOW / 4 {
                let depth = if busy { DEPTH } else { 1 };
                polled = watch.note(polled, cost, 4, depth, busy, || now);
            }
        }
        polled
    }

    /// Ticks that find nothing; returns whether the queue is polled still.
    fn tick(watch: &mut Watch, count: u32) -> bool {
        (0..count).all(|_| watch.note(true, TICK, 0, 0, true, || 0))
    }

    #[test]
    fn a_fast_queue_on_a_busy_machine_is_polled() {
        assert!(play(&mut Watch::default(), false, INTERRUPT, true, 1, 16));
    }

    #[test]
    fn one_command_at_a_time_on_an_idle_machine_is_not() {
        assert!(!play(
            &mut Watch::default(),
            false,
            INTERRUPT,
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
            INTERRUPT,
            true,
            20,
            2 * FAST_MS
        ));
    }

    #[test]
    fn it_stays_polled_while_passers_by_find_the_completions() {
        assert!(play(&mut Watch::default(), true, 0, true, 50, 4));
    }

    #[test]
    fn it_stays_polled_while_each_tick_finds_several() {
        assert!(play(&mut Watch::default(), true, TICK, true, 50, 4));
    }

    #[test]
    fn it_goes_back_when_it_ticks_more_often_than_it_was_interrupted() {
        let mut watch = Watch::default();
        assert!(play(&mut watch, false, INTERRUPT, true, 1, 4));
        assert!(tick(&mut watch, MOST_SAVED * INTERRUPTS));
        assert!(!tick(&mut watch, 1));
    }

    #[test]
    fn a_burst_of_ticks_is_paid_for_by_the_windows_around_it() {
        let mut watch = Watch::default();
        assert!(play(&mut watch, false, INTERRUPT, true, 1, 4));
        assert!(tick(&mut watch, (MOST_SAVED - 1) * INTERRUPTS));
        assert!(play(&mut watch, true, 0, true, 1, 4));
        assert!(tick(&mut watch, 2 * INTERRUPTS), "the rest and a window's");
        assert!(!tick(&mut watch, 1));
    }

    #[test]
    fn ticks_that_cost_a_little_more_than_interrupts_are_too_many_in_time() {
        let mut watch = Watch::default();
        assert!(play(&mut watch, false, INTERRUPT, true, 1, 4));
        let mut window = |_: &u32| tick(&mut watch, 1) && play(&mut watch, true, TICK, true, 1, 4);
        let windows = (0..).take_while(&mut window).count();
        assert_eq!(windows as u32, (MOST_SAVED - 1) * INTERRUPTS);
    }

    #[test]
    fn a_tick_on_an_idle_cpu_counts_twice_unless_interrupts_are_dear() {
        assert_eq!(super::tick(false, true), 2 * TICK);
        assert_eq!(super::tick(true, true), super::tick(true, false));
        assert!(super::tick(true, false) < TICK);
    }

    #[test]
    fn a_much_deeper_load_is_tried_at_once() {
        let mut watch = Watch::default();
        for _ in 0..3 {
            while !play(&mut watch, false, INTERRUPT, true, 1, 4) {}
            assert!(!tick(&mut watch, 2 * WINDOW));
        }
        assert!(!play(&mut watch, false, INTERRUPT, true, 1, 4));
        let window = |watch: &mut Watch, depth| {
            (0..WINDOW / 4).fold(false, |_, _| {
                watch.note(false, INTERRUPT, 4, depth, true, || 0)
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
            assert!(!tick(&mut watch, 2 * WINDOW));
            let mut windows = 0;
            while !play(&mut watch, false, INTERRUPT, true, 1, 4) {
                windows += 1;
            }
            waits.push(windows);
        }
        assert!(waits.windows(2).all(|two| two[0] < two[1]), "{waits:?}");
    }
}
