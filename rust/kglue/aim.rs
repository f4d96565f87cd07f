// SPDX-License-Identifier: GPL-2.0
//! Whom a timer or a work item calls.

use core::ptr::NonNull;
use kernel::sync::SetOnce;

/// An object that others may call: it stays where it is, and alive, until they were silenced.
/// Copies lead to the same object.
///
/// # Invariants
/// The object is valid for as long as anybody asks for it, by the promise given to [`Stays::new`].
pub(crate) struct Stays<T: ?Sized>(NonNull<T>);

impl<T: ?Sized> Clone for Stays<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Stays<T> {}

// SAFETY: all that is got of it is a shared reference.
unsafe impl<T: ?Sized + Sync> Send for Stays<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for Stays<T> {}

impl<T> Stays<T> {
    /// # Safety
    /// `it` stays where it is, and alive, with all of its that is not behind a lock, until
    /// everybody whom the result is handed to was silenced for good; each of them says how that is
    /// done.
    pub(crate) unsafe fn new(it: &T) -> Self {
        // INVARIANT: by the caller's promise.
        Self(NonNull::from(it))
    }
}

impl<T: ?Sized> Stays<T> {
    /// Likewise of what `f` finds of it, if it does.
    pub(crate) fn part<U>(
        self,
        f: impl for<'a> FnOnce(&'a T) -> Option<&'a U>,
    ) -> Option<Stays<U>> {
        // INVARIANT: what `f` returns is borrowed from the object, hence as valid.
        f(self.get()).map(|part| Stays(NonNull::from(part)))
    }

    /// Likewise of what `f` sees in it, a trait that it has.
    pub(crate) fn seen_as<U: ?Sized>(self, f: for<'a> fn(&'a T) -> &'a U) -> Stays<U> {
        // INVARIANT: as in `part`.
        Stays(NonNull::from(f(self.get())))
    }

    /// The object. Any context.
    #[inline(always)]
    pub(crate) fn get(&self) -> &T {
        // SAFETY: valid, by the invariant.
        unsafe { self.0.as_ref() }
    }
}

/// An object that is named once, when it has found its place, and called for ever after.
pub(crate) struct Aim<T: ?Sized>(SetOnce<Stays<T>>);

impl<T: ?Sized> Aim<T> {
    pub(crate) const fn new() -> Self {
        Self(SetOnce::new())
    }

    /// Names it; the first one counts.
    pub(crate) fn set(&self, target: Stays<T>) {
        self.0.populate(target);
    }

    /// It, if it was named. Any context.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref().map(Stays::get)
    }
}
