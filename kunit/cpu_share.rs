// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of what waiters know of the CPU that they share: which thread is taken for one that
//! computes, and how long they do not yield there after turns were lost.

use super::{CpuWaiters, Ready, Share, MET_MS};
use crate::platform::KernelPlatform;
use crate::platform::{cpu, stamp, PreemptOff, TICK_MS};
use crate::shims_safe::{hiops_this_pid, hiops_this_thread};
use core::sync::atomic::Ordering;
use hal::Error;
use kernel::bindings;
use kernel::ffi::c_long;
use kernel::prelude::*;

/// A slice in which somebody computes.
const SLICE_NS: u64 = 3_000_000;
/// 16 times as long, and a millisecond.
const REST_MS: u64 = 49;
/// More than any thread's number.
const NOBODY: u32 = 1 << 30;
/// The first thread, whose nice value is 0.
const INIT: u32 = 1;

/// A CPU on which turns were tried, and lost, `losses` times; and when the last was, in which
/// `seen` had the CPU.
fn after(losses: u32, seen: u32) -> (Share, u64) {
    let (share, mut now) = (Share::default(), 1_000);
    for _ in 1..losses {
        share.lose(SLICE_NS, now, now);
        now += rest(&share, now);
    }
    share.see(seen, now);
    share.lose(SLICE_NS, now, now);
    (share, now)
}

/// The milliseconds from `now` until turns are tried again.
fn rest(share: &Share, now: u64) -> u64 {
    (0..).find(|ms| share.has_turns(now + ms)).unwrap_or(0)
}

/// The thread that is noted on the present CPU. With preemption off.
fn noted(cpu_waiters: &CpuWaiters) -> Option<u32> {
    Some(cpu_waiters.here()?.seen.load(Ordering::Relaxed))
}

/// Keeps the CPU for longer than anybody does who does not compute. With preemption off.
fn compute(cpu_waiters: &CpuWaiters) {
    let since = stamp();
    while stamp().saturating_sub(since) <= cpu_waiters.long {}
}

/// Gives the running thread that nice value.
fn renice(nice: c_long) {
    // CAST: a thread's address. SAFETY: the running thread's, which stays.
    unsafe { bindings::set_user_nice(hiops_this_thread() as *mut _, nice) }
}

/// What `then` answers, with preemption off, on a CPU where a waiter is ready, or none, and one has
/// just arrived.
fn where_one_came_by<T>(is_ready: bool, then: impl FnOnce(&CpuWaiters) -> T) -> Result<T, Error> {
    let cpu_waiters = CpuWaiters::new(&KernelPlatform::without_device())?;
    let ready = Ready::default();
    let _stay = PreemptOff::new();
    // CAST: the number of a CPU.
    cpu_waiters.set_ready(&ready, is_ready.then_some(cpu() as u32));
    cpu_waiters.arrive();
    let answer = then(&cpu_waiters);
    cpu_waiters.set_ready(&ready, None);
    Ok(answer)
}

#[kunit_tests(hiops_cpu_share)]
mod cpu_share_suite {
    use super::*;

    #[test]
    fn who_has_the_cpu_while_waiters_are_ready_is_noted() -> Result<(), Error> {
        for is_ready in [true, false] {
            let (noted, me) = where_one_came_by(is_ready, |cpu_waiters| {
                cpu_waiters.look();
                (noted(cpu_waiters), hiops_this_pid())
            })?;
            assert_eq!(noted, Some(if is_ready { me } else { 0 }));
        }
        Ok(())
    }

    #[test]
    fn a_turn_is_lost_that_takes_long_and_in_which_none_came_by() -> Result<(), Error> {
        for late in [true, false] {
            let lost = where_one_came_by(true, |cpu_waiters| {
                let since = stamp();
                compute(cpu_waiters);
                if !late {
                    // As if one had, just now.
                    (cpu_waiters.here()?.last).store(u64::MAX, Ordering::Relaxed);
                }
                cpu_waiters.take_turn(since);
                Some(cpu_waiters.here()?.turns.has_failed())
            })?;
            assert_eq!(lost, Some(late));
        }
        Ok(())
    }

    #[test]
    fn none_yields_where_most_that_run_are_no_waiters() {
        let share = Share::default();
        // Of ten that an interrupt meets so many are, one after the other.
        for (waiters, yields) in [(8, true), (3, false), (8, true), (0, false)] {
            for met in 0..100 {
                share.meet(met * 7 % 10 < waiters, 1_000);
            }
            assert!(share.has_turns(1_000) == yields);
        }
        // And where none was met for a while, some try it.
        assert!(share.has_turns(1_000 + MET_MS));
    }

    #[test]
    fn turns_that_are_lost_again_rest_for_longer() {
        for (losses, times) in [(1, 1), (2, 2), (3, 4), (7, 64)] {
            let (share, now) = after(losses, 0);
            assert!(rest(&share, now) == REST_MS * times);
        }
    }

    #[test]
    fn one_that_stays_takes_no_more_of_them_for_long() -> Result<(), Error> {
        for (sees, times) in [(true, 64), (false, 1)] {
            let rest = where_one_came_by(true, |cpu_waiters| {
                let share = cpu_waiters.here()?;
                let last = share.last.load(Ordering::Relaxed);
                if sees {
                    cpu_waiters.look();
                }
                share.lose(SLICE_NS, last, 1_000);
                Some(rest(share, 1_000))
            })?;
            assert_eq!(rest, Some(REST_MS * times));
        }
        Ok(())
    }

    #[test]
    fn they_are_tried_sooner_if_whom_they_were_lost_to_has_gone_or_nobody_runs() {
        // Gone; beside it, and on an idle CPU; and nobody was seen.
        let me = hiops_this_pid();
        for (seen, idle, sooner) in [
            (NOBODY, false, true),
            (me, false, false),
            (me, true, true),
            (0, false, false),
        ] {
            let (share, now) = after(7, seen);
            {
                let _stay = PreemptOff::new();
                share.relent(idle, now);
            }
            assert!((rest(&share, now) == REST_MS) == sooner);
        }
    }

    #[test]
    fn whom_they_were_lost_to_is_asked_for_once_a_tick() {
        let (share, now) = after(7, NOBODY);
        share.taker.store(hiops_this_pid(), Ordering::Relaxed);
        let _stay = PreemptOff::new();
        share.relent(false, now);
        share.taker.store(NOBODY, Ordering::Relaxed);
        share.relent(false, now);
        let before = share.turns.has_failed() && rest(&share, now) > REST_MS;
        share.relent(false, now + TICK_MS);
        drop(_stay);
        assert!(before && rest(&share, now) == REST_MS);
    }

    #[test]
    fn who_was_seen_in_another_turn_did_not_take_this_one() {
        let (share, before) = after(7, NOBODY);
        let now = before + rest(&share, before);
        share.lose(SLICE_NS, now, now);
        {
            let _stay = PreemptOff::new();
            share.relent(false, now);
        }
        assert!(rest(&share, now) > REST_MS);
    }

    #[test]
    fn they_are_tried_soon_beside_one_that_counts_for_less() {
        for (nice, soon) in [(-1, true), (0, false)] {
            renice(nice);
            let (share, now) = after(7, INIT);
            renice(0);
            assert!((rest(&share, now) == REST_MS) == soon);
        }
    }

    #[test]
    fn what_follows_then_is_a_first_loss() {
        let (share, now) = after(7, NOBODY);
        {
            let _stay = PreemptOff::new();
            share.relent(false, now);
        }
        share.lose(SLICE_NS, 0, now + REST_MS);
        assert!(rest(&share, now + REST_MS) == REST_MS);
    }
}
