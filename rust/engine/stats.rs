// SPDX-License-Identifier: GPL-2.0
//! Counters that one side writes and anybody reads.

use cell::sync::{AtomicU64, Ordering};

/// A counter with one writer at a time, the holder of its side's token: no atomic exchange is
/// needed.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn add(&self, n: usize) {
        if n != 0 {
            // CAST: usize is at most 64 bits wide.
            let sum = self.0.load(Ordering::Relaxed).wrapping_add(n as u64);
            self.0.store(sum, Ordering::Relaxed);
        }
    }

    /// Makes it equal to `other`, whose writer the caller is too.
    pub(crate) fn equal(&self, other: &Counter) {
        self.0.store(other.get(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
