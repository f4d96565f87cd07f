// SPDX-License-Identifier: GPL-2.0
//! Atomics and fences, the same names on every face: `core`'s, or loom's. So is the cell that the
//! types of this crate have.

#[cfg(not(loom))]
pub use core::sync::atomic::*;
#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell as Cell;
#[cfg(loom)]
pub use loom::sync::atomic::*;

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
