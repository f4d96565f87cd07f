// SPDX-License-Identifier: GPL-2.0
//! Which of some buffers are free. Any number of threads take and give at once.
//!
//! # A thread that finds none
//! It says that it waits, passes a fence, and looks again; who gives one sets the buffer's bit,
//! passes a fence, and looks whether anybody waits. One of the two sees the other
//! (`tests/loom_free.rs`). Both exchanges are `SeqCst`, which is that fence.

use cell::sync::{AtomicU32, AtomicU64, Ordering};

/// Of how many buffers one word tells.
const BITS: usize = 64;
/// Words; in models one shows what there is to be shown.
const WORDS: usize = if cfg!(loom) { 1 } else { 4 };

/// The free ones of some buffers, by a bit each.
pub struct Free {
    words: [AtomicU64; WORDS],
    /// How many there are.
    count: usize,
    /// Threads that wait for one.
    waiting: AtomicU32,
}

impl Free {
    /// How many buffers there may be.
    pub const MOST: usize = WORDS * BITS;

    /// `count` buffers, [`Free::MOST`] at most, all of them free.
    pub fn new(count: usize) -> Self {
        let count = count.min(Self::MOST);
        let word = |at: usize| match count.saturating_sub(at.saturating_mul(BITS)) {
            // CAST: below 64.
            some if some < BITS => 1u64.wrapping_shl(some as u32).wrapping_sub(1),
            _ => u64::MAX,
        };
        Self {
            words: core::array::from_fn(|at| AtomicU64::new(word(at))),
            count,
            waiting: AtomicU32::new(0),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes a free one, which is the caller's until it gives it back. Any context.
    #[inline]
    pub fn take(&self) -> Option<usize> {
        let firsts = (0..Self::MOST).step_by(BITS);
        (self.words.iter().zip(firsts))
            .find_map(|(word, first)| take_of(word).map(|bit| first.wrapping_add(bit)))
    }

    /// Gives `buffer`, which [`Free::take`] has answered, back. Whether a thread waits, which the
    /// caller wakes then. Any context.
    #[inline]
    #[must_use = "who waits for a buffer is to be woken"]
    pub fn give(&self, buffer: usize) -> bool {
        if let Some(word) = self
            .words
            .get(buffer / BITS)
            .filter(|_| buffer < self.count)
        {
            // CAST: below 64.
            let bit = 1u64.wrapping_shl((buffer % BITS) as u32);
            word.fetch_or(bit, Ordering::SeqCst);
        }
        self.waiting.load(Ordering::SeqCst) != 0
    }

    /// The caller, which [`Free::take`] has given none, waits from now on: it looks again, and each
    /// time that it is woken, until it has one; then it calls [`Free::end_wait`].
    pub fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// As [`Free::take`], for a thread that waits.
    pub fn take_again(&self) -> Option<usize> {
        // A full exchange first: a plain load could be done before the caller has said that it
        // waits.
        for word in &self.words {
            word.fetch_or(0, Ordering::SeqCst);
        }
        self.take()
    }

    /// The caller waits no more.
    pub fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Takes the lowest bit that is set.
#[inline]
fn take_of(word: &AtomicU64) -> Option<usize> {
    let mut bits = word.load(Ordering::Relaxed);
    loop {
        let rest = bits & bits.wrapping_sub(1);
        if bits == 0 {
            return None;
        }
        // SeqCst: one side of the hand-over above; acquires what the last owner has done.
        match word.compare_exchange_weak(bits, rest, Ordering::SeqCst, Ordering::SeqCst) {
            // CAST: below 64.
            Ok(_) => return Some(bits.trailing_zeros() as usize),
            Err(now) => bits = now,
        }
    }
}
