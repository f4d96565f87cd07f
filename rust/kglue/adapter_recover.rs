// SPDX-License-Identifier: GPL-2.0
//! A controller that does not answer, or not sensibly, is stopped, reaped and brought back.

use crate::adapter::{Adapter, Bus, DEAD, LIVE, SUSPENDED};
use crate::adapter_abort::{ABORT, WELL};
use crate::adapter_reason::Reason;
use crate::adapter_rest::{Down, Then};
use crate::shims;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use hal::{CmdError, Controller, Error, Failure};
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

/// While it lives, this thread's allocations start no I/O, which might wait for the disk that is being recovered.
pub(crate) struct NoIo(u32);

impl NoIo {
    pub(crate) fn new() -> Self {
        // SAFETY: affects the calling thread only; undone in `drop`, by the same thread.
        Self(unsafe { shims::hiops_noio_save() })
    }
}

impl Drop for NoIo {
    fn drop(&mut self) {
        // SAFETY: pairs with the call in `new`.
        unsafe { shims::hiops_noio_restore(self.0) };
    }
}

/// How a restart ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It serves.
    Back,
    /// All that it is part of is reset ([`Bus::reset_all`]); it is suspended until then.
    Waits,
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Has the controller recovered, soon. Any context.
    pub(crate) fn recover_from(&self, reason: Reason) {
        if self.state.load(Ordering::Acquire) != LIVE {
            return;
        }
        let rung = self.rung_for(&reason);
        if !matches!(reason, Reason::Asked) {
            self.misses.store(true, Ordering::Relaxed);
        }
        // One at a time: all that are late at once say so one after the other, and the first has
        // begun to work by then.
        let before = self.recovering.fetch_max(rung, Ordering::AcqRel);
        if before >= rung {
            return;
        }
        match rung {
            ABORT => crate::log::log_warn!(self, "{}: it is asked to abort that\n", reason),
            _ => crate::log::log_err!(
                self,
                "{}: resetting it; what it was told is tried again\n",
                reason
            ),
        }
        if before != WELL {
            // Whoever works on it climbs on.
            return;
        }
        let adapter: *const Self = self;
        // SAFETY: the adapter cancels its recovery before it goes.
        unsafe { self.recovery.begin(adapter.cast(), Self::recover_now) };
    }

    /// # Safety
    /// `adapter` is an `Adapter<C, B>`, alive for the call.
    unsafe fn recover_now(adapter: *const c_void) {
        // SAFETY: by the caller's promise.
        let adapter = unsafe { &*adapter.cast::<Self>() };
        let _no_io = NoIo::new();
        if adapter.state.load(Ordering::Acquire) != LIVE {
            return;
        }
        if adapter.is_settled_by_abort() {
            // As below.
            return adapter.call();
        }
        adapter.resets.fetch_add(1, Ordering::Release);
        match adapter.restart(CmdError::Timeout.again(), Then::Start) {
            Ok(Ended::Waits) => crate::log::log_err!(
                adapter,
                "it can't be stopped: all that it is part of is reset, and the others go on then\n"
            ),
            Ok(Ended::Back) => {
                crate::log::log_warn!(adapter, "it is back\n");
                // What it would have called for meanwhile.
                adapter.call();
            }
            Err(error) => {
                crate::log::log_err!(
                    adapter,
                    "it can't be brought back: its disks are dead ({})\n",
                    crate::errno::advice(error)
                );
                adapter.mark_dead();
            }
        }
    }

    /// Lays the queues to rest, stops the controller, ends what it had as `why` says; then brings
    /// it back, or closes the gate for good. An error: it could not be brought back, and the gate
    /// is closed. Sleeps.
    pub(crate) fn restart(&self, why: Failure, then: Then) -> Result<Ended, Error> {
        let _control = self.control_now();
        if self.set_allocated {
            // SAFETY: allocated. What is in dispatch gets to the FIFO at most.
            unsafe { bindings::blk_mq_quiesce_tagset(self.set.get()) };
        }
        let (result, suspended) = self.restart_quiesced(why, then);
        // With the control path still held: whoever finds something wrong from here on begins
        // another.
        self.recovering.store(WELL, Ordering::Release);
        if !suspended {
            self.let_in();
        }
        result
    }

    /// Returns, too, whether this has suspended it, which whoever resumes it ends.
    fn restart_quiesced(&self, why: Failure, then: Then) -> (Result<Ended, Error>, bool) {
        let mut paused = self.paused.lock();
        self.halt(&mut paused, why, then);
        let started = match then {
            Then::Start => self.start_again(),
            Then::Rest | Then::Die | Then::PowerOff => Err(Down::stopped(Error::Gone)),
        };
        if started.is_err_and(|down| down.is_stuck) && self.bus.reset_all() {
            let begun =
                (self.state).compare_exchange(LIVE, SUSPENDED, Ordering::AcqRel, Ordering::Acquire);
            // Whoever resets has suspended it already, perhaps, and waits for this to end.
            if matches!(begun, Ok(_) | Err(SUSPENDED)) {
                return (Ok(Ended::Waits), begun.is_ok());
            }
        }
        let started = started.map_err(|down| down.why);
        self.go_on(&mut paused, started);
        (started.map(|()| Ended::Back), false)
    }

    /// The device is gone for good: what it has fails, and so does what comes, until the adapter is removed. Sleeps.
    pub(crate) fn lose(&self) {
        self.state.store(DEAD, Ordering::Release);
        self.abandon();
        // Before anybody is told: a file system that learns of it waits for what it has under way.
        let _ = self.restart(CmdError::Gone.finally(), Then::Die);
        self.mark_dead();
    }

    /// User space and file systems learn that the disks are gone.
    pub(crate) fn mark_dead(&self) {
        self.disks.lock().iter().for_each(|disk| disk.mark_dead());
    }
}
