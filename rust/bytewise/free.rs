// SPDX-License-Identifier: GPL-2.0
//! Which of 64 buffers are free. Any number of threads take and give at once.
//!
//! # A thread that finds none
//! It says that it waits, passes a fence, and looks again; who gives one sets the buffer's bit,
//! passes a fence, and looks whether anybody waits. One of the two sees the other
//! (`tests/loom_free.rs`). Both exchanges are `SeqCst`, which is that fence.

use cell::sync::{AtomicU32, AtomicU64, Ordering};

/// The free ones of [`Free::COUNT`] buffers, by a bit each.
pub struct Free {
    bits: AtomicU64,
    /// Threads that wait for one.
    waiting: AtomicU32,
}

impl Default for Free {
    fn default() -> Self {
        Self::new()
    }
}

impl Free {
    /// How many buffers there are.
    pub const COUNT: usize = 64;

    /// All of them are free.
    pub fn new() -> Self {
        Self::of(u64::MAX)
    }

    /// Those are free whose bit is set; for tests, in which fewer tell as much.
    pub fn of(bits: u64) -> Self {
        Self {
            bits: AtomicU64::new(bits),
            waiting: AtomicU32::new(0),
        }
    }

    /// Takes a free one, which is the caller's until it gives it back. Any context.
    #[inline]
    pub fn take(&self) -> Option<usize> {
        let mut bits = self.bits.load(Ordering::Relaxed);
        loop {
            let rest = bits & bits.wrapping_sub(1);
            if bits == 0 {
                return None;
            }
            // SeqCst: one side of the hand-over above; acquires what the last owner has done.
            match (self.bits).compare_exchange_weak(bits, rest, Ordering::SeqCst, Ordering::SeqCst)
            {
                // CAST: below 64.
                Ok(_) => return Some(bits.trailing_zeros() as usize),
                Err(now) => bits = now,
            }
        }
    }

    /// Gives `buffer`, which [`Free::take`] has answered, back. Whether a thread waits, which the
    /// caller wakes then. Any context.
    #[inline]
    #[must_use = "who waits for a buffer is to be woken"]
    pub fn give(&self, buffer: usize) -> bool {
        // CAST: below 64, or no buffer's.
        let bit = 1u64.checked_shl(buffer as u32).unwrap_or(0);
        self.bits.fetch_or(bit, Ordering::SeqCst);
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
        self.bits.fetch_or(0, Ordering::SeqCst);
        self.take()
    }

    /// The caller waits no more.
    pub fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
