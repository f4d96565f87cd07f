// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of a thread that naps, looks, and sleeps again, with who ends its I/O
//! meanwhile: `RUSTFLAGS="--cfg loom" cargo test -p engine --release`. `ci/loom-breaks` shows that
//! each of these fails when its key line is broken.
#![cfg(loom)]

// Each test uses its part of it.
#[allow(dead_code)]
mod model;

use engine::{Nap, Thread, Waiters, Waiting};
use hal::mock::MockPlatform;
use loom::thread;
use model::{check, interrupt, poll, queue, state, ModelQueue};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

/// A thread whose I/O is the only one.
struct Napper<'a>(&'a ModelQueue);

impl Waiting for Napper<'_> {
    fn is_awake(&self) -> bool {
        self.0.upper().ended.load(SeqCst) != 0
    }

    fn pause(&self) -> bool {
        !self.is_awake()
    }

    fn may_yield(&self) -> bool {
        false
    }
}

/// Its completion is offered while it wakes up from a nap and, as it finds nothing, goes to sleep:
/// it is ended, or offered and the sleeper woken.
#[test]
fn a_nap_and_a_sleep_beside_an_offer() {
    check(3, || {
        let waiters: Waiters<MockPlatform, u8, u8> = Waiters::new(&MockPlatform::new(), 0).unwrap();
        let owner = Thread::at(64).unwrap();
        // In turns, as the kernel's wake-ups and states are: swapped only.
        let woken = loom::sync::atomic::AtomicBool::new(false);
        let world = Arc::new((waiters, AtomicUsize::new(0), woken));
        let (waiters, ended, woken) = &*world;
        let slot = waiters.slot(owner).unwrap();
        assert!(slot.track(owner, null_mut()));
        slot.sleep(owner);
        let drainer = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let (waiters, ended, woken) = &*world;
                let slot = waiters.slot(owner).unwrap();
                let counted = match slot.is_asleep() {
                    true => waiters.offer(slot, 1),
                    false => Err(Some(1)),
                };
                match counted {
                    Ok(_) => {
                        woken.swap(true, SeqCst);
                    }
                    Err(Some(_)) => {
                        ended.fetch_add(1, SeqCst);
                    }
                    Err(None) => {}
                }
            })
        };
        let claim = || {
            if slot.wake(owner).is_some() {
                ended.fetch_add(1, SeqCst);
            }
        };
        claim();
        // It makes itself wakeable: what woke it before is forgotten.
        woken.swap(false, SeqCst);
        if ended.load(SeqCst) == 0 {
            slot.sleep(owner);
        }
        drainer.join().unwrap();
        let over = ended.load(SeqCst) != 0;
        assert!(over || woken.swap(false, SeqCst), "it sleeps for ever");
        claim();
        assert_eq!(ended.load(SeqCst), 1);
    });
}

/// The interrupt comes while the thread looks: whoever finds the other at it leaves it nothing that
/// is lost.
#[test]
fn a_look_after_a_nap_beside_an_interrupt() {
    check(3, || {
        let queue = queue(1, 1);
        queue.submit(1, true);
        let interrupt = interrupt(&queue, 0);
        let nap = queue.look_again(&Napper(&queue), 0, 1_000_000);
        assert_ne!(nap, Nap::Woken);
        interrupt.join().unwrap();
        assert_eq!(state(&queue), (1, 1, 0), "ended, told, waiting");
    });
}

/// A tick comes while the thread looks, on a polled queue: what neither has found is found by the
/// next tick.
#[test]
fn a_look_after_a_nap_beside_a_tick() {
    check(2, || {
        let queue = queue(1, 1);
        poll(&queue);
        queue.submit(1, true);
        assert_eq!(queue.upper().armed.swap(0, SeqCst), 1);
        let beside = [(|queue| queue.tick()) as fn(&ModelQueue), |queue| {
            queue.hardware().post(0)
        }]
        .map(|what| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || what(&queue))
        });
        queue.look_again(&Napper(&queue), 0, 1_000_000);
        beside.map(|one| one.join().unwrap());
        let armed = queue.upper().armed.load(SeqCst) != 0;
        assert!(state(&queue).0 == 1 || armed, "nobody polls for it");
    });
}
