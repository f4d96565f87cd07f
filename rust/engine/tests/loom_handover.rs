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
fn fifo_and_tags_drained(by: Context) {
    check(3, move || {
        let queue = queue(1, 2);
        queue.submit(1, true);
        queue.hardware().post(0);
        let interrupt = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.drain(by))
        };
        queue.submit(2, true);
        interrupt.join().unwrap();
        assert_eq!(state(&queue), (1, 2, 0), "ended, told, waiting");
    });
}

#[test]
fn fifo_and_tags() {
    fifo_and_tags_drained(Context::Irq);
}

#[test]
fn fifo_and_tags_by_a_thread() {
    fifo_and_tags_drained(Context::Sweep);
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

/// Two completions, each with a drainer, one of them the interrupt, on two CPUs: the event that
/// arrives as the first leaves is not lost.
fn drain_token_beside(by: Context) {
    check(3, move || {
        let queue = queue(2, 2);
        queue.submit(1, true);
        queue.submit(2, true);
        let other = interrupt(&queue, 0);
        queue.hardware().post(1);
        let mine = queue.drain(by);
        assert_eq!(mine + other.join().unwrap(), 2);
        assert_eq!(state(&queue), (2, 2, 0), "ended, told, waiting");
    });
}

#[test]
fn drain_token() {
    drain_token_beside(Context::Irq);
}

#[test]
fn drain_token_by_a_thread() {
    drain_token_beside(Context::Sweep);
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
