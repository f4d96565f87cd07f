// SPDX-License-Identifier: GPL-2.0
//! A disk's persistent reservations (`linux/pr.h`): the ioctls `IOC_PR_*`, and device mapper, NFS
//! and the SCSI target, which share a disk with other hosts.
//!
//! Which program may ask is the block layer's to say, before it comes here (`blkdev_pr_allowed` of
//! Linux 7.3's block/ioctl.c): for the whole disk only, never for a partition; one that changes
//! anything needs CAP_SYS_ADMIN or has the disk open for writing, one that reads them for reading.
//! It copies to and from user memory itself, too: what is touched here is the kernel's.
//!
//! The kernel crate (Linux 7.2 and 7.3) has no reservations.

use core::slice;
use hal::{Access, Answer, Holder, Registered, Reserve};
use kernel::bindings::block_device;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::ffi::c_int;

use crate::blk::gendisk::{DiskShared, GenDisk};
use crate::blk::ioctl::Owner;
use crate::errno::{denied, to_errno};
use crate::shims;

/// The table, as a static that the kernel may point to.
pub(crate) struct Table(pub(crate) shims::pr_ops);

// SAFETY: it is never written.
unsafe impl Sync for Table {}

/// The same for every disk of hiops: which have reservations their controllers say.
pub(crate) static TABLE: Table = Table(shims::pr_ops {
    pr_register: Some(register),
    pr_reserve: Some(reserve),
    pr_release: Some(release),
    pr_preempt: Some(preempt),
    pr_clear: Some(clear),
    pr_read_keys: Some(read_keys),
    pr_read_reservation: Some(read_reservation),
});

/// The types' numbers.
pub(crate) const TYPES: [(shims::pr_type, Access); 6] = [
    (shims::pr_type_PR_WRITE_EXCLUSIVE, Access::WriteExclusive),
    (shims::pr_type_PR_EXCLUSIVE_ACCESS, Access::ExclusiveAccess),
    (
        shims::pr_type_PR_WRITE_EXCLUSIVE_REG_ONLY,
        Access::WriteExclusiveRegistrants,
    ),
    (
        shims::pr_type_PR_EXCLUSIVE_ACCESS_REG_ONLY,
        Access::ExclusiveAccessRegistrants,
    ),
    (
        shims::pr_type_PR_WRITE_EXCLUSIVE_ALL_REGS,
        Access::WriteExclusiveAll,
    ),
    (
        shims::pr_type_PR_EXCLUSIVE_ACCESS_ALL_REGS,
        Access::ExclusiveAccessAll,
    ),
];

fn access(number: u32) -> Option<Access> {
    let found = TYPES.iter().find(|(known, _)| *known == number);
    found.map(|(_, access)| *access)
}

/// The number of `access`; 0: it is not reserved.
fn number(access: Option<Access>) -> u32 {
    let found = (TYPES.iter()).find(|(_, known)| Some(*known) == access);
    found.map_or(0, |(number, _)| *number)
}

/// Asks the adapter of `disk`. EOPNOTSUPP: its disks have no reservations.
fn ask<T>(
    disk: &DiskShared,
    question: impl FnOnce(&dyn Owner, u32) -> Result<Answer<T>, hal::Error>,
) -> Result<Answer<T>, Error> {
    let answer = (disk.gate.with(|owner| question(owner, disk.unit.id))).ok_or(ENODEV)?;
    answer.map_err(to_errno)
}

/// Has `what` done with `disk`, if it can be asked for.
fn change(disk: &DiskShared, what: Result<Reserve, Error>) -> c_int {
    let answer = what.and_then(|what| ask(disk, |owner, unit| owner.reserve(unit, &what)));
    told(answer, |()| {})
}

/// Whether the key that is there is of no account. EOPNOTSUPP: another flag is set, too.
fn ignores_key(flags: u32) -> Result<bool, Error> {
    match flags & !shims::PR_FL_IGNORE_KEY {
        0 => Ok(flags != 0),
        _ => Err(crate::compat::eopnotsupp()),
    }
}

/// What the block layer is told of an answer; `with` gets what was answered.
fn told<T>(answer: Result<Answer<T>, Error>, with: impl FnOnce(T)) -> c_int {
    match answer {
        Ok(Ok(done)) => {
            with(done);
            0
        }
        Ok(Err(why)) => denied(why),
        Err(error) => error.to_errno(),
    }
}

/// A callback of [`TABLE`] that has something changed: what, its arguments say.
macro_rules! changes {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $kind:ty),*) => $what:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Called by way of [`TABLE`] for a disk of ours that is open, or a partition of it: as in
        /// tree, a caller in the kernel that asks for a partition gets its disk.
        unsafe extern "C" fn $name(bdev: *mut block_device, $($arg: $kind),*) -> c_int {
            // SAFETY: by the caller's promise.
            let disk = unsafe { GenDisk::from_raw((*bdev).bd_disk) };
            change(disk.shared(), $what)
        }
    };
}

changes! {
    /// This host's key is `new` from now on.
    register(old: u64, new: u64, flags: u32) =>
        ignores_key(flags).map(|ignore| Reserve::Register { old, new, ignore })
}
changes! {
    /// This host, whose key is `key`, has the disk for itself.
    reserve(key: u64, kind: shims::pr_type, flags: u32) =>
        ignores_key(flags).map(|ignore| Reserve::Acquire { key, access: access(kind), ignore })
}
changes! {
    /// Undoes it.
    release(key: u64, kind: shims::pr_type) =>
        Ok(Reserve::Release { key, access: access(kind) })
}
changes! {
    /// The block layer's old key is this host's, its new one that of the host that is preempted.
    preempt(key: u64, victim: u64, kind: shims::pr_type, abort: bool) =>
        Ok(Reserve::Preempt { key, victim, access: access(kind), abort })
}
changes! {
    /// No host has a key any more, nor the disk.
    clear(key: u64) => Ok(Reserve::Clear { key })
}

/// The caller's array has room for as many keys as it says; afterwards it says how many there are.
///
/// # Safety
/// As of [`register`]; `keys` is the caller's own, with its array behind it.
unsafe extern "C" fn read_keys(bdev: *mut block_device, keys: *mut shims::pr_keys) -> c_int {
    // SAFETY: by the caller's promise; the array is as long as the caller says, and written by
    // nobody else. All callers of Linux 7.3 have zeroed it.
    let (disk, told_generation, told_number, room) = unsafe {
        let room = slice::from_raw_parts_mut((*keys).keys.as_mut_ptr(), (*keys).num_keys as usize);
        let disk = GenDisk::from_raw((*bdev).bd_disk);
        (disk, &mut (*keys).generation, &mut (*keys).num_keys, room)
    };
    let answer = ask(disk.shared(), |owner, unit| owner.registered(unit, room));
    told(answer, |there: Registered| {
        *told_generation = there.generation;
        *told_number = there.keys;
    })
}

/// # Safety
/// As of [`register`]; `held` is the caller's own.
unsafe extern "C" fn read_reservation(
    bdev: *mut block_device,
    held: *mut shims::pr_held_reservation,
) -> c_int {
    // SAFETY: by the caller's promise.
    let (disk, held) = unsafe { (GenDisk::from_raw((*bdev).bd_disk), &mut *held) };
    let answer = ask(disk.shared(), |owner, unit| owner.holder(unit));
    told(answer, |holder: Holder| {
        held.generation = holder.generation;
        held.key = holder.key;
        held.type_ = number(holder.access);
    })
}
