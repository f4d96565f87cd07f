// SPDX-License-Identifier: GPL-2.0
//! Threads that wait for their I/O, and the hand-over of finished I/O to them (lazy completion, ATC '14, section 3.3).
//!
//! A thread's place in the table counts what it has submitted and not seen ended. While it sleeps, a drainer *offers* what came for it
//! and wakes it; the offer is claimed by one atomic exchange, by the owner or by anybody else, and who claims it ends it.
//!
//! # The hand-over
//! The drainer puts the offer, passes a fence, and looks whether the owner is still asleep; the owner, awake again, says so, passes a fence,
//! and looks for an offer. One of the two sees the other; if both do, the exchange decides (`tests/loom_waiter.rs`; in the kernel's own
//! memory model: docs/litmus/waiter.litmus).

use crate::thread::Thread;
use cell::sync::{fence, AtomicU32, AtomicU64, Ordering};
use cell::Slot;
use hal::{Error, Platform};

/// Bits of a place's word that count; the rest is the thread's number.
const COUNT_BITS: u32 = u64::BITS - Thread::BITS;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

/// The places of all threads. `O` is what is offered.
pub struct Waiters<P: Platform, O: Send + 'static> {
    places: P::Table<Waiter<O>>,
    /// A bit for each place where an offer may be waiting: what a sweep looks at.
    offers: P::Table<AtomicU64>,
}

/// One place. Two threads that fall on the same place share it in turn: who finds it in use submits without one.
pub struct Waiter<O: Send + 'static> {
    /// The thread, and how much it has outstanding.
    word: AtomicU64,
    /// Threads asleep here: the owner, or one that had the place before it.
    asleep: AtomicU32,
    offer: Slot<O>,
    /// How many offers there were, and as of the last sweep.
    offered: AtomicU32,
    swept: AtomicU32,
    index: usize,
}

impl<P: Platform, O: Send + 'static> Waiters<P, O> {
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
    pub fn place(&self, thread: Thread) -> Option<&Waiter<O>> {
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
    pub fn iter(&self) -> core::slice::Iter<'_, Waiter<O>> {
        self.places.iter()
    }

    /// Offers `offer` to the owner of `place`. `Ok`: the thread to be woken now, who will claim the offer unless somebody else does. `Err`: nobody takes it;
    /// what the caller gets back is its own to end.
    #[inline]
    pub fn offer(&self, place: &Waiter<O>, offer: O) -> Result<Thread, Option<O>> {
        place.offer.put(offer).map_err(Some)?;
        let offered = place.offered.load(Ordering::Relaxed);
        place
            .offered
            .store(offered.wrapping_add(1), Ordering::Relaxed);
        self.mark(place.index);
        // The hand-over with the owner, see above; and with a sweep that goes to rest, which then passes a fence and looks for marks.
        fence(Ordering::SeqCst);
        if place.is_asleep() {
            return Ok(place.owner());
        }
        // Awake already: it may have looked before the offer was there.
        Err(place.offer.take())
    }

    /// Marks a place for the sweep. Release: a sweep that clears the mark finds the offer that was put before.
    #[inline]
    fn mark(&self, index: usize) {
        if let Some(word) = self.offers.get(index / 64) {
            word.fetch_or(1u64 << (index % 64), Ordering::Release);
        }
    }

    /// Gives to `take` what was offered before the last sweep and not claimed since: its owner does not come. `all`: younger offers, too. Returns
    /// whether offers are left. Any context, with preemption off; one caller at a time.
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

impl<O: Send + 'static> Waiter<O> {
    fn new(index: usize) -> Self {
        Self {
            word: AtomicU64::new(0),
            asleep: AtomicU32::new(0),
            offer: Slot::default(),
            offered: AtomicU32::new(0),
            swept: AtomicU32::new(0),
            index,
        }
    }

    /// Which place of the table it is.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether the offer that may be here was here at the last call. By the sweep.
    fn is_old(&self) -> bool {
        let offered = self.offered.load(Ordering::Relaxed);
        let swept = self.swept.load(Ordering::Relaxed);
        self.swept.store(offered, Ordering::Relaxed);
        offered == swept
    }

    /// Counts one more that `thread`, the caller, has outstanding; returns how many it had. `None`: the place is somebody else's now.
    #[inline]
    pub fn enlist(&self, thread: Thread) -> Option<u64> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let mine = word >> COUNT_BITS == thread.number();
            let had = word & COUNT;
            let next = if mine && had != COUNT {
                word.wrapping_add(1)
            } else if had == 0 && self.asleep.load(Ordering::Relaxed) == 0 {
                (thread.number() << COUNT_BITS) | 1
            } else {
                return None;
            };
            match (self.word).compare_exchange_weak(
                word,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(had),
                Err(now) => word = now,
            }
        }
    }

    /// One that was enlisted here is over.
    #[inline]
    pub fn ended(&self) {
        self.word.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether `thread` has something outstanding that was enlisted here.
    #[inline]
    pub fn waits(&self, thread: Thread) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word >> COUNT_BITS == thread.number() && word & COUNT != 0
    }

    /// The thread whose place it is at this moment.
    pub fn owner(&self) -> Thread {
        Thread::from_number(self.word.load(Ordering::Relaxed) >> COUNT_BITS)
    }

    /// The caller is about to sleep, and takes offers from now on. It has made itself wakeable before.
    #[inline]
    pub fn sleep(&self) {
        self.asleep.fetch_add(1, Ordering::Relaxed);
    }

    /// The caller is awake again, after [`Waiter::sleep`]: what was offered meanwhile is its own to end.
    #[inline]
    pub fn wake(&self) -> Option<O> {
        self.asleep.fetch_sub(1, Ordering::Relaxed);
        // The hand-over, see above.
        fence(Ordering::SeqCst);
        self.offer.take()
    }

    /// Whether somebody is asleep here; only a hint by the time the caller looks at it.
    #[inline]
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) != 0
    }
}
