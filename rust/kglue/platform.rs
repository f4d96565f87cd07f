// SPDX-License-Identifier: GPL-2.0
//! The kernel as a hal platform: tables, DMA memory, time; and what this machine takes for what a
//! strategy can choose between, measured as a controller is bound.

use core::ops::Deref;
use engine::Costs;
use hal::{Error, Platform};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::time::delay::fsleep;
use kernel::time::{Delta, Instant, Monotonic};

use crate::device::BoundDevice;
use crate::dma::DmaBlock;
use crate::shims;

/// What the pure crates stand on in the kernel, for one device or for none.
#[derive(Clone)]
pub struct KernelPlatform {
    /// Whose DMA memory [`Platform::dma`] hands out; `None`: there is no such device (the RAM
    /// disk).
    device: Option<BoundDevice>,
    /// Where [`Platform::now_us`] counts from.
    epoch: Instant<Monotonic>,
}

impl KernelPlatform {
    /// A platform without a device, for controllers made of software: [`Platform::dma`] answers
    /// [`Error::Unsupported`].
    pub fn without_device() -> Self {
        Self {
            device: None,
            epoch: Instant::now(),
        }
    }

    /// A platform for `device`.
    pub fn new(device: BoundDevice) -> Self {
        Self {
            device: Some(device),
            epoch: Instant::now(),
        }
    }

    /// The device's name, if there is a device.
    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    pub fn name(&self) -> Option<&CStr> {
        self.device.as_ref().map(|device| device.name())
    }
}

/// A table of fixed length in kernel memory.
pub struct Table<T>(KVVec<T>);

impl<T> Deref for Table<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl Platform for KernelPlatform {
    type Table<T: Send + Sync + 'static> = Table<T>;
    type Dma = DmaBlock;

    fn table<T: Send + Sync + 'static>(
        &self,
        len: usize,
        mut make: impl FnMut(usize) -> T,
    ) -> Result<Table<T>, Error> {
        let mut table = KVVec::with_capacity(len, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        for at in 0..len {
            table
                .push(make(at), GFP_KERNEL)
                .map_err(|_| Error::NoMemory)?;
        }
        Ok(Table(table))
    }

    fn dma(&self, bytes: usize) -> Result<DmaBlock, Error> {
        let device = self.device.as_ref().ok_or(Error::Unsupported)?;
        DmaBlock::new(device, bytes)
    }

    fn now_us(&self) -> u64 {
        // CAST: time since an earlier moment of a monotonic clock is never negative.
        self.epoch.elapsed().as_micros_ceil() as u64
    }

    fn sleep_us(&self, us: u64) {
        fsleep(Delta::from_micros(i64::try_from(us).unwrap_or(i64::MAX)));
    }
}

/// Measures what things cost on this CPU; what can't be measured is assumed. Some milliseconds;
/// sleeps.
pub(crate) fn measure_costs() -> Costs {
    let mut found = shims::hiops_costs::default();
    // SAFETY: may sleep; the place is this function's.
    unsafe { shims::hiops_measure_costs(&mut found) };
    let or = |ns: u64, assumed: u64| if ns == 0 { assumed } else { ns };
    let tick_ns = or(found.tick_ns, Costs::ASSUMED.tick_ns);
    Costs {
        sleep_ns: or(found.sleep_ns, Costs::ASSUMED.sleep_ns),
        yield_ns: or(found.yield_ns, Costs::ASSUMED.yield_ns),
        tick_ns,
        // Until one came: what it does beside is its driver's.
        interrupt_ns: tick_ns,
    }
}
