// SPDX-License-Identifier: GPL-2.0
//! PCI: a function claimed by its driver, and the bus as the adapter sees it.
//!
//! * [`Function`]: a reference to one PCI function.
//! * [`Claim`]: the function enabled, its register window reserved, bus master on; undone in reverse order when dropped.
//! * [`PciBus`]: what the [`crate::adapter::Adapter`] needs of the function.
//! * [`registration`]: a driver with the PCI core: probe, remove, shutdown, and what [`power`]
//!   adds: sleep, errors, resets. [`driver`]: one made of a hal controller. [`hba`]: one made of an
//!   HBA, whose ports are the controllers ([`port`]).

use core::ptr::{addr_of_mut, NonNull};
use hal::Error;
use kernel::bindings;
use kernel::device::Device;
use kernel::ffi::{c_int, c_uint};
use kernel::prelude::*;

use crate::adapter::Bus;
use crate::blk::DmaMap;
use crate::irq::Vectors;
use crate::mmio::Window;

pub mod driver;
pub mod hba;
pub mod port;
mod power;
pub mod registration;

/// A counted reference to a PCI function.
///
/// # Invariants
/// `pdev` is a PCI device to which this holds a reference.
pub struct Function {
    pdev: NonNull<bindings::pci_dev>,
}

// SAFETY: references to PCI devices may be used and dropped by any thread.
unsafe impl Send for Function {}
// SAFETY: as above; what is called on it either may be called concurrently or is called by the driver core's callbacks, one at a time.
unsafe impl Sync for Function {}

impl Function {
    /// A reference of its own to `pdev`.
    ///
    /// # Safety
    /// The caller has a reference to `pdev`.
    unsafe fn new(pdev: NonNull<bindings::pci_dev>) -> Self {
        // SAFETY: alive, by the caller's promise.
        unsafe { bindings::pci_dev_get(pdev.as_ptr()) };
        // INVARIANT: just taken.
        Self { pdev }
    }

    /// The kernel's structure.
    pub fn as_raw(&self) -> *mut bindings::pci_dev {
        self.pdev.as_ptr()
    }

    /// The kernel's structure of the device that the function is.
    pub fn device(&self) -> *mut bindings::device {
        // SAFETY: alive by the invariant; no reference is made, only an address.
        unsafe { addr_of_mut!((*self.as_raw()).dev) }
    }

    /// Its class code: class, subclass, programming interface, from the high byte down.
    pub fn class(&self) -> u32 {
        // SAFETY: alive by the invariant; set when the function was found.
        unsafe { (*self.as_raw()).class }
    }

    /// Who made it.
    pub fn ids(&self) -> hal::PciIds {
        // SAFETY: alive by the invariant; all of it is set when the function is found.
        let pdev = unsafe { &*self.as_raw().cast_const() };
        hal::PciIds {
            vendor: pdev.vendor,
            device: pdev.device,
            subvendor: pdev.subsystem_vendor,
            subdevice: pdev.subsystem_device,
            revision: pdev.revision,
        }
    }

    /// The device, to name it in the log.
    pub fn log(&self) -> &Device {
        // SAFETY: alive as long as `self`.
        unsafe { Device::from_raw(self.device()) }
    }
}

impl Clone for Function {
    fn clone(&self) -> Self {
        // SAFETY: `self` is a reference.
        unsafe { Self::new(self.pdev) }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // SAFETY: taken in `new`.
        unsafe { bindings::pci_dev_put(self.as_raw()) }
    }
}

/// A function that its driver has claimed: enabled, registers reserved, able to master the bus. Each step is a value whose drop undoes it.
pub struct Claim {
    // Dropped in this order.
    _master: Master,
    region: Region,
    _enabled: Enabled,
}

struct Master(Function);
struct Enabled(Function);
struct Region {
    function: Function,
    bar: c_int,
}

