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

/// Why the block layer can't have the disk, whatever its controller can do.
pub(crate) fn refusal(unit: &Unit) -> Option<&'static str> {
    let block = 1u32.checked_shl(u32::from(unit.block_shift));
    block
        .is_none_or(|block| block > shims::HIOPS_MAX_BLOCK)
        .then_some(
            "its logical blocks are larger than this kernel can have them: 64 KiB, and without \
         transparent huge pages 4 KiB",
        )
}

/// What the block layer asks of every disk: commands of a page and of a block at least, and a block
/// of a size that it knows.
pub(crate) fn check(limits: &Limits, unit: &Unit) -> Result<(), Error> {
    let block = 1u64.checked_shl(u32::from(unit.block_shift)).unwrap_or(0);
    let shifts = unit.block_shift >= 9 && unit.physical_shift >= unit.block_shift;
    let known = shifts && refusal(unit).is_none();
    let enough = limits.max_transfer >= 4096 && u64::from(limits.max_transfer) >= block;
    match known && enough && limits.max_segments != 0 {
        true => Ok(()),
        false => Err(Error::Unsupported),
    }
}

/// The features that are said here; others stay as they are.
const FEATURES: u32 = shims::HIOPS_FEAT_WRITE_CACHE
    | shims::HIOPS_FEAT_FUA
    | shims::HIOPS_FEAT_ROTATIONAL
    | shims::HIOPS_FEAT_ATOMIC_WRITES;

fn features(unit: &Unit) -> u32 {
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
    if unit.shape.atomic != 0 {
        features |= shims::HIOPS_FEAT_ATOMIC_WRITES;
    }
    features
}

/// The queue limits of a new disk.
pub(crate) fn queue_limits(limits: &Limits, unit: &Unit) -> bindings::queue_limits {
    let mut queue = Default::default();
    set_limits(&mut queue, limits, unit);
    queue
}

/// Makes `queue` the limits of a disk that may have changed. What a user has set stays, but for
/// `queue/write_cache`: whoever said that no flushes are needed said so of the cache that was.
pub(crate) fn set_limits(queue: &mut bindings::queue_limits, limits: &Limits, unit: &Unit) {
    let block = 1u32 << u32::from(unit.block_shift).min(16);
    let physical = 1u32 << u32::from(unit.physical_shift).min(16);
    let bytes = |blocks: u32| blocks.saturating_mul(block);
    let shape = &unit.shape;
    queue.features = (queue.features & !FEATURES) | features(unit);
    queue.flags &= !shims::HIOPS_FLAG_WRITE_CACHE_DISABLED;
    queue.logical_block_size = block;
    queue.physical_block_size = physical;
    queue.alignment_offset = bytes(shape.aligned_at);
    queue.io_min = bytes(shape.least);
    queue.io_opt = bytes(shape.best);
    queue.chunk_sectors = sectors32(unit, shape.stripe);
    queue.max_hw_sectors = limits.max_transfer >> 9;
    queue.max_segments = limits.max_segments;
    // With a virtual boundary the block layer wants segments of any size.
    queue.max_segment_size = match limits.virt_boundary {
        0 => limits.max_segment,
        _ => u32::MAX,
    };
    // CAST: address masks of a 64-bit machine.
    queue.seg_boundary_mask = limits.segment_boundary as kernel::ffi::c_ulong;
    queue.virt_boundary_mask = limits.virt_boundary as kernel::ffi::c_ulong;
    // 0 would mean the block layer's default of a sector.
    queue.dma_alignment = limits.dma_align.max(3);
    queue.max_write_zeroes_sectors = sectors32(unit, unit.max_write_zeroes);
    queue.max_hw_wzeroes_unmap_sectors = match shape.zeroes_unmap {
        true => queue.max_write_zeroes_sectors,
        false => 0,
    };
    queue.atomic_write_hw_max = bytes(shape.atomic);
    queue.atomic_write_hw_boundary = bytes(shape.atomic_boundary);
    queue.atomic_write_hw_unit_min = block;
    queue.atomic_write_hw_unit_max = match shape.atomic.checked_ilog2() {
        Some(shift) => bytes(1u32.wrapping_shl(shift)),
        None => block,
    };
    match unit.discard {
        Some(discard) => {
            queue.max_hw_discard_sectors = sectors32(unit, discard.max_blocks);
            queue.discard_granularity = bytes(discard.granularity.max(1));
            queue.max_discard_segments = discard.max_ranges.max(1);
        }
        None => {
            queue.max_hw_discard_sectors = 0;
            queue.discard_granularity = 0;
            queue.max_discard_segments = 1;
        }
    }
}
