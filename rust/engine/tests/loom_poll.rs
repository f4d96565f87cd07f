// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of the poll timer's stop with an issue: `RUSTFLAGS="--cfg loom" cargo test -p
//! engine --release`. `ci/loom-breaks` shows that it fails when its key lines are broken.
#![cfg(loom)]

// Each test uses its part of it.
#[allow(dead_code)]
mod model;

use loom::thread;
use model::{check, poll, queue, state};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

/// A tick finds the last command complete and stops the timer, while another is issued: the timer
/// is armed for that one.
#[test]
fn a_tick_stops_beside_an_issue() {
    check(3, || {
        let queue = queue(2, 2);
        poll(&queue);
        queue.submit(1, true);
        assert_eq!(queue.upper().armed.load(SeqCst), 1);
        queue.hardware().post(1);
        let timer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.tick())
        };
        queue.submit(2, true);
        timer.join().unwrap();
        assert_eq!(state(&queue), (1, 2, 0), "ended, told, waiting");
        assert!(
            queue.upper().armed.load(SeqCst) >= 2,
            "nobody polls for the second"
        );
    });
}
