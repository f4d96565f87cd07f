// SPDX-License-Identifier: GPL-2.0
//! One PCI function that a driver of ours is bound to.
//!
//! What it is, its resources and its configuration space are the kernel crate's to tell
//! (`kernel::pci::Device`). The crate lacks (Linux 7.2 and 7.3) to end the mastering of the bus, to
//! restore a function's state, and to ask whether it is there; and it enables the mastering only in
//! a context that a thread which recovers a controller does not have (`device::Core`).

use core::ops::Deref;
use hal::Error;
use kernel::bindings;
use kernel::device::Bound;
use kernel::io::Io;
use kernel::pci;

use crate::device::{BoundDevice, BoundRef};

/// A counted reference to a PCI function whose driver is ours. Clones are references to the same.
#[derive(Clone)]
pub struct Function(BoundRef<pci::Device>);

impl Deref for Function {
    type Target = pci::Device<Bound>;

    fn deref(&self) -> &pci::Device<Bound> {
        // SAFETY: bound, by the reference's invariant; the two types are the same structure's.
        unsafe { &*self.as_raw().cast() }
    }
}

impl Function {
    /// A reference of its own to `pdev`.
    ///
    /// # Safety
    /// Called by the probe of a driver of ours with the function that it is called for; what is
    /// made of the result goes when the probe fails, or else when the function is unbound.
    pub(super) unsafe fn new(pdev: *mut bindings::pci_dev) -> Self {
        // SAFETY: the PCI core has a reference across the callback, and the wrapper is transparent.
        // It is bound for as long, by the caller's promise.
        Self(unsafe { BoundRef::new((&*pdev.cast::<pci::Device>()).into()) })
    }

    /// The kernel's structure.
    pub fn as_raw(&self) -> *mut bindings::pci_dev {
        core::ptr::from_ref(self.0.on_bus()).cast_mut().cast()
    }

    /// The device that it is.
    pub fn device(&self) -> BoundDevice {
        self.0.device()
    }

    /// Its class code: class, subclass, programming interface, from the high byte down.
    pub fn class(&self) -> u32 {
        self.pci_class().as_raw()
    }

    /// Who made it.
    pub fn ids(&self) -> hal::PciIds {
        hal::PciIds {
            vendor: self.vendor_id().as_raw(),
            device: self.device_id(),
            subvendor: self.subsystem_vendor_id(),
            subdevice: self.subsystem_device_id(),
            revision: self.revision_id(),
        }
    }

    /// Does with it what `verb` is for: one of those of the PCI core that ask for nothing but a
    /// function of the caller's.
    pub(super) fn tell<R>(&self, verb: unsafe extern "C" fn(*mut bindings::pci_dev) -> R) -> R {
        // SAFETY: alive, and its driver ours, by the reference's invariant.
        unsafe { verb(self.as_raw()) }
    }

    /// Lets it signal by its INTx pin, or not.
    pub(super) fn set_pin(&self, on: bool) {
        // SAFETY: as in `tell`.
        unsafe { bindings::pci_intx(self.as_raw(), on.into()) };
    }

    /// Lets it master the bus. Sleeps.
    pub(super) fn set_master(&self) {
        self.tell(bindings::pci_set_master);
    }

    /// Whether it is in its place, by its configuration space and by what its slot has said. Any
    /// context.
    pub(super) fn is_present(&self) -> bool {
        self.tell(bindings::pci_device_is_present)
    }

    /// Lets it master the bus again, if it is there. Sleeps.
    pub(super) fn master_again(&self) -> Result<(), Error> {
        if !self.is_present() {
            return Err(Error::Gone);
        }
        self.set_master();
        Ok(())
    }

    /// It masters the bus no more: nothing of it reaches memory. In configuration space, so a hung
    /// device obeys, too.
    pub(super) fn cut_off(&self) {
        self.tell(bindings::pci_clear_master);
    }

    /// Turns on `ports` of an HBA of Intel's, one bit each, in its register PCS: what its reset may
    /// have turned off. Others stay as they are.
    pub(super) fn turn_on_ports(&self, ports: u32) {
        // Port control and status; six ports and more, by the chipset.
        const PCS: usize = 0x92;
        // CAST: 16 ports are all that the register has.
        let ports = ports as u16;
        let config = self.config_space();
        // One that can't be read reads as all ones.
        if let Ok(on) = config.try_read16(PCS) {
            if on & ports != ports {
                let _ = config.try_write16(on | ports, PCS);
            }
        }
    }
}
