// SPDX-License-Identifier: GPL-2.0
//! Drives that don't say which command failed: they are told one by one.

use crate::errors::{bad, only, reading, serve, with_bad, MEDIUM};
use crate::model::{Config, Drive, KNOWN_GOOD};
use crate::rig::{command, read, Rig};
use crate::whole::run_eh;
use hal::{CmdError, Error, Op, Platform};
use lld_ahci::EhOutcome;

#[test]
fn without_the_log_all_are_told_one_by_one() {
    let drive = Drive {
        names_errors: false,
        ..with_bad(vec![bad(3, MEDIUM), bad(11, 0x1041)])
    };
    let (rig, host, queue) = reading(Config::with(drive), 16);
    assert_eq!(serve(&rig, &queue), 1);
    let failed = [(3, CmdError::Medium), (11, CmdError::Range)];
    only(host.outcomes(), 16, &failed);
    let log = rig.model.state().data_log();
    let alone = log.iter().filter(|taken| taken.command == 0x25).count();
    // The drive takes the lowest slot first, the engine gives the highest: it began with block
    // 15.
    assert_eq!(alone, 12, "not the four that were done");
    assert!(
        !queue.check(),
        "what the recovery did is announced to nobody"
    );
    // Queued again afterwards.
    queue.submit(read(0, 100), true);
    assert_eq!(rig.model.state().log.last().unwrap().command, 0x60);
    serve(&rig, &queue);
    only(host.outcomes(), 1, &[]);
    rig.model.check();
}

#[test]
fn one_by_one_means_the_same_as_queued() {
    let drive = Drive {
        names_errors: false,
        queued_trim: true,
        model: KNOWN_GOOD,
        ..with_bad(vec![bad(0, MEDIUM)])
    };
    let rig = Rig::started(Config::with(drive));
    let (host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit(read(0, 0), true);
    let mut job = read(1, 10);
    job.cmd = command(Op::Write, 0x20, 3);
    job.data = vec![0xab; 1536];
    queue.submit(job, true);
    let mut job = read(2, 10);
    job.cmd = command(Op::Write, 0x30, 1);
    job.cmd.fua = true;
    job.data = vec![0xcd; 512];
    queue.submit(job, true);
    let mut job = read(3, 10);
    (job.cmd, job.data) = (command(Op::Discard, 0x40, 2), Vec::new());
    queue.submit(job, true);
    rig.model.state().hold = false;
    rig.model.run();
    serve(&rig, &queue);
    only(host.outcomes(), 4, &[(0, CmdError::Medium)]);
    let state = rig.model.state();
    let log = state.data_log();
    let mut opcodes: Vec<u8> = log.iter().map(|taken| taken.command).collect();
    opcodes.sort_unstable();
    assert_eq!(opcodes, [0x06, 0x25, 0x35, 0x3d, 0x60]);
    let data = &state.ports[0].drive.as_ref().unwrap().data;
    let byte = |block: usize| data[block * 512];
    assert_eq!(
        [byte(0x1f), byte(0x20), byte(0x22), byte(0x23)],
        [0, 0xab, 0xab, 0]
    );
    assert_eq!([byte(0x30), byte(0x31)], [0xcd, 0]);
    assert_eq!(
        [byte(0x3f), byte(0x40), byte(0x41), byte(0x42)],
        [0, 0xdd, 0xdd, 0]
    );
    drop(state);
    rig.model.check();
}

#[test]
fn one_that_is_not_answered_alone_fails_and_the_others_get_their_chance() {
    for (mute, expected) in [
        (3, Ok(EhOutcome::Recovered)),
        (200, Ok(EhOutcome::Recovered)),
    ] {
        let drive = Drive {
            names_errors: false,
            mute: Some(mute),
            ..with_bad(vec![bad(5, MEDIUM)])
        };
        let (rig, host, queue) = reading(Config::with(drive), 8);
        let before = rig.machine.now_us();
        assert_eq!(run_eh(&rig, &queue), expected);
        assert!(rig.machine.now_us() - before < 31_000_000);
        let mut failed = vec![(5, CmdError::Medium)];
        if mute == 3 {
            failed.push((3, CmdError::Timeout));
        }
        only(host.outcomes(), 8, &failed);
        rig.model.check();
    }
}

#[test]
fn a_drive_that_answers_nothing_alone_is_given_up_in_bounded_time() {
    let drive = Drive {
        names_errors: false,
        ..with_bad(vec![bad(0, MEDIUM)])
    };
    let rig = Rig::started(Config::with(drive));
    let (host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit_many((0..16).map(|id| read(id, 0)));
    rig.model.state().hold = false;
    rig.model.run();
    rig.model.state().ports[0].drive.as_mut().unwrap().mute = Some(0);
    let before = rig.machine.now_us();
    assert_eq!(run_eh(&rig, &queue), Err(Error::Timeout));
    let took = rig.machine.now_us() - before;
    assert!((90_000_000..92_000_000).contains(&took), "{took}");
    assert_eq!(
        rig.ahci[0].step(),
        "telling the drive its commands one by one"
    );
    assert_eq!(host.take().len(), 2);
    rig.model.check();
}
