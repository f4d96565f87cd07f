// SPDX-License-Identifier: GPL-2.0
//! A PCI driver with the PCI core: registration, probe, remove, shutdown; sleep and errors are in
//! [`super::power`].
//!
//! It has an empty ID table: nothing is ever bound by class or by ID, and no modalias leads to it.
//! A function comes here only when the operator wrote the driver's name to its `driver_override`.
//!
//! `kernel::pci::Driver` (Linux 7.2 and 7.3) is a driver's probe and unbind. It lacks shutdown,
//! sleep and errors, and in 7.2 its probe trusts that the ID that it is called with is one of its
//! table, which is not so for a function that has a `driver_override`. [`Binding`] is the shape
//! that the missing ones could have there.

use core::pin::Pin;
use kernel::bindings;
use kernel::error::{from_result, to_result};
use kernel::ffi::c_int;
use kernel::prelude::*;
use kernel::types::Opaque;

use super::binding::{Binding, Failed};
use super::power::Power;
use super::Function;
use crate::device::raw;
use crate::errno::{advice, to_errno};
use crate::shims;

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
            shutdown: Some(Power::<B>::SHUTDOWN),
            err_handler: Power::<B>::ERRORS,
            // As in tree: virtual functions are other drivers' to serve, or other machines'.
            sriov_configure: Some(shims::hiops_sriov_configure),
            driver: bindings::device_driver {
                pm: Power::<B>::SLEEP,
                ..Default::default()
            },
            ..Default::default()
        };
        let driver = KBox::pin(Opaque::new(driver), GFP_KERNEL)?;
        // SAFETY: a complete driver, in its place until `drop` unregisters it; its callbacks are in
        // this module.
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
/// Called by the PCI core, which holds the device's lock across this and across all other
/// callbacks.
unsafe extern "C" fn probe<B: Binding>(
    pdev: *mut bindings::pci_dev,
    _id: *const bindings::pci_device_id,
) -> c_int {
    from_result(|| {
        // SAFETY: this is the probe; what is made of the function goes when `remove` is called, or
        // here (`Binding`).
        let function = unsafe { Function::new(pdev) };
        let device = function.device();
        match B::new(&function) {
            Ok(bound) => {
                let bound = KBox::into_raw(bound).cast();
                // What a reset by the core's error recovery gives back (`slot_reset`): the one that
                // the core has saved is of before it was enabled.
                function.tell(bindings::pci_save_state);
                // SAFETY: the driver's data is this driver's to set while it is bound.
                unsafe { bindings::dev_set_drvdata(raw(&device), bound) };
                Ok(0)
            }
            Err(Failed(what, error)) => {
                dev_err!(
                    device,
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

/// # Safety
/// See `probe`.
unsafe extern "C" fn remove<B: Binding>(pdev: *mut bindings::pci_dev) {
    // SAFETY: called once, after a probe that succeeded, which gave the box away.
    let bound =
        unsafe { KBox::<B>::from_raw(bindings::dev_get_drvdata(&raw mut (*pdev).dev).cast()) };
    bound.remove();
}
