// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of writers whose ranges overlap: `RUSTFLAGS="--cfg loom" cargo test -p
//! bytewise --release`.
#![cfg(loom)]

use bytewise::{Region, Regions, SPAN};
use cell::sync::{AtomicU32, Ordering::Relaxed};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;

/// Two regions of each kind, as kglue has them, and a block in each.
#[derive(Default)]
struct Disk {
    even: [Mutex<()>; 2],
    odd: [Mutex<()>; 2],
    /// What is there, in order of the regions; nothing but the locks orders it.
    blocks: [AtomicU32; 4],
}

impl Disk {
    fn lock(&self, region: Region) -> Option<MutexGuard<'_, ()>> {
        match region {
            Region::Even(at) => self.even[at].lock().ok(),
            Region::Odd(at) => self.odd[at].lock().ok(),
        }
    }

    /// Merges one more into the last block of the region `first`, and the first of what follows.
    fn write(&self, first: usize, regions: usize) {
        let (offset, len) = match regions {
            1 => (first * SPAN, 1),
            _ => ((first + 1) * SPAN - 1, 2),
        };
        let _held = Regions::of(offset as u64, len)
            .lock(|region| self.lock(region))
            .unwrap();
        for block in &self.blocks[first..first + regions] {
            let old = block.load(Relaxed);
            block.store(old + 1, Relaxed);
        }
    }
}

fn together(writers: &'static [(usize, usize)], expected: [u32; 4]) {
    loom::model(move || {
        let disk = Arc::new(Disk::default());
        let threads: Vec<_> = writers
            .iter()
            .map(|&(first, regions)| {
                let disk = disk.clone();
                thread::spawn(move || disk.write(first, regions))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(
            disk.blocks.each_ref().map(|block| block.load(Relaxed)),
            expected
        );
    });
}

#[test]
fn no_byte_of_two_writers_is_lost() {
    together(&[(0, 2), (0, 2)], [2, 2, 0, 0]);
    together(&[(0, 2), (1, 1)], [1, 2, 0, 0]);
}

#[test]
fn writers_that_overlap_by_turns_all_end() {
    // One has the odd region below, the other that above its even one.
    together(&[(0, 2), (1, 2)], [1, 2, 1, 0]);
    together(&[(0, 2), (1, 2), (2, 2)], [1, 2, 2, 1]);
}
