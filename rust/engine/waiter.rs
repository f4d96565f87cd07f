// SPDX-License-Identifier: GPL-2.0
//! Threads that wait for their I/O, and the hand-over of finished I/O to them (lazy completion, ATC
//! '14, section 3.3).
//!
//! A thread's slot in the table counts what it has submitted and not seen ended. While it sleeps,
//! a drainer *offers* what came for it and wakes it; the offer is claimed by one atomic exchange,
//! by the owner or by anybody else, and who claims it ends it.
//!
//! # The hand-over
//! The drainer puts the offer, passes a fence, and looks whether the owner is still asleep; the
//! owner, awake again, says so, passes a fence, and looks for an offer. One of the two sees the
//! other; if both do, the exchange decides (`tests/loom_waiter.rs`; in the kernel's own memory
//! model: docs/litmus/waiter.litmus).
//!
//! # Which thread
//! The address of its record in the kernel, in as few bits as keep it exact.
//!
//! An address of x86-64 has 48 significant bits, or 57 where paging has five levels (Intel SDM
//! volume 1, section 3.3.7.1, "Canonical Addressing"); what is above repeats the highest of them. A
//! thread's record begins on a cache line, so the lowest 6 bits are 0. What is left is 51 bits.

use cell::sync::{fence, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use cell::{Slot, TryLock};
use core::ptr::null_mut;
use hal::{Error, Platform};

/// A slot's word, from its top: the thread's number, whether it is asleep, how much it has
/// outstanding.
const NUMBER_AT: u32 = u64::BITS - Thread::BITS;
const ASLEEP: u64 = 1 << (NUMBER_AT - 1);
const COUNT: u64 = ASLEEP - 1;

/// The slots of all threads. `O` is what is offered, `W` leads to the queue that a waiter drains.
pub struct Waiters<P: Platform, O: Send + 'static, W: 'static> {
    slots: P::Table<Waiter<O, W>>,
    /// A bit for each slot where an offer may be waiting: what a sweep looks at.
    offers: P::Table<AtomicU64>,
    /// Whoever sweeps: of two at once, one could find no mark while the other has it in its hands.
    sweeping: TryLock<()>,
}

/// One slot. Two threads that fall on the same slot share it in turn: who finds it in use submits
/// without one. Nobody but the owner is ever asleep here: all that says so is one word, and a slot
/// in which somebody sleeps changes hands no more than one whose owner has I/O outstanding.
pub struct Waiter<O: Send + 'static, W> {
    /// The thread, whether it sleeps, and how much it has outstanding.
    word: AtomicU64,
    /// What all that it has outstanding is on. Written by the owner, as the first is tracked.
    queue_ref: AtomicPtr<W>,
    offer: Slot<O>,
    /// How many offers there were, and as of the last sweep.
    offered: AtomicU32,
    swept: AtomicU32,
    index: usize,
}

impl<P: Platform, O: Send + 'static, W: 'static> Waiters<P, O, W> {
    /// 2^`bits` slots, at most 2^16. Control path; may sleep.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NoMemory`].
    pub fn new(platform: &P, bits: u32) -> Result<Self, Error> {
        if bits > 16 {
            return Err(Error::Invalid);
        }
        let len = 1usize << bits;
        Ok(Self {
            slots: platform.table(len, Waiter::new)?,
            offers: platform.table(len.div_ceil(64), |_| AtomicU64::new(0))?,
            sweeping: TryLock::new(()),
        })
    }

    /// The slot on which `thread` falls.
    #[inline]
    pub fn slot(&self, thread: Thread) -> Option<&Waiter<O, W>> {
        // Fibonacci hashing: the upper half of the product depends on all bits of the number.
        let hash = thread.number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        // CAST: 16 bits.
        self.slots
            .get(hash as usize & self.slots.len().wrapping_sub(1))
    }

    /// Whether an offer may be waiting somewhere.
    pub fn is_marked(&self) -> bool {
        (self.offers.iter()).any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// All slots.
    pub fn iter(&self) -> core::slice::Iter<'_, Waiter<O, W>> {
        self.slots.iter()
    }

