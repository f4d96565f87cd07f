// SPDX-License-Identifier: GPL-2.0
//! When a hybrid queue polls: the paper's future work (ATC '14, section 6).
//!
//! Polling pays where threads pass by often enough to find the completions themselves: then an interrupt only disturbs them. A queue
//! is polled on trial when completions come fast, and find other commands outstanding or a thread at work on their CPU. It goes back when the
//! timer's ticks cost more than the interrupts did before, some windows together: loads come in bursts. Each failed trial makes the next one wait longer, unless the load
//! has become a deeper one meanwhile.

/// Completions after which the load is judged.
const WINDOW: u32 = 256;
/// A queue is fast that fills a window in so many milliseconds.
const FAST_MS: u64 = 1000;
/// What an interrupt costs, in units of its own.
pub(crate) const INTERRUPT: u32 = 6;
/// Ticks may cost so much in a window, whatever interrupts did.
const LITTLE: u32 = WINDOW / 8 * INTERRUPT;
/// What ticks save in one window may be spent in later ones: no more than so many windows' interrupts at once, which is also what a trial may spend.
const MOST_SAVED: u32 = 4;
/// A load more than so many times as deep as the one that the last trial began on is another load.
const DEEPER: u64 = 2;
/// Failed trials make the next one wait for up to so many windows.
const MOST_PATIENCE: u32 = 256;

