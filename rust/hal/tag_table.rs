// SPDX-License-Identifier: GPL-2.0
//! The record that an LLD keeps of its own slots, in memory that the device never sees. Everything
//! a device says about a tag is checked against it.

use crate::tag::{Bound, Completed, Free, Releasable, Tag, TagBatch};
use crate::{Error, Platform};
use cell::sync::{AtomicU64, AtomicU8, Ordering};

const FREE: u8 = 0;
const ISSUED: u8 = 1;

/// A queue's record of its slots: which are free, and which the device has.
///
/// Slots are taken by one issuer at a time and given back by one drainer at a time; the two may run
/// at once. Free slots are bits of 64-bit words, so a batch costs one atomic operation a word.
pub struct TagTable<P: Platform> {
    free: P::Table<AtomicU64>,
    issued: P::Table<AtomicU8>,
}

impl<P: Platform> TagTable<P> {
    /// A table of `capacity` free slots (1 to 65,535). Control path.
    pub fn new(platform: &P, capacity: u16) -> Result<Self, Error> {
        if capacity == 0 {
            return Err(Error::Invalid);
        }
        let capacity = usize::from(capacity);
        Ok(Self {
            free: platform.table(capacity.div_ceil(64), |at| {
                AtomicU64::new(free_bits(capacity, at))
            })?,
            issued: platform.table(capacity, |_| AtomicU8::new(FREE))?,
        })
    }

    /// How many slots there are.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.issued.len()
    }

    /// Takes up to `want` free slots, lowest first, into `tags`. By the issuer.
    #[inline]
    pub fn take(&self, want: usize, tags: &mut TagBatch<Free>) {
        self.take_of(|_| u64::MAX, want, tags);
    }

    /// Likewise, of the slots below `limit` alone.
    #[inline]
    pub fn take_below(&self, limit: usize, want: usize, tags: &mut TagBatch<Free>) {
        self.take_of(
            |base| low_bits(limit.saturating_sub(usize::from(base))),
            want,
            tags,
        );
    }

    /// Takes them from among those whose bits `of` has in the word of 64 slots that begins with
    /// the slot that it is given.
    #[inline]
    fn take_of(&self, of: impl Fn(u16) -> u64, want: usize, tags: &mut TagBatch<Free>) {
        let most = want.saturating_add(tags.len()).min(TagBatch::<Free>::MAX);
        let mut base = 0u16;
        for word in self.free.iter() {
            let want = most.saturating_sub(tags.len());
            if want == 0 {
                return;
            }
            let bits = word.load(Ordering::Relaxed) & of(base);
            let rest = tags.fill(base, bits, want);
            if rest != bits {
                // Acquire: what the last owner of these slots did to them is over.
                word.fetch_and(!(bits ^ rest), Ordering::Acquire);
            }
            base = base.wrapping_add(64);
        }
    }

    /// `tag` is about to be issued; from here on only [`TagTable::complete`] gives it back.
    #[inline]
    pub fn issue(&self, tag: Tag<Bound>) {
        if let Some(state) = self.issued.get(tag.index()) {
            state.store(ISSUED, Ordering::Release);
        }
    }

    /// The device says that slot `number` is finished: proven only if the slot was issued, and then
    /// only once.
    #[inline]
    pub fn complete(&self, number: u16) -> Option<Tag<Completed>> {
        let state = self.issued.get(usize::from(number))?;
        // One drainer at a time completes, and an issuer only sets what this cleared before: no
        // exchange is needed.
        if state.load(Ordering::Acquire) != ISSUED {
            return None;
        }
        state.store(FREE, Ordering::Relaxed);
        Some(Tag::new(number))
    }

    /// The lowest slot that the device still has; for reaping a stopped controller.
    pub fn first_issued(&self) -> Option<u16> {
        let at = self
            .issued
            .iter()
            .position(|state| state.load(Ordering::Acquire) == ISSUED)?;
        u16::try_from(at).ok()
    }

    /// Makes every slot free again, those too whose tags were lost. Only in
    /// [`crate::Queue::rewind`]: no tag of this table may be left anywhere.
    pub fn rewind(&self) {
        for state in self.issued.iter() {
            state.store(FREE, Ordering::Relaxed);
        }
        for (at, word) in self.free.iter().enumerate() {
            word.store(free_bits(self.capacity(), at), Ordering::Release);
        }
    }

    /// Gives slots back to the pool. By the drainer, or by the issuer for tags it could not use.
    #[inline]
    pub fn release<S: Releasable>(&self, tags: &mut TagBatch<S>) {
        let mut word_at = 0usize;
        let mut bits = 0u64;
        for tag in tags.drain() {
            let at = tag.index() / 64;
            if at != word_at {
                self.give(word_at, bits);
                (word_at, bits) = (at, 0);
            }
            bits |= 1u64 << (tag.index() % 64);
        }
        self.give(word_at, bits);
    }

    #[inline]
    fn give(&self, word: usize, bits: u64) {
        if bits == 0 {
            return;
        }
        if let Some(free) = self.free.get(word) {
            // Release: the next owner sees the slots as this one left them.
            free.fetch_or(bits, Ordering::Release);
        }
    }
}

/// Word `at` of a table of `capacity` slots that are all free.
fn free_bits(capacity: usize, at: usize) -> u64 {
    low_bits(capacity.saturating_sub(at.saturating_mul(64)))
}

/// The lowest `count` bits of a word.
fn low_bits(count: usize) -> u64 {
    match count {
        n @ 0..=63 => (1u64 << n).wrapping_sub(1),
        _ => u64::MAX,
    }
}