impl Claim {
    /// Claims `function` with the register window of BAR `bar`, for `name`. DMA addresses of 64 bits, else of 32; the low bits of `align_mask` (the
    /// device's pages less one) survive a bounce buffer. Sleeps.
    ///
    /// # Safety
    /// Called in the probe of the function's driver; the result is dropped before the driver is unbound.
    pub unsafe fn new(
        function: &Function,
        bar: u8,
        name: &'static CStr,
        align_mask: u32,
    ) -> Result<Self, Error> {
        let pdev = function.as_raw();
        // SAFETY: in probe the function is this driver's, by the caller's promise.
        if unsafe { bindings::pci_enable_device_mem(pdev) } != 0 {
            return Err(Error::Gone);
        }
        let enabled = Enabled(function.clone());
        // No level on a line that nobody serves: the pin stays silent until it is taken as a vector.
        // SAFETY: as above.
        unsafe { bindings::pci_intx(pdev, 0) };

        let bar = c_int::from(bar);
        // SAFETY: as above; the name is static.
        let errno =
            unsafe { bindings::pci_request_selected_regions(pdev, mask(bar), name.as_char_ptr()) };
        if errno != 0 {
            return Err(Error::Refused(0));
        }
        let region = Region {
            function: function.clone(),
            bar,
        };

        Self::set_dma(function, align_mask)?;
        // SAFETY: as above.
        unsafe { bindings::pci_set_master(pdev) };
        Ok(Self {
            _master: Master(function.clone()),
            region,
            _enabled: enabled,
        })
    }

    fn set_dma(function: &Function, align_mask: u32) -> Result<(), Error> {
        let dev = function.device();
        // SAFETY: the device is bound to this driver, and no DMA memory was asked for yet.
        let errno = unsafe {
            match bindings::dma_set_mask_and_coherent(dev, u64::MAX) {
                0 => 0,
                _ => bindings::dma_set_mask_and_coherent(dev, u64::from(u32::MAX)),
            }
        };
        if errno != 0 {
            return Err(Error::Unsupported);
        }
        // SAFETY: as above.
        unsafe {
            bindings::dma_set_max_seg_size(dev, c_uint::MAX);
            crate::shims::hiops_dma_set_min_align_mask(dev, align_mask);
        }
        Ok(())
    }

    /// The device reaches no address of more than `bits` bits, 1 to 64. Before DMA memory is asked
    /// for.
    pub fn limit_dma(&self, bits: u8) -> Result<(), Error> {
        let beyond = u64::BITS.saturating_sub(u32::from(bits));
        let mask = u64::MAX.checked_shr(beyond).unwrap_or(0);
        let device = self.region.function.device();
        // SAFETY: the device is bound to this driver, and has no DMA memory yet. The mask is what
        // was set when it was claimed.
        let reached = unsafe { (*device).coherent_dma_mask };
        if reached <= mask {
            return Ok(());
        }
        // SAFETY: as above.
        let errno = unsafe { bindings::dma_set_mask_and_coherent(device, mask) };
        match errno {
            0 => Ok(()),
            _ => Err(Error::Unsupported),
        }
    }

    /// Maps the claimed register window. Sleeps.
    pub fn map(&self) -> Result<Window, Error> {
        let (pdev, bar) = (self.region.function.as_raw(), self.region.bar);
        // SAFETY: the reference keeps the function's resources readable; the BAR is one of a type 0 header.
        let (start, len) = unsafe {
            (
                bindings::pci_resource_start(pdev, bar),
                bindings::pci_resource_len(pdev, bar),
            )
        };
        let len = usize::try_from(len).map_err(|_| Error::Malformed)?;
        if len == 0 {
            return Err(Error::Malformed);
        }
        // SAFETY: these registers are reserved for this driver.
        unsafe { Window::new(start, len) }
    }
}

/// The bit that stands for `bar`, one of six.
fn mask(bar: c_int) -> c_int {
    1i32.wrapping_shl(bar.unsigned_abs())
}

