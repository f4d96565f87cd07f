// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of the knock protocol: `RUSTFLAGS="--cfg loom" cargo test -p cell --release`.
#![cfg(loom)]

use cell::sync::{AtomicUsize, Ordering};
use cell::TryLock;
use loom::sync::Arc;
use loom::thread;

/// Work that is left at a door: whoever leaves some makes sure that someone comes for it.
struct Door {
    left: AtomicUsize,
    done: TryLock<usize>,
}

impl Door {
    fn leave_and_see_to_it(&self) {
        // Relaxed: that the holder sees it is the knock's doing.
        self.left.fetch_add(1, Ordering::Relaxed);
        while let Some(mut done) = self.done.lock_or_knock() {
            // A plain load, that may be stale if nothing orders it.
            let left = self.left.load(Ordering::Relaxed);
            *done = left;
            if !done.release() {
                break;
            }
        }
    }
}

fn all_work_is_done(threads: usize, preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let door = Arc::new(Door {
            left: AtomicUsize::new(0),
            done: TryLock::new(0),
        });
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let door = Arc::clone(&door);
                thread::spawn(move || door.leave_and_see_to_it())
            })
            .collect();
        door.leave_and_see_to_it();
        for other in others {
            other.join().unwrap();
        }
        let done = door.done.try_lock().expect("everybody has left");
        assert_eq!(*done, threads, "work was left undone");
        assert!(!done.release(), "a knock that nobody heard");
    });
}

#[test]
fn knocked_work_is_done_two() {
    all_work_is_done(2, None);
}

#[test]
fn knocked_work_is_done_three() {
    // Three threads that retry have too many interleavings to try all; few races need more than two
    // preemptions.
    all_work_is_done(3, Some(2));
}

#[test]
fn a_knock_carries_what_was_written_before_it() {
    loom::model(|| {
        let shared = Arc::new((TryLock::new(()), AtomicUsize::new(0)));
        let guard = shared.0.try_lock().expect("it is free");
        let knocker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(1, Ordering::Relaxed);
                let _ = shared.0.lock_or_knock().map(|guard| guard.release());
            })
        };
        // Without taking the lock again.
        if guard.release() {
            assert_eq!(
                shared.1.load(Ordering::Relaxed),
                1,
                "the holder was told, and sees nothing"
            );
        }
        knocker.join().unwrap();
    });
}

#[test]
fn one_holder_at_a_time() {
    // The tracked cell inside the lock finds two holders by itself; the sum finds a lost update.
    loom::model(|| {
        let lock = Arc::new(TryLock::new(0));
        let bump = |lock: &TryLock<usize>| {
            let Some(mut value) = lock.try_lock() else {
                return 0;
            };
            *value += 1;
            let _ = value.release();
            1
        };
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || bump(&lock))
        };
        let had = bump(&lock) + other.join().unwrap();
        let value = lock.try_lock().expect("everybody has left");
        assert_eq!(*value, had);
        assert!(had >= 1, "a free lock was refused to both");
        drop(value);
    });
}

#[test]
fn a_parked_lock_is_taken_over_once_with_its_knocks() {
    loom::model(|| {
        let shared = Arc::new((TryLock::new(0), AtomicUsize::new(0)));
        let mut guard = shared.0.try_lock().expect("it is free");
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(1, Ordering::Relaxed);
                assert!(shared.0.lock_or_knock().is_none(), "it is held, or parked");
                let unparked = shared.0.unpark();
                unparked.map(|value| {
                    assert_eq!(*value, 1, "what the parked guard wrote");
                    value.park();
                });
            })
        };
        *guard = 1;
        guard.park();
        let mut had = shared.0.unpark();
        other.join().unwrap();
        // It was the other's for a moment.
        had = had.or_else(|| shared.0.unpark());
        assert!(shared.0.unpark().is_none(), "two have it");
        assert!(had.expect("it is parked").release(), "the knock is lost");
        assert_eq!(shared.1.load(Ordering::Relaxed), 1);
    });
}
