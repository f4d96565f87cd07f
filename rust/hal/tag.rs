// SPDX-License-Identifier: GPL-2.0
//! Tags: a queue's command slots, as types that carry their state. The record of them is the
//! [`TagTable`](crate::TagTable).

use core::marker::PhantomData;
use core::num::NonZeroU64;

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

    /// The slot's number, below [`TagTable::capacity`](crate::TagTable::capacity).
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

    /// Takes the last tag out.
    #[inline]
    pub fn pop(&mut self) -> Option<Tag<S>> {
        self.len = self.len.checked_sub(1)?;
        self.index
            .get(usize::from(self.len))
            .map(|&index| Tag::new(index))
    }

    /// Takes all tags out, first in first out.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = Tag<S>> + '_ {
        let len = usize::from(core::mem::take(&mut self.len));
        let tags = self.index.get(..len).unwrap_or_default();
        tags.iter().map(|&index| Tag::new(index))
    }
}

impl TagBatch<Free> {
    /// Adds the slots `base` and up that have their bit set in `bits`, lowest first: `want` of them
    /// at most, and as many as fit. Returns the bits of those that were not added.
    #[inline]
    pub(crate) fn fill(&mut self, base: u16, bits: u64, want: usize) -> u64 {
        let mut rest = bits;
        let places = self.index.iter_mut().skip(usize::from(self.len));
        for place in places.take(want) {
            let Some(set) = NonZeroU64::new(rest) else {
                break;
            };
            // CAST: below 64.
            *place = base.wrapping_add(set.trailing_zeros() as u16);
            rest &= rest.wrapping_sub(1);
            self.len = self.len.wrapping_add(1);
        }
        rest
    }
}

/// States in which a slot may go back to the pool.
pub trait Releasable: sealed::Sealed {}
impl Releasable for Free {}
impl Releasable for Detached {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Free {}
    impl Sealed for super::Detached {}
}
