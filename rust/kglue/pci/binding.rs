// SPDX-License-Identifier: GPL-2.0
//! What a driver makes of a function that is bound to it, and does with it: the shape that
//! `kernel::pci::Driver` could have.

use hal::Error;
use kernel::bindings;
use kernel::prelude::*;

use super::Function;
use crate::adapter::Suspend;

/// The step at which a probe failed, and why.
pub struct Failed(pub(crate) &'static str, pub(crate) Error);

/// A function that is bound to a driver; what probe leaves behind for remove.
///
/// # Safety
/// What [`Binding::new`] makes of the function, clones of it and of its device among it, goes with
/// an error or with the result's drop.
pub unsafe trait Binding: Sized + Send + Sync + 'static {
    /// The driver's name, as in `driver_override`.
    const NAME: &'static CStr;

    /// Everything from an enabled function to its disks; on failure all of it is undone. Sleeps.
    fn new(function: &Function) -> Result<KBox<Self>, Failed>;

    /// The function is unbound: before the drop. Sleeps.
    fn remove(&self);

    /// The machine goes down. Sleeps.
    fn shutdown(&self);

    /// It is put to rest until [`Binding::resume`]. `false`, of a machine's sleep alone: what is
    /// under way does not end, which was told; it goes on, and the machine must not sleep. Sleeps.
    fn suspend(&self, why: Suspend) -> bool;

    /// It goes on, after [`Binding::suspend`] or without it. An error, which was told: it is dead.
    /// Sleeps.
    fn resume(&self) -> Result<(), Error>;

    /// Nobody brings it back any more: what was put to rest is dead, and so is what does not
    /// answer. Sleeps.
    fn give_up(&self);
}

/// What probe left for the function whose device is `dev`.
///
/// # Safety
/// It is bound to driver `B`, and stays so for `'a`.
pub(super) unsafe fn bound<'a, B: Binding>(dev: *mut bindings::device) -> &'a B {
    // SAFETY: bound, so it lives and the probe has set the data, a box that only `remove` takes.
    unsafe { &*bindings::dev_get_drvdata(dev).cast() }
}
