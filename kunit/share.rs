// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of what waiters know of the CPU that they share: how long they do not yield there
//! after turns were lost.

use crate::share::{Interrupted, Share};
use kernel::prelude::*;

/// A slice in which somebody computes.
const SLICE_NS: u64 = 3_000_000;
/// 16 times as long, and a millisecond.
const REST_MS: u64 = 49;

/// A CPU on which turns were tried, and lost, so many times; and when the last was.
fn after(losses: u32) -> (Share, u64) {
    let (share, mut now) = (Share::default(), 1_000);
    for _ in 1..losses {
        share.lose(SLICE_NS, now);
        now += rest(&share, now);
    }
    share.lose(SLICE_NS, now);
    (share, now)
}

/// The milliseconds from `now` until turns are tried again.
fn rest(share: &Share, now: u64) -> u64 {
    (0..).find(|ms| share.has_turns(now + ms)).unwrap_or(0)
}

#[kunit_tests(hiops_share)]
mod share_suite {
    use super::*;

    #[test]
    fn turns_that_are_lost_again_rest_for_longer() {
        for (losses, times) in [(1, 1), (2, 2), (3, 4), (7, 64)] {
            let (share, now) = after(losses);
            assert!(rest(&share, now) == REST_MS * times);
        }
    }

    #[test]
    fn among_waiters_they_are_tried_again_soon() {
        let (share, now) = after(7);
        for look in 0..512 {
            assert!(rest(&share, now) > REST_MS);
            share.note(match look % 64 {
                0 => Interrupted::Other,
                _ => Interrupted::Waiter,
            });
        }
        assert!(rest(&share, now) == REST_MS);
        // What follows is a first loss.
        share.lose(SLICE_NS, now + REST_MS);
        assert!(rest(&share, now + REST_MS) == REST_MS);
    }

    #[test]
    fn beside_one_that_computes_they_are_not() {
        let (share, now) = after(7);
        for look in 0..2_048 {
            share.note(match look % 32 {
                0 => Interrupted::Other,
                _ => Interrupted::Waiter,
            });
        }
        assert!(rest(&share, now) > REST_MS);
    }

    #[test]
    fn where_the_cpu_is_idle_they_are() {
        let (share, now) = after(7);
        share.note(Interrupted::Nobody);
        assert!(rest(&share, now) == REST_MS);
    }
}