    /// Offers `offer` to the owner of `slot`. `Ok`: the thread to be woken now, who will claim the
    /// offer unless somebody else does. `Err`: nobody takes it; what the caller gets back is its
    /// own to end.
    #[inline]
    pub fn offer(&self, slot: &Waiter<O, W>, offer: O) -> Result<Thread, Option<O>> {
        slot.offer.put(offer).map_err(Some)?;
        let offered = slot.offered.load(Ordering::Relaxed);
        slot.offered
            .store(offered.wrapping_add(1), Ordering::Relaxed);
        self.mark(slot.index);
        // The hand-over with the owner, see above; and with a sweep that goes to rest, which then
        // passes a fence and looks for marks.
        fence(Ordering::SeqCst);
        if let Some(owner) = slot.sleeper() {
            return Ok(owner);
        }
        // Awake already: it may have looked before the offer was there.
        Err(slot.offer.take())
    }

    /// Marks a slot for the sweep. Release: a sweep that clears the mark finds the offer that was
    /// put before.
    #[inline]
    fn mark(&self, index: usize) {
        if let Some(word) = self.offers.get(index / 64) {
            word.fetch_or(1u64 << (index % 64), Ordering::Release);
        }
    }

    /// Gives to `take` what was offered before the last sweep and not claimed since: its owner does
    /// not come. `all`: younger offers, too. Returns whether offers are left; `None` where another
    /// sweep is under way, which may leave some. Any context, with preemption off.
    pub fn sweep(&self, all: bool, mut take: impl FnMut(O)) -> Option<bool> {
        let _alone = self.sweeping.try_lock()?;
        let mut left = false;
        for (word, at) in self.offers.iter().zip((0usize..).step_by(64)) {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                // CAST: below 64.
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                let Some(slot) = self.slots.get(at.wrapping_add(bit)) else {
                    continue;
                };
                if slot.is_old() || all {
                    slot.offer.take().into_iter().for_each(&mut take);
                }
                if !slot.offer.is_full() {
                    word.fetch_and(!(1u64 << bit), Ordering::Acquire);
                }
                if slot.offer.is_full() {
                    self.mark(slot.index);
                    left = true;
                }
            }
        }
        Some(left)
    }
}

