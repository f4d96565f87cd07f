// SPDX-License-Identifier: GPL-2.0
//! Data that can't be mapped, now or ever.
#![cfg(not(loom))]

mod common;

use common::Rig;
use hal::CmdError;
use std::iter::repeat_n;
use std::sync::atomic::Ordering::SeqCst;

const HOPELESS: Result<(), CmdError> = Err(CmdError::Invalid);

/// Half a minute of tries, a millisecond or more apart.
fn starve(rig: &Rig) {
    for _ in 0..100 {
        rig.log.now.fetch_add(400, SeqCst);
        rig.queue.kick();
    }
}

#[test]
fn what_can_never_be_mapped_fails_and_the_rest_goes_on() {
    let rig = Rig::new(4, 16);
    rig.device
        .answer_binds(repeat_n(Some(CmdError::NotReady), 1000));
    rig.submit([0, 1]);
    rig.log.now.store(1_000_000, SeqCst);
    rig.queue.kick();
    assert_eq!(
        rig.log.ended(),
        [],
        "time alone, which may have jumped, is no reason"
    );
    starve(&rig);
    assert_eq!(rig.log.ended(), [(0, HOPELESS), (1, HOPELESS)]);
    assert_eq!(rig.log.starved.load(SeqCst), 1, "it is told once");
    // It is known by now.
    rig.submit([2]);
    assert_eq!(rig.log.ended().last(), Some(&(2, HOPELESS)));
    rig.device.bind_well();
    rig.submit([3]);
    assert_eq!(rig.complete_all(), [3]);
    // And was forgotten.
    rig.device.answer_binds([Some(CmdError::NotReady)]);
    rig.submit([4]);
    assert_eq!(rig.queue.queued(), 1);
    rig.queue.kick();
    assert_eq!(rig.complete_all(), [4]);
    rig.log.assert_each_once(5);
}

#[test]
fn what_waits_for_the_memory_of_others_is_not_given_up() {
    let rig = Rig::new(4, 16);
    rig.submit([0]);
    rig.device
        .answer_binds(repeat_n(Some(CmdError::NotReady), 1000));
    rig.submit([1]);
    starve(&rig);
    starve(&rig);
    assert_eq!((rig.queue.queued(), rig.log.ended()), (1, vec![]));
    rig.device.bind_well();
    assert_eq!(rig.complete_all(), [0, 1]);
    rig.log.assert_each_once(2);
}
