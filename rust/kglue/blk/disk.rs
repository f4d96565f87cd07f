// SPDX-License-Identifier: GPL-2.0
//! One disk: made, shown, and taken away.

use super::fops;
use super::limits::{check, queue_limits, sectors, set_limits};
use super::shared::{shared, DiskShared};
use crate::adapter::Naming;
use crate::shims;
use crate::sysfs;
use crate::text::Text;
use core::fmt::Write;
use core::ptr::NonNull;
use hal::{Error, Limits, Unit};
use kernel::bindings;
use kernel::error::from_err_ptr;
use kernel::prelude::*;

/// A disk that the adapter has made.
///
/// # Invariants
/// `disk` is a gendisk whose `private_data` and `queuedata` are its `DiskShared`, to which this holds the driver's reference.
pub(crate) struct Disk {
    disk: NonNull<bindings::gendisk>,
    added: bool,
}

// SAFETY: a gendisk belongs to no thread.
unsafe impl Send for Disk {}

/// Writes the disk's name for `naming`.
fn set_name(disk: *mut bindings::gendisk, naming: Naming, controller: i32, unit: u32) {
    // SAFETY: the disk is not shown yet: its name is the caller's alone.
    let name = unsafe { &mut (*disk).disk_name };
    let mut out = Text::new(bytes_of(name));
    let written = match naming {
        Naming::Namespace => write!(out, "hiops{controller}n{unit}"),
        Naming::Port(_) => write!(out, "hiops{controller}d{unit}"),
        Naming::Ram(number) => write!(out, "hiops_ram{number}"),
    };
    // It always fits 31 bytes; a name that did not would be cut.
    let _ = written;
    out.terminate();
}

fn bytes_of(name: &mut [kernel::ffi::c_char; 32]) -> &mut [u8] {
    // SAFETY: `c_char` and `u8` have the same layout.
    unsafe { core::slice::from_raw_parts_mut(name.as_mut_ptr().cast::<u8>(), name.len()) }
}

impl Disk {
    /// Makes the disk of `shared` on `set`, not shown yet. Sleeps.
    pub(crate) fn new(
        set: *mut bindings::blk_mq_tag_set,
        limits: &Limits,
        shared: KBox<DiskShared>,
        naming: Naming,
        controller: i32,
    ) -> Result<Self, Error> {
        let unit = shared.unit;
        check(limits, &unit)?;
        let mut lim = queue_limits(limits, &unit);
        let shared = KBox::into_raw(shared);
        // SAFETY: the set is allocated; `init_hctx` finds the lanes through `queuedata`.
        let disk = from_err_ptr(unsafe { shims::hiops_alloc_disk(set, &mut lim, shared.cast()) });
        let disk = match disk.map(NonNull::new) {
            Ok(Some(disk)) => disk,
            failed => {
                // SAFETY: from `into_raw` above; nobody else got it.
                drop(unsafe { KBox::from_raw(shared) });
                return Err(failed
                    .err()
                    .map_or(Error::NoMemory, crate::errno::from_errno));
            }
        };
        // SAFETY: the disk is fresh and not shown yet.
        unsafe {
            (*disk.as_ptr()).fops = &fops::TABLE.0;
            (*disk.as_ptr()).private_data = shared.cast();
            shims::hiops_set_capacity_ro(
                disk.as_ptr(),
                sectors(&unit, unit.blocks),
                unit.read_only,
            );
        }
        set_name(disk.as_ptr(), naming, controller, unit.id);
        // INVARIANT: just made so.
        Ok(Self { disk, added: false })
    }

    /// The kernel's structure.
    pub(crate) fn as_raw(&self) -> *mut bindings::gendisk {
        self.disk.as_ptr()
    }

    /// Its queue.
    pub(crate) fn queue(&self) -> *mut bindings::request_queue {
        // SAFETY: alive by the invariant; the queue does not change.
        unsafe { (*self.as_raw()).queue }
    }

