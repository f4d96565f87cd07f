// SPDX-License-Identifier: GPL-2.0
//! What is late: commands that the device has had for too long, and tags that it does not give
//! back.
#![cfg(not(loom))]

mod common;

use common::Rig;
use engine::Overdue;
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn a_command_is_overdue_from_its_issue_on() {
    const TIMEOUT_MS: u64 = 1000;
    let rig = Rig::new(1, 4);
    let overdue = |now| rig.queue.overdue(now, TIMEOUT_MS);
    let issued_at = |issued_at| Some(Overdue { issued_at, tag: 0 });
    assert_eq!(rig.queue.overdue(500, 0), None, "there is no command");
    rig.log.now.store(500, SeqCst);
    rig.submit([0, 1]);
    assert_eq!(overdue(500 + TIMEOUT_MS - 1), None);
    assert_eq!(overdue(500 + TIMEOUT_MS), issued_at(500));
    rig.log.now.store(5000, SeqCst);
    rig.complete_one();
    let next = overdue(5000 + TIMEOUT_MS - 1);
    assert_eq!(next, None, "waiting in the FIFO does not count");
    assert_eq!(overdue(5000 + TIMEOUT_MS), issued_at(5000));
    rig.complete_all();
    assert_eq!(rig.queue.overdue(u64::MAX, 0), None);
}

#[test]
fn the_oldest_of_those_that_are_overdue_is_named() {
    const TIMEOUT_MS: u64 = 10_000;
    let rig = Rig::new(3, 3);
    for id in 0..3 {
        rig.log.now.store(id as u64 * 1000, SeqCst);
        rig.submit([id]);
    }
    let overdue = |now| {
        rig.queue
            .overdue(now, TIMEOUT_MS)
            .map(|late| late.issued_at)
    };
    assert_eq!(overdue(9_999), None);
    assert_eq!(overdue(u64::MAX - 1), Some(0));
    assert_eq!(rig.complete_one(), Some(0));
    assert_eq!(overdue(10_999), None);
    assert_eq!(overdue(11_000), Some(1000));
    rig.complete_all();
    // Nothing is there; but one is being issued, and has read the clock already.
    assert_eq!(overdue(30_000), None);
    rig.log.now.store(29_100, SeqCst);
    rig.submit([3]);
    assert_eq!(overdue(39_099), None);
    assert_eq!(overdue(39_100), Some(29_100));
    rig.complete_all();
    rig.log.assert_each_once(4);
}

#[test]
fn a_queue_is_stalled_while_no_tag_is_given_out() {
    const LIMIT_MS: u64 = 1000;
    let rig = Rig::new(2, 8);
    rig.log.now.store(500, SeqCst);
    rig.submit([0, 1]);
    assert!(!rig.queue.is_stalled(u64::MAX, 0), "nothing waits");
    rig.submit([2, 3]);
    assert!(!rig.queue.is_stalled(500 + LIMIT_MS - 1, LIMIT_MS));
    assert!(rig.queue.is_stalled(500 + LIMIT_MS, LIMIT_MS));
    // One of the two tags comes back, and is given to another.
    rig.log.now.store(5000, SeqCst);
    rig.complete_one();
    assert!(!rig.queue.is_stalled(5000 + LIMIT_MS - 1, LIMIT_MS));
    assert!(rig.queue.is_stalled(5000 + LIMIT_MS, LIMIT_MS));
    rig.complete_all();
    assert!(!rig.queue.is_stalled(u64::MAX, 0));
}
