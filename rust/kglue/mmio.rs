// SPDX-License-Identifier: GPL-2.0
//! A device's registers, mapped.
//!
//! `kernel::pci::Bar` is another thing in each of Linux 7.2 and 7.3, lives no longer than a borrow
//! of the device, and answers an offset outside with an error and not as a device that is gone.

use core::ptr::NonNull;
use hal::{Error, Mmio};
use kernel::bindings;
use kernel::ffi::c_void;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::pci::Region;

/// A window on a device's registers. Clones are handles of the same mapping, which lives as long as
/// any of them, also after the device was pulled: its registers then read as all ones.
///
/// # Invariants
/// `first` is the address of `mapping`, which holds at least `len` bytes of registers; `len` is a
/// multiple of 4.
#[derive(Clone)]
pub struct Window {
    first: NonNull<c_void>,
    len: usize,
    /// Keeps the mapping.
    _mapping: Arc<Mapping>,
}

// SAFETY: a mapping belongs to no thread.
unsafe impl Send for Window {}
// SAFETY: each access is one load or store of the CPU; the device defines what concurrent ones
// mean.
unsafe impl Sync for Window {}

/// An address that `ioremap` gave, unmapped when dropped.
struct Mapping(NonNull<c_void>);

// SAFETY: a mapping belongs to no thread.
unsafe impl Send for Mapping {}
// SAFETY: nothing can be done with a shared reference.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `Window::new`, unmapped only here.
        unsafe { bindings::iounmap(self.0.as_ptr()) }
    }
}

impl Window {
    /// Maps the registers in `region`, uncached. Sleeps.
    pub(crate) fn new(region: &Region) -> Result<Self, Error> {
        let (start, len) = region.range()?;
        // SAFETY: the region is its driver's alone.
        let first = unsafe { bindings::ioremap(start, len) };
        let first = NonNull::new(first).ok_or(Error::NoMemory)?;
        let mapping = Arc::new(Mapping(first), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // INVARIANT: just mapped; the length is rounded down.
        Ok(Self {
            first,
            len: len & !3,
            _mapping: mapping,
        })
    }

    /// Where the register at byte `offset` is, if it is aligned and inside.
    #[inline(always)]
    fn register(&self, offset: usize) -> Option<*mut c_void> {
        let inside = offset < self.len && offset % 4 == 0;
        report_stray(!inside);
        inside.then(|| self.first.as_ptr().wrapping_byte_add(offset))
    }
}

impl Mmio for Window {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn read32(&self, offset: usize) -> u32 {
        match self.register(offset) {
            // SAFETY: inside the mapping. `readl` orders later reads of memory behind it.
            Some(register) => unsafe { bindings::readl(register) },
            None => u32::MAX,
        }
    }

    #[inline(always)]
    fn write32(&self, offset: usize, value: u32) {
        if let Some(register) = self.register(offset) {
            // SAFETY: inside the mapping. `writel` orders earlier writes to memory before it.
            unsafe { bindings::writel(value, register) }
        }
    }
}

/// Debug builds say when an LLD reached outside its window or its DMA memory; other builds only
/// give it all ones.
#[inline(always)]
pub(crate) fn report_stray(stray: bool) {
    if cfg!(debug_assertions) {
        kernel::warn_on!(stray);
    }
}
