// SPDX-License-Identifier: GPL-2.0
//! What the PM core and the PCI core ask of a driver whose function sleeps, fails or is reset
//! (Documentation/power/pci.rst, Documentation/PCI/pci-error-recovery.rst in Linux 7.3).
//!
//! The function's configuration, and its state of power, are saved and restored by the PCI core. A
//! machine's sleep and the image of a hibernation are one to a controller: it is told that power
//! may go away. Runtime PM is left off, as it is for any driver that does not allow it.

use core::marker::PhantomData;
use kernel::bindings;
use kernel::ffi::c_int;

use super::registration::{bound, Binding};
use crate::adapter::Suspend;
use crate::errno::to_errno;

/// The callbacks of driver `B`.
pub(super) struct Power<B>(PhantomData<B>);

impl<B: Binding> Power<B> {
    /// For the PM core.
    pub(super) const SLEEP: &'static bindings::dev_pm_ops = &bindings::dev_pm_ops {
        suspend: Some(suspend::<B>),
        resume: Some(resume::<B>),
        freeze: Some(suspend::<B>),
        thaw: Some(resume::<B>),
        poweroff: Some(suspend::<B>),
        restore: Some(resume::<B>),
        // SAFETY: all zeroes is no callback.
        ..unsafe { core::mem::zeroed() }
    };

    /// For the PCI core.
    pub(super) const ERRORS: &'static bindings::pci_error_handlers =
        &bindings::pci_error_handlers {
            error_detected: Some(error_detected::<B>),
            slot_reset: Some(slot_reset::<B>),
            reset_prepare: Some(reset_prepare::<B>),
            reset_done: Some(reset_done::<B>),
            // SAFETY: all zeroes is no callback.
            ..unsafe { core::mem::zeroed() }
        };
}

/// What is bound to `dev`.
///
/// # Safety
/// `dev` is the device of a PCI function that is bound to driver `B`, and stays so for `'a`: the
/// core holds its lock across each callback.
unsafe fn binding<'a, B: Binding>(pdev: *mut bindings::pci_dev) -> &'a B {
    // SAFETY: by the caller's promise.
    unsafe { &*bound::<B>(pdev) }
}

/// The PCI function that `dev` is.
///
/// # Safety
/// `dev` is a PCI function's.
unsafe fn function_of(dev: *mut bindings::device) -> *mut bindings::pci_dev {
    // SAFETY: by the caller's promise it lies in one.
    unsafe { kernel::container_of!(dev, bindings::pci_dev, dev) }
}

/// # Safety
/// Called by the PM core for a function of the driver's, as all below are by it or by the PCI core.
unsafe extern "C" fn suspend<B: Binding>(dev: *mut bindings::device) -> c_int {
    // SAFETY: bound.
    unsafe { binding::<B>(function_of(dev)) }.suspend(Suspend::Sleep);
    0
}

/// # Safety
/// See `suspend`.
unsafe extern "C" fn resume<B: Binding>(dev: *mut bindings::device) -> c_int {
    // SAFETY: bound.
    match unsafe { binding::<B>(function_of(dev)) }.resume() {
        Ok(()) => 0,
        Err(error) => to_errno(error).to_errno(),
    }
}

/// # Safety
/// See `suspend`.
unsafe extern "C" fn error_detected<B: Binding>(
    pdev: *mut bindings::pci_dev,
    channel: bindings::pci_channel_state_t,
) -> bindings::pci_ers_result_t {
    // SAFETY: bound.
    let bound = unsafe { binding::<B>(pdev) };
    match channel {
        bindings::pci_channel_io_normal => bindings::pci_ers_result_PCI_ERS_RESULT_CAN_RECOVER,
        bindings::pci_channel_io_frozen => {
            bound.suspend(Suspend::Frozen);
            bindings::pci_ers_result_PCI_ERS_RESULT_NEED_RESET
        }
        // The function is removed next, which finds that it is gone.
        _ => bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT,
    }
}

/// # Safety
/// See `suspend`.
unsafe extern "C" fn slot_reset<B: Binding>(
    pdev: *mut bindings::pci_dev,
) -> bindings::pci_ers_result_t {
    // SAFETY: bound; the core saved the state as the function was found.
    unsafe { bindings::pci_restore_state(pdev) };
    // SAFETY: bound.
    match unsafe { binding::<B>(pdev) }.resume() {
        Ok(()) => bindings::pci_ers_result_PCI_ERS_RESULT_RECOVERED,
        Err(_) => bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT,
    }
}

/// # Safety
/// See `suspend`.
unsafe extern "C" fn reset_prepare<B: Binding>(pdev: *mut bindings::pci_dev) {
    // SAFETY: bound.
    unsafe { binding::<B>(pdev) }.suspend(Suspend::Reset);
}

/// # Safety
/// See `suspend`.
unsafe extern "C" fn reset_done<B: Binding>(pdev: *mut bindings::pci_dev) {
    // What is wrong is told there.
    // SAFETY: bound.
    let _ = unsafe { binding::<B>(pdev) }.resume();
}
