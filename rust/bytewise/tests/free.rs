// SPDX-License-Identifier: GPL-2.0
//! Buffers that many threads take and give.
#![cfg(not(loom))]
#![allow(missing_docs)]

use bytewise::Free;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn each_is_taken_once() {
    for count in [0, 1, 63, 64, 65, 128, 200, Free::MOST, usize::MAX] {
        let free = Free::new(count);
        assert_eq!(free.count(), count.min(Free::MOST));
        let taken: Vec<_> = std::iter::from_fn(|| free.take()).collect();
        assert_eq!(taken, (0..free.count()).collect::<Vec<_>>());
        for buffer in taken.into_iter().rev() {
            assert!(!free.give(buffer), "nobody waits");
            assert_eq!(free.take(), Some(buffer));
        }
    }
}

#[test]
fn who_waits_gets_what_is_given() {
    let free = Free::new(Free::MOST);
    while free.take().is_some() {}
    assert!(!free.give(63), "nobody waits");
    assert_eq!(free.take(), Some(63));
    free.begin_wait();
    assert_eq!(free.take_again(), None);
    assert!(free.give(0));
    assert_eq!(free.take_again(), Some(0));
    free.end_wait();
    assert!(!free.give(0));
}

#[test]
fn what_was_never_a_buffer_is_none() {
    for count in [0, 63, 64, Free::MOST] {
        let free = Free::new(count);
        while free.take().is_some() {}
        assert!(!free.give(count));
        assert!(!free.give(usize::MAX));
        assert_eq!(free.take(), None);
    }
}

#[test]
fn two_threads_never_have_the_same() {
    let free = Free::new(3);
    let users: Vec<_> = (0..3).map(|_| AtomicU32::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let Some(buffer) = free.take() else {
                        std::thread::yield_now();
                        continue;
                    };
                    assert_eq!(users[buffer].fetch_add(1, Ordering::SeqCst), 0);
                    users[buffer].fetch_sub(1, Ordering::SeqCst);
                    assert!(!free.give(buffer));
                }
            });
        }
    });
    assert_eq!(std::iter::from_fn(|| free.take()).count(), 3);
}
