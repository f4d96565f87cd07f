// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of what the block layer is told of a disk.

use super::unit::unit;
use crate::blk::gendisk::queue_limits;
use hal::{Discard, Limits, Topology, Unit};
use kernel::prelude::*;

fn limits() -> Limits {
    Limits {
        queues: 1,
        tags: 8,
        max_transfer: 1 << 20,
        max_segments: 33,
        max_segment: 65_536,
        segment_boundary: u64::MAX,
        virt_boundary: 4095,
        dma_align: 3,
        hole_align: None,
    }
}

#[kunit_tests(hiops_limits)]
mod limits_suite {
    use super::*;
    use crate::shims;

    #[test]
    fn blocks_become_sectors() {
        let queue = queue_limits(&limits(), &unit());
        assert_eq!(queue.logical_block_size, 4096);
        assert_eq!(queue.physical_block_size, 4096);
        assert_eq!(queue.max_hw_sectors, 2048);
        assert_eq!(queue.max_segments, 33);
        assert_eq!(crate::blk::gendisk::sectors(&unit(), 1000), 8000);
        assert_eq!(
            crate::blk::gendisk::sectors(&unit(), u64::MAX),
            u64::MAX >> 9
        );
    }

    #[test]
    fn a_virtual_boundary_lifts_the_segment_size() {
        assert_eq!(queue_limits(&limits(), &unit()).max_segment_size, u32::MAX);
        let free = Limits {
            virt_boundary: 0,
            ..limits()
        };
        assert_eq!(queue_limits(&free, &unit()).max_segment_size, 65_536);
    }

    #[test]
    fn features_follow_the_cache() {
        let both = shims::HIOPS_FEAT_WRITE_CACHE | shims::HIOPS_FEAT_FUA;
        assert_eq!(queue_limits(&limits(), &unit()).features & both, both);
        let mut plain = unit();
        plain.write_cache = false;
        assert_eq!(queue_limits(&limits(), &plain).features & both, 0);
        plain.rotational = true;
        let rotational = shims::HIOPS_FEAT_ROTATIONAL;
        assert_eq!(
            queue_limits(&limits(), &plain).features & rotational,
            rotational
        );
    }

    #[test]
    fn what_the_block_layer_cannot_take_is_refused() {
        use crate::blk::gendisk::check;
        // Of the largest block that this kernel has; with transparent huge pages that is 64 KiB.
        const LARGEST: u8 = crate::shims::HIOPS_MAX_BLOCK.trailing_zeros() as u8;
        assert!(check(&limits(), &unit()).is_ok());
        let with = |change: fn(&mut Limits, &mut Unit)| {
            let (mut limits, mut unit) = (limits(), unit());
            change(&mut limits, &mut unit);
            check(&limits, &unit).is_ok()
        };
        assert!(with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (9, 9)
        ));
        assert!(with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (LARGEST, LARGEST)
        ));
        assert!(!with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (8, 9)
        ));
        assert!(!with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (LARGEST + 1, LARGEST + 1)
        ));
        assert!(!with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (255, 255)
        ));
        assert!(!with(|_, unit| unit.physical_shift = 11));
        assert!(with(|limits, _| limits.max_transfer = 4096));
        assert!(!with(|limits, _| limits.max_transfer = 4095));
        assert!(!with(|limits, _| limits.max_segments = 0));
    }

    #[test]
    fn what_is_best_for_a_disk() {
        let mut whole = unit();
        whole.max_write_zeroes = 8;
        whole.topology = Topology {
            atomic_write_max: 6,
            io_min: 2,
            io_opt: 4,
            chunk: 32,
            alignment_offset: 1,
            zeroes_unmap: true,
            ..Topology::default()
        };
        let mut queue = queue_limits(&limits(), &whole);
        assert_eq!(queue.atomic_write_hw_max, 24_576);
        assert_eq!(queue.atomic_write_hw_unit_min, 4096);
        assert_eq!(queue.atomic_write_hw_unit_max, 16_384);
        assert_eq!(queue.io_min, 8192);
        assert_eq!(queue.io_opt, 16_384);
        assert_eq!(queue.chunk_sectors, 256);
        assert_eq!(queue.alignment_offset, 4096);
        assert_eq!(queue.max_hw_wzeroes_unmap_sectors, 64);
        assert!(queue.features & shims::HIOPS_FEAT_ATOMIC_WRITES != 0);
        // What it loses is gone, what a user has set stays.
        queue.max_user_sectors = 8;
        crate::blk::gendisk::set_limits(&mut queue, &limits(), &unit());
        assert_eq!(queue.max_hw_wzeroes_unmap_sectors, 0);
        assert_eq!(queue.chunk_sectors, 0);
        assert_eq!(queue.max_user_sectors, 8);
        assert_eq!(queue.features & shims::HIOPS_FEAT_ATOMIC_WRITES, 0);
    }

    #[test]
    fn of_a_disk_that_is_not_known_every_request_is_none() {
        let format = crate::blk::request::Format::new(&unit());
        assert_eq!(format.block_shift(), 12);
        format.forget();
        assert_eq!(
            u32::MAX
                .wrapping_shr(1)
                .wrapping_shr(format.block_shift().into()),
            0
        );
        let mut unmaps = unit();
        unmaps.topology.zeroes_unmap = true;
        format.set(&unmaps);
        assert_eq!(format.block_shift(), 12);
        assert!(format.unmaps());
    }

    #[test]
    fn discard_in_sectors_and_bytes() {
        assert_eq!(queue_limits(&limits(), &unit()).max_hw_discard_sectors, 0);
        let mut trims = unit();
        trims.discard = Some(Discard {
            max_blocks: 16,
            max_ranges: 256,
            granularity: 2,
        });
        let queue = queue_limits(&limits(), &trims);
        assert_eq!(queue.max_hw_discard_sectors, 128);
        assert_eq!(queue.discard_granularity, 8192);
        assert_eq!(queue.max_discard_segments, 256);
        trims.discard = Some(Discard {
            max_blocks: u32::MAX,
            max_ranges: 1,
            granularity: u32::MAX,
        });
        let queue = queue_limits(&limits(), &trims);
        assert_eq!(queue.max_hw_discard_sectors, u32::MAX);
        assert_eq!(queue.discard_granularity, u32::MAX);
    }
}
