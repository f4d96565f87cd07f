// SPDX-License-Identifier: GPL-2.0
//! Whether what nobody wants of a read may stay with the device: if that says so, and does it right
//! with some blocks that show it, when the disk's bytes are turned on.

use bytewise::{is_telling, spoil, trials, SPAN};
use core::sync::atomic::{AtomicBool, Ordering};
use hal::Op;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::prelude::*;

use crate::blk::gendisk::GenDisk;
use crate::bytes::entered::{DiskRef, Entered};
use crate::bytes::transfer::{How, Transfer};

/// Blocks, the disk's first, that are looked at for one that shows it.
const BLOCKS: u64 = 1024;

/// Where a disk's reads may have holes.
pub(crate) struct Holes {
    /// [`hal::Limits::hole_align`].
    offered: Option<u32>,
    is_right: AtomicBool,
}

impl Holes {
    /// As the controller says; but nowhere before it was tried.
    pub(crate) fn new(offered: Option<u32>) -> Self {
        Self {
            offered,
            is_right: AtomicBool::new(false),
        }
    }

    /// Low bits that neither their places nor their lengths have; `None`: there may be none.
    #[inline]
    pub(crate) fn align(&self) -> Option<u32> {
        match self.is_right.load(Ordering::Relaxed) {
            true => self.offered,
            false => None,
        }
    }

    /// Tries the device out, if it offers any, and tells the operator. Before anybody else can use
    /// the bytes of `disk`, whose these are. Sleeps.
    pub(crate) fn try_out(&self, disk: DiskRef<'_>) {
        let Some(align) = self.offered else {
            return;
        };
        let disk = GenDisk::of(disk);
        let (name, but) = (disk.name(), "reads of bytes move whole blocks");
        match verdict(disk, align) {
            Ok(Verdict::Right) => {
                self.is_right.store(true, Ordering::Relaxed);
                pr_info!("{}: reads of bytes leave out what nobody wants\n", name);
            }
            Ok(Verdict::Wrong) => pr_warn!(
                "{}: it says that reads may leave something out, and does it wrong: {}\n",
                name,
                but
            ),
            Ok(Verdict::Unknown) => pr_info!(
                "{}: {}, as none of the first {} shows whether it could leave out the right bytes; \
                 turn bytes off and on again when it has data\n",
                name,
                but,
                BLOCKS
            ),
            Err(error) => pr_warn!(
                "{}: {}, as it could not be tried to leave something out (error {})\n",
                name,
                but,
                error.to_errno()
            ),
        }
    }
}

/// What a device is like with holes.
enum Verdict {
    Right,
    Wrong,
    /// There was nothing to tell it by.
    Unknown,
}

/// Waits for the device only: what else is to be waited for may wait for the caller.
fn verdict(disk: GenDisk<'_>, align: u32) -> Result<Verdict, Error> {
    let how = How {
        may_wait: false,
        polls: false,
    };
    let mut taken = disk.shared().bytes.take(how.may_wait)?;
    let entered = Entered::new(disk.alive(), how.may_wait)?;
    let mut transfer = Transfer::new(disk, &mut taken, &entered, how)?;
    let Some((offset, block)) = telling(&mut transfer)? else {
        return Ok(Verdict::Unknown);
    };
    let plan = transfer.geometry().plan(offset, block.len()).ok_or(EIO)?;
    // CAST: a block fits into a buffer.
    for trial in trials(block.len() as u32, align) {
        spoil(&block, transfer.bytes(&plan).ok_or(EIO)?);
        transfer.read_sparse(&plan, Some(trial))?;
        if !trial.is_right(&block, transfer.bytes(&plan).ok_or(EIO)?) {
            return Ok(Verdict::Wrong);
        }
    }
    Ok(Verdict::Right)
}

/// A block that shows it: where that is, in bytes, and what is in it.
fn telling(transfer: &mut Transfer<'_>) -> Result<Option<(u64, KVec<u8>)>, Error> {
    let geometry = *transfer.geometry();
    let bytes = 1usize
        .checked_shl(u32::from(geometry.block_shift))
        .ok_or(EIO)?;
    // CAST: a `usize` has 64 bits at most.
    let step = bytes as u64;
    let mut offset = 0;
    while offset < BLOCKS.saturating_mul(step) {
        let Some(plan) = geometry.plan(offset, SPAN) else {
            break;
        };
        transfer.run(Op::Read, &plan, plan.all(), false)?;
        for block in transfer.bytes(&plan).ok_or(EIO)?.chunks_exact(bytes) {
            if is_telling(block) {
                let mut copy = KVec::with_capacity(block.len(), GFP_KERNEL)?;
                copy.extend_from_slice(block, GFP_KERNEL)?;
                return Ok(Some((offset, copy)));
            }
            offset = offset.saturating_add(step);
        }
    }
    Ok(None)
}
