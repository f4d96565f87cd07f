// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of what begins with a look at what has: `RUSTFLAGS="--cfg loom" cargo test -p
//! bytewise --release`.
#![cfg(loom)]

use bytewise::Armed;
use cell::sync::{AtomicU32, Ordering::Relaxed};
use loom::sync::Arc;
use loom::thread;

#[derive(Default)]
struct Watch {
    armed: Armed,
    began: [AtomicU32; 2],
    /// Timers that were set.
    due: AtomicU32,
}

impl Watch {
    fn begin(&self, which: usize) {
        self.began[which].store(1, Relaxed);
        if self.armed.arm() {
            self.due.fetch_add(1, Relaxed);
        }
    }

    /// How many it finds.
    fn look(&self) -> usize {
        self.armed.disarm();
        self.began
            .iter()
            .filter(|one| one.load(Relaxed) == 1)
            .count()
    }
}

#[test]
fn what_begins_is_looked_at() {
    loom::model(|| {
        let watch = Arc::new(Watch::default());
        // A timer that has expired.
        watch.begin(0);
        let looks = {
            let watch = Arc::clone(&watch);
            thread::spawn(move || watch.look())
        };
        watch.begin(1);
        let found = looks.join().unwrap();
        let due = watch.due.load(Relaxed) == 2;
        assert!(found == 2 || due, "the second is never looked at");
    });
}

#[test]
fn one_timer_is_set_for_all() {
    loom::model(|| {
        let watch = Arc::new(Watch::default());
        let other = {
            let watch = Arc::clone(&watch);
            thread::spawn(move || watch.begin(0))
        };
        watch.begin(1);
        other.join().unwrap();
        assert_eq!(watch.due.load(Relaxed), 1);
    });
}
