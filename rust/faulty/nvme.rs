// SPDX-License-Identifier: GPL-2.0
//! The registers of an NVMe controller (Base 2.0 section 3.1.3; doorbells: PCIe Transport 1.0
//! section 3.1.2).

use crate::faults::Faults;
use core::ops::Deref;
use hal::Mmio;

/// Controller configuration.
const CC: usize = 0x14;
/// `CC.EN`.
const CC_EN: u32 = 1;
/// Controller status.
const CSTS: usize = 0x1c;
/// `CSTS.CFS`: it had a fatal error.
const CSTS_CFS: u32 = 1 << 1;
/// The first doorbell.
const DOORBELLS: usize = 0x1000;

/// The registers behind `M`, with the faults of `F`.
#[derive(Clone)]
pub struct Registers<M, F> {
    inner: M,
    faults: F,
}

impl<M, F> Registers<M, F> {
    /// `inner`, with `faults`.
    pub fn new(inner: M, faults: F) -> Self {
        Self { inner, faults }
    }
}

impl<M, F> Mmio for Registers<M, F>
where
    M: Mmio,
    F: Deref<Target = Faults> + Send + Sync + 'static,
{
    fn len(&self) -> usize {
        self.inner.len()
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        if self.faults.all_ones.is_on() {
            return u32::MAX;
        }
        let value = self.inner.read32(offset);
        match offset {
            CSTS if self.faults.cfs.is_on() => value | CSTS_CFS,
            _ => value,
        }
    }

    #[inline]
    fn write32(&self, offset: usize, value: u32) {
        let faults = &*self.faults;
        if faults.all_ones.is_on() || (offset >= DOORBELLS && faults.is_deaf()) {
            return;
        }
        if offset == CC && value & CC_EN == 0 {
            // A reset of the controller.
            faults.cfs.put(0);
        }
        self.inner.write32(offset, value);
    }
}
