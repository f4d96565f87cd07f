// SPDX-License-Identifier: GPL-2.0
//! Work items: what must sleep is begun here from a context that must not. And whom a work item or
//! a timer calls, which stays where it is until they were silenced ([`Pinned`], [`Target`]).
//!
//! The kernel crate's (`kernel::workqueue`, Linux 7.2 and 7.3) owns what it runs, and lets go of it
//! no more. Here an owner that goes away takes its work with it, and keeps it off for a while; so
//! `flush`, `cancel`, `disable` and `enable`, and a queue of one's own, are what it lacks.

use core::marker::PhantomData;
use core::ptr::NonNull;
use hal::Error;
use kernel::bindings;
use kernel::ffi::c_int;
use kernel::prelude::*;
use kernel::sync::SetOnce;
use kernel::types::Opaque;

use crate::shims;
use crate::shims_safe::hiops_alloc_wq;

/// What a work item is for.
pub(crate) trait Job: 'static {
    /// Work waits for, or cancels, that of lower ranks alone.
    const RANK: u32;
}

/// An adapter is recovered.
pub(crate) enum Recover {}
/// The events of a port that has called are handled.
pub(crate) enum PortEvents {}
/// It is looked at I/O that no thread waits for: that may have an adapter recovered.
pub(crate) enum WatchBytes {}
/// The events of an adapter's controller are handled: that waits for recoveries.
pub(crate) enum ControllerEvents {}
/// Drives come and go: that ends all of the above, and is not ended by it.
pub(crate) enum Hotplug {}
/// All that ports are part of is reset: that ends all other work of it.
pub(crate) enum ResetAll {}

impl Job for Recover {
    const RANK: u32 = 0;
}
impl Job for PortEvents {
    const RANK: u32 = 0;
}
impl Job for WatchBytes {
    const RANK: u32 = 1;
}
impl Job for ControllerEvents {
    const RANK: u32 = 2;
}
impl Job for Hotplug {
    const RANK: u32 = 3;
}
impl Job for ResetAll {
    const RANK: u32 = 4;
}

/// What does a job.
pub(crate) trait Run<J: Job>: Send + Sync {
    /// Does it. Sleeps.
    fn run(&self);
}

/// A structure of the kernel's, a timer or a work item, that may be given to the kernel's functions
/// for it.
///
/// # Invariants
/// It was set up, and stays where it is until whatever may be pending of it was cancelled.
#[repr(transparent)]
pub(crate) struct SetUp<T>(Opaque<T>);

impl<T> SetUp<T> {
    /// # Safety
    /// The caller has it set up, before anything else is done with it, in the place where it stays.
    pub(crate) unsafe fn promised() -> Self {
        // INVARIANT: the caller's promise.
        Self(Opaque::uninit())
    }

    /// Where it is.
    pub(crate) fn as_raw(&self) -> *mut T {
        self.0.get()
    }
}

/// On which CPU work runs, in the kernel's numbers.
#[derive(Clone, Copy)]
#[repr(i32)]
enum RunsOn {
    /// On any. CAST: the number of CPUs, a small constant.
    Any = bindings::wq_misc_consts_WORK_CPU_UNBOUND as i32,
}

/// The queue of a work item, of which only its address is known here.
///
/// # Invariants
/// `queue` is that of a [`Work`], which is there for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Queue<'a> {
    queue: NonNull<bindings::workqueue_struct>,
    alive: PhantomData<&'a bindings::workqueue_struct>,
}

#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for work that was set up, and for a queue that is there, which the types
// say. Each is as its header says it: see the constants below.
unsafe extern "C" {
    /// Returns when what was begun is over. Sleeps.
    safe fn flush_work(work: &SetUp<bindings::work_struct>) -> bool;
    /// It does not run any more, nor will unless begun again. Sleeps.
    safe fn cancel_work_sync(work: &SetUp<bindings::work_struct>) -> bool;
    /// It does not run any more, nor will until it was enabled as often. Sleeps.
    safe fn disable_work_sync(work: &SetUp<bindings::work_struct>) -> bool;
    /// Undoes that once.
    safe fn enable_work(work: &SetUp<bindings::work_struct>) -> bool;
    /// It runs on that queue, unless it is waiting to: then `false`. Any context.
    safe fn queue_work_on(
        on: RunsOn,
        queue: Queue<'_>,
        work: &SetUp<bindings::work_struct>,
    ) -> bool;
}

const _: [unsafe extern "C" fn(*mut bindings::work_struct) -> bool; 4] = [
    bindings::flush_work,
    bindings::cancel_work_sync,
    bindings::disable_work_sync,
    bindings::enable_work,
];
const _: [unsafe extern "C" fn(
    c_int,
    *mut bindings::workqueue_struct,
    *mut bindings::work_struct,
) -> bool; 1] = [bindings::queue_work_on];

/// A work item with a queue of its own that memory pressure can't stall.
///
/// # Invariants
/// `queue` is valid until the drop.
pub(crate) struct Work<J: Job> {
    item: KBox<Item<J>>,
    queue: NonNull<bindings::workqueue_struct>,
}

#[repr(C)]
struct Item<J: Job> {
    work: SetUp<bindings::work_struct>,
    target: Target<dyn Run<J>>,
}

// SAFETY: work may be queued from any context.
unsafe impl<J: Job> Send for Work<J> {}
// SAFETY: as above.
unsafe impl<J: Job> Sync for Work<J> {}

