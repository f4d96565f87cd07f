// SPDX-License-Identifier: GPL-2.0
//! The block layer's structure of a disk and of its queue, as far as hiops uses it.
//!
//! `kernel::block::mq::GenDisk` (Linux 7.2 and 7.3) is a disk that its driver owns, made and
//! shown in one step: it can't be looked at from a callback, has no parent, no attributes, no owner
//! of its file operations, no limits beyond a few, and none that change; nor can it be marked dead,
//! frozen or resized.

use super::limits::{sectors, set_limits};
use super::shared::DiskShared;
use crate::shims;
use core::marker::PhantomData;
use hal::{Error, Limits, Unit};
use kernel::bindings;
use kernel::prelude::*;

/// A disk of hiops to look at, and to tell of changes.
///
/// # Invariants
/// `disk` was made by [`Disk::new`](super::disk::Disk::new), so its `private_data` and its queue's
/// `queuedata` are its [`DiskShared`]; and it is there for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct GenDisk<'a> {
    disk: *mut bindings::gendisk,
    alive: PhantomData<&'a bindings::gendisk>,
}

/// What the block layer says of a disk.
struct Fields<'a> {
    name: &'a [u8; 32],
    queue: *mut bindings::request_queue,
    /// The part of it that is the whole disk.
    whole: *mut bindings::block_device,
    /// Its capacity.
    sectors: u64,
    data: *mut DiskShared,
    shared: &'a DiskShared,
    is_shown: bool,
}

impl<'a> GenDisk<'a> {
    /// # Safety
    /// The type's invariants, which become the handle's.
    pub(crate) unsafe fn from_raw(disk: *mut bindings::gendisk) -> Self {
        let alive = PhantomData;
        // INVARIANT: the caller's promise.
        Self { disk, alive }
    }

    /// The one place in which a disk is read.
    fn fields(self) -> Fields<'a> {
        let disk = self.as_raw();
        // SAFETY: by the invariant it is there, with its shared part; its name, its queue and its
        // part 0 don't change, and the bit stays once it is set. Any capacity is a valid one.
        unsafe {
            Fields {
                name: &(*disk).disk_name,
                queue: (*disk).queue,
                whole: (*disk).part0,
                sectors: (*(*disk).part0).bd_nr_sectors,
                data: (*disk).private_data.cast(),
                shared: &*(*disk).private_data.cast(),
                is_shown: (*disk).state & (1 << bindings::GD_ADDED) != 0,
            }
        }
    }

    /// The kernel's structure.
    pub(crate) fn as_raw(self) -> *mut bindings::gendisk {
        self.disk
    }

    /// Its queue.
    pub(crate) fn queue(self) -> *mut bindings::request_queue {
        self.fields().queue
    }

    /// Its name.
    pub(crate) fn name(self) -> &'a CStr {
        CStr::from_bytes_until_nul(self.fields().name).unwrap_or(c"")
    }

    /// The part of it that is hiops' own.
    pub(crate) fn shared(self) -> &'a DiskShared {
        self.fields().shared
    }

    /// Where that is, as it was given to the disk.
    pub(super) fn data(self) -> *mut DiskShared {
        self.fields().data
    }

    /// Its capacity.
    pub(crate) fn sectors(self) -> u64 {
        self.fields().sectors
    }

    /// Whether `device`, which is one of it, is a partition.
    pub(crate) fn is_partition(self, device: *const bindings::block_device) -> bool {
        !core::ptr::eq(self.fields().whole, device)
    }

    /// Whether user space has ever seen it.
    pub(crate) fn is_shown(self) -> bool {
        self.fields().is_shown
    }

    /// Its limits are those of `unit` from now on. While it is frozen. Sleeps.
    pub(crate) fn change_limits(self, limits: &Limits, unit: &Unit) -> Result<(), Error> {
        let mut queue = Default::default();
        // SAFETY: it is there, by the invariant; the limits are taken once and given back.
        let failed = unsafe {
            shims::hiops_limits_begin(self.as_raw(), &mut queue);
            set_limits(&mut queue, limits, unit);
            shims::hiops_limits_end(self.as_raw(), &mut queue)
        };
        kernel::error::to_result(failed).map_err(crate::errno::from_errno)
    }

    /// It has the size of `unit` from now on, and may be written if that may; `None`: it has no
    /// size. User space is told. While it is frozen. Sleeps.
    pub(crate) fn resize(self, unit: Option<&Unit>) {
        let (size, read_only) = match unit {
            Some(unit) => (sectors(unit, unit.blocks), unit.read_only),
            None => (0, true),
        };
        // SAFETY: it is there, by the invariant.
        unsafe { shims::hiops_resize(self.as_raw(), size, read_only) };
    }

    /// Nothing more gets through to it: what waits for it fails. At any time, and again.
    pub(crate) fn mark_dead(self) {
        // SAFETY: it is there, by the invariant.
        unsafe { bindings::blk_mark_disk_dead(self.as_raw()) };
    }

    /// Whether nothing of it is under way that has begun to be frozen. May sleep.
    pub(super) fn is_frozen(self) -> bool {
        // SAFETY: it is there, by the invariant, and its queue with it.
        let left = unsafe { bindings::blk_mq_freeze_queue_wait_timeout(self.queue(), 0) };
        left != 0
    }

    /// Does with its queue what `verb` is for: one of those of blk-mq that ask for nothing but a
    /// queue. Any context that `verb` may be called from.
    pub(super) fn tell(self, verb: unsafe extern "C" fn(*mut bindings::request_queue)) {
        // SAFETY: it is there, by the invariant, and its queue with it.
        unsafe { verb(self.queue()) };
    }
}
