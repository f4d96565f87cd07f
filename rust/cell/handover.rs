// SPDX-License-Identifier: GPL-2.0
//! A place for one value, put by one context at a time and taken by one context at a time.

use crate::sync::{AtomicBool, Cell, Ordering::*};
use core::sync::atomic::AtomicU64;

/// The right to put into some places; who has it by `&mut` is the only one.
pub struct Putter(u64);
/// The right to take out of the same places.
pub struct Taker(u64);

impl Putter {
    /// A putter and a taker that belong to each other, and to no place yet.
    pub fn pair() -> (Putter, Taker) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // It does not wrap around: that would take centuries.
        let number = NEXT.fetch_add(1, Relaxed);
        (Putter(number), Taker(number))
    }
}

/// One place of a table through which values go from a [`Putter`] to its [`Taker`]. As one context
/// at a time has each, it takes no atomic exchange, as a [`Slot`](crate::Slot) does.
///
/// # Invariants
/// `value` is accessed by who has the putter `of` by `&mut` while `full` is false, and by who has
/// the taker `of` by `&mut` while it is true. There is one of either.
pub struct Handover<T> {
    of: u64,
    full: AtomicBool,
    value: Cell<Option<T>>,
}

// SAFETY: by the invariant one context at a time reaches the value: who has the putter, or who has
// the taker, and `full` orders the two. Values move between contexts, which needs `T: Send`.
unsafe impl<T: Send> Sync for Handover<T> {}

impl<T> Handover<T> {
    /// An empty place between `putter` and its taker.
    pub fn new(putter: &Putter) -> Self {
        let (of, full, value) = (putter.0, AtomicBool::new(false), Cell::new(None));
        Self { of, full, value }
    }

    /// Puts `value` here, or gives it back when something is here already, or when the place is not
    /// `putter`'s. Any context.
    #[inline]
    pub fn put(&self, putter: &mut Putter, value: T) -> Result<(), T> {
        // Acquire: whoever took the last one is done with it.
        if putter.0 != self.of || self.full.load(Acquire) {
            return Err(value);
        }
        // SAFETY: it is empty, and this context has the putter.
        self.value.with_mut(|place| unsafe { *place = Some(value) });
        self.full.store(true, Release);
        Ok(())
    }

    /// Takes the value out, if there is one, and the place is `taker`'s. Any context.
    #[inline]
    pub fn take(&self, taker: &mut Taker) -> Option<T> {
        if taker.0 != self.of || !self.full.load(Acquire) {
            return None;
        }
        // SAFETY: it is full, and this context has the taker.
        let value = self.value.with_mut(|place| unsafe { (*place).take() });
        self.full.store(false, Release);
        value
    }

    /// Whether a value is here at this moment; only a hint by the time the caller looks at it.
    pub fn is_full(&self) -> bool {
        self.full.load(Acquire)
    }
}