impl<J: Job> Work<J> {
    /// Work without a target yet, whose queue has `number` in its name. Sleeps.
    pub(crate) fn new(number: i32) -> Result<Self, Error> {
        let memory = KBox::new_uninit(GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: set up at once, and it stays in its box until no work is pending.
        let item = unsafe {
            let (work, target) = (SetUp::promised(), Target::new());
            let item = KBox::write(memory, Item { work, target });
            shims::hiops_init_work(item.work.as_raw(), Some(Self::work), J::RANK);
            item
        };
        let queue = NonNull::new(hiops_alloc_wq(number)).ok_or(Error::NoMemory)?;
        // INVARIANT: just allocated.
        Ok(Self { item, queue })
    }

    /// From now on it is `target`'s; once. [`Work::disable`] silences it, as does [`Work::cancel`]
    /// if it is not begun again.
    pub(crate) fn set_target<T: Run<J> + 'static>(&self, target: Pinned<T>) {
        self.item.target.set(target.map(|target| target));
    }

    /// Begins it, unless it is waiting to begin, or has no target: then `false`. Any context.
    pub(crate) fn begin(&self) -> bool {
        if self.item.target.get().is_none() {
            return false;
        }
        queue_work_on(RunsOn::Any, self.queue(), &self.item.work)
    }

    fn queue(&self) -> Queue<'_> {
        let (queue, alive) = (self.queue, PhantomData);
        // INVARIANT: it is this one's, which is borrowed.
        Queue { queue, alive }
    }

    /// Returns when what was begun is over. Sleeps.
    pub(crate) fn flush(&self) {
        flush_work(&self.item.work);
    }

    /// It does not run any more, nor will unless begun again. Sleeps.
    pub(crate) fn cancel(&self) {
        cancel_work_sync(&self.item.work);
    }

    /// It does not run any more, nor will, whatever wants to begin it. Sleeps.
    pub(crate) fn disable(&self) {
        disable_work_sync(&self.item.work);
    }

    /// Undoes one [`Work::disable`].
    pub(crate) fn enable(&self) {
        enable_work(&self.item.work);
    }

    /// It does not run until the result is dropped. Sleeps.
    pub(crate) fn disable_scoped(&self) -> DisabledWork<'_, J> {
        self.disable();
        DisabledWork(self)
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
        unsafe { bindings::destroy_workqueue(self.queue.as_ptr()) };
    }
}

/// Work that does not run while this lives.
pub(crate) struct DisabledWork<'a, J: Job>(&'a Work<J>);

impl<J: Job> Drop for DisabledWork<'_, J> {
    fn drop(&mut self) {
        self.0.enable();
    }
}

/// An object that others may call: it stays where it is, and alive, until they were silenced.
/// Copies lead to the same object.
///
/// An `Arc` is no use here: the object owns what calls it (an adapter its work, timers, gate and
/// disks), so a counted reference back would keep both for ever. Nor is
/// `kernel::revocable::Revocable`, which owns its object and lends it under the RCU read lock:
/// work and the callers of a gate sleep with it, and on the I/O path, where the object is known to
/// be there, that lock is a cost for nothing.
///
/// # Invariants
/// The object is valid for as long as anybody asks for it, by the promise given to [`Pinned::new`].
pub(crate) struct Pinned<T: ?Sized>(NonNull<T>);

impl<T: ?Sized> Clone for Pinned<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Pinned<T> {}

// SAFETY: all that is got of it is a shared reference.
unsafe impl<T: ?Sized + Sync> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for Pinned<T> {}

impl<T> Pinned<T> {
    /// # Safety
    /// `it` stays where it is, and alive, with all of its that is not behind a lock, until
    /// everybody whom the result is handed to was silenced for good; each of them says how that is
    /// done.
    pub(crate) unsafe fn new(it: &T) -> Self {
        // INVARIANT: by the caller's promise.
        Self(NonNull::from(it))
    }
}

impl<T: ?Sized> Pinned<T> {
    /// The part of it that `f` finds, if it does: as long as the whole.
    pub(crate) fn part<U>(
        self,
        f: impl for<'a> FnOnce(&'a T) -> Option<&'a U>,
    ) -> Option<Pinned<U>> {
        // INVARIANT: what `f` returns is borrowed from the object, hence as valid.
        f(self.get()).map(|part| Pinned(NonNull::from(part)))
    }

    /// The part of it, or the trait that it has, that `f` names.
    pub(crate) fn map<U: ?Sized>(self, f: for<'a> fn(&'a T) -> &'a U) -> Pinned<U> {
        // INVARIANT: as in `part`.
        Pinned(NonNull::from(f(self.get())))
    }

    /// The object. Any context.
    #[inline(always)]
    pub(crate) fn get(&self) -> &T {
        // SAFETY: valid, by the invariant.
        unsafe { self.0.as_ref() }
    }
}

/// An object that is named once, when it does not move any more, and called from then on.
pub(crate) struct Target<T: ?Sized>(SetOnce<Pinned<T>>);

impl<T: ?Sized> Target<T> {
    pub(crate) const fn new() -> Self {
        Self(SetOnce::new())
    }

    /// Names it; the first one counts.
    pub(crate) fn set(&self, target: Pinned<T>) {
        self.0.populate(target);
    }

    /// It, if it was named. Any context.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref().map(Pinned::get)
    }
}
