// SPDX-License-Identifier: GPL-2.0
//! Interior mutability shared between contexts.
//!
//! The pure crates forbid `unsafe`; what they share between threads and interrupts lives in the
//! three types of this crate, and nowhere else:
//!
//! * [`TryLock`]: a value with one holder at a time, for whom nobody waits: who finds it held
//!   *knocks*.
//! * [`Slot`]: a place for one value that is put once and taken once, whoever asks.
//! * [`Handover`]: a place for one value between one [`Putter`] and one [`Taker`].
//!
//! All are made of what [`sync`] offers: `core`'s atomics in the kernel and on the host, loom's
//! under `--cfg loom`, where `tests/` tries every interleaving.
#![no_std]

use crate::sync::{fence_after_exchange, AtomicBool, AtomicU8, Cell, Ordering::*};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::AtomicU64;

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

/// Atomics and fences, the same names on every face: `core`'s, or loom's. So is the cell that the
/// types of this crate have.
pub mod sync {
    #[cfg(not(loom))]
    pub use core::sync::atomic::*;
    #[cfg(loom)]
    pub(crate) use loom::cell::UnsafeCell as Cell;
    #[cfg(loom)]
    pub use loom::sync::atomic::*;

    /// As `core`'s. That of `SeqCst` is an `mfence` on x86-64, which takes ten times as long as
    /// what the kernel's `smp_mb()` does there, and this does, too: any locked instruction is a
    /// full barrier (Intel SDM volume 3, section 9.2.3.9; Linux 7.3,
    /// arch/x86/include/asm/barrier.h).
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    #[inline(always)]
    pub fn fence(order: Ordering) {
        match order {
            // SAFETY: adds 0 to a word of the stack, which keeps its value, whoever's it is.
            Ordering::SeqCst => unsafe {
                core::arch::asm!("lock add dword ptr [rsp - 4], 0", options(nostack));
            },
            order => core::sync::atomic::fence(order),
        }
    }

    /// A full fence right after an exchange that acquires and releases, which is one itself on
    /// x86-64: the compiler keeps what was before the exchange there, and what follows it after it.
    #[inline(always)]
    pub fn fence_after_exchange() {
        if cfg!(any(not(target_arch = "x86_64"), loom, miri)) {
            fence(Ordering::SeqCst);
        }
    }

    /// `UnsafeCell` with loom's access-tracking shape, so that one text serves all faces.
    #[cfg(not(loom))]
    pub(crate) struct Cell<T>(core::cell::UnsafeCell<T>);

    #[cfg(not(loom))]
    impl<T> Cell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}
