// SPDX-License-Identifier: GPL-2.0
//! A value with one holder at a time, for which nobody waits.

use crate::sync::{fence_after_exchange, AtomicU8, Cell, Ordering::*};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

const FREE: u8 = 0;
const HELD: u8 = 1;
const KNOCKED: u8 = 2;
const PARKED: u8 = 4;

/// A lock that is only ever tried. All of it happens on one atomic, so its transitions have one
/// order: either a knock finds the holder still inside, and [`Guard::release`] reports it, or it
/// finds the lock free and takes it. What the knocker wrote before it knocked is visible to the
/// holder after `release` said so.
///
/// # Invariants
/// `value` is accessed only by the owner of the one [`Guard`] that exists while `state` has `HELD`
/// set and `PARKED` not; while it has both, there is none.
pub struct TryLock<T> {
    state: AtomicU8,
    value: Cell<T>,
}

// SAFETY: by the type's invariant one context at a time reaches the value, and `state` orders them
// (Acquire on taking, Release on leaving); moving access between contexts needs `T: Send`.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    /// A free lock around `value`.
    pub fn new(value: T) -> Self {
        let (state, value) = (AtomicU8::new(FREE), Cell::new(value));
        Self { state, value }
    }

    /// Takes the lock if it is free; leaves no trace if it is not. Any context.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let taken = (self.state).compare_exchange(FREE, HELD, Acquire, Relaxed);
        // `then`, not `then_some`: a guard made in vain would free the lock as it is dropped.
        taken.is_ok().then(|| Guard(self, PhantomData))
    }

    /// Takes the lock if it is free; otherwise obliges its holder to look again. Any context.
    pub fn lock_or_knock(&self) -> Option<Guard<'_, T>> {
        // Release: what was written before the knock is there for the holder who sees it. Not
        // `fetch_or`: a knock on a lock that has just become free would be heard by nobody.
        let knock = |state| (state & HELD != 0).then_some(state | KNOCKED);
        loop {
            let guard = self.try_lock();
            if guard.is_some() || self.state.fetch_update(Release, Relaxed, knock).is_ok() {
                return guard;
            }
        }
    }

    /// The guard that was parked ([`Guard::park`]), if one is; one caller gets it. Any context.
    pub fn unpark(&self) -> Option<Guard<'_, T>> {
        let unpark = |state| (state & PARKED != 0).then_some(state & !PARKED);
        // Acquire: what the guard that was parked wrote is there for this one.
        let unparked = self.state.fetch_update(Acquire, Relaxed, unpark);
        unparked.is_ok().then(|| Guard(self, PhantomData))
    }
}

/// The right to the value of a [`TryLock`]; shared and sent like a `&mut T`.
#[must_use = "dropping a guard forgets whoever knocked: release it and look again"]
pub struct Guard<'a, T>(&'a TryLock<T>, PhantomData<&'a mut T>);

impl<T> Guard<'_, T> {
    /// Gives the lock back. `true`: someone knocked meanwhile, and relies on the caller to try
    /// again. It is a full fence, too: what the caller looks at next is no older than this.
    #[must_use = "who knocked relies on another look"]
    pub fn release(self) -> bool {
        let before = ManuallyDrop::new(self).0.state.swap(FREE, AcqRel);
        fence_after_exchange();
        before & KNOCKED != 0
    }

    /// Leaves the lock held, with nobody to reach the value until [`TryLock::unpark`]. Knocks are
    /// kept for the guard that comes of that.
    pub fn park(self) {
        ManuallyDrop::new(self).0.state.fetch_or(PARKED, Release);
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.state.store(FREE, Release);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one (invariant of `TryLock`), and it is borrowed for the
        // result's life.
        self.0.value.with_mut(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        self.0.value.with_mut(|value| unsafe { &mut *value })
    }
}
