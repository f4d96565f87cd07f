// SPDX-License-Identifier: GPL-2.0
//! Which regions have a writer that is no thread, and so can't hold a lock: it begins under the
//! region's lock, which is given up then, and ends in any context. Who has the lock later waits
//! until it has ended, with the lock held.
//!
//! # A thread that finds one busy
//! It says that it waits, passes a fence, and looks again; who ends clears the region's bit, passes
//! a fence, and looks whether anybody waits. One of the two sees the other (`tests/loom_busy.rs`).
//! Both exchanges are `SeqCst`, which is that fence.

use crate::regions::{Region, Regions};
use cell::sync::{AtomicU32, AtomicU64, Ordering};
use core::array::from_fn;

const WORDS: usize = 2 * Regions::LOCKS / 64;

/// The busy regions, by a bit for each lock.
pub struct Busy {
    words: [AtomicU64; WORDS],
    /// Threads that wait for one.
    waiting: AtomicU32,
}

impl Default for Busy {
    fn default() -> Self {
        Self::new()
    }
}

impl Busy {
    /// None is.
    pub fn new() -> Self {
        Self {
            words: from_fn(|_| AtomicU64::new(0)),
            waiting: AtomicU32::new(0),
        }
    }

    /// The word of `region`, and its bit there.
    fn bit(&self, region: Region) -> (&AtomicU64, u64) {
        let (kind, at) = match region {
            Region::Even(at) => (0, at),
            Region::Odd(at) => (1, at),
        };
        let [word, ..] = &self.words;
        let at = at.wrapping_mul(2).wrapping_add(kind);
        let word = self.words.get(at / 64).unwrap_or(word);
        (word, 1 << (at % 64))
    }

    /// `region`, whose lock the caller has and which is not busy, is from now on. Any context.
    pub fn begin(&self, region: Region) {
        let (word, bit) = self.bit(region);
        // Relaxed: the lock's release orders it.
        word.fetch_or(bit, Ordering::Relaxed);
    }

    /// Whether `region`, whose lock the caller has, is busy. Any context.
    #[inline]
    pub fn is_busy(&self, region: Region) -> bool {
        let (word, bit) = self.bit(region);
        word.load(Ordering::Acquire) & bit != 0
    }

    /// `region` is not busy any more. Whether a thread waits, which the caller wakes then. Any
    /// context.
    #[must_use = "who waits for a region is to be woken"]
    pub fn end(&self, region: Region) -> bool {
        let (word, bit) = self.bit(region);
        word.fetch_and(!bit, Ordering::SeqCst);
        self.waiting.load(Ordering::SeqCst) != 0
    }

    /// The caller, which has found a region busy, waits from now on: it looks again, and each time
    /// that it is woken, until it is not; then it calls [`Busy::end_wait`].
    pub fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// As [`Busy::is_busy`], for a thread that waits.
    pub fn is_busy_still(&self, region: Region) -> bool {
        // A full exchange first: a plain load could be done before the caller has said that it
        // waits.
        self.bit(region).0.fetch_or(0, Ordering::SeqCst);
        self.is_busy(region)
    }

    /// The caller waits no more.
    pub fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
