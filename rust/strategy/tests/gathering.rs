// SPDX-License-Identifier: GPL-2.0
//! A block that waits for more commands, and whether that pays.
#![cfg(not(loom))]

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::Rig;
use engine::{Block, Strategy};
use std::sync::atomic::Ordering::SeqCst;

const MAY_WAIT_NS: u64 = 2_000;

/// Of eight that are expected, so many are there after so long.
fn block(staged: usize, waited_ns: u64) -> Block {
    Block {
        staged,
        most: 32,
        expected: 8,
        waited_ns,
        may_wait_ns: MAY_WAIT_NS,
    }
}

fn asked(rig: &Rig, block: Block) -> usize {
    rig.queue.strategy().block(&rig.queue, block)
}

#[test]
fn it_waits_for_who_comes_again() {
    let rig = Rig::new(32, 64);
    assert_eq!(asked(&rig, block(1, 0)), 0);
    assert_eq!(asked(&rig, block(7, 1_000)), 0);
    assert_eq!(asked(&rig, block(8, 1_000)), 8);
    // More than were expected, more than the device takes at once, and a full block.
    assert_eq!(asked(&rig, block(9, 0)), 9);
    assert_eq!(asked(&rig, block(40, 0)), 32);
    let full = Block {
        expected: 60,
        ..block(32, 0)
    };
    assert_eq!(asked(&rig, full), 32);
}

#[test]
fn it_takes_what_is_there_where_it_may_not_wait() {
    let rig = Rig::new(32, 64);
    let at_once = Block {
        may_wait_ns: 0,
        ..block(3, 0)
    };
    assert_eq!(asked(&rig, at_once), 3);
    assert_eq!(asked(&rig, block(3, MAY_WAIT_NS)), 3);
}

#[test]
fn who_waits_in_vain_gives_it_up_and_tries_it_again_much_later() {
    let rig = Rig::new(32, 64);
    for _ in 0..2 {
        assert_eq!(asked(&rig, block(3, 0)), 0);
        assert_eq!(asked(&rig, block(3, MAY_WAIT_NS)), 3);
    }
    // A trial is over.
    for _ in 0..100 {
        assert_eq!(asked(&rig, block(3, 0)), 3);
    }
    rig.log.now.fetch_add(10_000, SeqCst);
    assert_eq!(asked(&rig, block(3, 0)), 0);
}

#[test]
fn what_has_paid_is_not_given_up_for_one_that_stays_away() {
    let rig = Rig::new(32, 64);
    for _ in 0..200 {
        assert_eq!(asked(&rig, block(1, 0)), 0);
        assert_eq!(asked(&rig, block(8, 500)), 8);
    }
    for _ in 0..10 {
        assert_eq!(asked(&rig, block(7, 0)), 0);
        assert_eq!(asked(&rig, block(7, MAY_WAIT_NS)), 7);
    }
}
