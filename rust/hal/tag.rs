// SPDX-License-Identifier: GPL-2.0
//! Tags: a queue's command slots, as types that carry their state; and [`TagTable`], the record
//! that an LLD keeps of its own slots, in memory that the device never sees. Everything that a
//! device says about a tag is checked against it.

use cell::sync::{AtomicU64, AtomicU8, Ordering};
use core::marker::PhantomData;
use core::num::NonZeroU64;

use crate::{Error, Platform};

/// Taken from the pool, not yet bound.
#[derive(Debug)]
pub enum Free {}
/// Bound to a command that is not issued yet.
#[derive(Debug)]
pub enum Bound {}
/// Proven finished by the device.
#[derive(Debug)]
pub enum Completed {}
/// Parted from its command, ready to be released.
#[derive(Debug)]
pub enum Detached {}

/// One command slot of a queue, in state `S`. Made and moved on only by this crate; dropping one
/// leaks the slot.
#[derive(Debug)]
#[must_use = "a dropped tag is a slot lost until the next reset"]
pub struct Tag<S> {
    index: u16,
    state: PhantomData<S>,
}

impl<S> Tag<S> {
    pub(crate) fn new(index: u16) -> Self {
        Self {
            index,
            state: PhantomData,
        }
    }

    /// The slot's number, below [`TagTable::capacity`](TagTable::capacity).
    #[inline]
    pub fn index(&self) -> usize {
        usize::from(self.index)
    }

    /// The slot's number as the device's descriptors carry it.
    #[inline]
    pub fn number(&self) -> u16 {
        self.index
    }
}

impl Tag<Free> {
    /// The command is written where the device will look for it. For LLDs, at the end of
    /// [`crate::Queue::bind_tag_cmd`].
    #[inline]
    pub fn bind(self) -> Tag<Bound> {
        Tag::new(self.index)
    }
}

impl Tag<Bound> {
    /// Takes the command back before it is issued.
    #[inline]
    pub fn unbind(self) -> Tag<Free> {
        Tag::new(self.index)
    }
}

impl Tag<Completed> {
    /// Command and tag part. For LLDs, in [`crate::Queue::detach_tag_cmd`].
    #[inline]
    pub fn detach(self) -> Tag<Detached> {
        Tag::new(self.index)
    }
}

/// The most tags that a [`TagBatch`] holds.
const BATCH: usize = 64;

/// Up to [`TagBatch::MAX`] tags in the same state, in order, with no memory of its own to manage.
#[derive(Debug)]
#[must_use = "a dropped batch is slots lost until the next reset"]
pub struct TagBatch<S> {
    len: u8,
    index: [u16; BATCH],
    state: PhantomData<S>,
}

impl<S> Default for TagBatch<S> {
    #[inline]
    fn default() -> Self {
        Self {
            len: 0,
            index: [0; BATCH],
            state: PhantomData,
        }
    }
}

impl<S> TagBatch<S> {
    /// The most tags that a batch holds.
    pub const MAX: usize = BATCH;

    /// How many tags are in it.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether no tag is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no further tag fits.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() >= Self::MAX
    }

    /// Adds `tag` at the end, or gives it back when the batch is full.
    #[inline]
    pub fn push(&mut self, tag: Tag<S>) -> Result<(), Tag<S>> {
        match self.index.get_mut(usize::from(self.len)) {
            Some(place) => {
                *place = tag.index;
                self.len = self.len.wrapping_add(1);
                Ok(())
            }
            None => Err(tag),
        }
    }

    /// The numbers of all tags, in order ([`Tag::number`]).
    pub fn numbers(&self) -> impl Iterator<Item = u16> + Clone + use<S> {
        self.index.into_iter().take(self.len())
    }

    /// Takes the last tag out.
    #[inline]
    pub fn pop(&mut self) -> Option<Tag<S>> {
        self.len = self.len.checked_sub(1)?;
        self.index
            .get(usize::from(self.len))
            .map(|&index| Tag::new(index))
    }

    /// Takes the only tag out, if there is one and no other.
    #[inline(always)]
    pub(crate) fn take_single(&mut self) -> Option<Tag<S>> {
        if self.len != 1 {
            return None;
        }
        self.len = 0;
        let [first, ..] = self.index;
        Some(Tag::new(first))
    }

    /// Takes the first `count` tags out; the others move up.
    pub fn split_first(&mut self, count: usize) -> Self {
        let mut rest = Self::default();
        let mut first = Self::default();
        for (at, tag) in self.drain().enumerate() {
            let to = if at < count { &mut first } else { &mut rest };
            // Each has room for all.
            let _ = to.push(tag);
        }
        *self = rest;
        first
    }

    /// Takes all tags out, first in first out.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = Tag<S>> + '_ {
        let len = usize::from(core::mem::take(&mut self.len));
        let tags = self.index.get(..len).unwrap_or_default();
        tags.iter().map(|&index| Tag::new(index))
    }
}

/// Free slots that an issuer has taken and not used yet: some of 64 in a row, which begin at a
/// multiple of 64.
#[derive(Debug, Default)]
#[must_use = "dropped ones are slots lost until the next reset"]
pub struct FreeTags {
    base: u16,
    bits: u64,
}

