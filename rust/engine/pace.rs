// SPDX-License-Identifier: GPL-2.0
//! Whether threads that wait for I/O have a CPU for themselves, or share it with one that computes.
//!
//! To give way is for threads that wait for the same disk: each runs for some microseconds, and
//! comes by here. One that computes keeps the CPU for a slice of the scheduler's, which is longer
//! than most I/O takes, and a thread that sleeps would have had the CPU back at its completion. No
//! count of ready threads tells the two apart; the time that a turn took does.
//!
//! Times are stamps of one clock, in units of the caller's.

use cell::sync::{AtomicU64, Ordering};

/// What a lost turn forbids, in turns of its length: what is lost is a 256th of the time at most.
const REST: u64 = 256;

/// What was seen of one CPU. Written there only, with preemption off.
pub struct Pace {
    /// A CPU that no waiter came by on for longer was somebody else's.
    long: u64,
    /// When a waiter last came by.
    last: AtomicU64,
    /// Nobody gives way before.
    until: AtomicU64,
}

impl Pace {
    /// For a CPU on which turns are lost that take longer than `long`.
    pub fn new(long: u64) -> Self {
        Self {
            long,
            last: AtomicU64::new(0),
            until: AtomicU64::new(0),
        }
    }

    /// A waiter comes by at `now`.
    #[inline]
    pub fn come_by(&self, now: u64) {
        self.last.store(now, Ordering::Relaxed);
    }

    /// Whether a waiter may give way at `now`.
    #[inline]
    pub fn is_shared_by_waiters(&self, now: u64) -> bool {
        now >= self.until.load(Ordering::Relaxed)
    }

    /// A waiter that gave way at `since`, here or on another CPU, has its turn at `now`.
    #[inline]
    pub fn take_turn(&self, since: u64, now: u64) {
        let last = self.last.load(Ordering::Relaxed).max(since);
        self.come_by(now);
        let lost = now.saturating_sub(last);
        if lost > self.long {
            let until = now.saturating_add(lost.saturating_mul(REST));
            self.until.store(until, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LONG: u64 = 100;

    #[test]
    fn turns_among_waiters_are_never_lost() {
        let pace = Pace::new(LONG);
        for at in (0..100_000).step_by(60) {
            pace.come_by(at);
            assert!(pace.is_shared_by_waiters(at));
            // Its own turn took longer, but others came by meanwhile.
            pace.take_turn(at.saturating_sub(1_000), at + 40);
        }
    }

    #[test]
    fn one_lost_turn_forbids_a_256th_of_the_time() {
        let pace = Pace::new(LONG);
        pace.come_by(1_000);
        pace.take_turn(1_000, 1_000 + LONG);
        assert!(pace.is_shared_by_waiters(1_000 + LONG), "not longer");
        pace.come_by(2_000);
        pace.take_turn(2_000, 2_001 + LONG);
        let until = 2_001 + LONG + (LONG + 1) * REST;
        assert!(!pace.is_shared_by_waiters(2_001 + LONG));
        assert!(!pace.is_shared_by_waiters(until - 1));
        assert!(pace.is_shared_by_waiters(until));
    }

    #[test]
    fn beside_one_that_computes_a_256th_of_the_time_is_lost() {
        const SLICE: u64 = 4_000;
        let pace = Pace::new(LONG);
        let (mut now, mut lost) = (0, 0);
        while now < 10_000 * SLICE {
            pace.come_by(now);
            now += match pace.is_shared_by_waiters(now) {
                true => {
                    pace.take_turn(now, now + SLICE);
                    lost += SLICE;
                    SLICE
                }
                false => 320,
            };
        }
        assert!(lost <= now / REST + SLICE, "{lost} of {now}");
        assert!(lost >= now / (2 * REST), "it is tried again");
    }

    #[test]
    fn a_cpu_that_nobody_came_by_on_before_the_turn_began_was_not_taken() {
        let pace = Pace::new(LONG);
        pace.take_turn(1_000_000, 1_000_000 + LONG / 2);
        assert!(pace.is_shared_by_waiters(1_000_000 + LONG / 2));
    }

    #[test]
    fn clocks_that_differ_between_cpus_saturate() {
        let pace = Pace::new(LONG);
        pace.come_by(5_000);
        pace.take_turn(6_000, 4_000);
        assert!(pace.is_shared_by_waiters(4_000));
        pace.take_turn(0, u64::MAX);
        assert!(pace.is_shared_by_waiters(u64::MAX));
    }
}
