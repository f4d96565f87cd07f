// SPDX-License-Identifier: GPL-2.0
//! The cells on one thread, and with real threads; Miri watches both.
#![cfg(not(loom))]

use cell::sync::{AtomicUsize, Ordering};
use cell::{Handover, Putter, Slot, TryLock};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

/// Rounds of the threaded tests: Miri is slow.
const ROUNDS: usize = if cfg!(miri) { 50 } else { 20_000 };

#[test]
fn a_held_lock_is_refused_and_stays_held() {
    let lock = TryLock::new(1);
    let guard = lock.try_lock().expect("it is free");
    assert!(lock.try_lock().is_none());
    assert!(lock.try_lock().is_none(), "the refusal must not free it");
    assert!(!guard.release(), "try_lock leaves no knock");
    assert!(lock.try_lock().is_some());
}

#[test]
fn a_knock_is_heard_once() {
    let lock = TryLock::new(());
    let guard = lock.lock_or_knock().expect("it is free");
    assert!(lock.lock_or_knock().is_none());
    assert!(lock.lock_or_knock().is_none());
    assert!(guard.release());
    let guard = lock.lock_or_knock().expect("it was released");
    assert!(!guard.release(), "the knock belonged to the last holder");
}

#[test]
fn dropping_a_guard_frees_the_lock() {
    let lock = TryLock::new(5);
    drop(lock.try_lock());
    let mut guard = lock.try_lock().expect("it was dropped");
    *guard += 1;
    assert_eq!(*guard, 6);
}

#[test]
fn the_lock_drops_its_value() {
    let value = Rc::new(());
    drop(TryLock::new(Rc::clone(&value)));
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn a_handover_holds_one_value() {
    let (mut putter, mut taker) = Putter::pair();
    let place = Handover::new(&putter);
    assert_eq!((place.is_full(), place.take(&mut taker)), (false, None));
    assert_eq!(place.put(&mut putter, 1), Ok(()));
    assert_eq!((place.is_full(), place.put(&mut putter, 2)), (true, Err(2)));
    assert_eq!(place.take(&mut taker), Some(1));
    assert_eq!((place.is_full(), place.take(&mut taker)), (false, None));
}

#[test]
fn a_handover_is_between_its_own_two() {
    let (mut putter, mut taker) = Putter::pair();
    let (mut strange_putter, mut strange_taker) = Putter::pair();
    let place = Handover::new(&putter);
    assert_eq!(place.put(&mut strange_putter, 1), Err(1));
    assert_eq!(place.put(&mut putter, 2), Ok(()));
    assert_eq!(place.take(&mut strange_taker), None);
    assert_eq!(place.take(&mut taker), Some(2));
}

#[test]
fn all_that_is_put_arrives_in_order() {
    let (putter, taker) = Putter::pair();
    let place = Arc::new(Handover::new(&putter));
    let thread = {
        let (place, mut putter) = (Arc::clone(&place), putter);
        thread::spawn(move || {
            for value in 0..ROUNDS {
                while place.put(&mut putter, Box::new(value)).is_err() {
                    thread::yield_now();
                }
            }
        })
    };
    let mut taker = taker;
    for value in 0..ROUNDS {
        let taken = loop {
            match place.take(&mut taker) {
                Some(taken) => break taken,
                None => thread::yield_now(),
            }
        };
        assert_eq!(*taken, value);
    }
    thread.join().expect("it ends");
}

#[test]
fn a_slot_holds_one_value() {
    let slot = Slot::default();
    assert_eq!((slot.is_full(), slot.take()), (false, None));
    assert_eq!(slot.put(1), Ok(()));
    assert_eq!(slot.put(2), Err(2), "it is full");
    assert_eq!(
        (slot.is_full(), slot.take(), slot.take()),
        (true, Some(1), None)
    );
    assert_eq!(slot.put(3), Ok(()));
}

#[test]
fn a_slot_drops_what_is_in_it() {
    let value = Rc::new(());
    let slot = Slot::default();
    slot.put(Rc::clone(&value)).unwrap();
    drop(slot);
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn work_that_is_knocked_for_is_done() {
    let left = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(TryLock::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (left, done) = (Arc::clone(&left), Arc::clone(&done));
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    left.fetch_add(1, Ordering::Relaxed);
                    while let Some(mut seen) = done.lock_or_knock() {
                        *seen = left.load(Ordering::Relaxed);
                        if !seen.release() {
                            break;
                        }
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(*done.try_lock().expect("all have left"), 4 * ROUNDS);
}

#[test]
fn what_is_put_is_taken_once() {
    let slot = Arc::new(Slot::<Box<usize>>::default());
    let takers: Vec<_> = (0..2)
        .map(|_| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                let mut sum = 0;
                loop {
                    match slot.take().map(|value| *value) {
                        Some(0) => return sum,
                        Some(value) => sum += value,
                        None => thread::yield_now(),
                    }
                }
            })
        })
        .collect();
    let put = |value| {
        let mut value = Box::new(value);
        while let Err(back) = slot.put(value) {
            let fallen = takers.iter().all(|taker| taker.is_finished());
            assert!(!fallen, "nobody is left who takes it");
            value = back;
            thread::yield_now();
        }
    };
    (1..=ROUNDS).for_each(put);
    put(0);
    put(0);
    let sum: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    assert_eq!(sum, ROUNDS * (ROUNDS + 1) / 2);
}
