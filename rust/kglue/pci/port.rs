// SPDX-License-Identifier: GPL-2.0
//! What a port of an HBA has of its own towards the kernel: a way to call for attention, and its side of the bus.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use hal::Error;
use kernel::bindings;
use kernel::ffi::c_void;
use kernel::prelude::*;
use kernel::sync::Arc;

use super::Function;
use crate::adapter::Bus;
use crate::adapter_recover::{Recovery, Run};
use crate::blk::DmaMap;
use crate::irq::Vectors;

/// How a port calls for attention.
#[derive(Clone)]
pub struct Caller(Arc<Call>);

struct Call {
    work: Recovery,
    /// What the work takes; null: the port is not served yet, or no more.
    adapter: AtomicPtr<c_void>,
    run: Run,
}

impl Caller {
    pub(super) fn new(number: i32, run: Run) -> Result<Self, Error> {
        let call = Call {
            work: Recovery::new(number)?,
            adapter: AtomicPtr::new(null_mut()),
            run,
        };
        let call = Arc::new(call, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(call))
    }

    /// The port is attended soon. Any context.
    pub fn call(&self) {
        let adapter = self.0.adapter.load(Ordering::Acquire);
        if !adapter.is_null() {
            // SAFETY: what was aimed at lives until the caller was silenced.
            unsafe { self.0.work.begin(adapter, self.0.run) };
        }
    }

    /// # Safety
    /// `adapter` is what `run` takes, and lives until [`Caller::silence`] has returned.
    pub(super) unsafe fn aim(&self, adapter: *const c_void) {
        self.0.adapter.store(adapter.cast_mut(), Ordering::Release);
    }

    /// Nothing is attended any more, whoever calls. Sleeps.
    pub(super) fn silence(&self) {
        // Not only cancelled: an interrupt that comes meanwhile would begin it again.
        self.0.work.disable();
    }
}

/// The bus side of a port.
pub struct PortBus {
    pub(super) function: Function,
    pub(super) vectors: Arc<Vectors>,
}

impl Bus for PortBus {
    type Map = DmaMap;

    fn map(&self) -> DmaMap {
        // SAFETY: the function is claimed, so its driver bound, for as long as the bus side and the adapter live.
        unsafe { DmaMap::new(self.device()) }
    }

    fn device(&self) -> *mut bindings::device {
        self.function.device()
    }

    fn queues(&self) -> u16 {
        1
    }

    fn vector(&self, _queue: u16) -> u16 {
        0
    }

    fn map_queues(&self, map: &mut bindings::blk_mq_queue_map) {
        // SAFETY: the map is blk-mq's, handed to its map_queues callback.
        unsafe { bindings::blk_mq_map_queues(map) }
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn set_interrupt(&self, _vector: u16, _on: bool) {
        // The others need the line: a port's own mask is enough.
    }

    fn cut_off(&self) {
        // The other ports' commands time out, and each then restores it: better than memory that is written to after it was freed.
        // SAFETY: the function is this driver's while the bus side lives.
        unsafe { bindings::pci_clear_master(self.function.as_raw()) }
    }

    fn restore(&self) -> Result<(), Error> {
        // SAFETY: as in `cut_off`.
        unsafe {
            if !bindings::pci_device_is_present(self.function.as_raw()) {
                return Err(Error::Gone);
            }
            bindings::pci_set_master(self.function.as_raw());
        }
        Ok(())
    }

    fn synchronize(&self) {
        self.vectors.synchronize();
    }
}
