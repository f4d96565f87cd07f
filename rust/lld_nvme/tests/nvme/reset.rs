// SPDX-License-Identifier: GPL-2.0
//! Stop, reap, rewind, start: queues survive, commands do not.

use crate::model::{Config, Namespace};
use crate::rig::{command, Rig};
use hal::{CmdError, Controller, DmaMem, Error, Op, Platform, Queue};

fn survives(config: Config) {
    let rig = Rig::started(config);
    let mut queues: Vec<_> = (0..3).map(|index| rig.queue(index)).collect();
    for round in 0..3 {
        for queue in &mut queues {
            for _ in 0..round * 7 + 3 {
                assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
            }
        }
        rig.model.state().hold = true;
        let issued: Vec<u16> = (0..5)
            .map(|_| queues[1].start(&command(Op::Flush, 0, 0), &[]).unwrap())
            .collect();
        rig.nvme.stop().unwrap();
        rig.model.state().hold = false;
        let mut reaped = queues[1].reap();
        reaped.sort_by_key(|(tag, _)| *tag);
        let aborted: Vec<_> = issued
            .iter()
            .map(|tag| (*tag, CmdError::Aborted.retryable()))
            .collect();
        assert_eq!(reaped, aborted);
        for queue in &mut queues {
            assert!(queue.reap().is_empty());
            queue.rewind();
        }
        rig.nvme.start().unwrap();
        assert_eq!(rig.model.state().sqs.len(), 4);
    }
    for (n, queue) in queues.iter_mut().enumerate() {
        assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
        assert_eq!(queue.violations(), 0);
        let state = rig.model.state();
        assert_eq!(state.cqs[&(n as u16 + 1)].vector, n as u16 + 1);
    }
    rig.model.check();
}

#[test]
fn queues_survive_a_reset() {
    survives(Config::default());
}

#[test]
fn queues_with_shadow_doorbells_survive_a_reset() {
    survives(Config {
        doorbell_buffer: true,
        ..Config::default()
    });
}

#[test]
fn rewinding_brings_tags_back_that_were_bound_and_never_issued() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    let lost = queue.bind(&command(Op::Flush, 0, 0), &[]).unwrap();
    drop(lost);
    rig.nvme.stop().unwrap();
    queue.rewind();
    rig.nvme.start().unwrap();
    for _ in 0..queue.0.queue.capacity() {
        queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    }
    assert_eq!(queue.drain().len(), queue.0.queue.capacity());
    rig.model.check();
}

#[test]
fn a_device_that_comes_back_smaller_is_refused() {
    let shrink: [fn(&mut Config); 5] = [
        |config| config.mdts = 2,
        |config| config.queues = 2,
        |config| config.sgls = 1,
        |config| config.doorbell_buffer = false,
        |config| config.mqes = 7,
    ];
    for (n, shrink) in shrink.into_iter().enumerate() {
        let rig = Rig::started(Config {
            doorbell_buffer: true,
            ..Config::default()
        });
        let _queues: Vec<_> = (0..3).map(|index| rig.queue(index)).collect();
        rig.nvme.stop().unwrap();
        shrink(&mut rig.model.state().config);
        assert!(rig.nvme.start().is_err(), "case {n}");
        assert_eq!(rig.model.state().cc & 1, 0, "case {n}: left disabled");
    }
}

#[test]
fn a_stopped_device_touches_nothing_and_takes_no_admin_command() {
    let rig = Rig::started(Config::default());
    rig.nvme.stop().unwrap();
    assert_eq!(rig.nvme.units(&mut |_| ()), Err(Error::Timeout));
    assert!(rig.nvme.create_queue(0, Some(0)).is_err());
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    assert_eq!(rig.units().len(), 1);
    rig.model.check();
}

