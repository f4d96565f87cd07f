// SPDX-License-Identifier: GPL-2.0
//! A thread reads bytes: it takes a buffer, enters the disk's queue, has whole blocks read into the
//! buffer, and copies what is wanted.

use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::iov::IovIterDest;
use kernel::prelude::*;

use crate::blk::gendisk::GenDisk;
use crate::bytes::entered::{DiskRef, Entered};
use crate::bytes::transfer::{How, Transfer};
use crate::platform::NoIo;
use crate::shims_safe::{hiops_pagefault_disable, hiops_pagefault_enable};

/// Called by C, in a thread that has the disk open, for a read to `to`. Sleeps.
#[no_mangle]
extern "C" fn hiops_bytes_read(
    disk: DiskRef<'_>,
    pos: bindings::loff_t,
    to: &mut IovIterDest<'_>,
    flags: u32,
) -> isize {
    let Ok(pos) = u64::try_from(pos) else {
        // CAST: an errno.
        return EINVAL.to_errno() as isize;
    };
    match read(GenDisk::of(disk), pos, to, How::of(flags)) {
        // CAST: at most some thousand.
        Ok(count) => count as isize,
        // CAST: an errno.
        Err(error) => error.to_errno() as isize,
    }
}

/// Reads from `pos` on, as far as one command goes: how many bytes that were; 0 at the end.
fn read(disk: GenDisk<'_>, pos: u64, to: &mut IovIterDest<'_>, how: How) -> Result<usize, Error> {
    let mut taken = disk.shared().bytes.take(how.may_wait)?;
    let entered = Entered::new(disk.alive(), how.may_wait)?;
    let mut transfer = Transfer::new(disk, &mut taken, &entered, how)?;
    let Some(plan) = transfer.geometry().plan(pos, to.len()) else {
        return Ok(0);
    };
    transfer.read(&plan)?;
    transfer.stats().bytes_read(plan.len);
    let found = transfer.bytes(&plan).ok_or(EIO)?;
    let copied = copy_now(found, to);
    let rest = match found.get(copied..) {
        None | Some([]) => return Ok(copied),
        Some(rest) => own_copy(rest)?,
    };
    // The page that is missing may be one of this very disk's, or come never.
    drop(entered);
    drop(taken);
    let late = to.copy_to_iter(&rest);
    match copied.saturating_add(late) {
        0 => Err(EFAULT),
        count => Ok(count),
    }
}

/// Copies `from`, as far as that is possible without waiting; how much that was.
fn copy_now(from: &[u8], to: &mut IovIterDest<'_>) -> usize {
    hiops_pagefault_disable();
    let copied = to.copy_to_iter(from);
    hiops_pagefault_enable();
    copied
}

/// A copy of `bytes`, for which no I/O is started: a freeze waits for the caller.
#[cold]
fn own_copy(bytes: &[u8]) -> Result<KVec<u8>, Error> {
    let _no_io = NoIo::new();
    let mut copy = KVec::with_capacity(bytes.len(), GFP_KERNEL)?;
    copy.extend_from_slice(bytes, GFP_KERNEL)?;
    Ok(copy)
}
