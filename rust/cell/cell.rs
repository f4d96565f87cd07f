// SPDX-License-Identifier: GPL-2.0
//! Interior mutability shared between contexts.
//!
//! The pure crates forbid `unsafe`; what they share between threads and interrupts lives in the two
//! types of this crate, and nowhere else:
//!
//! * [`TryLock`]: a value with one holder at a time. Nobody ever waits for it: who finds it held
//!   *knocks*, and the holder looks once more before it leaves.
//! * [`Slot`]: a place for one value that is put once and taken once, whoever asks.
//!
//! [`sync`] is the one place that says which atomics these are made of: `core`'s in the kernel and on
//! the host, loom's under `--cfg loom`, where `tests/` tries every interleaving.
#![no_std]

mod slot;
mod try_lock;

pub use slot::Slot;
pub use try_lock::{Guard, TryLock};

/// Atomics and fences, the same names on every face.
pub mod sync {
    #[cfg(not(loom))]
    pub use core::sync::atomic::{
        fence, AtomicBool, AtomicU16, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering,
    };
    #[cfg(loom)]
    pub use loom::sync::atomic::{
        fence, AtomicBool, AtomicU16, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering,
    };
}

/// `UnsafeCell` with loom's access-tracking shape, so that one text serves all faces.
#[cfg(not(loom))]
mod raw {
    pub(crate) struct Cell<T>(core::cell::UnsafeCell<T>);
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
#[cfg(loom)]
mod raw {
    pub(crate) use loom::cell::UnsafeCell as Cell;
}
