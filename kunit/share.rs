// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of what waiters know of the CPU that they share: how long they do not yield there
//! after turns were lost.

use crate::context::PreemptOff;
use crate::share::Share;
use crate::shims_safe::hiops_this_pid;
use kernel::prelude::*;

/// A slice in which somebody computes.
const SLICE_NS: u64 = 3_000_000;
/// 16 times as long, and a millisecond.
const REST_MS: u64 = 49;
/// More than any thread's number.
const NOBODY: u32 = 1 << 30;

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
    fn beside_whom_they_were_lost_to_they_are_not_tried_sooner() {
        let (share, now) = after(7);
        let _stay = PreemptOff::new();
        share.see(hiops_this_pid());
        share.relent();
        assert!(rest(&share, now) > REST_MS);
    }

    #[test]
    fn after_that_one_has_gone_they_are() {
        let (share, now) = after(7);
        let _stay = PreemptOff::new();
        share.see(NOBODY);
        share.relent();
        assert!(rest(&share, now) == REST_MS);
        // What follows is a first loss.
        share.lose(SLICE_NS, now + REST_MS);
        assert!(rest(&share, now + REST_MS) == REST_MS);
    }

    #[test]
    fn after_somebody_unseen_they_are_not() {
        let (share, now) = after(7);
        let _stay = PreemptOff::new();
        share.relent();
        assert!(rest(&share, now) > REST_MS);
    }
}