impl Drop for Master {
    fn drop(&mut self) {
        // SAFETY: the function is still this driver's (promise given to `Claim::new`).
        unsafe { bindings::pci_clear_master(self.0.as_raw()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: reserved in `Claim::new`.
        unsafe { bindings::pci_release_selected_regions(self.function.as_raw(), mask(self.bar)) }
    }
}

impl Drop for Enabled {
    fn drop(&mut self) {
        // SAFETY: enabled in `Claim::new`; the pin is as a driver finds it after a reset.
        unsafe {
            bindings::pci_intx(self.0.as_raw(), 1);
            bindings::pci_disable_device(self.0.as_raw());
        }
    }
}

/// Lets a claimed function master the bus again, if it is there. Sleeps.
fn enable_bus_master(function: &Function) -> Result<(), Error> {
    // SAFETY: the function is its driver's while it is claimed.
    unsafe {
        if !bindings::pci_device_is_present(function.as_raw()) {
            return Err(Error::Gone);
        }
        bindings::pci_set_master(function.as_raw());
    }
    Ok(())
}

/// Turns on `ports` of an HBA of Intel's, one bit each, in its register PCS: what its reset may
/// have turned off. Others stay as they are.
fn turn_on_ports(function: &Function, ports: u32) {
    // Port control and status; six ports and more, by the chipset.
    const PCS: c_int = 0x92;
    // CAST: 16 ports are all that the register has.
    let (ports, mut on) = (ports as u16, 0);
    // SAFETY: the function is its driver's while it is claimed; the register is its own.
    unsafe {
        let read = bindings::pci_read_config_word(function.as_raw(), PCS, &mut on);
        if read == 0 && on & ports != ports {
            bindings::pci_write_config_word(function.as_raw(), PCS, on | ports);
        }
    }
}

/// The bus side of a function, for its adapter.
pub struct PciBus {
    function: Function,
    vectors: Vectors,
}

impl PciBus {
    /// The bus side of `function`, which is claimed for as long as this lives, with `vectors` of its own.
    pub fn new(function: &Function, vectors: Vectors) -> Self {
        Self {
            function: function.clone(),
            vectors,
        }
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Its vectors.
    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }
}

impl Bus for PciBus {
    type Map = DmaMap;

    /// As in tree (`nvme_pci_alloc_dev`, Linux 7.3): what is mapped well, which never is more than
    /// what can be.
    fn reach(&self) -> u64 {
        // SAFETY: as in `map`.
        unsafe { crate::dma::opt_mapping(self.device()) }
    }

    fn can_poll(&self) -> bool {
        // Others may be on the pin's line.
        !self.vectors.pin()
    }

    fn set_interrupt(&self, vector: u16, on: bool) {
        self.vectors.set(vector, on);
    }

    fn map(&self) -> DmaMap {
        // SAFETY: the function is claimed, so its driver bound, for as long as the bus side and the adapter live.
        unsafe { DmaMap::new(self.device()) }
    }

    fn device(&self) -> *mut bindings::device {
        self.function.device()
    }

    fn queues(&self) -> u16 {
        self.vectors.queues()
    }

    fn vector(&self, queue: u16) -> u16 {
        self.vectors.of_queue(queue)
    }

    fn map_queues(&self, map: &mut bindings::blk_mq_queue_map) {
        // SAFETY: the map is blk-mq's, handed to its map_queues callback; the device has the vectors that are named.
        unsafe {
            match self.vectors.spread_from() {
                Some(first) => bindings::blk_mq_map_hw_queues(map, self.device(), u32::from(first)),
                None => bindings::blk_mq_map_queues(map),
            }
        }
    }

    fn cut_off(&self) {
        // SAFETY: the function is this driver's while the bus side lives. Config space, so also a hung device obeys.
        unsafe { bindings::pci_clear_master(self.function.as_raw()) }
    }

    fn restore(&self) -> Result<(), Error> {
        enable_bus_master(&self.function)
    }

    fn synchronize(&self) {
        self.vectors.synchronize();
    }
}