impl FreeTags {
    /// The most that there can be.
    pub const MAX: usize = 64;

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        // CAST: at most 64.
        self.bits.count_ones() as usize
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bits == 0
    }

    /// Takes the highest out.
    #[inline]
    pub fn pop(&mut self) -> Option<Tag<Free>> {
        let at = NonZeroU64::new(self.bits)?.ilog2();
        self.bits ^= 1u64 << at;
        // CAST: below 64.
        Some(Tag::new(self.base.wrapping_add(at as u16)))
    }

    /// Puts `tag` back, which came from here; one of another row is given back.
    #[inline]
    pub fn push(&mut self, tag: Tag<Free>) -> Result<(), Tag<Free>> {
        let at = tag.index & 63;
        if tag.index.wrapping_sub(at) != self.base {
            return Err(tag);
        }
        self.bits |= 1u64 << at;
        Ok(())
    }

    /// Takes all out. A batch has room for them.
    pub fn take_all(&mut self) -> TagBatch<Free> {
        let mut all = TagBatch::default();
        while let Some(tag) = self.pop() {
            // As many as fit.
            let _ = all.push(tag);
        }
        all
    }
}

const FREE: u8 = 0;
const ISSUED: u8 = 1;

/// A queue's record of its slots: which are free, and which the device has.
///
/// Slots are taken by one issuer at a time and given back by one drainer at a time; the two may run
/// at once. Each has a bit a slot that nobody else writes, and turns it over: a slot is free while
/// the two bits are equal. So neither needs an atomic exchange.
pub struct TagTable<P: Platform> {
    words: P::Table<Word>,
    issued: P::Table<AtomicU8>,
}

/// 64 slots.
struct Word {
    /// Turned over by the issuer, as it takes slots.
    taken: AtomicU64,
    /// Turned over by the drainer, as it gives them back.
    given: AtomicU64,
}

impl Word {
    /// The slots that are not free.
    #[inline]
    fn in_use(&self) -> u64 {
        // Acquire: what the last owner of these slots did to them is over.
        self.taken.load(Ordering::Relaxed) ^ self.given.load(Ordering::Acquire)
    }

    /// The issuer takes slots, or puts back what it has taken.
    #[inline]
    fn turn_taken(&self, bits: u64) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.taken.store(taken ^ bits, Ordering::Relaxed);
    }

    /// The drainer gives slots back.
    #[inline]
    fn turn_given(&self, bits: u64) {
        let given = self.given.load(Ordering::Relaxed);
        // Release: the next owner sees the slots as this one left them.
        self.given.store(given ^ bits, Ordering::Release);
    }
}

impl<P: Platform> TagTable<P> {
    /// A table of `capacity` free slots (1 to 65,535). Control path.
    pub fn new(platform: &P, capacity: u16) -> Result<Self, Error> {
        if capacity == 0 {
            return Err(Error::Invalid);
        }
        let capacity = usize::from(capacity);
        let word = |_| Word {
            taken: AtomicU64::new(0),
            given: AtomicU64::new(0),
        };
        Ok(Self {
            words: platform.table(capacity.div_ceil(64), word)?,
            issued: platform.table(capacity, |_| AtomicU8::new(FREE))?,
        })
    }

    /// How many slots there are.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.issued.len()
    }

    /// Takes free slots, lowest first: up to `want` of the first 64 in a row that have any. By the
    /// issuer.
    #[inline]
    pub fn take(&self, want: usize) -> FreeTags {
        self.take_below(self.capacity(), want)
    }

    /// As [`TagTable::take`], of the slots below `limit` alone.
    #[inline]
    pub fn take_below(&self, limit: usize, want: usize) -> FreeTags {
        let limit = limit.min(self.capacity());
        let mut base = 0u16;
        for word in self.words.iter() {
            let free = !word.in_use() & low_bits(limit.saturating_sub(usize::from(base)));
            if free != 0 {
                let bits = lowest(free, want);
                word.turn_taken(bits);
                return FreeTags { base, bits };
            }
            base = base.wrapping_add(64);
        }
        FreeTags::default()
    }

    /// Puts slots back that were taken and not used. By the issuer.
    #[inline]
    pub fn put_back(&self, tags: &mut TagBatch<Free>) {
        self.turn(tags, Word::turn_taken);
    }

    /// Gives slots back to the pool. By the drainer.
    #[inline]
    pub fn release(&self, tags: &mut TagBatch<Detached>) {
        self.turn(tags, Word::turn_given);
    }

    /// Turns the bits of `tags` over, of those that are in use: a slot that is free already, as the
    /// device may have it, stays so.
    #[inline]
    fn turn<S>(&self, tags: &mut TagBatch<S>, turn: impl Fn(&Word, u64)) {
        let turn_one = |tag: Tag<S>| {
            if let Some(word) = self.words.get(tag.index() / 64) {
                turn(word, (1u64 << (tag.index() % 64)) & word.in_use());
            }
        };
        match tags.take_single() {
            Some(tag) => turn_one(tag),
            None => tags.drain().for_each(turn_one),
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
        for word in self.words.iter() {
            word.given
                .store(word.taken.load(Ordering::Relaxed), Ordering::Release);
        }
    }
}

/// The lowest `want` of the bits that are set.
fn lowest(bits: u64, want: usize) -> u64 {
    if want >= FreeTags::MAX {
        return bits;
    }
    let rest = (0..want).fold(bits, |rest, _| rest & rest.wrapping_sub(1));
    bits ^ rest
}

/// The lowest `count` bits of a word.
fn low_bits(count: usize) -> u64 {
    match count {
        n @ 0..=63 => (1u64 << n).wrapping_sub(1),
        _ => u64::MAX,
    }
}
