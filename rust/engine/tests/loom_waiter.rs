// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of the hand-over to a sleeping owner, and of taking an offer over:
//! `RUSTFLAGS="--cfg loom" cargo test -p engine --release`. `ci/loom-breaks` shows that each fails
//! when its key line is broken.
#![cfg(loom)]

// Each test uses its part of it.
#[allow(dead_code)]
mod model;

use engine::{Thread, Waiters};
use hal::mock::MockPlatform;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use model::check;
use std::ptr::null_mut;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

fn owner() -> Thread {
    Thread::at(64).unwrap()
}

struct World {
    waiters: Waiters<MockPlatform, u8, u8>,
    ended: AtomicUsize,
    woken: AtomicUsize,
    /// A drainer found an offer watched by the sweep, which is at work.
    sweeping: AtomicBool,
}

impl World {
    fn new() -> Arc<Self> {
        let world = Self {
            waiters: Waiters::new(&MockPlatform::new(), 0).unwrap(),
            ended: AtomicUsize::new(0),
            woken: AtomicUsize::new(0),
            sweeping: AtomicBool::new(false),
        };
        let slot = world.waiters.slot(owner()).unwrap();
        assert!(slot.track(owner(), null_mut()));
        Arc::new(world)
    }

    fn end(&self) {
        self.ended.fetch_add(1, SeqCst);
    }

    /// What a drainer does with a completion of the owner's.
    fn complete(&self) {
        let slot = self.waiters.slot(owner()).unwrap();
        if !slot.is_asleep() {
            return self.end();
        }
        match self.waiters.offer(slot, 1) {
            Ok(woken) => {
                assert_eq!(woken, owner());
                self.woken.fetch_add(1, SeqCst);
            }
            Err(Some(_)) => self.end(),
            Err(None) => {}
        }
    }

    /// What the hook does after the sleep.
    fn wake(&self) {
        if self.waiters.slot(owner()).unwrap().wake(owner()).is_some() {
            self.end();
        }
    }
}

/// The owner wakes, for a reason of its own, while its completion is offered: one of the two ends
/// it.
#[test]
fn an_offer_beside_a_waking_owner() {
    check(3, || {
        let world = World::new();
        world.waiters.slot(owner()).unwrap().sleep(owner());
        let drainer = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.complete())
        };
        world.wake();
        drainer.join().unwrap();
        assert_eq!(world.ended.load(SeqCst), 1);
    });
}

/// The owner falls asleep while its completion arrives: it is ended by the drainer, or offered and
/// the owner woken.
#[test]
fn an_offer_beside_an_owner_falling_asleep() {
    check(3, || {
        let world = World::new();
        let drainer = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.complete())
        };
        world.waiters.slot(owner()).unwrap().sleep(owner());
        drainer.join().unwrap();
        let (ended, woken) = (world.ended.load(SeqCst), world.woken.load(SeqCst));
        assert_eq!(ended + woken, 1, "neither ended nor woken, or both");
        world.wake();
        assert_eq!(world.ended.load(SeqCst), 1);
    });
}

/// An old offer is claimed by its owner and by a sweep: one of the two gets it.
#[test]
fn an_offer_is_claimed_once() {
    check(3, || {
        let world = World::new();
        world.waiters.slot(owner()).unwrap().sleep(owner());
        world.complete();
        let sweeper = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.waiters.sweep(true, |_| world.end()))
        };
        world.wake();
        sweeper.join().unwrap();
        assert_eq!(world.ended.load(SeqCst), 1);
    });
}

/// A reset sweeps beside the sweeper: one of the two is told that the other is at it, and sweeps
/// again; what was offered before is taken once.
#[test]
fn of_two_sweeps_one_is_told_of_the_other() {
    check(2, || {
        let world = World::new();
        world.waiters.slot(owner()).unwrap().sleep(owner());
        world.complete();
        let sweeper = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.waiters.sweep(true, |_| world.end()))
        };
        let reset = world.waiters.sweep(true, |_| world.end());
        if reset == Some(false) {
            assert_eq!(world.ended.load(SeqCst), 1, "it missed what was there");
        }
        let beside = sweeper.join().unwrap();
        assert!(
            reset.is_some() || beside.is_some(),
            "both have left it to the other"
        );
        assert_eq!(world.ended.load(SeqCst), 1);
    });
}

/// The sweep finds nothing and goes to rest while an offer is made: the offer is watched.
#[test]
fn the_sweep_rests_beside_an_offer() {
    check(3, || {
        let world = World::new();
        let slot = world.waiters.slot(owner()).unwrap();
        slot.sleep(owner());
        // An offer was made and claimed: its mark is there still.
        world.complete();
        world.wake();
        slot.sleep(owner());
        world.sweeping.store(true, Ordering::Relaxed);
        let sweeper = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let left = world.waiters.sweep(false, |_| world.end()).unwrap();
                if !left {
                    world.sweeping.store(false, Ordering::Relaxed);
                    loom::sync::atomic::fence(Ordering::SeqCst);
                }
                left || world.waiters.is_marked()
            })
        };
        world.complete();
        let watched = !world.sweeping.load(Ordering::Relaxed);
        let again = sweeper.join().unwrap();
        let ended = world.ended.load(SeqCst);
        assert!(
            ended == 2 || watched || again,
            "an offer that nobody looks after"
        );
    });
}

/// A thread whose I/O has just ended goes to sleep while another takes its slot: the sleeper is
/// never taken for the new owner, and a slot that is slept in not given away.
#[test]
fn a_sleeper_beside_a_new_owner() {
    check(3, || {
        let world = World::new();
        let other = Thread::at(128).unwrap();
        world.waiters.slot(owner()).unwrap().ended();
        let taker = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let slot = world.waiters.slot(other).unwrap();
                let taken = slot.track(other, null_mut());
                if taken {
                    assert_eq!(slot.sleeper(), None, "it is awake");
                }
                taken
            })
        };
        let slot = world.waiters.slot(owner()).unwrap();
        slot.sleep(owner());
        let slept = slot.sleeper();
        assert_ne!(slept, Some(other));
        let taken = taker.join().unwrap();
        assert_eq!(taken, slept.is_none(), "the slot is one's or the other's");
        assert_eq!(slot.sleeper(), slept);
        assert!(slot.wake(owner()).is_none());
        assert_eq!(slot.sleeper(), None);
    });
}
