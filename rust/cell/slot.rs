// SPDX-License-Identifier: GPL-2.0
//! A place for one value, put once and taken once, whoever asks.

use crate::sync::{AtomicU8, Cell, Ordering::*};

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const FULL: u8 = 2;

/// One place of a table that several contexts share: `EMPTY -> BUSY -> FULL` by [`put`](Slot::put),
/// `FULL -> BUSY -> EMPTY` by [`take`](Slot::take). Each first step is one atomic exchange, so of
/// two takers one gets the value.
///
/// # Invariants
/// `value` is accessed only by the context that moved `state` to `BUSY`, and is `Some` exactly when
/// `state` is `FULL`.
pub struct Slot<T> {
    state: AtomicU8,
    value: Cell<Option<T>>,
}

// SAFETY: by the invariant one context at a time reaches the value, ordered by `state`; values move
// between contexts, which needs `T: Send`.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        let (state, value) = (AtomicU8::new(EMPTY), Cell::new(None));
        Self { state, value }
    }
}

impl<T> Slot<T> {
    /// Puts `value` here, or gives it back when the slot is not empty. Any context.
    #[inline]
    pub fn put(&self, value: T) -> Result<(), T> {
        if !self.grab(EMPTY) {
            return Err(value);
        }
        // SAFETY: this context moved `state` to `BUSY`.
        self.value.with_mut(|place| unsafe { *place = Some(value) });
        self.state.store(FULL, Release);
        Ok(())
    }

    /// Takes the value out, if there is one. Any context.
    #[inline]
    pub fn take(&self) -> Option<T> {
        if !self.grab(FULL) {
            return None;
        }
        // SAFETY: this context moved `state` to `BUSY`.
        let value = self.value.with_mut(|place| unsafe { (*place).take() });
        self.state.store(EMPTY, Release);
        value
    }

    /// Whether a value is here at this moment; only a hint by the time the caller looks at it.
    pub fn is_full(&self) -> bool {
        self.state.load(Acquire) == FULL
    }

    fn grab(&self, from: u8) -> bool {
        (self.state.compare_exchange(from, BUSY, Acquire, Relaxed)).is_ok()
    }
}
