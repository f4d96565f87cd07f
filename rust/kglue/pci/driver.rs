// SPDX-License-Identifier: GPL-2.0
//! A PCI driver made of a hal controller: registration, probe, remove, shutdown.
//!
//! It has an empty ID table: nothing is ever bound by class or by ID, and no modalias leads to it. A function comes here only when the operator
//! wrote the driver's name to its `driver_override`.

use core::pin::Pin;
use core::ptr::NonNull;
use hal::{Controller, Error};
use kernel::bindings;
use kernel::error::{from_result, to_result};
use kernel::ffi::c_int;
use kernel::prelude::*;
use kernel::types::Opaque;

use super::{Claim, Function, PciBus};
use crate::adapter::{Adapter, Config};
use crate::blk::ioctl::AdminPath;
use crate::errno::{advice, to_errno};
use crate::irq::{Handlers, Interrupt, Vectors};
use crate::mmio::Window;
use crate::platform::KernelPlatform;

/// What makes a hal controller a PCI driver.
pub trait PciDriver: 'static {
    /// The driver's name, as in `driver_override`.
    const NAME: &'static CStr;
    /// The class code (class, subclass, interface) that a function must have to be touched at all: an operator's slip of the finger must not
    /// have a network card written to.
    const CLASS: u32;
    /// The BAR with the controller's registers.
    const BAR: u8;
    /// The device's memory pages in bytes, less one.
    const PAGE_MASK: u32;
    /// The controller.
    type Controller: crate::blk::ioctl::AdminPath;

    /// A controller on the registers in `window`; the device is not touched yet. Sleeps.
    fn controller(platform: &KernelPlatform, window: Window) -> Result<Self::Controller, Error>;

    /// Called once before the first interrupt: whether that comes as the level of the INTx pin.
    fn use_pin(controller: &Self::Controller, pin: bool);

    /// What the controller was last doing, for the operator's log.
    fn step(controller: &Self::Controller) -> &'static str;

    /// How it is to be served.
    fn config() -> Result<Config, Error>;
}

type PciAdapter<T> = Adapter<<T as PciDriver>::Controller, PciBus>;

impl<C: AdminPath> Interrupt for Adapter<C, PciBus> {
    #[inline]
    fn interrupt(&self, vector: u16) -> bool {
        Adapter::interrupt(self, vector)
    }
}

/// A function that is bound to driver `T`; what probe leaves behind for remove.
struct Bound<T: PciDriver> {
    // Dropped in this order: handlers, adapter (with queues, DMA memory, vectors), claim.
    adapter: Handlers<PciAdapter<T>>,
    _claim: Claim,
}

