// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of a slot's takers: `RUSTFLAGS="--cfg loom" cargo test -p cell --release`.
#![cfg(loom)]

use cell::Slot;
use loom::sync::Arc;
use loom::thread;

#[test]
fn of_two_takers_one_gets_it() {
    loom::model(|| {
        let slot = Arc::new(Slot::default());
        slot.put(7).unwrap();
        let other = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.take())
        };
        let got = [slot.take(), other.join().unwrap()];
        assert_eq!(got.iter().flatten().sum::<i32>(), 7, "taken once: {got:?}");
        assert!(!slot.is_full());
    });
}

#[test]
fn put_and_two_takers() {
    loom::model(|| {
        let slot = Arc::new(Slot::default());
        let take = || {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.take())
        };
        let takers = [take(), take()];
        // The value itself is tracked: that a taker sees it whole is what `state` is for.
        slot.put(7).unwrap();
        let taken: i32 = takers
            .into_iter()
            .filter_map(|taker| taker.join().unwrap())
            .sum();
        assert_eq!(taken + slot.take().unwrap_or(0), 7, "taken exactly once");
    });
}

#[test]
fn a_slot_emptied_can_be_filled_again() {
    loom::model(|| {
        let slot = Arc::new(Slot::default());
        slot.put(1).unwrap();
        let other = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.take())
        };
        let second = slot.put(2);
        assert_eq!(
            other
                .join()
                .unwrap()
                .is_some_and(|got| got == 1 || got == 2),
            true
        );
        match second {
            Ok(()) => assert_eq!(slot.take(), Some(2)),
            Err(back) => assert_eq!((back, slot.take()), (2, None)),
        }
    });
}
