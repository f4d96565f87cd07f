// SPDX-License-Identifier: GPL-2.0
//! Whom a timer or a work item calls.

use core::ptr::NonNull;
use kernel::sync::SetOnce;

/// An object that is named once, when it has found its place, and called for ever after.
///
/// # Invariants
/// What it has is valid for as long as anybody asks for it.
pub(crate) struct Aim<T: ?Sized>(SetOnce<NonNull<T>>);

// SAFETY: all that is got of it is a shared reference.
unsafe impl<T: ?Sized + Sync> Send for Aim<T> {}
// SAFETY: as above; who is first to set it is told apart.
unsafe impl<T: ?Sized + Sync> Sync for Aim<T> {}

impl<T: ?Sized> Aim<T> {
    pub(crate) const fn new() -> Self {
        Self(SetOnce::new())
    }

    /// Names it; the first one counts.
    ///
    /// # Safety
    /// `target` stays where it is, and is valid until nobody asks for it any more.
    pub(crate) unsafe fn set(&self, target: NonNull<T>) {
        // INVARIANT: by the caller's promise.
        self.0.populate(target);
    }

    /// It, if it was named. Any context.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: valid, by the invariant.
        self.0.as_ref().map(|target| unsafe { target.as_ref() })
    }
}