    fn shared(&self) -> &DiskShared {
        // SAFETY: the driver's reference to the disk keeps it, by the invariant.
        unsafe { shared(self.as_raw()) }
    }

    /// The unit that it was made of. What may change of a disk is not read here.
    pub(crate) fn unit(&self) -> &Unit {
        &self.shared().unit
    }

    /// It is what `unit` says from now on. While it is frozen. Sleeps.
    pub(crate) fn become_unit(&self, limits: &Limits, unit: &Unit) -> Result<(), Error> {
        check(limits, unit)?;
        let mut queue = Default::default();
        // SAFETY: alive by the invariant, and frozen: see the function's contract.
        let failed = unsafe {
            shims::hiops_limits_begin(self.as_raw(), &mut queue);
            set_limits(&mut queue, limits, unit);
            shims::hiops_limits_end(self.as_raw(), &mut queue)
        };
        kernel::error::to_result(failed).map_err(crate::errno::from_errno)?;
        (self.shared().lanes.iter()).for_each(|lane| lane.format.set(unit));
        // SAFETY: as above.
        unsafe {
            shims::hiops_resize(self.as_raw(), sectors(unit, unit.blocks), unit.read_only);
        }
        Ok(())
    }

    /// No I/O gets through to it, as nothing is known of its blocks, until [`Disk::become_unit`].
    /// While it is frozen. Sleeps.
    pub(crate) fn close(&self) {
        (self.shared().lanes.iter()).for_each(|lane| lane.format.forget());
        // SAFETY: alive by the invariant.
        unsafe { shims::hiops_resize(self.as_raw(), 0, true) };
    }

    /// It was taken away already, or never shown.
    pub(crate) fn mark_not_added(&mut self) {
        self.added = false;
    }

    /// Notes that `add` is under way, after which `remove` has to take the disk away again.
    pub(crate) fn mark_added(&mut self) {
        self.added = true;
    }

    /// Nothing more gets through to it: what waits for it fails.
    pub(crate) fn mark_dead(&self) {
        // SAFETY: alive by the invariant; may be called at any time, and again.
        unsafe { bindings::blk_mark_disk_dead(self.as_raw()) };
    }

    /// What waits to be tried again is submitted now.
    pub(crate) fn hurry(&self) {
        // SAFETY: alive by the invariant, and so is its queue; may be called in any context.
        unsafe { bindings::blk_mq_kick_requeue_list((*self.as_raw()).queue) };
    }

    /// Takes it away from user space; returns when all its I/O has ended. Sleeps.
    pub(crate) fn remove(&mut self) {
        if core::mem::take(&mut self.added) {
            // SAFETY: added, and removed once.
            unsafe { bindings::del_gendisk(self.as_raw()) };
        }
    }
}

/// Shows `disk`, with its attributes, under `parent` (which may be null). It reads the partition table. Sleeps.
///
/// # Safety
/// `disk` comes from a live [`Disk`], `parent` is alive.
pub(crate) unsafe fn add(
    disk: *mut bindings::gendisk,
    parent: *mut bindings::device,
) -> Result<(), Error> {
    // SAFETY: by the caller's promise; the groups are static.
    let failed = unsafe { bindings::device_add_disk(parent, disk, sysfs::groups()) };
    kernel::error::to_result(failed).map_err(crate::errno::from_errno)
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.remove();
        // SAFETY: alive by the invariant; the bit stays once it is set.
        let (shared, shown) = unsafe {
            let disk = self.as_raw();
            let shared = (*disk).private_data.cast::<DiskShared>();
            (shared, (*disk).state & (1 << bindings::GD_ADDED) != 0)
        };
        // SAFETY: the driver's reference; `free_disk` frees the shared part with the last one.
        unsafe { bindings::put_disk(self.as_raw()) };
        if !shown {
            // The block layer calls `free_disk` only for a disk that it has shown. Nobody can have opened this one.
            // SAFETY: from `into_raw` in `new`, and that was the last reference to the disk.
            drop(unsafe { KBox::from_raw(shared) });
        }
    }
}
