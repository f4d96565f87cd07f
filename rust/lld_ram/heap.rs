// SPDX-License-Identifier: GPL-2.0
//! Commands that the device has, by when they are due.

use cell::sync::{AtomicU64, Ordering};
use hal::{Error, Platform};

/// A binary heap: the earliest is on top; of two that are due at once, the one issued first. Its
/// places are atomics only because a platform's tables are shared; one side at a time uses it.
pub(crate) struct Heap<P: Platform> {
    places: P::Table<[AtomicU64; 2]>,
    len: usize,
    /// Sets those apart that are due at the same time.
    next: u32,
}

/// A place's content: when it is due, and its order above its word.
type Entry = (u64, u64);

impl<P: Platform> Heap<P> {
    pub(crate) fn new(platform: &P, capacity: usize) -> Result<Self, Error> {
        Ok(Self {
            places: platform.table(capacity, |_| [const { AtomicU64::new(0) }; 2])?,
            len: 0,
            next: 0,
        })
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    fn get(&self, at: usize) -> Entry {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        self.places
            .get(at)
            .map_or((u64::MAX, u64::MAX), |[due, rest]| (load(due), load(rest)))
    }

    fn set(&self, at: usize, (due, rest): Entry) {
        if let Some(place) = self.places.get(at) {
            place[0].store(due, Ordering::Relaxed);
            place[1].store(rest, Ordering::Relaxed);
        }
    }

    /// When the earliest is due.
    #[inline]
    pub(crate) fn due(&self) -> Option<u64> {
        self.first().map(|(due, _)| due)
    }

    /// The earliest: when it is due, and its word.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, u32)> {
        // CAST: the low half is the word.
        (self.len != 0)
            .then(|| self.get(0))
            .map(|(due, rest)| (due, rest as u32))
    }

    /// Adds `word`; `false` if there is no room.
    pub(crate) fn push(&mut self, due: u64, word: u32) -> bool {
        if self.len >= self.places.len() {
            return false;
        }
        let entry = (due, (u64::from(self.next) << 32) | u64::from(word));
        self.next = self.next.wrapping_add(1);
        let mut at = self.len;
        self.len = self.len.wrapping_add(1);
        while at != 0 {
            let parent = at.wrapping_sub(1) / 2;
            let above = self.get(parent);
            if above <= entry {
                break;
            }
            self.set(at, above);
            at = parent;
        }
        self.set(at, entry);
        true
    }

    /// Takes the earliest out, if it is due at `now`.
    pub(crate) fn pop(&mut self, now: u64) -> Option<u32> {
        let (due, rest) = self.get(0);
        if self.len == 0 || due > now {
            return None;
        }
        self.len = self.len.wrapping_sub(1);
        let last = self.get(self.len);
        let mut at = 0usize;
        loop {
            let left = at.wrapping_mul(2).wrapping_add(1);
            let right = left.wrapping_add(1);
            let child = if right < self.len && self.get(right) < self.get(left) {
                right
            } else {
                left
            };
            if child >= self.len || last <= self.get(child) {
                break;
            }
            self.set(at, self.get(child));
            at = child;
        }
        self.set(at, last);
        // CAST: the low half is the word.
        Some(rest as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hal::mock::MockPlatform;
    use std::vec::Vec;

    #[test]
    fn earliest_first_and_in_order() {
        let mut heap = Heap::new(&MockPlatform::new(), 64).unwrap();
        let mut rng = crate::latency::Rng::new(3);
        let mut wanted: Vec<(u64, u32)> = (0..64).map(|word| (rng.below(8), word)).collect();
        for &(due, word) in &wanted {
            assert!(heap.push(due, word));
        }
        assert!(!heap.push(0, 99));
        wanted.sort();
        for (due, word) in wanted {
            assert_eq!(heap.due(), Some(due));
            assert_eq!(heap.first(), Some((due, word)));
            if due != 0 {
                assert_eq!(heap.pop(due - 1), None);
            }
            assert_eq!(heap.pop(due), Some(word));
        }
        assert_eq!(heap.due(), None);
        assert_eq!(heap.pop(u64::MAX), None);
        heap.push(1, 1);
        heap.clear();
        assert_eq!(heap.due(), None);
    }
}
