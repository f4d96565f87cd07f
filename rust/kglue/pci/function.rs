// SPDX-License-Identifier: GPL-2.0
//! One PCI function that a driver of ours is bound to ([`Function`]), and the same one claimed:
//! enabled, registers reserved, and in the end able to master the bus ([`Claim`]). Each step of the
//! claim is a value whose drop undoes it.
//!
//! What a function is, its resources and its configuration space are the kernel crate's to tell
//! (`kernel::pci::Device`). The crate lacks (Linux 7.2 and 7.3) to end the mastering of the bus, to
//! restore a function's state, and to ask whether it is there; and it enables the mastering only in
//! a context that a thread which recovers a controller does not have (`device::Core`). Its
//! `pci::Device<Core>` enables a function for good and sets masks of 1 to 64 bits; it has no way to
//! turn the INTx pin off, nor the least alignment of a bounce buffer. Its `pci::Bar` is another
//! thing in each of the two kernels.

use core::ops::Deref;
use hal::Error;
use kernel::device::Bound;
use kernel::dma::DmaMask;
use kernel::ffi::{c_char, c_int, c_uint};
use kernel::io::Io;
use kernel::prelude::*;
use kernel::{bindings, pci};

use crate::platform::{raw_device, BoundDevice, BoundRef, Window};

/// A counted reference to a PCI function whose driver is ours. Clones are references to the same.
#[derive(Clone)]
pub struct Function(BoundRef<pci::Device>);

/// The name of who has reserved something, which the kernel shows.
///
/// # Invariants
/// It is a string that ends with zero and is there for ever.
#[repr(transparent)]
struct Holder(*const c_char);

impl Holder {
    fn new(name: &'static CStr) -> Self {
        // INVARIANT: that is what the type says.
        Self(name.as_char_ptr())
    }
}

#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for a function that is there and whose driver calls, which the crate's
// type says, and for a name that stays. Each is as its header says it: see the constants below.
unsafe extern "C" {
    /// Lets the function master the bus. Sleeps.
    safe fn pci_set_master(function: &pci::Device<Bound>);
    /// It masters the bus no more. Sleeps.
    safe fn pci_clear_master(function: &pci::Device<Bound>);
    /// Whether it answers. Any context.
    safe fn pci_device_is_present(function: &pci::Device<Bound>) -> bool;
    /// Wakes it, and lets its registers be reached; not 0: it can't be. Sleeps.
    safe fn pci_enable_device_mem(function: &pci::Device<Bound>) -> c_int;
    /// Undoes it.
    safe fn pci_disable_device(function: &pci::Device<Bound>);
    /// Keeps its configuration for [`pci_restore_state`]. Sleeps.
    pub(super) safe fn pci_save_state(function: &pci::Device<Bound>) -> c_int;
    /// Gives it back the configuration that was kept. Sleeps.
    pub(super) safe fn pci_restore_state(function: &pci::Device<Bound>);
    /// Lets it signal by its INTx pin, or not.
    safe fn pci_intx(function: &pci::Device<Bound>, on: c_int);
    /// Reserves for `holder` those windows of it that are bits of `windows`; not 0: not all of them
    /// are free, and none was reserved.
    safe fn pci_request_selected_regions(
        function: &pci::Device<Bound>,
        windows: c_int,
        holder: Holder,
    ) -> c_int;
    /// Gives back those windows of it that are bits of `windows`; one that was not reserved is
    /// told.
    safe fn pci_release_selected_regions(function: &pci::Device<Bound>, windows: c_int);
}

const _: [unsafe extern "C" fn(*mut bindings::pci_dev); 4] = [
    bindings::pci_set_master,
    bindings::pci_clear_master,
    bindings::pci_disable_device,
    bindings::pci_restore_state,
];
const _: [unsafe extern "C" fn(*mut bindings::pci_dev) -> bool; 1] =
    [bindings::pci_device_is_present];
const _: [unsafe extern "C" fn(*mut bindings::pci_dev) -> c_int; 2] =
    [bindings::pci_enable_device_mem, bindings::pci_save_state];
const _: [unsafe extern "C" fn(*mut bindings::pci_dev, c_int); 2] =
    [bindings::pci_intx, bindings::pci_release_selected_regions];
