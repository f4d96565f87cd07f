// SPDX-License-Identifier: GPL-2.0
//! Work items: what must sleep is begun here from a context that must not.

use crate::shims;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use hal::Error;
use kernel::bindings;
use kernel::ffi::c_void;
use kernel::prelude::*;
use kernel::types::Opaque;

/// The work item of an adapter's recovery, with a queue of its own that memory pressure can't stall.
///
/// # Invariants
/// `work` and `queue` are valid until the drop. `adapter` is null, or what `run` takes, until [`Recovery::cancel`] returned.
pub(crate) struct Recovery {
    item: KBox<Item>,
    queue: *mut bindings::workqueue_struct,
}

#[repr(C)]
struct Item {
    work: Opaque<bindings::work_struct>,
    adapter: AtomicPtr<c_void>,
    run: AtomicPtr<c_void>,
}

// SAFETY: work may be queued from any context.
unsafe impl Send for Recovery {}
// SAFETY: as above.
unsafe impl Sync for Recovery {}

pub(crate) type Run = unsafe fn(*const c_void);

impl Recovery {
    pub(crate) fn new(number: i32) -> Result<Self, Error> {
        Self::make(number, 0)
    }

    /// Work that waits for recoveries.
    pub(crate) fn that_attends(number: i32) -> Result<Self, Error> {
        Self::make(number, 1)
    }

    /// Work that ends all other work of this kind, and is not ended by it.
    pub(crate) fn that_removes(number: i32) -> Result<Self, Error> {
        Self::make(number, 2)
    }

    /// Work that ends all other work of what its ports are part of.
    pub(crate) fn that_rescues(number: i32) -> Result<Self, Error> {
        Self::make(number, 3)
    }

    /// Work waits for, or cancels, that of lower ranks alone.
    fn make(number: i32, rank: u32) -> Result<Self, Error> {
        let item = Item {
            work: Opaque::uninit(),
            adapter: AtomicPtr::new(null_mut()),
            run: AtomicPtr::new(null_mut()),
        };
        let item = KBox::new(item, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: it stays in its box until no work is pending.
        unsafe { shims::hiops_init_work(item.work.get(), Some(Self::work), rank) };
        // SAFETY: may sleep.
        let queue = unsafe { shims::hiops_alloc_wq(number) };
        if queue.is_null() {
            return Err(Error::NoMemory);
        }
        Ok(Self { item, queue })
    }

    /// Begins a recovery, unless one is waiting to begin: then `false`. Any context.
    ///
    /// # Safety
    /// `adapter` is what `run` takes, and stays valid until [`Recovery::cancel`] returned.
    pub(crate) unsafe fn begin(&self, adapter: *const c_void, run: Run) -> bool {
        self.item
            .adapter
            .store(adapter.cast_mut(), Ordering::Relaxed);
        self.item.run.store(run as *mut c_void, Ordering::Release);
        // SAFETY: both are valid by the invariants.
        unsafe {
            bindings::queue_work_on(
                // CAST: the number of CPUs, a small constant.
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as i32,
                self.queue,
                self.item.work.get(),
            )
        }
    }

    /// Returns when a recovery that was begun is over. Sleeps.
    pub(crate) fn flush(&self) {
        // SAFETY: valid by the invariants.
        unsafe { bindings::flush_work(self.item.work.get()) };
    }

    /// No recovery runs any more, nor will unless begun again. Sleeps.
    pub(crate) fn cancel(&self) {
        // SAFETY: valid by the invariants.
        unsafe { bindings::cancel_work_sync(self.item.work.get()) };
    }

    /// No recovery runs any more, nor will, whoever wants to begin one. Sleeps.
    pub(crate) fn disable(&self) {
        // SAFETY: valid by the invariants.
        unsafe { bindings::disable_work_sync(self.item.work.get()) };
    }

    /// Undoes [`Recovery::disable`].
    pub(crate) fn enable(&self) {
        // SAFETY: valid by the invariants.
        unsafe { bindings::enable_work(self.item.work.get()) };
    }

    /// # Safety
    /// Called by the work queue with the work of an `Item`.
    unsafe extern "C" fn work(work: *mut bindings::work_struct) {
        // SAFETY: `work` is the first field (`repr(C)`) of an item, alive until cancelled.
        let item = unsafe { &*work.cast::<Item>() };
        let run = item.run.load(Ordering::Acquire);
        let adapter = item.adapter.load(Ordering::Relaxed);
        if run.is_null() {
            return;
        }
        // SAFETY: `begin` stored a `Run` with what it takes.
        unsafe { core::mem::transmute::<*mut c_void, Run>(run)(adapter) };
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.cancel();
        // SAFETY: nothing is queued any more.
        unsafe { bindings::destroy_workqueue(self.queue) };
    }
}
