// SPDX-License-Identifier: GPL-2.0
//! Buffers that many threads take and give.
#![cfg(not(loom))]
#![allow(missing_docs)]

use bytewise::Free;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn each_is_taken_once() {
    let free = Free::new();
    let taken: Vec<_> = std::iter::from_fn(|| free.take()).collect();
    assert_eq!(taken, (0..Free::COUNT).collect::<Vec<_>>());
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
    let free = Free::of(0);
    assert!(!free.give(64));
    assert!(!free.give(usize::MAX));
    assert_eq!(free.take(), None);
}

#[test]
fn two_threads_never_have_the_same() {
    let free = Free::of(0b111);
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
