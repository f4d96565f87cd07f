// SPDX-License-Identifier: GPL-2.0
//! Drives that come and go.

use crate::model::{Config, Drive};
use crate::rig::{command, reads, Rig};
use crate::whole::run_eh;
use engine::Context;
use hal::{CmdError, Controller, Error, Op, Platform};
use lld_ahci::EhOutcome;
use testkit::Job;

#[test]
fn a_drive_that_goes_fails_its_io_and_its_port_stays_quiet() {
    let rig = Rig::started(Config::default());
    let (host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit_many(reads(40));
    rig.model.state().unplug(0);
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    assert_eq!(rig.places[0].calls(), 1);
    assert!(host.take().is_empty(), "nothing is finished by that");
    let before = rig.machine.now_us();
    let quiesced = queue.quiesce(&rig.machine);
    assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Detached));
    assert_eq!(rig.ahci[0].alive(), Err(Error::Gone));
    assert!(rig.machine.now_us() - before < 2_000_000);
    quiesced.unquiesce();
    queue.drain(Context::Irq);
    let ended = host.take();
    assert_eq!(ended.len(), 32);
    let gone = |(_, outcome): &(Job, _)| *outcome == Err(CmdError::Gone);
    assert!(ended.iter().all(gone));
    // The rest was told to nobody, and dies with the queue.
    assert_eq!(queue.in_flight(), 8);
    let mut quiesced = queue.quiesce(&rig.machine);
    assert_eq!(rig.ahci[0].stop(), Ok(()));
    quiesced.reap(CmdError::Gone.permanent());
    quiesced.kill();
    assert!(host.take().iter().all(gone));
    assert_eq!(rig.ahci[0].start(), Err(Error::Gone));
    assert!(!rig.model.line());
    rig.model.check();
}

#[test]
fn a_link_that_comes_back_in_time_costs_nobody_anything() {
    let rig = Rig::started(Config::default());
    let (host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit_many(reads(8));
    let drive = rig.model.state().unplug(0).unwrap();
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    {
        let mut state = rig.model.state();
        state.ports[0].drive = Some(drive);
        state.begin_link(0);
        state.hold = false;
    }
    assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Recovered));
    let ended = host.take();
    assert_eq!(ended.len(), 8);
    assert!(ended.iter().all(|(_, outcome)| *outcome == Ok(())));
    rig.model.check();
}

#[test]
fn another_drive_in_its_place_is_not_taken_for_it() {
    for other in [
        Drive {
            serial: "SERIAL-1",
            ..Drive::new(9, 4096)
        },
        Drive::new(9, 4095),
        Drive {
            depth: Some(16),
            ..Drive::new(9, 4096)
        },
        Drive::other(0xeb14_0101),
    ] {
        let rig = Rig::started(Config::default());
        let (host, queue) = rig.io();
        rig.model.state().hold = true;
        queue.submit_many(reads(8));
        rig.model.state().unplug(0);
        rig.model.state().plug(0, other);
        rig.model.state().hold = false;
        assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Replaced));
        let ended = host.take();
        assert_eq!(ended.len(), 8);
        let gone = |(_, outcome): &(Job, _)| *outcome == Err(CmdError::Gone);
        assert!(ended.iter().all(gone));
        let log = rig.model.state().data_log();
        assert!(log.is_empty(), "told the wrong drive: {log:?}");
        rig.model.check();
    }
}

#[test]
fn a_drive_that_comes_is_told_of_and_served_by_a_port_made_anew() {
    let rig = Rig::started(Config {
        drives: vec![None],
        ..Config::default()
    });
    assert!(rig.units(0).is_empty());
    assert_eq!(rig.ahci[0].alive(), Ok(()));
    rig.model.state().plug(0, Drive::new(9, 64));
    assert!(rig.model.line());
    let served = rig.hba.interrupt(true, 0, |_| {
        // Not a queue's; the port itself is asked.
        rig.ahci[0].interrupt(0) == hal::Cause::Queues
    });
    assert!(served);
    assert_eq!(rig.places[0].calls(), 1);
    assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Attached));
    assert_eq!(rig.ahci[0].start(), Ok(()));
    assert!(rig.units(0)[0].is_ok());
    let mut line = rig.queue();
    assert_eq!(line.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}

#[test]
fn a_port_whose_drive_never_gets_ready_waits_for_another() {
    let rig = Rig::new(Config::with(Drive {
        ready_us: None,
        ..Drive::new(9, 64)
    }))
    .unwrap();
    assert!(rig.ahci[0].start().is_err());
    rig.hba.set_interrupt(true);
    rig.ahci[0].set_interrupt(0, true);
    assert!(!rig.model.line(), "it is not the one that comes");
    rig.model.state().unplug(0);
    rig.model.state().plug(0, Drive::new(9, 64));
    assert!(rig.model.line());
    assert_eq!(rig.ahci[0].interrupt(0), hal::Cause::Queues);
    assert_eq!(rig.places[0].calls(), 1);
    assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Attached));
    assert_eq!(rig.ahci[0].start(), Ok(()));
    rig.model.check();
}

#[test]
fn a_device_that_is_left_alone_may_go() {
    let rig = Rig::started(Config::with(Drive::other(0xeb14_0101)));
    rig.model.state().unplug(0);
    assert_eq!(rig.ahci[0].interrupt(0), hal::Cause::Queues);
    assert_eq!(rig.places[0].calls(), 1);
    assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Nothing));
    assert!(!rig.model.line());
    rig.model.check();
}

#[test]
fn a_drive_that_was_away_during_a_reset_is_not_taken_back_for_another() {
    let rig = Rig::started(Config::default());
    let _queue = rig.queue();
    assert_eq!(rig.ahci[0].stop(), Ok(()));
    rig.model.state().unplug(0);
    assert_eq!(rig.ahci[0].start(), Err(Error::Gone));
    rig.model.state().plug(
        0,
        Drive {
            serial: "SERIAL-1",
            ..Drive::new(9, 4096)
        },
    );
    assert_eq!(rig.ahci[0].start(), Err(Error::Malformed));
    rig.model.state().unplug(0);
    rig.model.state().plug(0, Drive::new(9, 4096));
    assert_eq!(rig.ahci[0].start(), Ok(()));
    assert_eq!(rig.ahci[0].alive(), Ok(()));
    rig.model.check();
}