fn unanswered(stop: bool) {
    let rig = Rig::started(Config::default());
    let bus = rig.machine.bus();
    let next = rig.model.state().admin_log.len();
    rig.model.state().ignore = Some(next);
    let data = rig.machine.dma(4096).unwrap();
    let at = data.bus_addr();
    let mut sqe = [0; 8];
    sqe[0] = 2;
    assert_eq!(
        rig.nvme.admin(sqe, Some(&data), 100, &|| false),
        Err(Error::Timeout)
    );
    drop(data);
    assert!(bus.write32(at, 1).is_ok(), "a late answer hits its memory");
    assert_eq!(
        rig.nvme.admin(sqe, None, 100, &|| false),
        Err(Error::Timeout)
    );
    if stop {
        rig.nvme.stop().unwrap();
        assert!(bus.write32(at, 1).is_err(), "now it is gone");
    }
    rig.nvme.start().unwrap();
    assert!(bus.write32(at, 1).is_err(), "now it is gone");
    assert_eq!(rig.units().len(), 1);
}

#[test]
fn memory_of_an_unanswered_command_lives_until_the_device_is_stopped() {
    unanswered(true);
    unanswered(false);
}

#[test]
fn memory_of_a_queue_that_may_have_been_made_lives_until_the_device_is_stopped() {
    let rig = Rig::started(Config::default());
    let bus = rig.machine.bus();
    let before = bus.blocks_alive();
    // Create I/O Completion Queue is not answered, and the device can't be stopped either.
    let next = rig.model.state().admin_log.len();
    rig.model.state().ignore = Some(next);
    rig.model.state().config.ready_us = None;
    let failed = rig.nvme.create_queue(0, Some(1));
    assert!(matches!(failed, Err(Error::Timeout)));
    assert_eq!(rig.nvme.step(), "Create I/O Completion Queue");
    assert!(bus.blocks_alive() > before);
    assert_eq!(rig.nvme.stop(), Err(Error::Timeout));
    assert!(bus.blocks_alive() > before);
    // It comes to its end after all.
    rig.model.state().config.ready_us = Some(0);
    rig.model.state().ready_at = 0;
    rig.nvme.stop().unwrap();
    assert_eq!(bus.blocks_alive(), before);
}

#[test]
fn everything_is_given_back() {
    let platform;
    {
        let rig = Rig::started(Config {
            doorbell_buffer: true,
            namespaces: vec![Namespace::new(1, 9, 8)],
            ..Config::default()
        });
        platform = rig.machine.clone();
        let mut queue = rig.queue(0);
        assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
        rig.nvme.stop().unwrap();
        rig.model.check();
    }
    assert_eq!(platform.bus().blocks_alive(), 0);
}

#[test]
fn a_dropped_controller_is_disabled_first() {
    let rig = Rig::started(Config::default());
    let model = rig.model.clone();
    drop(rig);
    assert_eq!(model.state().cc & 1, 0);
    model.check();
}

#[test]
fn a_tools_command_is_given_up_for_a_reset() {
    let rig = Rig::started(Config::default());
    let next = rig.model.state().admin_log.len();
    rig.model.state().ignore = Some(next);
    let begin = rig.machine.now_us();
    let urgent = begin + 3_000_000;
    let wanted = || rig.machine.now_us() >= urgent;
    let lost = rig
        .nvme
        .admin([0x80, 0, 0, 0, 0, 0, 0, 0], None, 600_000, &wanted);
    assert_eq!(lost, Err(Error::Timeout));
    let waited = rig.machine.now_us() - begin;
    assert!((3_500_000..3_600_000).contains(&waited), "{waited} us");
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    // What is answered soon is not lost to a reset.
    let mut sqe = [0; 8];
    sqe[0] = 0xc1;
    assert!(rig.nvme.admin(sqe, None, 600_000, &|| true).is_ok());
    rig.model.check();
}

#[test]
fn a_controller_whose_registers_read_as_zero_is_not_taken_for_a_stopped_one() {
    let rig = Rig::started(Config::default());
    let _queue = rig.queue(0);
    rig.model.state().out_of_reach = true;
    assert_eq!(rig.nvme.stop(), Err(Error::Gone), "its memory is in use");
    assert_eq!(rig.nvme.start(), Err(Error::Gone));
    rig.model.state().out_of_reach = false;
    assert_eq!(rig.nvme.stop(), Ok(()));
    assert_eq!(rig.nvme.start(), Ok(()));
    rig.model.check();
}
