// SPDX-License-Identifier: GPL-2.0
//! A thread that waits: it polls, gives way or sleeps, and learns what pays.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::{Rig, COOP};
use engine::{Context, Mode, Next, Turn, Waiting};
use hal::mock::MockPlatform;
use std::cell::Cell;
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

/// Waits until it is tried again to give way.
fn waits_until_it_gives_way(rig: &Rig) -> u32 {
    let sleeps = |_: &u32| rig.queue.wait(&polite(), None) == Next::Sleep;
    (0..u32::MAX)
        .take_while(sleeps)
        .fold(0, |waits, _| waits + 1)
}

/// A queue that is polled, which each thread that waits comes by.
fn rig() -> Rig {
    let rig = Rig::new(4, 4);
    let mut paused = rig.queue.pause(&MockPlatform::new());
    paused.set_mode(Mode::Poll).unwrap();
    paused.resume();
    rig
}

/// Polls in vain until that is given up.
fn give_polling_up(rig: &Rig) {
    let polls = |_: &u32| {
        let thread = alone();
        rig.queue.wait(&thread, None);
        thread.rests.get() > 1
    };
    assert!((0..64).any(|n| !polls(&n)), "it learns");
}

/// Waits until polling is tried again.
fn waits_until_it_polls(rig: &Rig) -> u32 {
    let sleeps = |_: &u32| {
        let thread = alone();
        rig.queue.wait(&thread, None);
        thread.rests.get() == 1
    };
    (0..u32::MAX)
        .take_while(sleeps)
        .fold(0, |waits, _| waits + 1)
}

/// Is woken at its first rest, before it has polled.
fn woken_at_once() -> Thread {
    Thread {
        woken_after: Cell::new(Some(1)),
        ..alone()
    }
}

#[test]
fn who_was_woken_goes_on() {
    let thread = Thread {
        woken_after: Cell::new(Some(0)),
        ..polite()
    };
    assert_eq!(rig().queue.wait(&thread, None), Next::GoOn);
    assert_eq!(thread.rests.get(), 0, "it does not poll first");
}

#[test]
fn completions_are_taken_first() {
    let rig = rig();
    rig.submit([7]);
    rig.device.complete_next(Ok(()));
    assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
    assert_eq!(rig.log.ended_ids(), [7]);
}

#[test]
fn who_is_alone_polls_and_is_woken_by_what_it_finds() {
    let rig = rig();
    let thread = Thread {
        woken_after: Cell::new(Some(5)),
        ..alone()
    };
    assert_eq!(rig.queue.wait(&thread, None), Next::GoOn);
    assert_eq!(thread.rests.get(), 5);
}

#[test]
fn polling_in_vain_is_given_up_and_tried_ever_more_rarely() {
    let rig = rig();
    give_polling_up(&rig);
    let pauses = [(); 4].map(|()| waits_until_it_polls(&rig));
    assert!(pauses.windows(2).all(|two| two[0] < two[1]), "{pauses:?}");
}

#[test]
fn who_is_woken_before_it_polls_does_not_bring_polling_back() {
    let rig = rig();
    give_polling_up(&rig);
    let pause = waits_until_it_polls(&rig);
    assert_eq!(rig.queue.wait(&woken_at_once(), None), Next::GoOn);
    let next = waits_until_it_polls(&rig);
    assert!(next > pause, "nobody has polled: {pause}, then {next}");
}

