// SPDX-License-Identifier: GPL-2.0
//! A thread that waits: it spins, yields or sleeps, and learns what pays.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::{Rig, COOP};
use engine::{Context, Costs, Mode, Next, Waiting};
use hal::mock::MockPlatform;
use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

/// A thread on a CPU; after so many rests it is woken.
struct Thread {
    woken_after: Cell<Option<u32>>,
    may_yield: bool,
    rests: Cell<u32>,
}

fn alone() -> Thread {
    Thread {
        woken_after: Cell::new(None),
        may_yield: false,
        rests: Cell::new(0),
    }
}

/// Others are ready to run, and it may let them.
fn polite() -> Thread {
    Thread {
        may_yield: true,
        ..alone()
    }
}

impl Waiting for Thread {
    fn is_awake(&self) -> bool {
        self.woken_after.get() == Some(0)
    }

    fn pause(&self) -> bool {
        self.rests.set(self.rests.get() + 1);
        let left = self.woken_after.get().map(|n| n.saturating_sub(1));
        self.woken_after.set(left);
        !self.is_awake()
    }

    fn may_yield(&self) -> bool {
        self.may_yield
    }
}

/// A millisecond passes.
fn pass(rig: &Rig) {
    rig.log.now.fetch_add(1, SeqCst);
}

/// Milliseconds until it is tried again to yield.
fn ms_until_it_yields(rig: &Rig) -> u32 {
    let sleeps = |_: &u32| {
        let sleeps = rig.queue.wait(&polite(), None) == Next::Sleep;
        if sleeps {
            pass(rig);
        }
        sleeps
    };
    (0..u32::MAX)
        .take_while(sleeps)
        .fold(0, |waits, _| waits + 1)
}

/// A queue that is polled, which each thread that waits comes by.
fn rig() -> Rig {
    let rig = Rig::new(4, 4);
    let mut quiesced = rig.queue.quiesce(&MockPlatform::new());
    quiesced.set_mode(Mode::Poll).unwrap();
    quiesced.unquiesce();
    rig
}

/// Whether a thread that waits in vain spins.
fn spins(rig: &Rig) -> bool {
    let thread = alone();
    rig.queue.wait(&thread, None);
    thread.rests.get() != 0
}

/// Spins in vain until that is given up.
fn give_spinning_up(rig: &Rig) {
    assert!((0..128).any(|_| !spins(rig)), "it learns");
}

/// Milliseconds until spinning is tried again.
fn ms_until_it_spins(rig: &Rig) -> u32 {
    let sleeps = |_: &u32| {
        let sleeps = !spins(rig);
        if sleeps {
            pass(rig);
        }
        sleeps
    };
    (0..u32::MAX)
        .take_while(sleeps)
        .fold(0, |waits, _| waits + 1)
}

#[test]
fn who_was_woken_goes_on() {
    let thread = Thread {
        woken_after: Cell::new(Some(0)),
        ..polite()
    };
    assert_eq!(rig().queue.wait(&thread, None), Next::GoOn);
    assert_eq!(thread.rests.get(), 0, "it does not spin first");
}

#[test]
fn where_the_queue_interrupts_completions_are_taken_before_others_run() {
    let rig = Rig::new(4, 4);
    rig.submit([7]);
    rig.device.complete_next(Ok(()));
    assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
    assert_eq!(rig.log.ended_ids(), [7]);
}

#[test]
fn where_it_is_polled_others_run_first_and_whoever_comes_back_finds_more() {
    let rig = rig();
    rig.submit([7]);
    rig.device.complete_next(Ok(()));
    assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
    assert_eq!(rig.log.ended_count(), 0);
    rig.queue.yielded(false, &polite());
    assert_eq!(rig.log.ended_ids(), [7]);
}

#[test]
fn who_is_alone_spins_and_is_woken_by_what_it_finds() {
    let rig = rig();
    let thread = Thread {
        woken_after: Cell::new(Some(5)),
        ..alone()
    };
    assert_eq!(rig.queue.wait(&thread, None), Next::GoOn);
    assert_eq!(thread.rests.get(), 5);
}

#[test]
fn spinning_in_vain_is_given_up_and_tried_ever_more_rarely() {
    let rig = rig();
    give_spinning_up(&rig);
    let rests = [(); 4].map(|()| {
        let rest = ms_until_it_spins(&rig);
        give_spinning_up(&rig);
        rest
    });
    assert!(rests.windows(2).all(|two| two[0] < two[1]), "{rests:?}");
}

/// The engine looks for no longer than a sleep takes, whatever a strategy says.
#[test]
fn who_spins_in_vain_takes_no_longer_than_a_sleep() {
    let rig = rig();
    let sleep_ns = 7_000;
    rig.queue.set_costs(Costs {
        sleep_ns,
        ..Costs::ASSUMED
    });
    let before = rig.log.now_ns.load(SeqCst);
    assert!(spins(&rig));
    let took = rig.log.now_ns.load(SeqCst) - before;
    assert!((sleep_ns..sleep_ns + 500).contains(&took), "{took} ns");
}

/// Threads that wait and come by, as long as that is worth it; returns how many of `waits` did.
fn visits(rig: &Rig, thread: impl Fn() -> Thread, waits: u32) -> u32 {
    let visit = |_: &u32| {
        pass(rig);
        rig.queue.tracks(COOP) && {
            rig.queue.wait(&thread(), None);
            true
        }
    };
    // CAST: at most `waits`.
    (0..waits).filter(visit).count() as u32
}

