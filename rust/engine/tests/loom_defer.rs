// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of holding commands back with a drain: `RUSTFLAGS="--cfg loom" cargo test -p engine --release`. `ci/loom-breaks` shows that
//! it fails when its key lines are broken.
#![cfg(loom)]

// Each test uses its part of it.
#[allow(dead_code)]
mod model;

use engine::{Context, Mode, Waiting};
use hal::mock::MockPlatform;
use loom::thread;
use model::{check, gathering_queue, state};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

/// The device has two commands, which is enough for the third to wait for a fourth. While it comes, both complete: it must not
/// be left with nobody to tell the device.
#[test]
fn held_beside_the_last_completion() {
    check(3, || {
        let queue = gathering_queue(3, 3, 2);
        queue.submit(1, true);
        queue.submit(2, true);
        // Tags are given out from the last.
        queue.hardware().post(2);
        queue.hardware().post(1);
        let interrupt = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.drain(Context::Irq))
        };
        queue.submit(3, true);
        interrupt.join().unwrap();
        assert_eq!(state(&queue), (2, 3, 0), "ended, told, waiting");
    });
}

/// A thread that polls in vain.
struct Patient;

impl Waiting for Patient {
    fn is_awake(&self) -> bool {
        false
    }

    fn pause(&self) -> bool {
        true
    }

    fn may_yield(&self) -> bool {
        false
    }
}

/// A queue that is polled by the timer alone. A tick finds the last commands complete and stops the timer, while another is held back: by then the device was told of it, or
/// a tick is to come.
#[test]
fn held_beside_a_tick_that_stops() {
    check(3, || {
        let queue = gathering_queue(3, 3, 2);
        queue.upper().crowded.store(true, SeqCst);
        queue.wait(&Patient, None);
        let mut paused = queue.pause(&MockPlatform::new());
        paused.set_mode(Mode::Poll).unwrap();
        paused.resume();
        queue.submit(1, true);
        assert_eq!(state(&queue), (0, 0, 0), "ended, told, waiting");
        queue.submit(2, true);
        assert_eq!(state(&queue), (0, 2, 0), "ended, told, waiting");
        let armed = queue.upper().armed.load(SeqCst);
        // Tags are given out from the last.
        queue.hardware().post(2);
        queue.hardware().post(1);
        let timer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.tick())
        };
        queue.submit(3, true);
        timer.join().unwrap();
        assert!(
            queue.upper().armed.load(SeqCst) > armed,
            "no tick is to come"
        );
        queue.tick();
        assert_eq!(state(&queue), (2, 3, 0), "ended, told, waiting");
    });
}
