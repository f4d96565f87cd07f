// SPDX-License-Identifier: GPL-2.0
//! One disk: made, shown, and taken away.

use core::fmt::Write;
use core::ptr::{from_ref, null_mut, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use hal::{Error, Limits, Unit};
use kernel::bindings;
use kernel::device::Device;
use kernel::error::{from_err_ptr, to_result};
use kernel::prelude::*;

use crate::adapter::Naming;
use crate::blk::fops;
use crate::blk::gendisk::{
    blk_freeze_queue_start_non_owner, blk_mq_freeze_queue_wait, blk_mq_kick_requeue_list,
    blk_mq_quiesce_queue_nowait, blk_mq_unfreeze_queue_non_owner, blk_mq_unquiesce_queue, check,
    queue_limits, sectors, DiskShared, GenDisk, MINORS,
};
use crate::errno::from_errno;
use crate::text::Text;
use crate::{shims, sysfs};

/// A disk that the adapter has made.
///
/// # Invariants
/// It holds the driver's reference to `disk`, which stays for as long, and no longer.
pub(crate) struct Disk {
    disk: GenDisk<'static>,
    /// User space sees it: [`Disk::show`] has succeeded, and [`Disk::remove`] was not called.
    added: AtomicBool,
}

// SAFETY: a gendisk belongs to no thread.
unsafe impl Send for Disk {}
// SAFETY: the block layer orders what is done to a gendisk, and `added` is atomic.
unsafe impl Sync for Disk {}

/// A disk's name for `naming`.
fn name(naming: Naming, controller: i32, unit: u32) -> [u8; 32] {
    let mut name = [0; 32];
    let mut out = Text::new(&mut name);
    let written = match naming {
        Naming::Namespace => write!(out, "hiops{controller}n{unit}"),
        Naming::Port(_) => write!(out, "hiops{controller}d{unit}"),
        Naming::Ram(number) => write!(out, "hiops_ram{number}"),
    };
    // It always fits 31 bytes; a name that did not would be cut.
    let _ = written;
    out.terminate();
    name
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
        let data = from_ref::<DiskShared>(&shared).cast_mut();
        let numbers = shared.number.as_ref().map(|number| number.device());
        // SAFETY: the set is allocated; `init_hctx` finds the hctxs through `queuedata`, and where
        // that is it stays. A fresh disk that is not shown yet is the caller's alone.
        let disk = unsafe {
            let made = shims::hiops_alloc_disk(set, &mut lim, data.cast());
            let made = from_err_ptr(made).map_err(from_errno)?;
            (*made).fops = &fops::TABLE.0;
            (*made).private_data = KBox::into_raw(shared).cast();
            (*made).disk_name = name(naming, controller, unit.id);
            if let Some((major, first)) = numbers {
                (*made).major = major;
                (*made).first_minor = first;
                (*made).minors = MINORS;
            }
            shims::hiops_set_capacity_ro(made, sectors(&unit, unit.blocks), unit.read_only);
            GenDisk::from_raw(made)
        };
        if let Some(made) = NonNull::new(disk.as_raw()) {
            disk.shared().bytes.set_disk(made);
        }
        // INVARIANT: the reference came with it.
        let added = AtomicBool::new(false);
        Ok(Self { disk, added })
    }

    /// The kernel's structure, to look at.
    pub(crate) fn gendisk(&self) -> GenDisk<'_> {
        self.disk
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.gendisk().name().to_str().unwrap_or_default()
    }

    /// The kernel's structure.
    fn as_raw(&self) -> *mut bindings::gendisk {
        self.disk.as_raw()
    }

    fn shared(&self) -> &DiskShared {
        self.gendisk().shared()
    }

    /// The unit that it was made of. What may change of a disk is not read here.
    pub(crate) fn unit(&self) -> &Unit {
        &self.shared().unit
    }

    /// It is what `unit` says from now on. While it is frozen. Sleeps.
    pub(crate) fn become_unit(&self, limits: &Limits, unit: &Unit) -> Result<(), Error> {
        check(limits, unit)?;
        self.gendisk().change_limits(limits, unit)?;
        (self.shared().hctxs.iter()).for_each(|hctx| hctx.format.set(unit));
        self.gendisk().resize(Some(unit));
        Ok(())
    }

    /// No I/O gets through to it, as nothing is known of its blocks, until [`Disk::become_unit`].
    /// While it is frozen. Sleeps.
    pub(crate) fn close(&self) {
        (self.shared().hctxs.iter()).for_each(|hctx| hctx.format.forget());
        self.gendisk().resize(None);
    }

    /// Nothing more gets through to it: what waits for it fails.
    pub(crate) fn mark_dead(&self) {
        self.gendisk().mark_dead();
    }

    /// blk-mq gives no more of its requests to the driver, once what is being given is, until one
    /// [`Disk::unquiesce`] for each.
    pub(crate) fn quiesce(&self) {
        blk_mq_quiesce_queue_nowait(self.gendisk().queue());
    }

    /// Undoes one [`Disk::quiesce`].
    pub(crate) fn unquiesce(&self) {
        blk_mq_unquiesce_queue(self.gendisk().queue());
    }

    /// Begins to freeze it: what is under way goes on, what comes waits, before it has a tag of the
    /// block layer's, until one [`Disk::thaw`] for each. Sleeps. Without an owner, as another
    /// thread may thaw it.
    pub(crate) fn freeze(&self) {
        blk_freeze_queue_start_non_owner(self.gendisk().queue());
    }

    /// Nothing of it is under way: since [`Disk::freeze`] that stays so. May sleep.
    pub(crate) fn is_frozen(&self) -> bool {
        self.gendisk().is_frozen()
    }

    /// Waits until nothing of it is under way, after [`Disk::freeze`]. Sleeps.
    pub(crate) fn wait_until_frozen(&self) {
        blk_mq_freeze_queue_wait(self.gendisk().queue());
    }

    /// Undoes one [`Disk::freeze`]. Sleeps.
    pub(crate) fn thaw(&self) {
        blk_mq_unfreeze_queue_non_owner(self.gendisk().queue());
    }

    /// What waits to be tried again is submitted now.
    pub(crate) fn hurry(&self) {
        blk_mq_kick_requeue_list(self.gendisk().queue());
    }

    /// Shows it to user space, with its attributes, under `parent`, once. The block layer reads its
    /// partition table. Sleeps.
    pub(crate) fn show(&self, parent: Option<&Device>) -> Result<(), Error> {
        if self.gendisk().is_shown() {
            return Err(Error::Invalid);
        }
        let parent = parent.map_or(null_mut(), crate::platform::raw_device);
        // SAFETY: the disk is there, by the invariant, and not shown yet; the parent is null or
        // alive, and the groups are static.
        let failed = unsafe { bindings::device_add_disk(parent, self.as_raw(), sysfs::groups()) };
        to_result(failed).map_err(from_errno)?;
        self.added.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes it away from user space; returns when all its I/O has ended. Sleeps.
    pub(crate) fn remove(&self) {
        let memory = self.shared().bytes.begin_end();
        if self.added.swap(false, Ordering::AcqRel) {
            // SAFETY: shown, and removed once.
            unsafe { bindings::del_gendisk(self.as_raw()) };
        }
        // No read is under way any more, nor comes.
        drop(memory);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.remove();
        let (shared, is_shown) = (self.disk.data(), self.disk.is_shown());
        // SAFETY: the driver's reference; `free_disk` frees the shared part with the last one. The
        // block layer calls that only for a disk that it has shown: nobody can have opened this one
        // otherwise, and that was the last reference to it. From `into_raw` in `new`.
        unsafe {
            bindings::put_disk(self.as_raw());
            if !is_shown {
                drop(KBox::from_raw(shared));
            }
        }
    }
}
