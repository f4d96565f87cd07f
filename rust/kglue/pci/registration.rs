// SPDX-License-Identifier: GPL-2.0
//! A PCI driver with the PCI core: what a driver makes of a function ([`Binding`]), its
//! registration, probe and remove; and what the PM core and the PCI core ask of it when the
//! function sleeps, fails or is reset (Documentation/power/pci.rst,
//! Documentation/PCI/pci-error-recovery.rst in Linux 7.3), or the machine goes down.
//!
//! It has an empty ID table: nothing is ever bound by class or by ID, and no modalias leads to it.
//! A function comes here only when the operator wrote the driver's name to its `driver_override`.
//!
//! The function's configuration, and its state of power, are saved and restored by the PCI core. A
//! machine's sleep and the image of a hibernation are one to a controller: it is told that power
//! may go away. Runtime PM is left off, as it is for any driver that does not allow it.
//!
//! `kernel::pci::Driver` (Linux 7.2 and 7.3) is a driver's probe and unbind. It lacks shutdown,
//! sleep and errors, and in 7.2 its probe trusts that the ID that it is called with is one of its
//! table, which is not so for a function that has a `driver_override`. [`Binding`] is the shape
//! that the missing ones could have there: methods of that trait, each with a default that leaves
//! the callback out, and the private data as their argument.

use core::marker::PhantomData;
use core::pin::Pin;
use hal::Error;
use kernel::device::Bound;
use kernel::error::{from_result, to_result};
use kernel::ffi::c_int;
use kernel::prelude::*;
use kernel::types::Opaque;
use kernel::{bindings, pci};
use pin_init::zeroed;

use crate::adapter::Suspend;
use crate::errno::{advice, to_errno};
use crate::pci::function::{pci_restore_state, pci_save_state};
use crate::pci::Function;
use crate::platform::raw_device;
use crate::shims;

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

    /// It is not brought back any more: what was put to rest is dead, and so is what does not
    /// answer. Sleeps.
    fn give_up(&self);
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
                pci_save_state(&function);
                // SAFETY: the driver's data is this driver's to set while it is bound.
                unsafe { bindings::dev_set_drvdata(raw_device(&device), bound) };
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

/// What probe left for the function whose device is `dev`.
///
/// # Safety
/// It is bound to driver `B`, and stays so for `'a`.
unsafe fn bound<'a, B: Binding>(dev: *mut bindings::device) -> &'a B {
    // SAFETY: bound, so it lives and the probe has set the data, a box that only `remove` takes.
    unsafe { &*bindings::dev_get_drvdata(dev).cast() }
}

/// The callbacks of driver `B`.
struct Power<B>(PhantomData<B>);

impl<B: Binding> Power<B> {
    /// For the PM core.
    const SLEEP: &'static bindings::dev_pm_ops = &bindings::dev_pm_ops {
        suspend: Some(sleeps::<B, Suspends>),
        resume: Some(sleeps::<B, Resumes>),
        freeze: Some(sleeps::<B, Suspends>),
        thaw: Some(sleeps::<B, Resumes>),
        poweroff: Some(sleeps::<B, Suspends>),
        restore: Some(sleeps::<B, Resumes>),
        ..zeroed()
    };

    /// For the PCI core.
    const ERRORS: &'static bindings::pci_error_handlers = &bindings::pci_error_handlers {
        error_detected: Some(error_detected::<B>),
        slot_reset: Some(slot_reset::<B>),
        reset_prepare: Some(happens::<B, IsReset>),
        reset_done: Some(happens::<B, Resumes>),
        ..zeroed()
    };

    /// The callback for a machine that goes down.
    const SHUTDOWN: unsafe extern "C" fn(*mut bindings::pci_dev) = happens::<B, ShutsDown>;
}

/// What happens to a function.
trait DeviceCall {
    /// Sees to it. An error was told.
    fn befalls<B: Binding>(bound: &B) -> Result;
}

/// Power may go away.
enum Suspends {}
/// The function is about to be reset.
enum IsReset {}
/// It is back.
enum Resumes {}
/// The machine goes down.
enum ShutsDown {}

impl DeviceCall for Suspends {
    fn befalls<B: Binding>(bound: &B) -> Result {
        // The machine stays awake.
        bound.suspend(Suspend::Sleep).then_some(()).ok_or(EBUSY)
    }
}

impl DeviceCall for IsReset {
    fn befalls<B: Binding>(bound: &B) -> Result {
        bound.suspend(Suspend::Reset);
        Ok(())
    }
}

impl DeviceCall for Resumes {
    fn befalls<B: Binding>(bound: &B) -> Result {
        bound.resume().map_err(to_errno)
    }
}

impl DeviceCall for ShutsDown {
    fn befalls<B: Binding>(bound: &B) -> Result {
        bound.shutdown();
        Ok(())
    }
}

/// # Safety
/// Called by the PM core for a function that is bound to the driver, and stays so: it holds the
/// device's lock across the callback.
unsafe extern "C" fn sleeps<B: Binding, E: DeviceCall>(dev: *mut bindings::device) -> c_int {
    // SAFETY: bound.
    match E::befalls(unsafe { bound::<B>(dev) }) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// # Safety
/// Called by the PCI core, as all below are, for a function that is bound to the driver and stays
/// so.
unsafe extern "C" fn happens<B: Binding, E: DeviceCall>(pdev: *mut bindings::pci_dev) {
    // What is wrong is told there.
    // SAFETY: bound.
    let _ = E::befalls(unsafe { bound::<B>(&raw mut (*pdev).dev) });
}

/// # Safety
/// See `happens`.
unsafe extern "C" fn error_detected<B: Binding>(
    pdev: *mut bindings::pci_dev,
    channel: bindings::pci_channel_state_t,
) -> bindings::pci_ers_result_t {
    // SAFETY: bound, and so it stays while the core holds the device's lock.
    let bound = unsafe { bound::<B>(&raw mut (*pdev).dev) };
    match channel {
        bindings::pci_channel_io_normal => bindings::pci_ers_result_PCI_ERS_RESULT_CAN_RECOVER,
        bindings::pci_channel_io_frozen => {
            bound.suspend(Suspend::Frozen);
            bindings::pci_ers_result_PCI_ERS_RESULT_NEED_RESET
        }
        // Nothing follows: no reset, and no removal either.
        _ => {
            bound.give_up();
            bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT
        }
    }
}

/// # Safety
/// See `happens`.
unsafe extern "C" fn slot_reset<B: Binding>(
    pdev: *mut bindings::pci_dev,
) -> bindings::pci_ers_result_t {
    // SAFETY: bound, and so it stays while the core holds the device's lock.
    let (function, bound) = unsafe {
        let function: &pci::Device<Bound> = &*pdev.cast();
        (function, bound::<B>(&raw mut (*pdev).dev))
    };
    // The reset may have been for another's sake: then this one was not put to rest before.
    bound.suspend(Suspend::Frozen);
    // To the state that the probe has saved.
    pci_restore_state(function);
    pci_save_state(function);
    match bound.resume() {
        Ok(()) => bindings::pci_ers_result_PCI_ERS_RESULT_RECOVERED,
        Err(_) => bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT,
    }
}
