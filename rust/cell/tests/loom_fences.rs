// SPDX-License-Identifier: GPL-2.0
//! What is a full fence beside what else it does: `RUSTFLAGS="--cfg loom" cargo test -p cell
//! --release`.
#![cfg(loom)]

use cell::sync::{fence_after_exchange, AtomicU64, Ordering::*};
use cell::TryLock;
use loom::sync::Arc;
use loom::thread;

/// Two that say something, each in a word of its own, and look what the other has said: one of the
/// two sees it.
fn one_of_two_sees_the_other(say: fn(&AtomicU64)) {
    loom::model(move || {
        let said = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let threads = [0, 1].map(|me| {
            let said = Arc::clone(&said);
            thread::spawn(move || {
                say(&said[me]);
                said[1 - me].load(Relaxed)
            })
        });
        let seen = threads.map(|thread| thread.join().unwrap());
        assert_ne!(seen, [0, 0]);
    });
}

#[test]
fn who_has_released_is_seen_or_sees() {
    one_of_two_sees_the_other(|word| {
        let lock = TryLock::new(());
        let guard = lock.try_lock().expect("it is free");
        word.store(1, Relaxed);
        let _ = guard.release();
    });
}

#[test]
fn who_has_exchanged_is_seen_or_sees() {
    one_of_two_sees_the_other(|word| {
        let done = word.compare_exchange(0, 1, AcqRel, Relaxed);
        fence_after_exchange();
        assert!(done.is_ok());
    });
}
