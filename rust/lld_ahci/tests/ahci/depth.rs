// SPDX-License-Identifier: GPL-2.0
//! A drive gets no more commands at once than an operator wants it to have, and all of them.

use crate::errors::serve;
use crate::model::{Config, Drive};
use crate::rig::{reads, Queue, Rig};
use hal::{CmdError, Controller, Error};
use testkit::Host;

const READ: u8 = 0x60;
const READ_SINGLY: u8 = 0x25;

/// Sets the depth as the layer above does.
fn set(rig: &Rig, queue: &Queue, depth: u16) -> Result<(), Error> {
    let quiesced = queue.quiesce(&rig.machine);
    let set = rig.ahci[0].set_depth(depth);
    quiesced.unquiesce();
    set
}

/// Reads 40 blocks; how many the drive has at once, and by which command.
fn most(rig: &Rig, queue: &Queue, host: &Host) -> (u32, u8) {
    rig.model.state().hold = true;
    queue.submit_many(reads(40));
    let has = {
        let mut state = rig.model.state();
        state.hold = false;
        (state.ports[0].ci | state.ports[0].sact).count_ones()
    };
    for _ in 0..40 {
        rig.model.run();
        serve(rig, queue);
    }
    let ended = host.outcomes();
    assert!(ended.len() == 40 && ended.iter().all(|(_, outcome)| outcome.is_ok()));
    rig.model.check();
    (has, rig.model.state().data_log().last().unwrap().command)
}

#[test]
fn a_drive_gets_as_many_as_were_chosen() {
    let rig = Rig::started(Config::default());
    let (host, queue) = rig.io();
    assert_eq!(rig.ahci[0].depth(), Some(32));
    assert_eq!(most(&rig, &queue, &host), (32, READ));
    for depth in [4, 31, 2, 32] {
        assert_eq!(set(&rig, &queue, depth), Ok(()));
        assert_eq!(rig.ahci[0].depth(), Some(depth));
        assert_eq!(most(&rig, &queue, &host), (u32::from(depth), READ));
    }
    for depth in [0, 33, u16::MAX] {
        assert_eq!(set(&rig, &queue, depth), Err(Error::Invalid));
    }
    assert_eq!(rig.ahci[0].depth(), Some(32));
}

#[test]
fn one_turns_the_queue_off_and_more_turn_it_on() {
    let rig = Rig::started(Config::default());
    let (host, queue) = rig.io();
    assert_eq!(set(&rig, &queue, 1), Ok(()));
    assert_eq!(rig.ahci[0].depth(), Some(1));
    assert_eq!(most(&rig, &queue, &host), (1, READ_SINGLY));
    rig.ahci[0].quirks(&mut |name| panic!("{name}: that is no quirk"));
    // Also from scratch.
    let mut quiesced = queue.quiesce(&rig.machine);
    rig.ahci[0].stop().unwrap();
    quiesced.reap(CmdError::Timeout.retryable());
    quiesced.rewind();
    rig.ahci[0].start().unwrap();
    quiesced.unquiesce();
    assert_eq!(most(&rig, &queue, &host), (1, READ_SINGLY));
    assert_eq!(set(&rig, &queue, 8), Ok(()));
    assert_eq!(most(&rig, &queue, &host), (8, READ));
}

#[test]
fn a_drive_without_a_queue_has_no_choice() {
    let rig = Rig::started(Config::with(Drive {
        depth: None,
        ..Drive::new(9, 80)
    }));
    let (host, queue) = rig.io();
    assert_eq!(rig.ahci[0].depth(), Some(1));
    assert_eq!(set(&rig, &queue, 2), Err(Error::Invalid));
    assert_eq!(set(&rig, &queue, 1), Ok(()));
    // The HBA has them all, and gives it one after the other.
    assert_eq!(most(&rig, &queue, &host), (32, READ_SINGLY));
}
