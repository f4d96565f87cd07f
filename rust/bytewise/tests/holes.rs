// SPDX-License-Identifier: GPL-2.0
//! Reads with holes: what is left out of every range of three blocks, and which devices are seen
//! through that get it wrong.
#![cfg(not(loom))]
#![allow(missing_docs)]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "it fails the test"
)]

use bytewise::{is_telling, spoil, trials, Geometry, Piece, Sparse};

/// Blocks of which each byte is another than those around it.
fn medium(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 64) as u8).collect()
}

/// What a right device leaves in `buffer` of a read of `blocks`.
fn right(sparse: Sparse, blocks: &[u8], buffer: &mut [u8]) {
    for piece in sparse.pieces().filter(|piece| !piece.is_hole) {
        let range = piece.at as usize..(piece.at + piece.len) as usize;
        buffer[range.clone()].copy_from_slice(&blocks[range]);
    }
}

#[test]
fn every_range_of_three_blocks_comes_and_as_little_else_as_may_be() {
    for (shift, step) in [(9, 1), (12, 61)] {
        let block = 1usize << shift;
        let disk = Geometry {
            size: 3 * block as u64,
            block_shift: shift,
            span: 8192,
        };
        let medium = medium(3 * block);
        for align in [0, 3] {
            for (from, to) in (0..3 * block).step_by(step).flat_map(|from| {
                (from + 1..=3 * block)
                    .step_by(step)
                    .map(move |to| (from, to))
            }) {
                let plan = disk.plan(from as u64, to - from).unwrap();
                let all = plan.blocks << shift;
                let first = plan.lba as usize * block;
                let Some(sparse) = plan.sparse(shift, align) else {
                    assert!(
                        all as usize - plan.len < 2048 + 2 * align as usize,
                        "{plan:?}"
                    );
                    continue;
                };
                let blocks = &medium[first..first + all as usize];
                let mut buffer = vec![0; blocks.len()];
                spoil(blocks, &mut buffer);
                right(sparse, blocks, &mut buffer);
                let wanted = plan.skip..plan.skip + plan.len;
                assert_eq!(
                    buffer[wanted.clone()],
                    blocks[wanted],
                    "{plan:?} {sparse:?}"
                );
                assert!(sparse.is_right(blocks, &buffer));
                let pieces: Vec<Piece> = sparse.pieces().collect();
                assert!(
                    pieces.iter().all(|p| (p.at | p.len) & align == 0),
                    "{pieces:?}"
                );
                assert_eq!(pieces.iter().map(|piece| piece.len).sum::<u32>(), all);
                assert!(sparse.wanted() as usize <= plan.len + 2 * align as usize);
                assert!(all - sparse.wanted() >= 2048, "{plan:?}: for so little");
            }
        }
    }
}

/// What is done wrong with a read of the blocks, to the buffer.
type Wrong = fn(Sparse, &[u8], &mut [u8]);

/// What is wanted is taken from the front, as if there were no holes.
fn shifts(sparse: Sparse, blocks: &[u8], buffer: &mut [u8]) {
    let mut left = blocks;
    for piece in sparse.pieces().filter(|piece| !piece.is_hole) {
        let (now, rest) = left.split_at(piece.len as usize);
        buffer[piece.at as usize..][..now.len()].copy_from_slice(now);
        left = rest;
    }
}

/// Holes are filled.
fn fills(_: Sparse, blocks: &[u8], buffer: &mut [u8]) {
    buffer.copy_from_slice(blocks);
}

/// Nothing is done behind the first hole.
fn stops(sparse: Sparse, blocks: &[u8], buffer: &mut [u8]) {
    for piece in sparse.pieces().take_while(|piece| !piece.is_hole) {
        let range = piece.at as usize..(piece.at + piece.len) as usize;
        buffer[range.clone()].copy_from_slice(&blocks[range]);
    }
}

/// What is wanted comes, and at the hole behind it one byte too many.
fn spills(sparse: Sparse, blocks: &[u8], buffer: &mut [u8]) {
    right(sparse, blocks, buffer);
    let behind = (sparse.pieces().filter(|piece| piece.is_hole))
        .find(|piece| piece.at != 0)
        .map(|piece| piece.at as usize);
    if let Some(at) = behind {
        buffer[at] = blocks[at];
    }
}

/// What is wanted is put to the front of the buffer.
fn packs(sparse: Sparse, blocks: &[u8], buffer: &mut [u8]) {
    let mut at = 0;
    for piece in sparse.pieces().filter(|piece| !piece.is_hole) {
        let found = &blocks[piece.at as usize..][..piece.len as usize];
        buffer[at..at + found.len()].copy_from_slice(found);
        at += found.len();
    }
}

/// How many trials of that block pass.
fn passed(block: &[u8], align: u32, device: Wrong) -> usize {
    let trial = |sparse: &Sparse| {
        let mut buffer = vec![0; block.len()];
        spoil(block, &mut buffer);
        device(*sparse, block, &mut buffer);
        sparse.is_right(block, &buffer)
    };
    trials(block.len() as u32, align)
        .iter()
        .filter(|t| trial(t))
        .count()
}

#[test]
fn a_device_that_does_it_wrong_is_seen_through() {
    for (bytes, align) in [(512, 0), (512, 3), (4096, 0), (4096, 3)] {
        let block = medium(bytes);
        assert!(is_telling(&block));
        assert_eq!(passed(&block, align, right), 6);
        for (name, device) in [
            ("shifts", shifts as Wrong),
            ("fills", fills),
            ("stops", stops),
            ("spills", spills),
            ("packs", packs),
            ("nothing", |_, _, _| ()),
        ] {
            assert!(
                passed(&block, align, device) < 6,
                "{name}, {bytes}, {align}"
            );
        }
    }
}

#[test]
fn what_would_not_show_a_shift_is_no_block_to_try() {
    for bytes in [512, 4096] {
        assert!(!is_telling(&vec![0; bytes]));
        assert!(!is_telling(&vec![0xff; bytes]));
        let mut block = medium(bytes);
        let part = bytes / 8;
        let (head, tail) = block.split_at_mut(part * 7);
        tail.copy_from_slice(&head[part..2 * part]);
        assert!(!is_telling(&block), "two parts of it are alike");
    }
    assert!(!is_telling(&[]));
    assert!(!is_telling(&[1, 2, 3]));
}

#[test]
fn trials_keep_apart_what_the_device_can() {
    for (block, align) in [(512, 0), (512, 3), (4096, 3), (8192, 0)] {
        for sparse in trials(block, align) {
            let pieces: Vec<Piece> = sparse.pieces().collect();
            assert!(
                pieces.iter().all(|p| (p.at | p.len) & align == 0),
                "{pieces:?}"
            );
            assert_eq!(pieces.iter().map(|piece| piece.len).sum::<u32>(), block);
            assert!(sparse.wanted() != 0);
        }
        let grain = trials(block, align).map(|sparse| sparse.wanted());
        assert!(grain.contains(&(align + 1)), "{grain:?}");
    }
}