#[test]
fn who_would_sleep_anyway_does_not_come_by_first() {
    let rig = Rig::new(4, 4);
    let first = visits(&rig, alone, 1_000);
    assert!(first < 50, "it learns, {first}");
    assert!(visits(&rig, alone, 100_000) < 200, "ever more rarely");
    // On the next trial the device answers one that spins.
    let answered = || Thread {
        woken_after: Cell::new(Some(2)),
        ..alone()
    };
    let after = (0u32..)
        .take_while(|_| visits(&rig, answered, 1) == 0)
        .count();
    assert!(after < 10_000, "{after}");
    assert_eq!(visits(&rig, answered, 1_000), 1_000, "from then on");
}

#[test]
fn who_yields_on_a_trial_and_is_the_better_for_it_comes_by_again() {
    let rig = Rig::new(4, 4);
    visits(&rig, alone, 1_000);
    let yielder = || {
        rig.queue.yielded(true, &polite());
        polite()
    };
    while visits(&rig, yielder, 1) == 0 {}
    assert_eq!(visits(&rig, yielder, 100), 100);
}

#[test]
fn a_queue_without_interrupts_is_always_visited() {
    assert_eq!(visits(&rig(), alone, 1_000), 1_000);
}

#[test]
fn an_interrupt_that_comes_while_a_waiter_looks_is_gone_through_with() {
    // The first look is the drain's, those after it are of who spins.
    for looks in 0..3 {
        let rig = Arc::new(Rig::new(4, 4));
        let (device, interrupted) = (Arc::clone(&rig.device), Arc::clone(&rig));
        let before = device.releases();
        device.meanwhile(looks, move || {
            // It finds nothing to take, and yet it is the release that lets the device interrupt
            // again.
            interrupted.queue.drain(Context::Irq);
        });
        assert_eq!(rig.queue.wait(&alone(), None), Next::Sleep);
        assert_eq!(rig.device.releases() - before, 1, "{looks} looks before");
    }
}

#[test]
fn who_is_woken_while_it_spins_brings_spinning_back() {
    let rig = rig();
    give_spinning_up(&rig);
    let woken = |_: &u32| {
        pass(&rig);
        let thread = Thread {
            woken_after: Cell::new(Some(5)),
            ..alone()
        };
        rig.queue.wait(&thread, None) == Next::GoOn
    };
    assert!((0..100).any(|n| woken(&n)), "it is tried again");
    assert!(spins(&rig));
}

#[test]
fn who_lets_others_run_goes_on_doing_so_while_it_pays() {
    let rig = rig();
    for _ in 0..200 {
        assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
        rig.queue.yielded(true, &polite());
    }
}

#[test]
fn who_has_yielded_in_vain_too_often_sleeps() {
    let rig = rig();
    let given = (0..200)
        .take_while(|_| rig.queue.wait(&polite(), None) == Next::Yield)
        .inspect(|_| {
            rig.queue.yielded(false, &polite());
        })
        .count();
    // As long as a trial may take.
    assert_eq!(given, 32);
}

/// Yields in vain until it does not yield any more.
fn give_yielding_up(rig: &Rig) {
    let gives = |_: &u32| {
        let gives = rig.queue.wait(&polite(), None) == Next::Yield;
        rig.queue.yielded(false, &polite());
        gives
    };
    assert!((0..200).any(|n| !gives(&n)), "it learns");
}

#[test]
fn turns_in_vain_are_tried_ever_more_rarely() {
    let rig = rig();
    give_yielding_up(&rig);
    let mut rests = Vec::new();
    for _ in 0..8 {
        rests.push(ms_until_it_yields(&rig));
        give_yielding_up(&rig);
    }
    assert!(rests.windows(2).all(|two| two[0] < two[1]), "{rests:?}");
    ms_until_it_yields(&rig);
    for _ in 0..200 {
        rig.queue.yielded(true, &polite());
        assert_eq!(ms_until_it_yields(&rig), 0, "the device has changed");
    }
    give_yielding_up(&rig);
    // 16 times as much as may be lost at once.
    assert!(
        ms_until_it_yields(&rig) <= 3,
        "and the rests are short again"
    );
}

#[test]
fn a_trial_of_yielding_is_for_many_threads_at_once() {
    let rig = rig();
    give_yielding_up(&rig);
    ms_until_it_yields(&rig);
    for _ in 0..31 {
        // The first to come back came too soon: those behind them slept still.
        rig.queue.yielded(false, &polite());
        assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
    }
    rig.queue.yielded(false, &polite());
    assert_eq!(
        rig.queue.wait(&polite(), None),
        Next::Sleep,
        "in vain, all told"
    );
}

#[test]
fn who_finds_his_own_completion_when_his_turn_comes_has_not_yielded_in_vain() {
    let rig = rig();
    let woken = || Thread {
        woken_after: Cell::new(Some(0)),
        ..polite()
    };
    for _ in 0..200 {
        assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
        rig.queue.yielded(false, &woken());
    }
}

#[test]
fn when_visits_are_tried_again_so_is_what_they_are_good_for() {
    let rig = Rig::new(4, 4);
    while rig.queue.tracks(COOP) {
        if rig.queue.wait(&polite(), None) == Next::Yield {
            give_yielding_up(&rig);
        }
    }
    while !rig.queue.tracks(COOP) {
        pass(&rig);
    }
    // The first is what begins the trial.
    rig.queue.wait(&alone(), None);
    assert!(spins(&rig));
    assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
}