/// The step at which a probe failed, and why.
struct Failed(&'static str, Error);

impl<T: PciDriver> Bound<T> {
    /// Everything from an enabled function to its disks; on failure all of it is undone. Sleeps.
    ///
    /// # Safety
    /// As [`Claim::new`].
    unsafe fn new(function: &Function) -> Result<KBox<Self>, Failed> {
        let step = |what| move |error| Failed(what, error);
        if function.class() != T::CLASS {
            return Err(Failed(
                "recognizing the class of the function",
                Error::Unsupported,
            ));
        }
        let config = T::config().map_err(step("reading the parameters"))?;
        // SAFETY: by the caller's promise.
        let claim = unsafe { Claim::new(function, T::BAR, T::NAME, T::PAGE_MASK) }
            .map_err(step("claiming the PCI function"))?;
        let window = claim.map().map_err(step("mapping the registers"))?;
        // SAFETY: the device is alive and bound until all that is made here is dropped again.
        let platform = unsafe { KernelPlatform::new(function.device()) };
        let controller = T::controller(&platform, window).map_err(step("making the controller"))?;

        // From here on the device may use memory: it is stopped before the controller, who owns that, is dropped.
        let vectors = controller
            .start()
            .map_err(|error| Failed(T::step(&controller), error))
            .and_then(|()| {
                // Some are kept for polled I/O; one at least interrupts.
                let queues = controller.limits().queues;
                Vectors::new(function, queues.saturating_sub(config.poll_queues).max(1))
                    .map_err(step("interrupt vectors"))
            });
        let vectors = match vectors {
            Ok(vectors) => {
                T::use_pin(&controller, vectors.pin());
                vectors
            }
            Err(failed) => {
                if controller.stop().is_err() {
                    // Its memory must not be freed under a device that still masters the bus.
                    drop(claim);
                }
                return Err(failed);
            }
        };
        let io_vectors = vectors.io_vectors();
        let bus = PciBus::new(function, vectors);
        let adapter =
            Adapter::new(&platform, controller, bus, config).map_err(step("making the queues"))?;
        let adapter = Handlers::request(function, io_vectors.clone(), T::NAME, adapter)
            .map_err(step("interrupt handlers"))?;
        for vector in io_vectors {
            adapter.controller().set_interrupt(vector, true);
        }
        let bound = KBox::new(
            Self {
                adapter,
                _claim: claim,
            },
            GFP_KERNEL,
        )
        .map_err(|_| Failed("making the controller", Error::NoMemory))?;
        if let Err(error) = bound.adapter.add_disks() {
            bound.adapter.remove();
            return Err(Failed("adding the disks", error));
        }
        Ok(bound)
    }
}

/// A registered PCI driver; unregistered, with all functions unbound, when dropped.
///
/// # Invariants
/// The structure is registered with the PCI core, and stays where it is.
pub struct Registration<T: PciDriver> {
    driver: Pin<KBox<Opaque<bindings::pci_driver>>>,
    _driver: core::marker::PhantomData<T>,
}

// SAFETY: registration belongs to no thread.
unsafe impl<T: PciDriver> Send for Registration<T> {}
// SAFETY: nothing can be done with a shared reference.
unsafe impl<T: PciDriver> Sync for Registration<T> {}

impl<T: PciDriver> Registration<T> {
    /// Registers the driver for `module`. Sleeps.
    pub fn new(module: &'static ThisModule) -> kernel::error::Result<Self> {
        let driver = bindings::pci_driver {
            name: T::NAME.as_char_ptr(),
            probe: Some(probe::<T>),
            remove: Some(remove::<T>),
            shutdown: Some(shutdown::<T>),
            ..Default::default()
        };
        let driver = KBox::pin(Opaque::new(driver), GFP_KERNEL)?;
        // SAFETY: a complete driver, in its place until `drop` unregisters it; its callbacks are in this module.
        to_result(unsafe {
            bindings::__pci_register_driver(driver.get(), module.as_ptr(), T::NAME.as_char_ptr())
        })?;
        // INVARIANT: registered.
        Ok(Self {
            driver,
            _driver: core::marker::PhantomData,
        })
    }
}

impl<T: PciDriver> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: registered in `new`. It removes the driver from all its functions first.
        unsafe { bindings::pci_unregister_driver(self.driver.get()) }
    }
}

/// # Safety
/// Called by the PCI core, as all below.
unsafe extern "C" fn probe<T: PciDriver>(
    pdev: *mut bindings::pci_dev,
    _id: *const bindings::pci_device_id,
) -> c_int {
    from_result(|| {
        let pdev = NonNull::new(pdev).ok_or(EINVAL)?;
        // SAFETY: the core holds a reference across the callback.
        let function = unsafe { Function::new(pdev) };
        // SAFETY: this is the probe; the result goes when `remove` is called, or here.
        match unsafe { Bound::<T>::new(&function) } {
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
                    T::NAME,
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
/// `pdev` is bound to driver `T`.
unsafe fn bound<T: PciDriver>(pdev: *mut bindings::pci_dev) -> *mut Bound<T> {
    // SAFETY: bound, so it lives and `probe` has set the data.
    unsafe { bindings::dev_get_drvdata(core::ptr::addr_of_mut!((*pdev).dev)).cast() }
}

/// # Safety
/// See `probe`.
unsafe extern "C" fn remove<T: PciDriver>(pdev: *mut bindings::pci_dev) {
    // SAFETY: called once, after a probe that succeeded, which gave the box away.
    let bound = unsafe { KBox::from_raw(bound::<T>(pdev)) };
    bound.adapter.remove();
}

/// # Safety
/// See `probe`.
unsafe extern "C" fn shutdown<T: PciDriver>(pdev: *mut bindings::pci_dev) {
    // SAFETY: called while bound, and not during `remove`: the core holds the device's lock across both.
    let bound = unsafe { &*bound::<T>(pdev) };
    bound.adapter.shutdown();
}