/// What was seen since the last judgement. Kept under the drain token.
#[derive(Default)]
pub struct Watch {
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

/// What a tick costs beside interrupts that are `dear`, or not. It sets the timer anew each time, but touches no device, which a dear interrupt does; and it disturbs no
/// thread that finds its completion by itself, but where the CPU is `idle`, neither does an interrupt.
#[inline]
pub(crate) fn tick(dear: bool, idle: bool) -> u32 {
    match (dear, idle) {
        (true, _) => INTERRUPT / 3,
        (false, false) => INTERRUPT * 3 / 2,
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
            let left = self.budget.saturating_sub(self.spent);
            let most = self.price.saturating_mul(MOST_SAVED);
            self.budget = left.saturating_add(self.price).min(most);
            if self.budget == most {
                self.patience = 0;
            }
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

    /// Notes windows of completions, 4 to an interrupt, one window every `ms`; returns whether the queue is polled then.
    fn play(watch: &mut Watch, busy: bool, windows: u32, ms: u64) -> bool {
        let mut polled = false;
        let mut now = watch.since_ms;
        for _ in 0..windows {
            now += ms;
            for _ in 0..INTERRUPTS {
                let depth = if busy { DEPTH } else { 1 };
                polled = watch.note(polled, INTERRUPT, 4, depth, busy, || now);
            }
        }
        polled
    }

    /// A queue that is polled from now on.
    fn on_trial() -> Watch {
        let mut watch = Watch::default();
        assert!(play(&mut watch, true, 1, 4));
        watch
    }

    /// Notes windows of completions of a polled queue, `each` to a drain that costs `cost`; returns whether it is polled all the while.
    fn stays(watch: &mut Watch, cost: u32, each: u32, windows: u32) -> bool {
        (0..windows * WINDOW / each)
            .all(|_| watch.note(true, cost, each as usize, DEPTH, true, || 0))
    }

    /// The same with ticks that find nothing.
    fn stays_for(watch: &mut Watch, ticks: u32, cost: u32) -> bool {
        (0..ticks).all(|_| watch.note(true, cost, 0, 0, true, || 0))
    }

    /// The trial fails.
    fn fail(watch: &mut Watch) {
        assert!(!stays_for(watch, 2 * WINDOW, tick(false, false)));
    }

    /// It fails in the end.
    fn fail_late(watch: &mut Watch) {
        assert!(!stays(watch, tick(false, false), 4, 2 * WINDOW));
    }

    #[test]
    fn a_fast_queue_on_a_busy_machine_is_polled() {
        assert!(play(&mut Watch::default(), true, 1, 16));
    }

    #[test]
    fn one_command_at_a_time_on_an_idle_machine_is_not() {
        assert!(!play(&mut Watch::default(), false, 100, 4));
    }

    #[test]
    fn a_slow_queue_is_not() {
        assert!(!play(&mut Watch::default(), true, 20, 2 * FAST_MS));
    }

    #[test]
    fn it_stays_polled_while_passers_by_find_the_completions() {
        assert!(stays(&mut on_trial(), 0, 4, 50));
    }

    #[test]
    fn it_stays_polled_while_each_tick_finds_more_than_an_interrupt_did() {
        assert!(stays(&mut on_trial(), tick(false, false), 8, 50));
        assert!(!stays(&mut on_trial(), tick(false, false), 4, 50));
    }

    #[test]
    fn beside_dear_interrupts_each_may_find_fewer() {
        assert!(stays(&mut on_trial(), tick(true, true), 2, 50));
    }

    #[test]
    fn it_goes_back_when_ticks_cost_more_than_a_trial_may() {
        let mut watch = on_trial();
        assert!(stays_for(&mut watch, MOST_SAVED * INTERRUPTS, INTERRUPT));
        assert!(!stays_for(&mut watch, 1, INTERRUPT));
    }

    #[test]
    fn a_burst_of_ticks_is_paid_for_by_the_windows_around_it() {
        let mut watch = on_trial();
        let most = MOST_SAVED * INTERRUPTS;
        assert!(stays_for(&mut watch, most - INTERRUPTS, INTERRUPT));
        assert!(stays(&mut watch, 0, 4, 1));
        // What was left, and a window's.
        assert!(stays_for(&mut watch, 2 * INTERRUPTS, INTERRUPT));
        assert!(!stays_for(&mut watch, 1, INTERRUPT));
    }

    #[test]
    fn ticks_that_cost_a_little_more_than_interrupts_are_too_many_in_time() {
        let mut watch = on_trial();
        let mut window =
            |_: &u32| stays_for(&mut watch, 1, INTERRUPT) && stays(&mut watch, INTERRUPT, 4, 1);
        let windows = (0..).take_while(&mut window).count();
        assert_eq!(windows as u32, (MOST_SAVED - 1) * INTERRUPTS);
    }

    #[test]
    fn a_tick_costs_more_than_an_interrupt_unless_that_is_dear() {
        assert!(tick(true, true) < INTERRUPT && tick(true, false) < INTERRUPT);
        assert!(INTERRUPT < tick(false, false) && tick(false, false) < tick(false, true));
    }

    #[test]
    fn a_deeper_load_is_tried_at_once() {
        let mut watch = Watch::default();
        for _ in 0..3 {
            while !play(&mut watch, true, 1, 4) {}
            fail(&mut watch);
        }
        assert!(!play(&mut watch, true, 1, 4));
        let window = |watch: &mut Watch, depth| {
            (0..INTERRUPTS).fold(false, |_, _| {
                watch.note(false, INTERRUPT, 4, depth, true, || 0)
            })
        };
        assert!(!window(&mut watch, DEEPER * DEPTH));
        assert!(window(&mut watch, DEEPER * DEPTH + 1));
    }

    /// For how many windows a queue waits after each of four trials.
    fn waits(fail: fn(&mut Watch)) -> Vec<u32> {
        let mut watch = on_trial();
        let wait = |_| {
            fail(&mut watch);
            let windows = (0..).find(|_| play(&mut watch, true, 1, 4));
            windows.unwrap()
        };
        (0..4).map(wait).collect()
    }

    #[test]
    fn a_failed_trial_makes_the_next_one_wait_longer() {
        for fail in [fail, fail_late] {
            let waits = waits(fail);
            assert!(waits.is_sorted_by(|a, b| a < b), "{waits:?}");
        }
    }

    #[test]
    fn a_trial_that_paid_for_long_is_not_held_against_the_next() {
        let waits = waits(|watch| {
            assert!(stays(watch, 0, 4, 10));
            fail(watch);
        });
        assert!(waits.iter().all(|&wait| wait == waits[0]), "{waits:?}");
    }
}
