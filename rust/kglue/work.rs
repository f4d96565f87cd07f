// SPDX-License-Identifier: GPL-2.0
//! Work items: what must sleep is begun here from a context that must not.

use crate::aim::Aim;
use crate::shims;
use core::ptr::NonNull;
use hal::Error;
use kernel::bindings;
use kernel::prelude::*;
use kernel::types::Opaque;

/// What a work item is for.
pub(crate) trait Job: 'static {
    /// Work waits for, or cancels, that of lower ranks alone.
    const RANK: u32;
}

/// An adapter is recovered.
pub(crate) enum Recover {}
/// A port that has called is attended.
pub(crate) enum Tend {}
/// An adapter's controller is attended: that waits for recoveries.
pub(crate) enum Attend {}
/// Drives are exchanged: that ends all of the above, and is not ended by it.
pub(crate) enum Exchange {}
/// All that ports are part of is reset: that ends all other work of it.
pub(crate) enum ResetAll {}

impl Job for Recover {
    const RANK: u32 = 0;
}
impl Job for Tend {
    const RANK: u32 = 0;
}
impl Job for Attend {
    const RANK: u32 = 1;
}
impl Job for Exchange {
    const RANK: u32 = 2;
}
impl Job for ResetAll {
    const RANK: u32 = 3;
}

/// Whoever does a job.
pub(crate) trait Run<J: Job>: Send + Sync {
    /// Does it. Sleeps.
    fn run(&self);
}

/// A work item with a queue of its own that memory pressure can't stall.
///
/// # Invariants
/// `work` and `queue` are valid until the drop.
pub(crate) struct Work<J: Job> {
    item: KBox<Item<J>>,
    queue: *mut bindings::workqueue_struct,
}

#[repr(C)]
struct Item<J: Job> {
    work: Opaque<bindings::work_struct>,
    target: Aim<dyn Run<J>>,
}

// SAFETY: work may be queued from any context.
unsafe impl<J: Job> Send for Work<J> {}
// SAFETY: as above.
unsafe impl<J: Job> Sync for Work<J> {}

impl<J: Job> Work<J> {
    /// Work of nobody yet, whose queue has `number` in its name. Sleeps.
    pub(crate) fn new(number: i32) -> Result<Self, Error> {
        let item = Item {
            work: Opaque::uninit(),
            target: Aim::new(),
        };
        let item = KBox::new(item, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: it stays in its box until no work is pending.
        unsafe { shims::hiops_init_work(item.work.get(), Some(Self::work), J::RANK) };
        // SAFETY: may sleep.
        let queue = unsafe { shims::hiops_alloc_wq(number) };
        if queue.is_null() {
            return Err(Error::NoMemory);
        }
        Ok(Self { item, queue })
    }

    /// From now on it is `target`'s.
    ///
    /// # Safety
    /// `target` stays where it is, and is valid until the work is disabled, or is cancelled and not
    /// begun again.
    pub(crate) unsafe fn aim(&self, target: NonNull<dyn Run<J>>) {
        // SAFETY: by the caller's promise.
        unsafe { self.item.target.set(target) };
    }

    /// Begins it, unless it is waiting to begin, or is nobody's: then `false`. Any context.
    pub(crate) fn begin(&self) -> bool {
        if self.item.target.get().is_none() {
            return false;
        }
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

    /// Returns when what was begun is over. Sleeps.
    pub(crate) fn flush(&self) {
        // SAFETY: valid by the invariants.
        unsafe { bindings::flush_work(self.item.work.get()) };
    }

    /// It does not run any more, nor will unless begun again. Sleeps.
    pub(crate) fn cancel(&self) {
        // SAFETY: valid by the invariants.
        unsafe { bindings::cancel_work_sync(self.item.work.get()) };
    }

    /// It does not run any more, nor will, whoever wants to begin it. Sleeps.
    pub(crate) fn disable(&self) {
        // SAFETY: valid by the invariants.
        unsafe { bindings::disable_work_sync(self.item.work.get()) };
    }

    /// Undoes [`Work::disable`].
    pub(crate) fn enable(&self) {
        // SAFETY: valid by the invariants.
        unsafe { bindings::enable_work(self.item.work.get()) };
    }

    /// # Safety
    /// Called by the work queue with the work of an `Item<J>`.
    unsafe extern "C" fn work(work: *mut bindings::work_struct) {
        // SAFETY: `work` is the first field (`repr(C)`) of an item, alive until cancelled.
        let item = unsafe { &*work.cast::<Item<J>>() };
        if let Some(target) = item.target.get() {
            target.run();
        }
    }
}

impl<J: Job> Drop for Work<J> {
    fn drop(&mut self) {
        self.cancel();
        // SAFETY: nothing is queued any more.
        unsafe { bindings::destroy_workqueue(self.queue) };
    }
}
