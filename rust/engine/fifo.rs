// SPDX-License-Identifier: GPL-2.0
//! The FIFO: requests that wait for a tag, in the order in which they came.

use cell::sync::{AtomicUsize, Ordering};
use cell::Slot;
use hal::{Error, Platform};

/// A bounded ring. Anybody pushes; the holder of the issue token alone takes.
///
/// A place is reserved first (`tail`) and filled then. Between the two the ring counts as not
/// empty, but has nothing to take: its taker leaves, and whoever is filling the place comes for the
/// token afterwards.
///
/// # Invariants
/// `head <= tail <= head + capacity` in wrapping arithmetic; a place is reserved only once its last
/// request has left it.
pub(crate) struct Fifo<P: Platform, T: Send + 'static> {
    places: P::Table<Slot<T>>,
    head: AtomicUsize,
    tail: AtomicUsize,
}

/// Whether a ring of `len` places is full, by a `tail` and a `head` that was read after it. Where
/// others have pushed and were taken meanwhile, `head` is beyond that `tail`: the ring is not full,
/// and who tries to reserve that place finds that it has gone on.
#[inline]
fn is_full(tail: usize, head: usize, len: usize) -> bool {
    tail.wrapping_sub(head) == len
}

impl<P: Platform, T: Send + 'static> Fifo<P, T> {
    /// A ring for at least `depth` requests.
    pub(crate) fn new(platform: &P, depth: usize) -> Result<Self, Error> {
        // A power of two, so that the free-running indices may wrap.
        let len = depth.checked_next_power_of_two().ok_or(Error::Invalid)?;
        Ok(Self {
            places: platform.table(len, |_| Slot::default())?,
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
        })
    }

    #[inline]
    fn place(&self, at: usize) -> Option<&Slot<T>> {
        self.places.get(at & self.places.len().wrapping_sub(1))
    }

    /// How many requests are in it, or about to be.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // Acquire: not an older `tail` than what `head` has passed.
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Relaxed).wrapping_sub(head)
    }

    /// Whether no request is in it, or about to be.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `rq` at the end; gives it back when more requests are there than the ring was made for.
    /// Any context.
    pub(crate) fn push(&self, rq: T) -> Result<(), T> {
        // Acquire on `tail`, and release: `head` is no older. Acquire on `head`: a place that has
        // been left is seen as left.
        let reserve = |tail: usize| {
            let head = self.head.load(Ordering::Acquire);
            (!is_full(tail, head, self.places.len())).then(|| tail.wrapping_add(1))
        };
        match (self.tail).fetch_update(Ordering::AcqRel, Ordering::Acquire, reserve) {
            Ok(at) => match self.place(at) {
                Some(place) => place.put(rq),
                None => Err(rq),
            },
            Err(_) => Err(rq),
        }
    }

    /// Lets `f` have the first request; it leaves the FIFO unless `f` gives it back. `None`: there
    /// is none to be had at this moment. By the holder of the issue token.
    pub(crate) fn with_first<E>(
        &self,
        f: impl FnOnce(T) -> Result<(), (T, E)>,
    ) -> Option<Result<(), E>> {
        let head = self.head.load(Ordering::Relaxed);
        let place = self.place(head)?;
        match f(place.take()?) {
            Ok(()) => {
                // Release: the place is empty for whoever reserves it next.
                self.head.store(head.wrapping_add(1), Ordering::Release);
                Some(Ok(()))
            }
            Err((rq, why)) => {
                // It is empty: nobody reserves a place before `head` has passed it.
                let _ = place.put(rq);
                Some(Err(why))
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::is_full;

    #[test]
    fn a_ring_is_full_when_all_places_are_taken() {
        assert!(!is_full(9, 9, 4) && !is_full(12, 9, 4));
        assert!(is_full(13, 9, 4));
        assert!(is_full(1, usize::MAX - 2, 4));
    }

    /// Seen with four CPUs: one that was kept from going on between its looks at tail and head
    /// found an empty ring full, and its read failed.
    #[test]
    fn whoever_was_overtaken_finds_it_not_full() {
        assert!(!is_full(9, 12, 4));
        assert!(!is_full(usize::MAX, 3, 4));
    }
}
