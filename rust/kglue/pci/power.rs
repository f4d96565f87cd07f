// SPDX-License-Identifier: GPL-2.0
//! What the PM core and the PCI core ask of a driver whose function sleeps, fails or is reset
//! (Documentation/power/pci.rst, Documentation/PCI/pci-error-recovery.rst in Linux 7.3), or whose
//! machine goes down.
//!
//! The function's configuration, and its state of power, are saved and restored by the PCI core. A
//! machine's sleep and the image of a hibernation are one to a controller: it is told that power
//! may go away. Runtime PM is left off, as it is for any driver that does not allow it.
//!
//! `kernel::pci::Driver` (Linux 7.2 and 7.3) has none of this. It would be methods of that trait,
//! each with a default that leaves the callback out, and the private data as their argument, which
//! is what [`Binding`] has.

use core::marker::PhantomData;
use kernel::bindings;
use kernel::ffi::c_int;
use kernel::prelude::*;
use pin_init::zeroed;

use super::binding::{bound, Binding};
use crate::adapter::Suspend;
use crate::errno::to_errno;

/// The callbacks of driver `B`.
pub(super) struct Power<B>(PhantomData<B>);

impl<B: Binding> Power<B> {
    /// For the PM core.
    pub(super) const SLEEP: &'static bindings::dev_pm_ops = &bindings::dev_pm_ops {
        suspend: Some(sleeps::<B, Suspends>),
        resume: Some(sleeps::<B, Resumes>),
        freeze: Some(sleeps::<B, Suspends>),
        thaw: Some(sleeps::<B, Resumes>),
        poweroff: Some(sleeps::<B, Suspends>),
        restore: Some(sleeps::<B, Resumes>),
        ..zeroed()
    };

    /// For the PCI core.
    pub(super) const ERRORS: &'static bindings::pci_error_handlers =
        &bindings::pci_error_handlers {
            error_detected: Some(error_detected::<B>),
            slot_reset: Some(slot_reset::<B>),
            reset_prepare: Some(happens::<B, IsReset>),
            reset_done: Some(happens::<B, Resumes>),
            ..zeroed()
        };

    /// Likewise, when the machine goes down.
    pub(super) const SHUTDOWN: unsafe extern "C" fn(*mut bindings::pci_dev) =
        happens::<B, ShutsDown>;
}

/// What happens to a function.
trait Event {
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

impl Event for Suspends {
    fn befalls<B: Binding>(bound: &B) -> Result {
        // The machine stays awake.
        bound.suspend(Suspend::Sleep).then_some(()).ok_or(EBUSY)
    }
}

impl Event for IsReset {
    fn befalls<B: Binding>(bound: &B) -> Result {
        bound.suspend(Suspend::Reset);
        Ok(())
    }
}

impl Event for Resumes {
    fn befalls<B: Binding>(bound: &B) -> Result {
        bound.resume().map_err(to_errno)
    }
}

impl Event for ShutsDown {
    fn befalls<B: Binding>(bound: &B) -> Result {
        bound.shutdown();
        Ok(())
    }
}

/// # Safety
/// Called by the PM core for a function that is bound to the driver, and stays so: it holds the
/// device's lock across the callback.
unsafe extern "C" fn sleeps<B: Binding, E: Event>(dev: *mut bindings::device) -> c_int {
    // SAFETY: bound.
    match E::befalls(unsafe { bound::<B>(dev) }) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// # Safety
/// Called by the PCI core, likewise, as all below are.
unsafe extern "C" fn happens<B: Binding, E: Event>(pdev: *mut bindings::pci_dev) {
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
    let bound = unsafe { bound::<B>(&raw mut (*pdev).dev) };
    // The reset may have been for another's sake: then this one was not put to rest before.
    bound.suspend(Suspend::Frozen);
    // SAFETY: as above. What is restored is the state that the probe has saved.
    unsafe {
        bindings::pci_restore_state(pdev);
        bindings::pci_save_state(pdev);
    }
    match bound.resume() {
        Ok(()) => bindings::pci_ers_result_PCI_ERS_RESULT_RECOVERED,
        Err(_) => bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT,
    }
}
