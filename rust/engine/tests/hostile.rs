// SPDX-License-Identifier: GPL-2.0
//! A device that lies, and a controller that does.
#![cfg(not(loom))]

mod common;

use common::Rig;
use engine::Context;
use hal::CmdError;

#[test]
fn a_tag_completed_twice_ends_once() {
    let rig = Rig::new(4, 8);
    rig.submit([0]);
    let issued = rig.device.complete_next(Ok(())).unwrap();
    rig.device.post(issued.number, Err(CmdError::Medium));
    assert_eq!(rig.queue.drain(Context::Irq), 1);
    assert_eq!(rig.log.ended(), [(0, Ok(()))]);
    assert_eq!(rig.queue.violations(), 1);
    rig.log.assert_each_once(1);
}

#[test]
fn tags_never_issued_end_nothing() {
    let rig = Rig::new(4, 8);
    rig.submit([0]);
    let [issued] = &rig.device.issued()[..] else {
        panic!("one command");
    };
    let lies = (0..70).chain([1000, u16::MAX]);
    for number in lies.filter(|number| *number != issued.number) {
        rig.device.post(number, Ok(()));
    }
    assert_eq!(rig.queue.drain(Context::Irq), 0);
    assert_eq!((rig.queue.violations(), rig.queue.in_flight()), (71, 1));
    rig.complete_all();
    rig.log.assert_each_once(1);
}

#[test]
fn a_tag_that_is_only_staged_can_t_be_completed() {
    let rig = Rig::new(1, 8);
    rig.queue.submit(rig.rq(0), false);
    rig.device.post(0, Ok(()));
    assert_eq!(rig.queue.drain(Context::Irq), 0);
    assert_eq!((rig.queue.violations(), rig.queue.in_flight()), (1, 1));
    rig.queue.commit();
    rig.complete_all();
    rig.log.assert_each_once(1);
}

#[test]
fn a_flood_of_lies_does_not_hide_the_truth() {
    let rig = Rig::new(2, 8);
    rig.submit(0..4);
    for round in 0..200 {
        rig.device.post(round, Err(CmdError::Io));
    }
    rig.complete_all();
    let mut ids = rig.log.ended_ids();
    ids.sort_unstable();
    // The two tags in use were among the lies; each ended once, by the lie or by the truth.
    assert_eq!(ids, [0, 1, 2, 3]);
    assert!(rig.queue.violations() >= 198);
}

#[test]
fn a_controller_that_keeps_a_tag_whose_request_has_ended_is_counted() {
    let rig = Rig::new(4, 8);
    rig.submit([0]);
    let issued = rig.device.take().unwrap();
    rig.device.keep_tags();
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Timeout.retryable());
    quiesced.unquiesce();
    assert_eq!(rig.log.ended(), [(0, Err(CmdError::Timeout))]);
    assert_eq!(rig.queue.violations(), 0);
    rig.device.post(issued.number, Ok(()));
    assert_eq!(rig.queue.drain(Context::Irq), 0);
    assert_eq!((rig.queue.violations(), rig.queue.in_flight()), (1, 0));
    rig.log.assert_each_once(1);
}
