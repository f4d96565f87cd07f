// SPDX-License-Identifier: GPL-2.0
//! A PCI driver with the PCI core: registration, probe, remove, shutdown; sleep and errors are in
//! [`super::power`].
//!
//! It has an empty ID table: nothing is ever bound by class or by ID, and no modalias leads to it. A function comes here only when the operator
//! wrote the driver's name to its `driver_override`.

use core::pin::Pin;
use core::ptr::NonNull;
use hal::Error;
use kernel::bindings;
use kernel::error::{from_result, to_result};
use kernel::ffi::c_int;
use kernel::prelude::*;
use kernel::types::Opaque;

use super::power::Power;
use super::Function;
use crate::adapter::Suspend;
use crate::errno::{advice, to_errno};

/// The step at which a probe failed, and why.
pub struct Failed(pub(crate) &'static str, pub(crate) Error);

/// A function that is bound to a driver; what probe leaves behind for remove.
pub trait Binding: Sized + Send + Sync + 'static {
    /// The driver's name, as in `driver_override`.
    const NAME: &'static CStr;

    /// Everything from an enabled function to its disks; on failure all of it is undone. Sleeps.
    ///
    /// # Safety
    /// As [`super::Claim::new`].
    unsafe fn new(function: &Function) -> Result<KBox<Self>, Failed>;

    /// The function is unbound: before the drop. Sleeps.
    fn remove(&self);

    /// The machine goes down. Sleeps.
    fn shutdown(&self);

    /// It is put to rest until [`Binding::resume`]. Sleeps.
    fn suspend(&self, why: Suspend);

    /// It goes on, after [`Binding::suspend`] or without it. An error, which was told: it is dead.
    /// Sleeps.
    fn resume(&self) -> Result<(), Error>;
}

/// A registered PCI driver; unregistered, with all functions unbound, when dropped.
///
/// # Invariants
/// The structure is registered with the PCI core, and stays where it is.
pub struct Registration<B: Binding> {
    driver: Pin<KBox<Opaque<bindings::pci_driver>>>,
    _driver: core::marker::PhantomData<B>,
}

// SAFETY: registration belongs to no thread.
unsafe impl<B: Binding> Send for Registration<B> {}
// SAFETY: nothing can be done with a shared reference.
unsafe impl<B: Binding> Sync for Registration<B> {}

impl<B: Binding> Registration<B> {
    /// Registers the driver for `module`. Sleeps.
    pub fn new(module: &'static ThisModule) -> kernel::error::Result<Self> {
        let driver = bindings::pci_driver {
            name: B::NAME.as_char_ptr(),
            probe: Some(probe::<B>),
            remove: Some(remove::<B>),
            shutdown: Some(shutdown::<B>),
            err_handler: Power::<B>::ERRORS,
            driver: bindings::device_driver {
                pm: Power::<B>::SLEEP,
                ..Default::default()
            },
            ..Default::default()
        };
        let driver = KBox::pin(Opaque::new(driver), GFP_KERNEL)?;
        // SAFETY: a complete driver, in its place until `drop` unregisters it; its callbacks are in this module.
        to_result(unsafe {
            bindings::__pci_register_driver(driver.get(), module.as_ptr(), B::NAME.as_char_ptr())
        })?;
        // INVARIANT: registered.
        Ok(Self {
            driver,
            _driver: core::marker::PhantomData,
        })
    }
}

impl<B: Binding> Drop for Registration<B> {
    fn drop(&mut self) {
        // SAFETY: registered in `new`. It removes the driver from all its functions first.
        unsafe { bindings::pci_unregister_driver(self.driver.get()) }
    }
}

/// # Safety
/// Called by the PCI core, as all below.
unsafe extern "C" fn probe<B: Binding>(
    pdev: *mut bindings::pci_dev,
    _id: *const bindings::pci_device_id,
) -> c_int {
    from_result(|| {
        let pdev = NonNull::new(pdev).ok_or(EINVAL)?;
        // SAFETY: the core holds a reference across the callback.
        let function = unsafe { Function::new(pdev) };
        // SAFETY: this is the probe; the result goes when `remove` is called, or here.
        match unsafe { B::new(&function) } {
            Ok(bound) => {
                let bound = KBox::into_raw(bound).cast();
                // SAFETY: the driver's data is this driver's to set while it is bound.
                unsafe { bindings::dev_set_drvdata(function.device(), bound) };
                Ok(0)
            }
            Err(Failed(what, error)) => {
                dev_err!(
                    function.log(),
                    "{}: {} failed ({:?}): {}\n",
                    B::NAME,
                    what,
                    error,
                    advice(error)
                );
                Err(to_errno(error))
            }
        }
    })
}

/// What probe left for `pdev`.
///
/// # Safety
/// `pdev` is bound to driver `B`.
pub(super) unsafe fn bound<B: Binding>(pdev: *mut bindings::pci_dev) -> *mut B {
    // SAFETY: bound, so it lives and `probe` has set the data.
    unsafe { bindings::dev_get_drvdata(core::ptr::addr_of_mut!((*pdev).dev)).cast() }
}

/// # Safety
/// See `probe`.
unsafe extern "C" fn remove<B: Binding>(pdev: *mut bindings::pci_dev) {
    // SAFETY: called once, after a probe that succeeded, which gave the box away.
    let bound = unsafe { KBox::from_raw(bound::<B>(pdev)) };
    bound.remove();
}

/// # Safety
/// See `probe`.
unsafe extern "C" fn shutdown<B: Binding>(pdev: *mut bindings::pci_dev) {
    // SAFETY: called while bound, and not during `remove`: the core holds the device's lock across both.
    let bound = unsafe { &*bound::<B>(pdev) };
    bound.shutdown();
}
