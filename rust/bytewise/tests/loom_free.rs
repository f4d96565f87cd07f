// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of threads that want a buffer with one that gives it: `RUSTFLAGS="--cfg loom"
//! cargo test -p bytewise --release`.
#![cfg(loom)]

use bytewise::Free;
use cell::sync::{AtomicU32, Ordering::Relaxed};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// As kglue has it: the lock is for those that wait, and who wakes them.
struct Lane {
    free: Free,
    lock: Mutex<()>,
    given: Condvar,
    /// What is in the one buffer: written by its owner, with nothing that orders it but the
    /// hand-over itself.
    buffer: AtomicU32,
}

impl Lane {
    fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            free: Free::new(count),
            lock: Mutex::new(()),
            given: Condvar::new(),
            buffer: AtomicU32::new(0),
        })
    }

    fn take(&self) -> usize {
        if let Some(buffer) = self.free.take() {
            return buffer;
        }
        let mut lock = self.lock.lock().unwrap();
        self.free.begin_wait();
        let buffer = loop {
            match self.free.take_again() {
                Some(buffer) => break buffer,
                None => lock = self.given.wait(lock).unwrap(),
            }
        };
        self.free.end_wait();
        buffer
    }

    fn give(&self, buffer: usize) {
        if self.free.give(buffer) {
            let _lock = self.lock.lock().unwrap();
            self.given.notify_one();
        }
    }

    /// Uses the buffer; what is in it is what was left there.
    fn count(&self) {
        let buffer = self.take();
        let was = self.buffer.load(Relaxed);
        self.buffer.store(was + 1, Relaxed);
        self.give(buffer);
    }
}

#[test]
fn one_of_the_two_sees_the_other() {
    loom::model(|| {
        let lane = Lane::new(1);
        let buffer = lane.take();
        let other = {
            let lane = Arc::clone(&lane);
            thread::spawn(move || {
                lane.free.begin_wait();
                lane.free.take_again().is_some()
            })
        };
        let wakes = lane.free.give(buffer);
        let found = other.join().unwrap();
        assert!(found || wakes, "it waits, and nobody wakes it");
    });
}

#[test]
fn who_waits_gets_what_is_given() {
    loom::model(|| {
        let lane = Lane::new(1);
        let buffer = lane.take();
        let other = {
            let lane = Arc::clone(&lane);
            // Loom fails a model in which a thread waits for ever.
            thread::spawn(move || lane.count())
        };
        lane.give(buffer);
        other.join().unwrap();
        assert_eq!(lane.take(), 0);
    });
}

#[test]
fn one_owner_at_a_time_and_all_get_their_turn() {
    loom::model(|| {
        let lane = Lane::new(1);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let lane = Arc::clone(&lane);
                thread::spawn(move || lane.count())
            })
            .collect();
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(lane.take(), 0);
        assert_eq!(lane.buffer.load(Relaxed), 2, "two had it at once");
    });
}
