// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of a writer that is no thread with threads that want its region:
//! `RUSTFLAGS="--cfg loom" cargo test -p bytewise --release`.
#![cfg(loom)]

use bytewise::{Busy, Region};
use cell::sync::{AtomicU32, Ordering::Relaxed};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

const REGION: Region = Region::Even(0);

/// As kglue has it: the region's lock, and one for those that wait, and who wakes them.
#[derive(Default)]
struct Disk {
    busy: Busy,
    region: Mutex<()>,
    lock: Mutex<()>,
    over: Condvar,
    /// What is in the region; nothing but the locks orders it.
    block: AtomicU32,
}

impl Disk {
    fn add(&self) {
        let old = self.block.load(Relaxed);
        self.block.store(old + 1, Relaxed);
    }

    /// A thread writes.
    fn write(&self) {
        let _region = self.region.lock().unwrap();
        if self.busy.is_busy(REGION) {
            let mut lock = self.lock.lock().unwrap();
            self.busy.begin_wait();
            while self.busy.is_busy_still(REGION) {
                lock = self.over.wait(lock).unwrap();
            }
            self.busy.end_wait();
        }
        self.add();
    }

    /// One begins to, and goes on; whether it could.
    fn begin(&self) -> bool {
        let Ok(_region) = self.region.try_lock() else {
            return false;
        };
        let free = !self.busy.is_busy(REGION);
        if free {
            self.busy.begin(REGION);
        }
        free
    }

    /// What was begun is over.
    fn end(&self) {
        self.add();
        if self.busy.end(REGION) {
            let _lock = self.lock.lock().unwrap();
            self.over.notify_all();
        }
    }
}

#[test]
fn a_thread_waits_until_it_is_over() {
    loom::model(|| {
        let disk = Arc::new(Disk::default());
        assert!(disk.begin());
        let other = {
            let disk = Arc::clone(&disk);
            // Loom fails a model in which a thread waits for ever.
            thread::spawn(move || disk.write())
        };
        disk.end();
        other.join().unwrap();
        assert_eq!(disk.block.load(Relaxed), 2, "two had it at once");
    });
}

#[test]
fn what_begins_beside_a_thread_has_it_alone() {
    loom::model(|| {
        let disk = Arc::new(Disk::default());
        let other = {
            let disk = Arc::clone(&disk);
            thread::spawn(move || disk.write())
        };
        let began = disk.begin();
        if began {
            disk.end();
        }
        other.join().unwrap();
        let expected = 1 + u32::from(began);
        assert_eq!(disk.block.load(Relaxed), expected, "two had it at once");
    });
}
