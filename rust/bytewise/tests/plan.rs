// SPDX-License-Identifier: GPL-2.0
//! Every range of three blocks and what is around them, read and written, and the edges of all
//! numbers.
#![cfg(not(loom))]
#![allow(missing_docs)]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "it fails the test"
)]

use bytewise::{Geometry, Plan, SPAN};

/// Bytes at any offset that one command moves.
const PAGE: usize = 4096;

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
        assert!(plan.len != 0 && plan.len <= SPAN, "{plan:?}");
        let cut = plan.len < (wanted - found).min((disk.size - offset) as usize - found);
        assert!(
            !cut || (plan.skip + plan.len) as u64 == bytes,
            "{plan:?}: cut within a block"
        );
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

/// Writes as kglue does, with a buffer in which something else was: what is on the disk then.
fn write(disk: &Geometry, medium: &mut [u8], offset: u64, data: &[u8]) -> usize {
    let (block, mut done) = (1usize << disk.block_shift, 0);
    while let Some(plan) = disk.plan(offset + done as u64, data.len() - done) {
        let from = plan.lba as usize * block;
        let mut buffer = vec![0xee; plan.blocks as usize * block];
        if let Some(run) = disk.ragged(&plan) {
            let (at, bytes) = (run.first as usize * block, run.count as usize * block);
            buffer[at..at + bytes].copy_from_slice(&medium[from + at..from + at + bytes]);
        }
        buffer[plan.skip..plan.skip + plan.len].copy_from_slice(&data[done..done + plan.len]);
        medium[from..from + buffer.len()].copy_from_slice(&buffer);
        done += plan.len;
    }
    done
}

/// What is on a disk at first: no byte of it is one that is written.
fn content(size: u64) -> Vec<u8> {
    (0..size).map(|at| at as u8 & 0x7f).collect()
}

/// A write there, and nothing else, is on the disk of that content.
fn written(disk: &Geometry, before: &[u8], offset: u64, wanted: usize) {
    let data = vec![0x80; wanted];
    let mut medium = before.to_vec();
    let done = write(disk, &mut medium, offset, &data);
    let from = offset.min(disk.size) as usize;
    assert_eq!(done, wanted.min(before.len() - from), "{offset} {wanted}");
    let (head, rest) = medium.split_at(from);
    let (body, tail) = rest.split_at(done);
    assert!(
        head == &before[..from] && body == &data[..done] && tail == &before[from + done..],
        "{offset} {wanted}: another byte has changed, or none"
    );
}

fn exhaust(block_shift: u8, span: u32, step: usize) {
    let block = 1u64 << block_shift;
    let size = 3 * block;
    let disk = Geometry {
        size,
        block_shift,
        span,
    };
    let before = content(size);
    for offset in (0..=size + 2).step_by(step) {
        for wanted in (0..=(size - offset.min(size) + 2) as usize).step_by(step) {
            let left = size.saturating_sub(offset) as usize;
            assert_eq!(
                read(&disk, offset, wanted),
                wanted.min(left),
                "{offset} {wanted}"
            );
            written(&disk, &before, offset, wanted);
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
        exhaust(12, span, 61);
        let disk = Geometry {
            size: 3 << 12,
            block_shift: 12,
            span,
        };
        let before = content(disk.size);
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
                written(&disk, &before, from as u64, to - from);
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
            let plan = disk.plan(offset, PAGE);
            assert_eq!(plan.map(|plan| plan.len), Some(PAGE), "{offset}");
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
    for wanted in [SPAN, SPAN + 1, 1 << 20, usize::MAX] {
        assert_eq!(disk.plan(0, wanted).map(|plan| plan.len), Some(SPAN));
        assert_eq!(disk.plan(1, wanted).map(|plan| plan.len), Some(SPAN - 1));
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
        for wanted in [1, PAGE, usize::MAX] {
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
    assert_eq!(disk.plan((1 << 20) - 1, PAGE), Some(last));
}

#[test]
fn the_largest_disk_has_a_last_byte() {
    let disk = Geometry {
        size: u64::MAX,
        block_shift: 9,
        span: 8192,
    };
    // What is no whole block is not there.
    let plan = disk.plan(u64::MAX - 512, PAGE);
    assert_eq!(plan.map(|plan| (plan.blocks, plan.len)), Some((1, 1)));
    assert_eq!(disk.plan(u64::MAX - 511, PAGE), None);
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

#[test]
fn only_what_is_ragged_is_read_before_a_write() {
    let disk = Geometry {
        size: 1 << 20,
        block_shift: 9,
        span: 8192,
    };
    let run = |offset, len| {
        let plan = disk.plan(offset, len).unwrap();
        disk.ragged(&plan).map(|run| (run.first, run.count))
    };
    assert_eq!(run(512, 4096), None);
    assert_eq!(run(512, 4095), Some((7, 1)));
    assert_eq!(run(513, 4095), Some((0, 1)));
    assert_eq!(run(513, 4094), Some((0, 8)));
    assert_eq!(run(513, 1), Some((0, 1)));
    assert_eq!(run(1000, 100), Some((0, 2)));
}
