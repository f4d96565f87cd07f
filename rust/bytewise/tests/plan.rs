// SPDX-License-Identifier: GPL-2.0
//! Every range of three blocks and what is around them, and the edges of all numbers.
#![cfg(not(loom))]
#![allow(missing_docs)]

use bytewise::{Geometry, Plan, MOST};

/// Reads by plans, as a device would, until nothing more comes: how many bytes that are, each of
/// which is the next one that was wanted.
fn read(disk: &Geometry, offset: u64, wanted: usize) -> usize {
    let mut found = 0;
    while let Some(plan) = disk.plan(offset + found as u64, wanted - found) {
        let block = 1u64 << disk.block_shift;
        let bytes = u64::from(plan.blocks) * block;
        let first = plan.lba * block;
        assert!(
            bytes <= u64::from(disk.span),
            "{plan:?}: more than a command"
        );
        assert!(first + bytes <= disk.size, "{plan:?}: past the end");
        assert!(plan.len != 0 && plan.len <= MOST, "{plan:?}");
        assert!(
            (plan.skip + plan.len) as u64 <= bytes,
            "{plan:?}: beyond the buffer"
        );
        assert!((plan.skip as u64) < block, "{plan:?}: a block too early");
        assert!(
            (plan.skip + plan.len) as u64 > bytes - block,
            "{plan:?}: a block too many"
        );
        assert_eq!(first + plan.skip as u64, offset + found as u64, "{plan:?}");
        found += plan.len;
    }
    found
}

fn exhaust(block_shift: u8, span: u32, step: usize) {
    let block = 1u64 << block_shift;
    let size = 3 * block;
    let disk = Geometry {
        size,
        block_shift,
        span,
    };
    for offset in (0..=size + 2).step_by(step) {
        for wanted in (0..=(size - offset.min(size) + 2) as usize).step_by(step) {
            let left = size.saturating_sub(offset) as usize;
            assert_eq!(
                read(&disk, offset, wanted),
                wanted.min(left),
                "{offset} {wanted}"
            );
        }
    }
}

#[test]
fn all_ranges_of_three_blocks_of_512() {
    for span in [512, 1024, 8192] {
        exhaust(9, span, 1);
    }
}

#[test]
fn all_ranges_of_three_blocks_of_4096() {
    // Each offset and length next to each edge, and a step that no edge is a multiple of.
    for span in [4096, 8192] {
        exhaust(12, span, 7);
        let disk = Geometry {
            size: 3 << 12,
            block_shift: 12,
            span,
        };
        let edges = [
            0usize, 1, 2, 4094, 4095, 4096, 4097, 8191, 8192, 8193, 12_287, 12_288,
        ];
        for from in edges {
            for to in edges.into_iter().filter(|to| *to >= from) {
                assert_eq!(
                    read(&disk, from as u64, to - from),
                    to - from,
                    "{from} {to}"
                );
            }
        }
    }
}

#[test]
fn four_kibibytes_at_any_byte_are_one_command() {
    for block_shift in [9, 10, 11, 12] {
        let disk = Geometry {
            size: 1 << 20,
            block_shift,
            span: 8192,
        };
        for offset in 0..8192 {
            let plan = disk.plan(offset, MOST);
            assert_eq!(plan.map(|plan| plan.len), Some(MOST), "{offset}");
        }
    }
}

#[test]
fn it_is_cut_short_at_most() {
    let disk = Geometry {
        size: 1 << 20,
        block_shift: 9,
        span: 8192,
    };
    for wanted in [MOST, MOST + 1, 1 << 20, usize::MAX] {
        assert_eq!(disk.plan(0, wanted).map(|plan| plan.len), Some(MOST));
    }
}

#[test]
fn there_is_nothing_at_the_end_nor_beyond() {
    let disk = Geometry {
        size: 1 << 20,
        block_shift: 9,
        span: 8192,
    };
    for offset in [1 << 20, (1 << 20) + 1, i64::MAX as u64, u64::MAX] {
        for wanted in [1, MOST, usize::MAX] {
            assert_eq!(disk.plan(offset, wanted), None, "{offset}");
        }
    }
    assert_eq!(disk.plan(0, 0), None);
    let last = Plan {
        lba: (1 << 11) - 1,
        blocks: 1,
        skip: 511,
        len: 1,
    };
    assert_eq!(disk.plan((1 << 20) - 1, MOST), Some(last));
}

#[test]
fn the_largest_disk_has_a_last_byte() {
    let disk = Geometry {
        size: u64::MAX,
        block_shift: 9,
        span: 8192,
    };
    // What is no whole block is not there.
    let plan = disk.plan(u64::MAX - 512, MOST);
    assert_eq!(plan.map(|plan| (plan.blocks, plan.len)), Some((1, 1)));
    assert_eq!(disk.plan(u64::MAX - 511, MOST), None);
}

#[test]
fn blocks_that_no_command_holds_are_not_read() {
    for block_shift in [14, 31, 63, 64, 255] {
        let disk = Geometry {
            size: u64::MAX,
            block_shift,
            span: 8192,
        };
        assert!(!disk.is_usable());
        assert_eq!(disk.plan(0, 1), None, "{block_shift}");
    }
    let disk = Geometry {
        size: 0,
        block_shift: 13,
        span: 8192,
    };
    assert!(disk.is_usable());
    assert_eq!(disk.plan(0, 1), None);
}
