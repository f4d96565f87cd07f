// SPDX-License-Identifier: GPL-2.0
//! Whatever can fail on the way up, failed at every place where it can.

use crate::model::{Config, Model, Namespace, State};
use crate::rig::{command, Line, Rig};
use hal::mock::MockPlatform;
use hal::{Controller, Error, Op};
use testkit::{stays_gone, tries_until_well};

fn config() -> Config {
    Config {
        doorbell_buffer: true,
        ready_us: Some(100),
        namespaces: vec![Namespace::new(1, 9, 8), Namespace::new(2, 12, 8)],
        ..Config::default()
    }
}

/// All of it: two queues, the namespaces, one command.
fn whole_way(rig: &Rig) -> Result<Vec<Line>, Error> {
    rig.nvme.start()?;
    let mut lines = Vec::new();
    for index in 0..2 {
        let new = rig.nvme.create_queue(index, Some(index + 1))?;
        lines.push(testkit::Line(new));
    }
    let mut served = 0;
    rig.nvme
        .units(&mut |unit| served += usize::from(unit.is_ok()))?;
    rig.nvme.alive()?;
    Ok(lines)
}

#[test]
fn gone_at_every_register_access() {
    let total = tries_until_well(Error::Gone, |n| {
        let rig = Rig::new(Config {
            vanish_at: Some(n as u64),
            ..config()
        })?;
        let went = whole_way(&rig).map(|_| ());
        if went.is_err() {
            stays_gone(&rig.machine, &rig.nvme);
        }
        rig.model.check();
        went
    });
    assert!(total > 50, "only {total} accesses");
}

#[test]
fn no_memory_at_every_allocation() {
    let total = tries_until_well(Error::NoMemory, |n| {
        let machine = MockPlatform::new();
        let model = Model::new(State::new(&machine, config()));
        machine.fail_allocations_after(n);
        let went = Rig::on(machine.clone(), model.clone()).and_then(|rig| {
            let went = whole_way(&rig).map(|_| ());
            if went.is_err() {
                // Memory is back: so is the device.
                machine.fail_allocations_after(usize::MAX);
                assert_eq!(rig.nvme.start(), Ok(()), "allocation {n}");
                assert_eq!(rig.units().len(), 2);
            }
            went
        });
        model.check();
        assert_eq!(machine.bus().blocks_alive(), 0, "allocation {n} leaks");
        went
    });
    assert!(total > 10, "only {total} allocations");
}

/// The admin commands of [`whole_way`].
fn commands() -> Vec<(u8, u32)> {
    let rig = Rig::new(config()).unwrap();
    whole_way(&rig).unwrap();
    let log = rig.model.state().admin_log.clone();
    assert!(log.len() >= 13, "{log:?}");
    log
}

#[test]
fn every_admin_command_refused() {
    const STATUS: u16 = 0x4006;
    for (n, (opcode, dword10)) in commands().into_iter().enumerate() {
        let rig = Rig::new(config()).unwrap();
        rig.model.state().refuse = Some((n, STATUS));
        let went = whole_way(&rig).map(|_| ());
        // Those without which it goes on as well: shadow doorbells, events,
        // limits, one namespace, descriptors.
        let tolerated = match opcode {
            0x7c | 0x0c => true,
            0x09 => dword10 == 0x0b,
            0x06 => matches!(dword10 & 0xff, 0 | 3 | 6),
            _ => false,
        };
        let expected = match tolerated {
            true => Ok(()),
            false => Err(Error::Refused(STATUS)),
        };
        assert_eq!(went, expected, "command {n}: {opcode:#x} {dword10:#x}");
        if went.is_err() {
            let name = match opcode {
                0x06 if dword10 == 1 => "Identify Controller",
                0x06 => "Identify, active namespaces",
                0x09 => "Set Features, Number of Queues",
                0x05 => "Create I/O Completion Queue",
                0x01 => "Create I/O Submission Queue",
                other => panic!("{other:#x}"),
            };
            assert_eq!(rig.nvme.step(), name);
        }
        rig.model.check();
    }
}

#[test]
fn every_admin_command_unanswered() {
    for (n, (opcode, _)) in commands().into_iter().enumerate() {
        if opcode == 0x0c {
            // Asynchronous Event Request: nobody waits for an answer.
            continue;
        }
        let rig = Rig::new(config()).unwrap();
        rig.model.state().ignore = Some(n);
        let went = whole_way(&rig).map(|_| ());
        assert_eq!(went, Err(Error::Timeout), "command {n}: {opcode:#x}");
        rig.model.check();
        // A reset brings it back, with the queues that had come into being.
        rig.model.state().ignore = None;
        assert_eq!(rig.nvme.stop(), Ok(()));
        assert_eq!(rig.nvme.start(), Ok(()));
        assert_eq!(rig.units().len(), 2);
        rig.model.check();
        let platform = rig.machine.clone();
        drop(rig);
        assert_eq!(platform.bus().blocks_alive(), 0, "command {n}");
    }
}

#[test]
fn a_submission_queue_that_is_refused_takes_its_completion_queue_along() {
    let rig = Rig::started(Config::default());
    let next = rig.model.state().admin_log.len();
    rig.model.state().refuse = Some((next + 1, 0x4101));
    let failed = rig.nvme.create_queue(0, Some(1));
    assert!(matches!(failed, Err(Error::Refused(0x4101))));
    assert_eq!(rig.model.state().cqs.len(), 1, "only the admin queue");
    // And so it can be tried again.
    let mut queue = rig.queue(0);
    assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}
