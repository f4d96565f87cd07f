// SPDX-License-Identifier: GPL-2.0
//! The locks of a write are those of each block that it may touch.
#![cfg(not(loom))]
#![allow(missing_docs)]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "it fails the test"
)]

use bytewise::{Geometry, Region, Regions, SPAN};

fn locks(offset: u64, len: usize) -> Vec<Region> {
    let (first, second) = Regions::of(offset, len).lock(Some).unwrap();
    [Some(first), second].into_iter().flatten().collect()
}

#[test]
fn all_bytes_of_a_plan_are_locked() {
    for block_shift in [9, 12, 13] {
        let disk = Geometry {
            size: 1 << 20,
            block_shift,
            span: SPAN as u32,
        };
        for offset in (0..3 * SPAN as u64).step_by(61) {
            for len in [1, 2, 511, 512, 513, 4096, 8191, 8192, 8193, 1 << 20] {
                let plan = disk.plan(offset, len).unwrap();
                let taken = locks(offset, len);
                let first = plan.lba << block_shift;
                let bytes = u64::from(plan.blocks) << block_shift;
                for at in [first, first + bytes / 2, first + bytes - 1] {
                    assert!(taken.contains(&locks(at, 1)[0]), "{plan:?}: {at} of {len}");
                }
            }
        }
    }
}

#[test]
fn neighbours_have_locks_of_their_own() {
    for region in 0..2 * Regions::LOCKS as u64 - 1 {
        let [one, two] = [region, region + 1].map(|region| locks(region * SPAN as u64, SPAN));
        assert_eq!((one.len(), two.len()), (1, 1));
        assert_ne!(one, two);
    }
}

#[test]
fn the_even_one_comes_first() {
    let (span, most) = (SPAN as u64, Regions::LOCKS);
    assert_eq!(locks(span - 1, 2), [Region::Even(0), Region::Odd(0)]);
    assert_eq!(locks(2 * span - 1, 2), [Region::Even(1), Region::Odd(0)]);
    let round = 2 * most as u64 * span;
    assert_eq!(
        locks(round - 1, 2),
        [Region::Even(0), Region::Odd(most - 1)]
    );
}

#[test]
fn one_that_is_not_given_leaves_none() {
    let mut taken = 0;
    let found = Regions::of(SPAN as u64 - 1, 2).lock(|region| {
        taken += 1;
        matches!(region, Region::Even(_)).then_some(())
    });
    assert_eq!((found, taken), (None, 2));
    assert_eq!(Regions::of(0, 1).lock(|_| None::<()>), None);
}

#[test]
fn no_number_is_too_large() {
    assert_eq!(locks(u64::MAX, usize::MAX).len(), 1);
    assert_eq!(locks(0, 0), [Region::Even(0)]);
}
