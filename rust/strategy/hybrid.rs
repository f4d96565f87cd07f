// SPDX-License-Identifier: GPL-2.0
//! When a hybrid queue polls: the paper's future work (ATC '14, section 6).
//!
//! Polling pays where threads pass by often enough to find the completions themselves: then an interrupt only disturbs
//! them. That is so under a high rate of completions with several commands outstanding; whether it is so shows only in polled mode, by
//! who finds the completions. So a queue that is fast and deep is polled on trial, and goes back when the timer has to find most of
//! them; each failed trial makes the next one wait longer. A queue that is slow or idle goes back at once.

use crate::Context;

/// Completions after which the load is judged.
const WINDOW: u32 = 256;
/// At least so many of them in a millisecond make a fast queue.
const FAST: u64 = 2;
/// In polled mode, fewer than so many in a millisecond make a slow one.
const SLOW: u64 = 1;
/// The mean of commands outstanding, times 4, from which on a queue is deep.
const DEEP_BY_4: u64 = 6;
/// Failed trials make the next one wait for up to so many windows.
const MOST_PATIENCE: u32 = 256;

/// What was seen since the last judgement. Kept under the drain token.
#[derive(Default)]
pub(crate) struct Watch {
    since_ms: u64,
    ended: u32,
    /// Of `ended`: found by the timer.
    ticked: u32,
    /// Drains that ended something, and the commands outstanding at each.
    visits: u64,
    depths: u64,
    /// Windows until the next trial.
    wait: u32,
    /// Windows that the next failed trial costs.
    patience: u32,
}

impl Watch {
    /// Begins a window.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        self.since_ms = now_ms;
        (self.ended, self.ticked, self.visits, self.depths) = (0, 0, 0, 0);
    }

    /// Notes a drain by `by`, which ended `ended` of `depth` outstanding commands, and says whether the queue, at present `polled`, is to be polled.
    #[inline]
    pub(crate) fn wants_poll(
        &mut self,
        polled: bool,
        by: Context,
        depth: u64,
        ended: usize,
        now_ms: impl FnOnce() -> u64,
    ) -> bool {
        // CAST: a batch at most.
        let ended = ended as u32;
        self.ended = self.ended.wrapping_add(ended);
        if ended != 0 {
            self.visits = self.visits.wrapping_add(1);
            self.depths = self.depths.wrapping_add(depth);
        }
        if by == Context::Poll {
            self.ticked = self.ticked.wrapping_add(ended);
        }
        if self.ended < WINDOW && !(polled && by == Context::Poll) {
            return polled;
        }
        self.judge(polled, now_ms())
    }

    fn judge(&mut self, polled: bool, now_ms: u64) -> bool {
        let took_ms = now_ms.wrapping_sub(self.since_ms);
        let faster = |rate: u64| u64::from(self.ended) >= took_ms.saturating_mul(rate);
        let full = self.ended >= WINDOW;
        let poll = if polled {
            if !full {
                // A tick within a window: only a slow queue is noticed here, and not before a window's time is over.
                if took_ms < u64::from(WINDOW) / SLOW || faster(SLOW) {
                    return true;
                }
                false
            } else if self.ticked.saturating_mul(2) > self.ended {
                self.patience = self.patience.saturating_mul(2).clamp(4, MOST_PATIENCE);
                self.wait = self.patience;
                false
            } else {
                self.patience = 0;
                true
            }
        } else {
            self.wait = self.wait.saturating_sub(1);
            let deep = self.depths.saturating_mul(4) >= self.visits.saturating_mul(DEEP_BY_4);
            self.wait == 0 && deep && faster(FAST)
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

    /// Notes `windows` windows of completions, `each` a drain by `by` at `depth`, one window every `ms`; returns whether it is polled then.
    fn play(
        watch: &mut Watch,
        polled: bool,
        by: Context,
        depth: u64,
        each: usize,
        windows: u32,
        ms: u64,
    ) -> bool {
        let mut polled = polled;
        let mut now = watch.since_ms;
        for _ in 0..windows {
            now += ms;
            let mut left = WINDOW as usize;
            while left > 0 {
                let n = each.min(left);
                polled = watch.wants_poll(polled, by, depth, n, || now);
                left -= n;
            }
        }
        polled
    }

    #[test]
    fn a_fast_and_deep_queue_is_polled() {
        let mut watch = Watch::default();
        assert!(play(&mut watch, false, Context::Irq, 8, 4, 1, 16));
    }

    #[test]
    fn one_command_at_a_time_is_not() {
        let mut watch = Watch::default();
        assert!(!play(&mut watch, false, Context::Irq, 1, 1, 100, 4));
    }

    #[test]
    fn a_slow_queue_is_not() {
        let mut watch = Watch::default();
        assert!(!play(&mut watch, false, Context::Irq, 32, 8, 20, 1000));
    }

    #[test]
    fn it_stays_polled_while_passers_by_find_the_completions() {
        let mut watch = Watch::default();
        assert!(play(&mut watch, true, Context::Coop, 8, 4, 50, 4));
    }

    #[test]
    fn a_failed_trial_makes_the_next_one_wait_longer() {
        let mut watch = Watch::default();
        let mut waits = Vec::new();
        for _ in 0..4 {
            assert!(!play(&mut watch, true, Context::Poll, 8, 4, 1, 4));
            let mut windows = 0;
            while !play(&mut watch, false, Context::Irq, 8, 4, 1, 4) {
                windows += 1;
            }
            waits.push(windows);
        }
        assert!(waits.windows(2).all(|two| two[0] < two[1]), "{waits:?}");
    }

    #[test]
    fn a_polled_queue_that_goes_slow_goes_back_by_a_tick() {
        let mut watch = Watch::default();
        watch.begin(0);
        assert!(watch.wants_poll(true, Context::Poll, 1, 1, || 10));
        assert!(!watch.wants_poll(true, Context::Poll, 1, 1, || 500));
    }
}
