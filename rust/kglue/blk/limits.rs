// SPDX-License-Identifier: GPL-2.0
//! What a controller and its disk can do, in the block layer's terms.

use crate::shims;
use hal::{Error, Limits, Unit};
use kernel::bindings;

/// 512-byte sectors, the block layer's unit, in one logical block.
fn sectors_shift(unit: &Unit) -> u32 {
    u32::from(unit.block_shift).saturating_sub(9)
}

/// `blocks` logical blocks in sectors, as far as they can be told.
pub(crate) fn sectors(unit: &Unit, blocks: u64) -> u64 {
    let shift = sectors_shift(unit);
    blocks
        .checked_mul(1u64 << shift.min(32))
        .unwrap_or(u64::MAX >> 9)
}

fn sectors32(unit: &Unit, blocks: u32) -> u32 {
    u32::try_from(sectors(unit, u64::from(blocks))).unwrap_or(u32::MAX)
}

/// What the block layer asks of every disk: commands of a page and of a block at least, and a block of a size that it knows.
pub(crate) fn check(limits: &Limits, unit: &Unit) -> Result<(), Error> {
    let block = 1u64.checked_shl(u32::from(unit.block_shift)).unwrap_or(0);
    let known = (9..=16).contains(&unit.block_shift) && unit.physical_shift >= unit.block_shift;
    let enough = limits.max_transfer >= 4096 && u64::from(limits.max_transfer) >= block;
    match known && enough && limits.max_segments != 0 {
        true => Ok(()),
        false => Err(Error::Unsupported),
    }
}

/// The queue limits of a disk.
pub(crate) fn queue_limits(limits: &Limits, unit: &Unit) -> bindings::queue_limits {
    let mut features = 0;
    if unit.write_cache {
        features |= shims::HIOPS_FEAT_WRITE_CACHE;
        if unit.fua {
            features |= shims::HIOPS_FEAT_FUA;
        }
    }
    if unit.rotational {
        features |= shims::HIOPS_FEAT_ROTATIONAL;
    }
    let block = 1u32 << u32::from(unit.block_shift).min(16);
    let mut queue = bindings::queue_limits {
        features,
        logical_block_size: block,
        physical_block_size: 1u32 << u32::from(unit.physical_shift).min(16),
        max_hw_sectors: limits.max_transfer >> 9,
        max_segments: limits.max_segments,
        chunk_sectors: sectors32(unit, unit.stripe_blocks),
        // With a virtual boundary the block layer wants segments of any size.
        max_segment_size: if limits.virt_boundary != 0 {
            u32::MAX
        } else {
            limits.max_segment
        },
        // CAST: an address mask of a 64-bit machine.
        virt_boundary_mask: limits.virt_boundary as kernel::ffi::c_ulong,
        // 0 would mean the block layer's default of a sector.
        dma_alignment: limits.dma_align.max(3),
        max_write_zeroes_sectors: sectors32(unit, unit.max_write_zeroes),
        ..Default::default()
    };
    if let Some(discard) = unit.discard {
        queue.max_hw_discard_sectors = sectors32(unit, discard.max_blocks);
        queue.discard_granularity = discard.granularity.max(1).saturating_mul(block);
        queue.max_discard_segments = 1;
    }
    queue
}
