// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of deferring a doorbell with the timer, and with who turns polling off:
//! `RUSTFLAGS="--cfg loom" cargo test -p engine --release`. `ci/loom-breaks` shows that it fails
//! when its key lines are broken.
#![cfg(loom)]

// Each test uses its part of it.
#[allow(dead_code)]
mod model;

use engine::{Context, Drained, Mode, Staged, Strategy, View};
use hal::mock::MockPlatform;
use loom::thread;
use model::{check, queue_under, state, ModelQueue};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;

/// Defers whatever it may, and polls until it is told not to.
#[derive(Default)]
struct Deferrer {
    gives_polling_up: AtomicBool,
}

impl Strategy for Deferrer {
    type Notes = ();
    type Predictor = ();

    fn predictor(&self) -> &() {
        &()
    }
    fn batches(&self, _: &impl View, _: Staged) -> u64 {
        u64::MAX
    }
    fn polls(&self, (): &mut (), _: &impl View, _: Option<Drained>) -> bool {
        !self.gives_polling_up.load(SeqCst)
    }
}

/// A hybrid queue that is polled, and of whose device it is known what it takes for a command.
fn polled() -> Arc<ModelQueue<Deferrer>> {
    let queue = queue_under(Deferrer::default(), 3, 3, 2);
    let mut quiesced = queue.quiesce(&MockPlatform::new());
    quiesced.set_mode(Mode::Poll).unwrap();
    quiesced.set_mode(Mode::Hybrid).unwrap();
    quiesced.unquiesce();
    queue.submit(1, true);
    // Tags are given out from the last.
    queue.hardware().post(2);
    queue.tick();
    assert_eq!(state(&queue), (1, 1, 0), "ended, told, waiting");
    queue
}

/// A tick finds the last commands complete and stops the timer, while another is deferred: a tick
/// is to come.
#[test]
fn deferred_beside_a_tick_that_stops() {
    check(3, || {
        let queue = polled();
        queue.submit(2, true);
        assert_eq!(state(&queue), (1, 1, 0), "ended, told, waiting");
        queue.submit(3, true);
        assert_eq!(state(&queue), (1, 3, 0), "ended, told, waiting");
        queue.hardware().post(1);
        queue.hardware().post(0);
        let armed = queue.upper().armed.load(SeqCst);
        let timer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.tick())
        };
        queue.submit(4, true);
        timer.join().unwrap();
        if state(&queue).1 < 4 {
            let comes = queue.upper().armed.load(SeqCst) > armed;
            assert!(comes, "no tick is to come");
        }
        queue.tick();
        assert_eq!(state(&queue), (3, 4, 0), "ended, told, waiting");
    });
}

/// The queue goes back to its interrupt while a command is deferred: nobody comes for it any more.
#[test]
fn deferred_beside_a_queue_that_goes_back() {
    check(3, || {
        let queue = polled();
        queue.strategy().gives_polling_up.store(true, SeqCst);
        let interrupt = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.drain(Context::Irq))
        };
        queue.submit(2, true);
        interrupt.join().unwrap();
        assert!(!queue.polling().is_on());
        assert_eq!(state(&queue), (1, 2, 0), "ended, told, waiting");
    });
}
