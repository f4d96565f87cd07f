// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of the strategy's hand-overs: `RUSTFLAGS="--cfg loom" cargo test -p engine
//! --release`. `ci/loom-breaks` shows that each of these fails when its key line is broken.
#![cfg(loom)]

// Each test uses its part of it.
#[allow(dead_code)]
mod model;

use engine::Context;
use loom::thread;
use model::{check, interrupt, queue, state};
use std::sync::Arc;

/// The one tag is taken. While one thread submits a second request, the first completes: the second
/// must not be left in the FIFO with the tag free.
#[test]
fn fifo_and_tags() {
    check(3, || {
        let queue = queue(1, 2);
        queue.submit(1, true);
        queue.hardware().post(0);
        let interrupt = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.drain(Context::Irq))
        };
        queue.submit(2, true);
        interrupt.join().unwrap();
        assert_eq!(state(&queue), (1, 2, 0), "ended, told, waiting");
    });
}

/// Two submitters at once: who finds the token held leaves its request to the holder.
#[test]
fn two_submitters() {
    check(3, || {
        let queue = queue(2, 2);
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.submit(1, true))
        };
        queue.submit(2, true);
        other.join().unwrap();
        assert_eq!(state(&queue), (0, 2, 0), "ended, told, waiting");
    });
}

/// A commit does not wait for somebody else's: what was staged is told to the device, whoever holds
/// the token then.
#[test]
fn commit_beside_a_submitter() {
    check(3, || {
        let queue = queue(2, 2);
        let other = {
            let queue = Arc::clone(&queue);
            // Its commit comes much later.
            thread::spawn(move || queue.submit(1, false))
        };
        queue.submit(2, false);
        queue.commit();
        other.join().unwrap();
        let (_, told, _) = state(&queue);
        assert!(told >= 1, "committed, and not told");
        queue.commit();
        assert_eq!(state(&queue), (0, 2, 0), "ended, told, waiting");
    });
}

/// Two completions, an interrupt for each, on two CPUs: the event that arrives as the first drainer
/// leaves is not lost.
#[test]
fn drain_token() {
    check(3, || {
        let queue = queue(2, 2);
        queue.submit(1, true);
        queue.submit(2, true);
        let other = interrupt(&queue, 0);
        queue.hardware().post(1);
        let mine = queue.drain(Context::Irq);
        assert_eq!(mine + other.join().unwrap(), 2);
        assert_eq!(state(&queue), (2, 2, 0), "ended, told, waiting");
    });
}

/// A thread that only looks whether there is something must not swallow the knock of an interrupt.
#[test]
fn check_beside_an_interrupt() {
    check(3, || {
        let queue = queue(1, 1);
        queue.submit(1, true);
        let interrupt = interrupt(&queue, 0);
        queue.check();
        interrupt.join().unwrap();
        assert_eq!(state(&queue), (1, 1, 0), "ended, told, waiting");
    });
}
