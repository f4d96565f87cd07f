// SPDX-License-Identifier: GPL-2.0
//! A disk's bytes are turned on and off; before anybody can use them, the device is tried out.
//!
//! What nobody wants of a read may stay with a device that says so, and does it right with a block
//! that shows it (`bytewise`'s `holes` says how).

use bytewise::{is_telling, spoil, trials, SPAN};
use hal::Op;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::prelude::*;

use crate::blk::gendisk::{DiskShared, GenDisk};
use crate::bytes::entered::{DiskRef, Entered};
use crate::bytes::holes::Holes;
use crate::bytes::memory::DiskMemory;
use crate::bytes::switch::Parts;
use crate::bytes::transfer::{How, Transfer};

/// Blocks, the disk's first, that are looked at for one that shows it.
const BLOCKS: u64 = 1024;

/// Has `/dev/<disk>_bytes` be there, or not. Sleeps.
pub(crate) fn set_bytes(shared: &DiskShared, on: bool) -> Result<(), Error> {
    let DiskShared {
        bytes, unit, stats, ..
    } = shared;
    if !on {
        return if bytes.turn_off() { Ok(()) } else { Err(EBUSY) };
    }
    let make = |parts: Parts<'_>| shared.owner.get().bytes_memory(unit, stats, parts);
    let ready = |disk: DiskRef<'_>, memory: &DiskMemory| {
        try_out(GenDisk::of(disk), &memory.holes);
    };
    bytes.turn_on(make, ready).map_err(crate::errno::to_errno)
}

/// Tries the device out, if it offers any, and tells the operator. Before anybody else can use
/// the bytes of `disk`, whose these are. Sleeps.
fn try_out(disk: GenDisk<'_>, holes: &Holes) {
    let Some(align) = holes.offered else {
        return;
    };
    let (name, but) = (disk.name(), "reads of bytes move whole blocks");
    match verdict(disk, align) {
        Ok(Verdict::Right) => {
            holes.believe();
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
            // Who uses the disk may have written the block.
            transfer.run(Op::Read, &plan, plan.all(), false)?;
            return Ok(match transfer.bytes(&plan).ok_or(EIO)? == &*block {
                true => Verdict::Wrong,
                false => Verdict::Unknown,
            });
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
