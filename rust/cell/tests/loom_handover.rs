// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of what goes from a putter to its taker: `RUSTFLAGS="--cfg loom" cargo test
//! -p cell --release`.
#![cfg(loom)]

use cell::{Handover, Putter, TryLock};
use loom::sync::Arc;
use loom::thread;

#[test]
fn what_is_put_is_taken_once_and_whole() {
    loom::model(|| {
        let (mut putter, mut taker) = Putter::pair();
        let place = Arc::new(Handover::new(&putter));
        let other = {
            let place = Arc::clone(&place);
            thread::spawn(move || {
                let early = place.take(&mut taker);
                (early, taker)
            })
        };
        // The value itself is tracked: that the taker sees it whole is what `full` is for.
        let first = place.put(&mut putter, 1);
        let second = place.put(&mut putter, 2);
        let (early, mut taker) = other.join().unwrap();
        let late = place.take(&mut taker);
        assert_eq!(first, Ok(()));
        match second {
            Ok(()) => assert_eq!((early, late), (Some(1), Some(2))),
            Err(back) => assert_eq!((back, early.or(late)), (2, Some(1))),
        }
        assert!(!place.is_full());
    });
}

#[test]
fn the_ends_go_from_thread_to_thread() {
    loom::model(|| {
        let (putter, taker) = Putter::pair();
        let place = Handover::new(&putter);
        let all = Arc::new((place, TryLock::new(putter), TryLock::new(taker)));
        let threads = [1, 2].map(|value| {
            let all = Arc::clone(&all);
            thread::spawn(move || {
                let (place, putter, taker) = &*all;
                let put =
                    putter
                        .try_lock()
                        .map_or(0, |mut putter| match place.put(&mut putter, value) {
                            Ok(()) => value,
                            Err(_) => 0,
                        });
                let taken = taker
                    .try_lock()
                    .and_then(|mut taker| place.take(&mut taker));
                (put, taken.unwrap_or(0))
            })
        });
        let (mut put, mut taken) = (0, 0);
        for thread in threads {
            let (p, t) = thread.join().unwrap();
            put += p;
            taken += t;
        }
        let mut taker = all.2.try_lock().expect("nobody is left");
        assert_eq!(put, taken + all.0.take(&mut taker).unwrap_or(0));
    });
}