const _: [unsafe extern "C" fn(*mut bindings::pci_dev, c_int, *const c_char) -> c_int; 1] =
    [bindings::pci_request_selected_regions];

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

    /// Lets it signal by its INTx pin, or not.
    fn set_pin(&self, on: bool) {
        pci_intx(self, on.into());
    }

    /// Lets it master the bus. Sleeps.
    pub(super) fn set_master(&self) {
        pci_set_master(self);
    }

    /// Whether it is in its place, by its configuration space and by what its slot has said. Any
    /// context.
    pub(super) fn is_present(&self) -> bool {
        pci_device_is_present(self)
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
        pci_clear_master(self);
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

/// A function that its driver has claimed.
pub struct Claim {
    // Dropped in this order.
    _master: Master,
    region: Region,
    _enabled: Enabled,
    /// Bits of an address that the device was said to reach.
    reach: u32,
    align_mask: u32,
}

/// Has the function master the bus no more when it is dropped, if it did.
struct Master(Function);

/// # Invariants
/// The function was enabled by this, and the level of its pin is off unless it was taken as a
/// vector.
struct Enabled(Function);

/// A register window that is its driver's alone.
///
/// # Invariants
/// The registers of BAR `bar`, one of six, were reserved by this.
struct Region {
    function: Function,
    bar: u8,
}

impl Claim {
    /// Claims `function`, of which there is no other claim, with the register window of BAR `bar`,
    /// for `name`. DMA addresses of 64 bits, else of 32; the low bits of `align_mask` (the device's
    /// pages less one) survive a bounce buffer. Sleeps.
    pub fn new(
        function: &Function,
        bar: u8,
        name: &'static CStr,
        align_mask: u32,
    ) -> Result<Self, Error> {
        let enabled = Enabled::new(function)?;
        let region = Region::new(function, bar, name)?;
        let reach = set_dma(function, u64::BITS, align_mask)
            .or_else(|_| set_dma(function, u32::BITS, align_mask))?;
        Ok(Self {
            _master: Master(function.clone()),
            region,
            reach,
            align_mask,
            _enabled: enabled,
        })
    }

    /// Lets the function master the bus. After its device was stopped: one that runs still, with
    /// the addresses of its last driver, would write to memory that has another use by now. Sleeps.
    pub fn set_master(&self) {
        self.region.function.set_master();
    }

    /// The device reaches no address of more than `bits` bits, 1 to 64. Before DMA memory is asked
    /// for.
    pub fn limit_dma(&self, bits: u8) -> Result<(), Error> {
        let bits = u32::from(bits);
        if self.reach > bits {
            set_dma(&self.region.function, bits, self.align_mask)?;
        }
        Ok(())
    }

    /// Maps the claimed registers. Sleeps.
    pub(crate) fn window(&self) -> Result<Window, Error> {
        let (start, len) = self.region.range()?;
        // SAFETY: reserved for the driver, which the claim is of.
        unsafe { Window::new(start, len) }
    }
}

/// Has the function reach addresses of `bits` bits, in segments of any length, of which a bounce
/// buffer keeps the low bits of `align_mask`; returns `bits`. Before DMA memory is asked for.
fn set_dma(function: &Function, bits: u32, align_mask: u32) -> Result<u32, Error> {
    let mask = DmaMask::try_new(bits).map_err(|_| Error::Unsupported)?;
    let device = raw_device(&function.device());
    // SAFETY: the driver is bound.
    unsafe {
        if bindings::dma_set_mask_and_coherent(device, mask.value()) != 0 {
            return Err(Error::Unsupported);
        }
        bindings::dma_set_max_seg_size(device, c_uint::MAX);
        crate::shims::hiops_dma_set_min_align_mask(device, align_mask);
    }
    Ok(bits)
}

impl Enabled {
    fn new(function: &Function) -> Result<Self, Error> {
        if pci_enable_device_mem(function) != 0 {
            return Err(Error::Gone);
        }
        // No level on a line that is not served: the pin is silent until it is a vector.
        function.set_pin(false);
        // INVARIANT: just enabled.
        Ok(Self(function.clone()))
    }
}

impl Drop for Enabled {
    fn drop(&mut self) {
        // The pin is as a driver finds it after a reset.
        self.0.set_pin(true);
        pci_disable_device(&self.0);
    }
}

impl Region {
    fn new(function: &Function, bar: u8, name: &'static CStr) -> Result<Self, Error> {
        if pci_request_selected_regions(function, mask(bar), Holder::new(name)) != 0 {
            return Err(Error::Refused(0));
        }
        // INVARIANT: just reserved.
        Ok(Self {
            function: function.clone(),
            bar,
        })
    }

    /// Where in physical memory it is, and its length in bytes, which is not 0.
    fn range(&self) -> Result<(u64, usize), Error> {
        let malformed = |_| Error::Malformed;
        let bar = u32::from(self.bar);
        let start = self.function.resource_start(bar).map_err(malformed)?;
        let len = self.function.resource_len(bar).map_err(malformed)?;
        match usize::try_from(len) {
            Ok(len @ 1..) => Ok((start, len)),
            _ => Err(Error::Malformed),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Reserved, by the invariant.
        pci_release_selected_regions(&self.function, mask(self.bar));
    }
}

/// The bit that stands for `bar`, one of six.
fn mask(bar: u8) -> c_int {
    1i32.wrapping_shl(bar.into())
}

impl Drop for Master {
    fn drop(&mut self) {
        self.0.cut_off();
    }
}
