// SPDX-License-Identifier: GPL-2.0
//! What a drive loses that fails often, and that nothing else is lost by it.

use crate::errors::{only, serve, with_bad};
use crate::model::config::Bad;
use crate::model::Config;
use crate::rig::{command, reads, Line, Queue, Rig, UNIT};
use hal::{CmdError, Command, Controller, EventAction, Op, Queues};
use testkit::Job;

const READ: u8 = 0x60;
const READ_SINGLY: u8 = 0x25;
const WRITE_SINGLY: u8 = 0x35;
const FUA_SINGLY: u8 = 0x3d;

/// What the operator is told.
fn told(rig: &Rig) -> Vec<String> {
    let mut all = Vec::new();
    let mut tell = |notice: hal::DeviceEvent<'_>| all.push(notice.text.to_string());
    let wish = Controller::handle_events(&rig.ahci[0], Queues::Live, &mut tell);
    assert!(matches!(wish, Ok(EventAction::None)));
    all
}

fn names(rig: &Rig) -> Vec<&'static str> {
    let mut names = Vec::new();
    rig.ahci[0].quirks(&mut |name| names.push(name));
    names
}

/// Each of the first `count` blocks fails once, with status and error byte `tfd`.
fn failing(count: u64, tfd: u16) -> Config {
    let bad = (0..count).map(|lba| Bad { lba, tfd, times: 1 });
    Config::with(with_bad(bad.collect()))
}

/// Reads `count` blocks; what of them fails.
fn read(rig: &Rig, queue: &Queue, host: &testkit::Host, count: usize) -> Vec<(usize, CmdError)> {
    rig.model.state().hold = true;
    queue.submit_many(reads(count));
    rig.model.state().hold = false;
    rig.model.run();
    serve(rig, queue);
    let ended = host.outcomes();
    assert_eq!(ended.len(), count);
    let failed = ended.into_iter();
    failed
        .filter_map(|(id, outcome)| Some((id, outcome.err()?)))
        .collect()
}

/// The command of the last read.
fn spoken(rig: &Rig) -> u8 {
    rig.model.state().data_log().last().unwrap().command
}

#[test]
fn aborted_commands_cost_the_queue() {
    let rig = Rig::started(Config {
        reverses: true,
        ..failing(4, 0x0441)
    });
    let (host, queue) = rig.io();
    let failed = read(&rig, &queue, &host, 20);
    let expected: Vec<_> = (0..4).map(|id| (id, CmdError::Io)).collect();
    assert_eq!(failed, expected, "nothing fails but what the drive fails");
    assert_eq!(
        spoken(&rig),
        READ_SINGLY,
        "what was told is told again singly"
    );
    let text = told(&rig);
    assert!(text.len() == 1 && text[0].contains("NCQ"), "{text:?}");
    assert_eq!(told(&rig), [""; 0], "once");
    assert_eq!(names(&rig), ["noncq"]);
    assert_eq!(read(&rig, &queue, &host, 20), []);
    assert_eq!(spoken(&rig), READ_SINGLY);
    assert_eq!(rig.model.state().ports[0].resets, 0);
    rig.model.check();
}

#[test]
fn three_are_not_too_many() {
    let rig = Rig::started(failing(3, 0x0441));
    let (host, queue) = rig.io();
    assert_eq!(read(&rig, &queue, &host, 20).len(), 3);
    assert_eq!(read(&rig, &queue, &host, 20), []);
    assert_eq!((spoken(&rig), told(&rig).len()), (READ, 0));
}

#[test]
fn media_errors_cost_nothing() {
    let rig = Rig::started(failing(8, 0x4041));
    let (host, queue) = rig.io();
    assert_eq!(read(&rig, &queue, &host, 20).len(), 8);
    assert_eq!(read(&rig, &queue, &host, 20), []);
    assert_eq!((spoken(&rig), told(&rig).len()), (READ, 0));
    assert_eq!(rig.model.state().ports[0].speed, 2);
}

