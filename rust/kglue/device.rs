// SPDX-License-Identifier: GPL-2.0
//! A device that a driver of ours is bound to, for whoever serves it.
//!
//! The kernel crate (Linux 7.2 and 7.3) proves that a device is bound by a `&Device<Bound>`, which
//! lives as long as a callback of the crate's own bus drivers. What is made of a device here lives
//! from probe to unbind, in the private data of drivers that are not the crate's
//! ([`crate::pci::registration`] says why), so the proof is a counted reference with a promise.

use core::ops::Deref;
use kernel::bindings;
use kernel::device::{Bound, Device};
use kernel::sync::aref::ARef;

use crate::pci::Function;

/// A counted reference to a device whose driver is bound. Clones are references to the same.
///
/// # Invariants
/// Its driver is bound for as long as the reference lives.
#[derive(Clone)]
pub struct BoundDevice(ARef<Device>);

impl BoundDevice {
    /// The device that `function` is.
    pub(crate) fn of(function: &Function) -> Self {
        // INVARIANT: a function's driver is bound while there is a reference to it.
        Self(AsRef::<Device>::as_ref(&***function).into())
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
/// done with it is up to who knows how.
pub(crate) fn raw(device: &Device) -> *mut bindings::device {
    core::ptr::from_ref(device).cast_mut().cast()
}
