// SPDX-License-Identifier: GPL-2.0
//! A thread writes bytes: alone in that part of the disk, it takes a buffer, enters the disk's
//! queue, has the blocks read there of which it does not write all, copies its data over them,
//! once, and has whole blocks written. One that is asynchronous, and of whole blocks only, goes on
//! when its data is copied.

use bytewise::SPAN;
use core::mem::forget;
use hal::Op;
use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::iov::IovIterSource;
use kernel::prelude::*;

use crate::blk::gendisk::GenDisk;
use crate::bytes::async_io::Kiocb;
use crate::bytes::entered::{DiskRef, Entered};
use crate::bytes::transfer::{How, Transfer};
use crate::shims;
use crate::shims_safe::{hiops_pagefault_disable, hiops_pagefault_enable};

// As much as C has pages looked for.
const _: () = assert!(SPAN == shims::HIOPS_BYTES_SPAN as usize);

/// What a write is to be.
#[derive(Clone, Copy)]
struct WriteKind {
    how: How,
    /// What is written is durable.
    fua: bool,
    /// All of it with one command, without merging.
    untorn: bool,
}

impl WriteKind {
    fn of(flags: u32) -> Self {
        let has = |flag: u32| flags & flag != 0;
        Self {
            how: How::of(flags),
            fua: has(shims::HIOPS_BYTES_FUA),
            untorn: has(shims::HIOPS_BYTES_UNTORN),
        }
    }
}

/// Called by C, in a thread that has the disk open, for a write of what is in `from`. Sleeps.
#[no_mangle]
extern "C" fn hiops_bytes_write(
    disk: DiskRef<'_>,
    pos: bindings::loff_t,
    from: &mut IovIterSource<'_>,
    count: usize,
    flags: u32,
) -> isize {
    let Ok(pos) = u64::try_from(pos) else {
        // CAST: an errno.
        return EINVAL.to_errno() as isize;
    };
    match write(GenDisk::of(disk), pos, from, count, WriteKind::of(flags)) {
        // CAST: at most some thousand.
        Ok(count) => count as isize,
        // CAST: an errno.
        Err(error) => error.to_errno() as isize,
    }
}

/// Writes `count` bytes of `from` to `pos` on, as far as one command goes: how many those were. 0:
/// none, as a page of theirs is not there.
fn write(
    disk: GenDisk<'_>,
    pos: u64,
    from: &mut IovIterSource<'_>,
    count: usize,
    kind: WriteKind,
) -> Result<usize, Error> {
    let bytes = &disk.shared().bytes;
    // Before there is a buffer: who waits here keeps none from others.
    let how = kind.how;
    let _held = bytes.lock(pos, count, how.may_wait)?;
    let mut taken = bytes.take(how.may_wait)?;
    let entered = Entered::new(disk.alive(), how.may_wait)?;
    let mut transfer = Transfer::new(disk, &mut taken, &entered, how)?;
    let plan = transfer.geometry().plan(pos, count).ok_or(ENOSPC)?;
    let ragged = transfer.geometry().ragged(&plan);
    if kind.untorn && (plan.len != count || ragged.is_some()) {
        return Err(EINVAL);
    }
    if let Some(run) = ragged {
        transfer.run(Op::Read, &plan, run, false)?;
    }
    let copied = copy_now(from, transfer.bytes(&plan).ok_or(EIO)?);
    if copied != plan.len {
        return Ok(0);
    }
    transfer.run(Op::Write, &plan, plan.all(), kind.fua)?;
    transfer.stats().bytes_written(copied, ragged.is_some());
    Ok(copied)
}

/// As [`hiops_bytes_write`], for the write that `kiocb` is of: C has that back with any error but
/// `EIOCBQUEUED`. Sleeps not, but where memory is allocated.
#[no_mangle]
extern "C" fn hiops_bytes_begin_write(
    disk: DiskRef<'_>,
    pos: bindings::loff_t,
    from: &mut IovIterSource<'_>,
    count: usize,
    kiocb: Kiocb,
    flags: u32,
) -> isize {
    let Ok(pos) = u64::try_from(pos) else {
        // CAST: an errno.
        return EINVAL.to_errno() as isize;
    };
    let error = match begin(
        GenDisk::of(disk),
        pos,
        from,
        count,
        kiocb,
        WriteKind::of(flags),
    ) {
        Ok(()) => EIOCBQUEUED,
        Err(error) => error,
    };
    // CAST: an errno.
    error.to_errno() as isize
}

/// Begins to write `count` bytes of `from` to `pos` on, if that is one command of whole blocks and
/// there is nothing to wait for; else `EAGAIN`. Of `from` some may be taken then.
fn begin(
    disk: GenDisk<'_>,
    pos: u64,
    from: &mut IovIterSource<'_>,
    count: usize,
    kiocb: Kiocb,
    kind: WriteKind,
) -> Result<(), Error> {
    let how = How {
        may_wait: false,
        ..kind.how
    };
    let bytes = &disk.shared().bytes;
    let busied = bytes.make_busy(pos, count).ok_or(EAGAIN)?;
    let mut taken = bytes.take(how.may_wait)?;
    let entered = Entered::new(disk.alive(), how.may_wait)?;
    let mut transfer = Transfer::new(disk, &mut taken, &entered, how)?;
    let plan = transfer.geometry().plan(pos, count).ok_or(ENOSPC)?;
    let is_whole = plan.len == count && transfer.geometry().ragged(&plan).is_none();
    if !is_whole || copy_now(from, transfer.bytes(&plan).ok_or(EIO)?) != count {
        return Err(EAGAIN);
    }
    transfer.begin(plan, kiocb, Some(busied.regions), kind.fua)?;
    // Given back when the write is over.
    forget(busied);
    forget(taken);
    Ok(())
}

/// Fills `to`, as far as that is possible without waiting; how much that was.
fn copy_now(from: &mut IovIterSource<'_>, to: &mut [u8]) -> usize {
    hiops_pagefault_disable();
    let copied = from.copy_from_iter(to);
    hiops_pagefault_enable();
    copied
}
