// SPDX-License-Identifier: GPL-2.0
//! Interior mutability shared between contexts.
//!
//! The pure crates forbid `unsafe`; what they share between threads and interrupts lives in the two
//! types of this crate, and nowhere else:
//!
//! * [`TryLock`]: a value with one holder at a time, for whom nobody waits: who finds it held
//!   *knocks*.
//! * [`Slot`]: a place for one value that is put once and taken once, whoever asks.
//!
//! Both are made of what [`sync`] offers: `core`'s atomics in the kernel and on the host, loom's
//! under `--cfg loom`, where `tests/` tries every interleaving.
#![no_std]

mod slot;
mod try_lock;

pub use slot::Slot;
pub use try_lock::{Guard, TryLock};

/// Atomics and fences, the same names on every face.
pub mod sync {
    #[cfg(not(loom))]
    pub use core::sync::atomic::*;
    #[cfg(loom)]
    pub use loom::sync::atomic::*;
}

/// `UnsafeCell` with loom's access-tracking shape, so that one text serves all faces.
mod raw {
    #[cfg(loom)]
    pub(crate) use loom::cell::UnsafeCell as Cell;
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