#[test]
fn spoilt_transfers_cost_speed() {
    let rig = Rig::started(failing(4, 0x8441));
    let (host, queue) = rig.io();
    assert_eq!(rig.model.state().ports[0].speed, 2);
    assert_eq!(read(&rig, &queue, &host, 20).len(), 4);
    assert_eq!(spoken(&rig), READ);
    let speed = || rig.model.state().ports[0].speed;
    assert_eq!((speed(), rig.model.state().ports[0].resets), (1, 1));
    let text = told(&rig);
    assert!(
        text.len() == 1 && text[0].contains("1.5 Gbit/s"),
        "{text:?}"
    );
    // Also from scratch.
    let mut quiesced = queue.quiesce(&rig.machine);
    rig.ahci[0].stop().unwrap();
    quiesced.reap(CmdError::Timeout.retryable());
    quiesced.rewind();
    rig.ahci[0].start().unwrap();
    quiesced.unquiesce();
    assert_eq!(speed(), 1);
    assert_eq!(read(&rig, &queue, &host, 20), []);
    rig.model.check();
}

#[test]
fn a_drive_without_a_queue_loses_speed_later() {
    for (count, speed) in [(6, 2), (7, 1)] {
        let mut config = failing(count, 0x0441);
        if let Some(drive) = &mut config.drives[0] {
            drive.depth = None;
        }
        let rig = Rig::started(config);
        let (host, queue) = rig.io();
        for id in 0..count as usize {
            queue.submit(crate::rig::read(id, id as u64), true);
            serve(&rig, &queue);
            assert_eq!(host.outcomes(), [(id, Err(CmdError::Io))]);
        }
        assert_eq!(read(&rig, &queue, &host, 20), []);
        assert_eq!(rig.model.state().ports[0].speed, speed);
        assert_eq!(names(&rig), [""; 0]);
    }
}

/// A command that the drive does not answer, and what is done about it, as one who has missed it
/// or not.
fn reset(rig: &Rig, line: &mut Line, missed: bool) {
    rig.model.state().hold = true;
    line.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    if missed {
        rig.ahci[0].timeout_report(&mut String::new()).unwrap();
    }
    rig.ahci[0].stop().unwrap();
    rig.model.state().hold = false;
    assert_eq!(line.reap().len(), 1);
    line.rewind();
    rig.ahci[0].start().unwrap();
}

#[test]
fn silence_costs_the_queue_and_then_speed() {
    let rig = Rig::started(Config::default());
    let mut line = rig.queue();
    let mut spoken = |resets: usize, missed: bool| {
        (0..resets).for_each(|_| reset(&rig, &mut line, missed));
        let map = rig.map(&[0; 512], 0, 4096);
        let read = command(Op::Read, 0, 1);
        assert_eq!(line.run(&read, &map.segments()), Ok(()));
        (self::spoken(&rig), rig.model.state().ports[0].speed)
    };
    assert_eq!(spoken(9, false), (READ, 2), "resets that were asked for");
    assert_eq!(spoken(3, true), (READ, 2));
    assert_eq!(spoken(1, true), (READ_SINGLY, 2));
    assert_eq!(spoken(3, true), (READ_SINGLY, 2));
    assert_eq!(spoken(1, true), (READ_SINGLY, 1));
    assert_eq!(
        spoken(9, true),
        (READ_SINGLY, 1),
        "there is nothing left to take"
    );
    rig.model.check();
}

#[test]
fn without_its_queue_a_write_with_fua_still_has_it() {
    let rig = Rig::started(Config {
        fua: true,
        ..failing(4, 0x0441)
    });
    let (host, queue) = rig.io();
    read(&rig, &queue, &host, 20);
    for (fua, expected) in [(true, FUA_SINGLY), (false, WRITE_SINGLY)] {
        let cmd = Command {
            fua,
            ..testkit::command(UNIT, Op::Write, 9, 1)
        };
        queue.submit(Job::new(0, cmd, vec![7; 512]), true);
        serve(&rig, &queue);
        only(host.outcomes(), 1, &[]);
        assert_eq!(spoken(&rig), expected);
    }
    rig.model.check();
}