/// Threads that wait and come by, as long as that is worth it; returns how many of `waits` did.
fn visits(rig: &Rig, thread: impl Fn() -> Thread, waits: u32) -> u32 {
    let visit = |_: &u32| {
        rig.queue.notes_owner(COOP) && {
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
    assert!((64..200).contains(&first), "it learns, {first}");
    assert!(visits(&rig, alone, 100_000) < 1_000, "ever more rarely");
    // On the next trial the device answers a poll.
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
fn who_may_yield_on_a_trial_comes_by_again() {
    let rig = Rig::new(4, 4);
    visits(&rig, alone, 1_000);
    while visits(&rig, polite, 1) == 0 {}
    assert_eq!(visits(&rig, polite, 100), 100);
}

#[test]
fn one_wait_in_eight_without_a_sleep_is_worth_all_visits() {
    let rig = Rig::new(4, 4);
    let turn = Cell::new(0);
    let mixed = || {
        turn.set(turn.get() + 1);
        Thread {
            woken_after: Cell::new((turn.get() % 8 == 0).then_some(0)),
            ..alone()
        }
    };
    assert_eq!(visits(&rig, mixed, 10_000), 10_000);
}

#[test]
fn a_queue_without_interrupts_or_that_holds_commands_is_always_visited() {
    assert_eq!(visits(&rig(), alone, 1_000), 1_000);
    let holds = Rig::gathering(8, 8, 2);
    visits(&holds, alone, 1_000);
    assert!(!holds.queue.notes_owner(COOP), "as long as it does not");
    holds.submit(0..7);
    assert_eq!(holds.at_device().len(), 6);
    assert!(holds.queue.notes_owner(COOP));
}

#[test]
fn an_interrupt_that_comes_while_a_waiter_looks_is_gone_through_with() {
    // The first look is the drain's, those after it are polls.
    for looks in 0..3 {
        let rig = Arc::new(Rig::new(4, 4));
        let (device, interrupted) = (Arc::clone(&rig.device), Arc::clone(&rig));
        let before = device.releases();
        device.meanwhile(looks, move || {
            // It finds nothing to take, and yet it is the release that lets the device interrupt again.
            interrupted.queue.drain(Context::Irq);
        });
        assert_eq!(rig.queue.wait(&alone(), None), Next::Sleep);
        assert_eq!(rig.device.releases() - before, 1, "{looks} looks before");
    }
}

#[test]
fn a_trial_is_not_for_who_was_woken_before() {
    let pause = |woken: u32| {
        let rig = rig();
        give_polling_up(&rig);
        for _ in 0..woken {
            let thread = Thread {
                woken_after: Cell::new(Some(0)),
                ..alone()
            };
            assert_eq!(rig.queue.wait(&thread, None), Next::GoOn);
        }
        waits_until_it_polls(&rig)
    };
    assert_eq!(pause(1000), pause(0));
}

#[test]
fn who_is_woken_by_a_poll_brings_polling_back() {
    let rig = rig();
    give_polling_up(&rig);
    let woken = |_: &u32| {
        let thread = Thread {
            woken_after: Cell::new(Some(5)),
            ..alone()
        };
        rig.queue.wait(&thread, None) == Next::GoOn
    };
    assert!((0..100).any(|n| woken(&n)), "it is tried again");
    assert_eq!(waits_until_it_polls(&rig), 0);
}

#[test]
fn a_wake_up_at_the_first_rest_speaks_for_polling_where_it_is_done() {
    let rig = rig();
    for _ in 0..200 {
        assert_eq!(waits_until_it_polls(&rig), 0, "it is never given up");
        rig.queue.wait(&woken_at_once(), None);
        rig.queue.wait(&woken_at_once(), None);
    }
}

#[test]
fn who_lets_others_run_goes_on_doing_so_while_it_pays() {
    let rig = rig();
    for _ in 0..200 {
        assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
        rig.queue.yielded(Turn::Paid, &polite());
    }
}

#[test]
fn who_has_given_way_in_vain_too_often_sleeps() {
    let rig = rig();
    let given = (0..200)
        .take_while(|_| rig.queue.wait(&polite(), None) == Next::Yield)
        .inspect(|_| {
            rig.queue.yielded(Turn::Vain, &polite());
        })
        .count();
    assert!((16..64).contains(&given), "{given}");
}

/// Gives way in vain until it does not give way any more.
fn give_giving_way_up(rig: &Rig) {
    let gives = |_: &u32| {
        let gives = rig.queue.wait(&polite(), None) == Next::Yield;
        rig.queue.yielded(Turn::Vain, &polite());
        gives
    };
    assert!((0..200).any(|n| !gives(&n)), "it learns");
}

#[test]
fn turns_in_vain_are_tried_ever_more_rarely() {
    let rig = rig();
    give_giving_way_up(&rig);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        pauses.push(waits_until_it_gives_way(&rig));
        give_giving_way_up(&rig);
    }
    assert!(pauses[0] >= 60, "{pauses:?}");
    assert!(
        pauses[..8].windows(2).all(|two| two[0] < two[1]),
        "{pauses:?}"
    );
    assert!(
        pauses.iter().all(|pause| *pause <= 1 << 13),
        "it is never given up for good: {pauses:?}"
    );
    for _ in 0..64 {
        rig.queue.yielded(Turn::Paid, &polite());
        assert_eq!(waits_until_it_gives_way(&rig), 0, "the device has changed");
    }
    give_giving_way_up(&rig);
    assert!(
        waits_until_it_gives_way(&rig) < 100,
        "and the pauses are short again"
    );
}

#[test]
fn a_trial_of_giving_way_is_for_many_threads_at_once() {
    let rig = rig();
    give_giving_way_up(&rig);
    waits_until_it_gives_way(&rig);
    for _ in 0..12 {
        // The first to come back came too soon: those behind them slept still.
        rig.queue.yielded(Turn::Vain, &polite());
        assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
    }
    for _ in 0..2 {
        rig.queue.yielded(Turn::Vain, &polite());
    }
    assert_eq!(
        rig.queue.wait(&polite(), None),
        Next::Sleep,
        "in vain, all told"
    );
}

#[test]
fn who_finds_his_own_completion_when_his_turn_comes_has_not_given_way_in_vain() {
    let rig = rig();
    let woken = || Thread {
        woken_after: Cell::new(Some(0)),
        ..polite()
    };
    for _ in 0..200 {
        assert_eq!(rig.queue.wait(&polite(), None), Next::Yield);
        rig.queue.yielded(Turn::Vain, &woken());
    }
}

#[test]
fn when_visits_are_tried_again_so_is_what_they_are_good_for() {
    let rig = Rig::new(4, 4);
    while rig.queue.notes_owner(COOP) {
        if rig.queue.wait(&polite(), None) == Next::Yield {
            give_giving_way_up(&rig);
        }
    }
    while !rig.queue.notes_owner(COOP) {}
    let thread = polite();
    assert_eq!(rig.queue.wait(&thread, None), Next::Yield);
    assert!(thread.rests.get() > 1, "it has polled before");
}
