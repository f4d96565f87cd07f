// SPDX-License-Identifier: GPL-2.0
//! The table of threads that wait: the places of all, the offer to the owner of one, and the sweep
//! that takes over what was offered and is not claimed.

use super::Waiter;
use crate::thread::Thread;
use cell::sync::{fence, AtomicU64, Ordering};
use hal::{Error, Platform};

/// The places of all threads. `O` is what is offered, `W` a way to take completions.
pub struct Waiters<P: Platform, O: Send + 'static, W: 'static> {
    places: P::Table<Waiter<O, W>>,
    /// A bit for each place where an offer may be waiting: what a sweep looks at.
    offers: P::Table<AtomicU64>,
}

impl<P: Platform, O: Send + 'static, W: 'static> Waiters<P, O, W> {
    /// 2^`bits` places, at most 2^16. Control path; may sleep.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NoMemory`].
    pub fn new(platform: &P, bits: u32) -> Result<Self, Error> {
        if bits > 16 {
            return Err(Error::Invalid);
        }
        let len = 1usize << bits;
        Ok(Self {
            places: platform.table(len, Waiter::new)?,
            offers: platform.table(len.div_ceil(64), |_| AtomicU64::new(0))?,
        })
    }

    /// The place on which `thread` falls.
    #[inline]
    pub fn place(&self, thread: Thread) -> Option<&Waiter<O, W>> {
        // Fibonacci hashing: the upper half of the product depends on all bits of the number.
        let hash = thread.number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        // CAST: 16 bits.
        self.places
            .get(hash as usize & self.places.len().wrapping_sub(1))
    }

    /// Whether an offer may be waiting somewhere.
    pub fn is_marked(&self) -> bool {
        (self.offers.iter()).any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// All places.
    pub fn iter(&self) -> core::slice::Iter<'_, Waiter<O, W>> {
        self.places.iter()
    }

    /// Offers `offer` to the owner of `place`. `Ok`: the thread to be woken now, who will claim the
    /// offer unless somebody else does. `Err`: nobody takes it; what the caller gets back is its
    /// own to end.
    #[inline]
    pub fn offer(&self, place: &Waiter<O, W>, offer: O) -> Result<Thread, Option<O>> {
        place.offer.put(offer).map_err(Some)?;
        let offered = place.offered.load(Ordering::Relaxed);
        place
            .offered
            .store(offered.wrapping_add(1), Ordering::Relaxed);
        self.mark(place.index);
        // The hand-over with the owner, see above; and with a sweep that goes to rest, which then
        // passes a fence and looks for marks.
        fence(Ordering::SeqCst);
        if let Some(owner) = place.sleeper() {
            return Ok(owner);
        }
        // Awake already: it may have looked before the offer was there.
        Err(place.offer.take())
    }

    /// Marks a place for the sweep. Release: a sweep that clears the mark finds the offer that was
    /// put before.
    #[inline]
    fn mark(&self, index: usize) {
        if let Some(word) = self.offers.get(index / 64) {
            word.fetch_or(1u64 << (index % 64), Ordering::Release);
        }
    }

    /// Gives to `take` what was offered before the last sweep and not claimed since: its owner does
    /// not come. `all`: younger offers, too. Returns whether offers are left. Any context, with
    /// preemption off; one caller at a time.
    pub fn sweep(&self, all: bool, mut take: impl FnMut(O)) -> bool {
        let mut left = false;
        for (word, at) in self.offers.iter().zip((0usize..).step_by(64)) {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                // CAST: below 64.
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                let Some(place) = self.places.get(at.wrapping_add(bit)) else {
                    continue;
                };
                if place.is_old() || all {
                    place.offer.take().into_iter().for_each(&mut take);
                }
                if !place.offer.is_full() {
                    word.fetch_and(!(1u64 << bit), Ordering::Acquire);
                }
                if place.offer.is_full() {
                    self.mark(place.index);
                    left = true;
                }
            }
        }
        left
    }
}
