// SPDX-License-Identifier: GPL-2.0
//! Each region has a bit of its own.
#![cfg(not(loom))]
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use bytewise::{Busy, Region, Regions};

fn all() -> impl Iterator<Item = Region> {
    (0..Regions::LOCKS).flat_map(|at| [Region::Even(at), Region::Odd(at)])
}

#[test]
fn each_region_is_busy_by_itself() {
    let busy = Busy::new();
    for one in all() {
        busy.begin(one);
        assert!(all().all(|other| busy.is_busy(other) == (other == one)));
        assert!(!busy.end(one), "nobody waits");
        assert!(!busy.is_busy(one));
    }
}

#[test]
fn who_waits_is_told_of() {
    let busy = Busy::new();
    let region = Region::Odd(3);
    busy.begin(region);
    busy.begin_wait();
    assert!(busy.is_busy_still(region));
    assert!(busy.end(region));
    assert!(!busy.is_busy_still(region));
    busy.end_wait();
    busy.begin(region);
    assert!(!busy.end(region));
}

#[test]
fn regions_are_those_that_are_locked() {
    for (offset, len) in [
        (0, 1),
        (8191, 2),
        (16384, 8192),
        (24575, 8192),
        (1 << 40, 8192),
    ] {
        let regions = Regions::of(offset, len);
        let mut locked = Vec::new();
        let kept = regions.lock(|region| {
            locked.push(region);
            Some(())
        });
        let (first, second) = regions.each();
        assert_eq!(
            locked,
            [Some(first), second]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
        );
        assert_eq!(kept.unwrap().1.is_some(), second.is_some());
    }
}