impl<O: Send + 'static, W> Waiter<O, W> {
    fn new(index: usize) -> Self {
        Self {
            word: AtomicU64::new(0),
            queue_ref: AtomicPtr::new(null_mut()),
            offer: Slot::default(),
            offered: AtomicU32::new(0),
            swept: AtomicU32::new(0),
            index,
        }
    }

    /// Which slot of the table it is.
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

    /// Counts one more that `thread`, the caller, has outstanding, on `queue_ref`: null, if the
    /// thread takes no completions there. Returns whether it did: not where the slot is somebody
    /// else's now, and not beside what is on another queue, as a queue is there only for as long as
    /// what is outstanding on it.
    #[inline]
    pub fn track(&self, thread: Thread, queue_ref: *mut W) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        let had = loop {
            let had = word & COUNT;
            let next = if is_of(word, thread) && had != COUNT {
                word.wrapping_add(1)
            } else if word & (COUNT | ASLEEP) == 0 {
                (thread.number() << NUMBER_AT) | 1
            } else {
                return false;
            };
            match (self.word).compare_exchange_weak(
                word,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break had,
                Err(now) => word = now,
            }
        };
        if had == 0 {
            self.queue_ref.store(queue_ref, Ordering::Relaxed);
        } else if self.queue_ref.load(Ordering::Relaxed) != queue_ref {
            self.ended();
            return false;
        }
        true
    }

    /// What `thread`, the caller, has outstanding here is on that queue; null: it has nothing, or
    /// takes no completions. The queue is there for as long as something on it is outstanding.
    #[inline]
    pub fn queue_ref(&self, thread: Thread) -> *mut W {
        match self.waits(thread) {
            // The owner alone writes it.
            true => self.queue_ref.load(Ordering::Relaxed),
            false => null_mut(),
        }
    }

    /// One that was tracked here is over. Whether it was the last, and the owner sleeps: it is
    /// about to be woken.
    #[inline]
    pub fn ended(&self) -> bool {
        let word = self.word.fetch_sub(1, Ordering::Relaxed);
        word & (COUNT | ASLEEP) == ASLEEP | 1
    }

    /// Whether `thread` has something outstanding that was tracked here.
    #[inline]
    pub fn waits(&self, thread: Thread) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        is_of(word, thread) && word & COUNT != 0
    }

    /// How much its owner has outstanding.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.word.load(Ordering::Relaxed) & COUNT
    }

    /// `thread`, the caller, is about to sleep, and takes offers from now on, if the slot is its
    /// own still, which is returned: what it had outstanding may be over, and another have taken
    /// the slot. It has made itself wakeable before.
    #[inline]
    pub fn sleep(&self, thread: Thread) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while is_of(word, thread) {
            match (self.word).compare_exchange_weak(
                word,
                word | ASLEEP,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// `thread`, the caller, is awake again, after [`Waiter::sleep`]: what was offered to it
    /// meanwhile is its own to end.
    #[inline]
    pub fn wake(&self, thread: Thread) -> Option<O> {
        // Only the caller makes the slot the caller's, and one that it slept in is so still.
        if self.sleeper() != Some(thread) {
            return None;
        }
        self.word.fetch_and(!ASLEEP, Ordering::Relaxed);
        // The hand-over, see above.
        fence(Ordering::SeqCst);
        self.offer.take()
    }

    /// The thread that is asleep here; only a hint by the time the caller looks at it.
    #[inline]
    pub fn sleeper(&self) -> Option<Thread> {
        let word = self.word.load(Ordering::Relaxed);
        (word & ASLEEP != 0).then(|| Thread::from_number(word >> NUMBER_AT))
    }

    /// Whether the owner is asleep here; only a hint by the time the caller looks at it.
    #[inline]
    pub fn is_asleep(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ASLEEP != 0
    }
}

/// Whether the slot with that word is `thread`'s.
#[inline]
fn is_of(word: u64, thread: Thread) -> bool {
    word >> NUMBER_AT == thread.number()
}

/// A thread; two living ones are never equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(u64);

impl Thread {
    /// The significant bits of an address.
    const ADDRESS_BITS: u32 = 57;
    /// Lowest bits of a record's address, which are 0: the smallest cache line's.
    const LINE_BITS: u32 = 6;
    /// Bits of a thread's number.
    const BITS: u32 = Self::ADDRESS_BITS - Self::LINE_BITS;

    /// The thread whose record is at `address`. `None`: that is not an address of which
    /// [`Self::address`] would give all bits back, so nobody could be woken by it.
    #[inline]
    pub fn at(address: u64) -> Option<Self> {
        let thread = Self::from_number((address >> Self::LINE_BITS) & ((1 << Self::BITS) - 1));
        (thread.0 != 0 && thread.address() == address).then_some(thread)
    }

    /// Where the thread's record is.
    #[inline]
    pub fn address(self) -> u64 {
        let top = self.0 << (u64::BITS - Self::BITS);
        // CAST: to and from a signed number, so that the shift repeats the highest bit.
        ((top as i64) >> (u64::BITS - Self::ADDRESS_BITS)) as u64
    }

    #[inline]
    fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// A number of [`Self::BITS`] bits; never 0 of a living thread.
    #[inline]
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

#[cfg(all(test, not(loom)))]
#[expect(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::{Thread, *};

    fn threads() -> [Thread; 2] {
        [0x40, 0x80].map(|address| Thread::at(address).unwrap())
    }

    fn slot() -> Waiter<u8, u8> {
        Waiter::new(0)
    }

    /// A queue that is none: its address is all that is looked at.
    fn queue_ref(n: usize) -> *mut u8 {
        core::ptr::without_provenance_mut(n)
    }

    #[test]
    fn a_place_is_one_threads_while_it_has_something_outstanding() {
        let (slot, [one, other]) = (slot(), threads());
        assert!(slot.track(one, queue_ref(1)) && slot.track(one, queue_ref(1)));
        assert!(!slot.track(other, queue_ref(1)));
        slot.ended();
        assert!(slot.waits(one) && !slot.waits(other));
        slot.ended();
        assert!(slot.track(other, queue_ref(1)));
        assert!(slot.waits(other) && !slot.waits(one));
    }

    #[test]
    fn all_that_is_outstanding_is_on_one_queue() {
        let (slot, [one, _]) = (slot(), threads());
        assert!(slot.track(one, queue_ref(1)));
        assert!(!slot.track(one, queue_ref(2)));
        assert!(
            !slot.track(one, null_mut()),
            "it would keep the first queue in use"
        );
        assert_eq!(slot.queue_ref(one), queue_ref(1));
        slot.ended();
        assert_eq!(
            slot.queue_ref(one),
            null_mut(),
            "nothing keeps the queue there"
        );
        assert!(slot.track(one, null_mut()));
        assert!(!slot.track(one, queue_ref(1)));
        assert_eq!(slot.queue_ref(one), null_mut());
    }

    #[test]
    fn who_has_lost_its_place_does_not_sleep_in_it() {
        let (slot, [one, other]) = (slot(), threads());
        assert!(slot.track(one, queue_ref(1)));
        // Its I/O is over, found by others, as it goes to sleep.
        slot.ended();
        assert!(slot.track(other, queue_ref(1)));
        slot.sleep(one);
        assert_eq!(slot.sleeper(), None);
        slot.sleep(other);
        assert_eq!(slot.wake(one), None);
        assert_eq!(slot.sleeper(), Some(other));
    }

    #[test]
    fn a_place_that_is_slept_in_is_not_given_away() {
        let (slot, [one, other]) = (slot(), threads());
        assert!(slot.track(one, queue_ref(1)));
        slot.sleep(one);
        slot.ended();
        assert!(!slot.track(other, queue_ref(1)));
        assert_eq!(slot.sleeper(), Some(one));
        slot.wake(one);
        assert!(!slot.is_asleep() && slot.track(other, queue_ref(1)));
    }

    #[test]
    fn as_much_as_can_be_counted_is_tracked() {
        let (slot, [one, _]) = (slot(), threads());
        let most = (0..).take_while(|_| slot.track(one, queue_ref(1))).count();
        assert_eq!(most as u64, COUNT);
        assert!(!slot.is_asleep());
        slot.ended();
        assert!(slot.track(one, queue_ref(1)));
    }

    #[test]
    fn an_address_comes_back_whole_with_four_and_with_five_levels_of_paging() {
        for address in [
            0xffff_8880_0123_4540,
            0xffff_ffff_ffff_ffc0,
            // Five levels: the direct map begins at 0xff11_0000_0000_0000.
            0xff11_0000_0000_0040,
            0xff1f_6d04_c184_0000,
            0xff00_0000_0000_0000,
            // Not the kernel's, but as good an address.
            0x40,
            0x00ff_ffff_ffff_ffc0,
        ] {
            let thread = Thread::at(address).unwrap();
            assert_eq!(thread.address(), address, "{address:#x}");
            assert!(thread.number() < 1 << Thread::BITS);
        }
    }

    #[test]
    fn what_would_not_come_back_is_no_thread() {
        for address in [
            0,
            // Within a cache line.
            0xff11_0000_0000_0001,
            0xff11_0000_0000_0060,
            // Not canonical: 58 bits and more.
            0x0100_0000_0000_0000,
            0xfe00_0000_0000_0040,
            // A tag in the upper byte, as other architectures have it.
            0xf4ff_8880_0123_4540,
        ] {
            assert_eq!(Thread::at(address), None, "{address:#x}");
        }
    }

    #[test]
    fn two_that_differ_above_48_bits_are_two() {
        assert_ne!(
            Thread::at(0xff11_0000_0000_0040),
            Thread::at(0xff12_0000_0000_0040)
        );
    }
}
