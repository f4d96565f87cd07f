// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of what is held back, as the device takes a block at a time, with who drains
//! the block that is out: `RUSTFLAGS="--cfg loom" cargo test -p engine --release`. `ci/loom-breaks`
//! shows that it fails when its key lines are broken.
#![cfg(loom)]

// Each test uses its part of it.
#[allow(dead_code)]
mod model;

use engine::Context;
use loom::thread;
use model::{block_queue, check, interrupt, state};
use std::sync::Arc;

/// A command is held back while the block that is out comes to its end: one of the two tells of it.
#[test]
fn held_back_beside_an_interrupt() {
    check(3, || {
        let queue = block_queue(3, 3, 2);
        queue.submit(1, true);
        assert_eq!(state(&queue), (0, 1, 0), "ended, told, waiting");
        // Tags are given out from the last.
        let interrupt = interrupt(&queue, 2);
        queue.submit(2, true);
        interrupt.join().unwrap();
        assert_eq!(state(&queue), (1, 2, 0), "ended, told, waiting");
    });
}

/// The same, where a thread that passes by drains.
#[test]
fn held_back_beside_a_passer_by() {
    check(3, || {
        let queue = block_queue(3, 3, 2);
        queue.submit(1, true);
        queue.hardware().post(2);
        let passer_by = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.drain(Context::Coop))
        };
        queue.submit(2, true);
        passer_by.join().unwrap();
        assert_eq!(state(&queue), (1, 2, 0), "ended, told, waiting");
    });
}

/// More is staged than the device takes at once: the rest goes with the end of the first block.
#[test]
fn two_blocks_beside_an_interrupt() {
    check(2, || {
        let queue = block_queue(3, 3, 1);
        queue.submit(1, true);
        let interrupt = interrupt(&queue, 2);
        queue.submit_many([2, 3].into_iter());
        interrupt.join().unwrap();
        assert_eq!(state(&queue), (1, 2, 0), "ended, told, waiting");
        queue.hardware().post(1);
        queue.drain(Context::Irq);
        assert_eq!(state(&queue), (2, 3, 0), "ended, told, waiting");
    });
}
