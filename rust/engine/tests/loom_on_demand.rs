// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of work that is left with a worker that goes: `RUSTFLAGS="--cfg loom" cargo
//! test -p engine --release`.
#![cfg(loom)]

use cell::sync::{fence, AtomicUsize, Ordering::*};
use engine::OnDemand;
use loom::sync::Arc;
use loom::thread;

#[derive(Default)]
struct Shop {
    worker: OnDemand,
    left: AtomicUsize,
    /// How often the worker was turned on, or stayed on.
    turned_on: AtomicUsize,
}

impl Shop {
    fn leave_work(&self) {
        self.left.fetch_add(1, Relaxed);
        fence(SeqCst);
        if self.worker.start() {
            self.turned_on.fetch_add(1, Relaxed);
        }
    }

    fn has_work(&self) -> bool {
        // A plain load, that may be stale if nothing orders it.
        self.left.load(Relaxed) != 0
    }
}

#[test]
fn no_work_is_left_without_a_worker() {
    loom::model(|| {
        let shop = Arc::new(Shop::default());
        assert!(shop.worker.start());
        let other = {
            let shop = Arc::clone(&shop);
            thread::spawn(move || shop.leave_work())
        };
        let stays = shop.has_work() || shop.worker.stop(|| shop.has_work());
        other.join().unwrap();
        let turned_on = shop.turned_on.load(Relaxed);
        assert!(shop.worker.is_on(), "nobody comes for it");
        assert_eq!(
            usize::from(stays) + turned_on,
            1,
            "one of the two sees to it"
        );
    });
}

#[test]
fn of_two_that_leave_work_one_turns_the_worker_on() {
    loom::model(|| {
        let shop = Arc::new(Shop::default());
        let other = {
            let shop = Arc::clone(&shop);
            thread::spawn(move || shop.leave_work())
        };
        shop.leave_work();
        other.join().unwrap();
        assert_eq!(shop.turned_on.load(Relaxed), 1);
    });
}
