// SPDX-License-Identifier: GPL-2.0
//! A device that a driver of ours is bound to, for the code that serves it.
//!
//! The kernel crate (Linux 7.2 and 7.3) proves that a device is bound by a `&Device<Bound>`, which
//! lives as long as a callback of the crate's own bus drivers. What is made of a device here lives
//! from probe to unbind, in the private data of drivers that are not the crate's
//! ([`crate::pci::registration`] says why), so the proof is a counted reference with a promise.

use core::ops::Deref;
use kernel::bindings;
use kernel::device::{Bound, Device};
use kernel::sync::aref::{ARef, AlwaysRefCounted};

/// A counted reference to a device, as its bus has it, whose driver is bound. Clones are references
/// to the same.
///
/// # Invariants
/// The driver is bound for as long as the reference lives.
pub struct BoundRef<T: AlwaysRefCounted>(ARef<T>);

/// The same of a device, whatever bus it is on.
pub type BoundDevice = BoundRef<Device>;

impl<T: AlwaysRefCounted> Clone for BoundRef<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: AlwaysRefCounted + AsRef<Device>> BoundRef<T> {
    /// # Safety
    /// The type's invariant, which becomes the reference's.
    pub(crate) unsafe fn new(device: ARef<T>) -> Self {
        // INVARIANT: the caller's promise.
        Self(device)
    }

    /// It, as it is on its bus.
    pub(crate) fn on_bus(&self) -> &T {
        &self.0
    }

    /// The device that it is.
    pub(crate) fn device(&self) -> BoundDevice {
        // INVARIANT: the same device, with the same driver.
        BoundRef(self.0.as_ref().into())
    }
}

impl Deref for BoundDevice {
    type Target = Device<Bound>;

    fn deref(&self) -> &Device<Bound> {
        // SAFETY: bound, by the invariant.
        unsafe { self.0.as_bound() }
    }
}

/// The kernel's structure of `device`, whose wrapper in the kernel crate is transparent. What is
/// done with it is up to the caller.
pub(crate) fn raw(device: &Device) -> *mut bindings::device {
    core::ptr::from_ref(device).cast_mut().cast()
}
