// SPDX-License-Identifier: GPL-2.0
//! Queued commands and others are never with the drive at once, and none is told to one in trouble.

use crate::errors::{bad, only, reading, serve, with_bad, MEDIUM};
use crate::model::{Config, Drive};
use crate::rig::{command, read, Rig};
use crate::whole::run_eh;
use engine::Context;
use hal::{CmdError, Controller, Op, RetryHint};
use lld_ahci::EhOutcome;

#[test]
fn queued_and_other_commands_take_turns() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    rig.model.state().hold = true;
    let read = command(Op::Read, 0, 1);
    let flush = command(Op::Flush, 0, 0);
    queue.start(&read, &data.segments()).unwrap();
    queue.start(&flush, &[]).unwrap();
    queue.start(&read, &data.segments()).unwrap();
    queue.start(&flush, &[]).unwrap();
    queue.start(&read, &data.segments()).unwrap();
    rig.model.state().hold = false;
    rig.model.run();
    assert_eq!(queue.drain().len(), 5);
    let log = rig.model.state().data_log();
    let opcodes: Vec<u8> = log.iter().map(|taken| taken.command).collect();
    // What waited together is told together; the model complains of any mixture.
    assert_eq!(opcodes, [0x60, 0xea, 0xea, 0x60, 0x60]);
    // And the flow is free again: nothing is held.
    let before = rig.model.state().accesses;
    queue.start(&read, &data.segments()).unwrap();
    assert_eq!(rig.model.state().accesses, before + 2);
    assert_eq!(queue.drain().len(), 1);
    data.unmap();
    rig.model.check();
}

#[test]
fn flushes_do_not_keep_queued_commands_away_for_ever() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    rig.model.state().hold = true;
    queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    let read = queue.start(&command(Op::Read, 0, 1), &data.segments());
    for round in 0.. {
        queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
        rig.model.run();
        let ended = queue.drain_once();
        if ended.contains(&(read.unwrap(), Ok(()))) {
            break;
        }
        assert!(round < 3, "starved");
    }
    data.unmap();
    rig.model.check();
}

#[test]
fn what_waits_for_its_turn_was_not_tried() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    rig.model.state().hold = true;
    let read = command(Op::Read, 0, 1);
    let flush = command(Op::Flush, 0, 0);
    let told = queue.start(&read, &data.segments()).unwrap();
    let held = queue.start(&flush, &[]).unwrap();
    rig.ahci[0].stop().unwrap();
    let mut reaped = queue.reap();
    reaped.sort_by_key(|(tag, _)| *tag);
    let agains = reaped.iter().map(|(tag, why)| (*tag, why.retry));
    let expected = [(told, RetryHint::Now), (held, RetryHint::NotIssued)];
    assert_eq!(agains.collect::<Vec<_>>(), expected);
    data.unmap();
    rig.model.check();
}

#[test]
fn nothing_is_told_between_an_error_and_its_recovery() {
    let (rig, host, queue) = reading(Config::with(with_bad(vec![bad(0, MEDIUM)])), 1);
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    assert!(rig.ahci[0].is_eh_pending());
    queue.submit_many([read(1, 1)].into_iter());
    let told = |rig: &Rig| {
        let state = rig.model.state();
        state.ports[0].sact | state.ports[0].ci
    };
    assert_eq!(told(&rig).count_ones(), 1, "the one that failed");
    rig.places[0].calls();
    assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Recovered));
    assert_eq!(serve(&rig, &queue), 0);
    only(host.outcomes(), 2, &[(0, CmdError::Medium)]);
}

#[test]
fn nobody_who_looks_between_an_error_and_its_recovery_takes_what_failed_for_finished() {
    let drive = Drive {
        depth: None,
        ..with_bad(vec![bad(0, MEDIUM)])
    };
    let config = Config {
        clears_failed: true,
        ..Config::with(drive)
    };
    // The highest block is read first, and the one that fails is the last.
    let (rig, host, queue) = reading(config, 2);
    queue.drain(Context::Poll);
    // Another port's interrupt, or a timer.
    queue.drain(Context::Irq);
    let early = host.outcomes();
    assert!(early.iter().all(|(id, _)| *id != 0), "{early:?}");
    serve(&rig, &queue);
    assert!(host.outcomes().contains(&(0, Err(CmdError::Medium))));
    rig.model.check();
}
