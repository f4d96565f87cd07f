// SPDX-License-Identifier: GPL-2.0
//! Commands, one port, one thread.

use crate::model::{Config, Drive, KNOWN_GOOD};
use crate::rig::{command, Rig, UNIT};
use hal::{CmdError, Command, Controller, Op, Queue, Segment, TagBatch};
use testkit::pattern;

fn queued() -> Config {
    Config::default()
}

fn unqueued() -> Config {
    Config::with(Drive {
        depth: None,
        ..Drive::new(9, 4096)
    })
}

/// Writes and reads back.
fn moves_data(config: Config) {
    let rig = Rig::started(config);
    let cases = [
        (512, 0, 0),
        (512, 3584, 0),
        (1024, 0, 0),
        (4096, 512, 0),
        (8192, 0, 4096),
        (65536, 4, 512),
        (131_072, 2048, 0),
        (1 << 20, 0, 8192),
    ];
    rig.queue().moves_data(&rig.machine, UNIT, &cases);
    rig.model.check();
}

#[test]
fn moves_data_queued() {
    moves_data(queued());
}

#[test]
fn moves_data_with_a_drive_that_queues_nothing() {
    moves_data(unqueued());
}

#[test]
fn moves_data_with_an_hba_that_queues_nothing() {
    moves_data(Config {
        ncq: false,
        ..Config::default()
    });
}

#[test]
fn moves_data_with_one_slot() {
    moves_data(Config {
        slots: 1,
        ..Config::default()
    });
}

#[test]
fn the_other_commands_say_what_they_mean() {
    for queued_trim in [false, true] {
        let rig = Rig::started(Config::with(Drive {
            queued_trim,
            model: KNOWN_GOOD,
            ..Drive::new(9, 4096)
        }));
        let mut queue = rig.queue();
        rig.model.state().ports[0]
            .drive
            .as_mut()
            .unwrap()
            .data
            .fill(0x55);
        let fua = Command {
            fua: true,
            ..command(Op::Write, 3, 1)
        };
        let from = rig.map(&[0xaa; 512], 0, 0);
        assert_eq!(queue.run(&fua, &from.segments()), Ok(()));
        from.unmap();
        assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
        assert_eq!(queue.run(&command(Op::Discard, 20, 3), &[]), Ok(()));
        let unsupported = queue.run(&command(Op::WriteZeroes, 10, 2), &[]);
        assert_eq!(unsupported, Err(CmdError::Unsupported));
        let log = rig.model.state().data_log();
        assert_eq!((log[0].command, log[0].device), (0x61, 0xc0), "FUA");
        assert_eq!((log[0].lba, log[0].features), (3, 1));
        assert_eq!(log[1].command, 0xea);
        assert_eq!(log[2].command, if queued_trim { 0x64 } else { 0x06 });
        let state = rig.model.state();
        let data = &state.ports[0].drive.as_ref().unwrap().data;
        let byte = |block: usize| data[block * 512];
        assert_eq!([byte(2), byte(3), byte(4)], [0x55, 0xaa, 0x55]);
        let trimmed = [byte(19), byte(20), byte(22), byte(23)];
        assert_eq!(trimmed, [0x55, 0xdd, 0xdd, 0x55]);
        drop(state);
        rig.model.check();
    }
}

#[test]
fn a_drive_without_queues_has_no_fua() {
    let rig = Rig::started(unqueued());
    let mut queue = rig.queue();
    assert!(!rig.units(0)[0].unwrap().fua);
    for fua in [false, true] {
        let cmd = Command {
            fua,
            ..command(Op::Write, 0, 1)
        };
        let from = rig.map(&[1; 512], 0, 0);
        assert_eq!(queue.run(&cmd, &from.segments()), Ok(()));
        from.unmap();
        assert_eq!(rig.model.state().log.last().unwrap().command, 0x35);
    }
    rig.model.check();
}

#[test]
fn a_long_discard_is_many_ranges_of_one_command() {
    let rig = Rig::started(Config::with(Drive::new(9, 80_000)));
    let mut queue = rig.queue();
    assert_eq!(queue.run(&command(Op::Discard, 5, 70_000), &[]), Ok(()));
    let state = rig.model.state();
    let data = &state.ports[0].drive.as_ref().unwrap().data;
    let (from, to) = (5 * 512, 70_005 * 512);
    assert!(data[from..to].iter().all(|byte| *byte == 0xdd));
    assert!(data[..from]
        .iter()
        .chain(&data[to..])
        .all(|byte| *byte == 0));
    assert_eq!(state.data_log().len(), 1);
    drop(state);
    let most = rig.units(0)[0].unwrap().discard.unwrap().max_blocks;
    for (blocks, why) in [(0, CmdError::Invalid), (most + 1, CmdError::Invalid)] {
        assert_eq!(queue.run(&command(Op::Discard, 0, blocks), &[]), Err(why));
    }
    rig.model.check();
}

#[test]
fn a_discard_of_many_ranges_is_one_command() {
    let rig = Rig::started(Config::with(Drive::new(9, 80_000)));
    let mut queue = rig.queue();
    let ranges = |all: &[(u64, u32)]| -> Vec<Segment> {
        let range = |&(addr, len)| Segment { addr, len };
        all.iter().map(range).collect()
    };
    let all = ranges(&[(3, 1), (9, 70_000), (79_999, 1)]);
    assert_eq!(queue.run(&command(Op::Discard, 3, 70_002), &all), Ok(()));
    let state = rig.model.state();
    assert_eq!(state.data_log().len(), 1);
    let data = &state.ports[0].drive.as_ref().unwrap().data;
    let marked = data
        .chunks(512)
        .enumerate()
        .filter(|(_, block)| block[0] == 0xdd);
    let expected = [3].into_iter().chain(9..70_009).chain([79_999]);
    assert!(marked.map(|(at, _)| at).eq(expected));
    drop(state);
    let many: Vec<_> = (0..64).map(|n| (n * 2, 1)).collect();
    let full = command(Op::Discard, 0, 64);
    assert_eq!(queue.run(&full, &ranges(&many)), Ok(()));
    let over: Vec<_> = (0..65).map(|n| (n * 2, 1)).collect();
    let bad = [
        (65, over, CmdError::Invalid),
        (3, vec![(0, 1), (5, 1)], CmdError::Invalid),
        (1, vec![(0, 1), (5, 1)], CmdError::Invalid),
        (1, vec![(0, 0), (5, 1)], CmdError::Invalid),
        (2, vec![(0, 1), (1 << 48, 1)], CmdError::Range),
    ];
    for (blocks, all, why) in bad {
        let refused = queue.run(&command(Op::Discard, 0, blocks), &ranges(&all));
        assert_eq!(refused, Err(why), "{all:?}");
    }
    rig.model.check();
}

#[test]
fn what_cannot_be_said_is_refused_and_leaves_nothing() {
    let rig = Rig::started(queued());
    let mut queue = rig.queue();
    let data = rig.map(&[1; 8192], 0, 4096);
    let two = data.segments();
    let wrong_unit = Command {
        unit: 1,
        ..command(Op::Read, 0, 8)
    };
    let wrong_size = Command {
        block_shift: 12,
        ..command(Op::Read, 0, 1)
    };
    let refused = [
        // No data, too little, too much, none asked for.
        (command(Op::Read, 0, 8), vec![], CmdError::Invalid),
        (command(Op::Read, 0, 16), vec![two[0]], CmdError::Invalid),
        (command(Op::Read, 0, 4), vec![two[0]], CmdError::Invalid),
        (command(Op::Read, 0, 0), vec![two[0]], CmdError::Invalid),
        (
            command(Op::Read, 0, 65_537),
            vec![two[0]],
            CmdError::Invalid,
        ),
        (wrong_unit, vec![two[0]], CmdError::Invalid),
        (wrong_size, vec![two[0]], CmdError::Invalid),
        // Beyond 48 bits.
        (
            command(Op::Read, (1 << 48) - 7, 8),
            vec![two[0]],
            CmdError::Range,
        ),
        (
            command(Op::Read, u64::MAX, 8),
            vec![two[0]],
            CmdError::Range,
        ),
    ];
    for (cmd, segments, why) in refused {
        assert_eq!(queue.run(&cmd, &segments), Err(why), "{cmd:?}");
    }
    let mut odd = two.clone();
    odd[0].addr += 1;
    let mut hole = two.clone();
    hole[0] = Segment::hole(hole[0].len);
    for segments in [odd, hole] {
        let refused = queue.run(&command(Op::Read, 0, 16), &segments);
        assert_eq!(refused, Err(CmdError::Invalid));
    }
    assert!(rig.model.state().data_log().is_empty());
    assert_eq!(queue.run(&command(Op::Read, 0, 16), &two), Ok(()));
    data.unmap();
    rig.model.check();
}

#[test]
fn an_error_from_the_mapping_is_passed_on() {
    let rig = Rig::started(queued());
    let mut queue = rig.queue();
    let refused = [Err(CmdError::NotReady)].into_iter();
    let bound = queue.bind_each(&command(Op::Read, 0, 1), refused);
    assert_eq!(bound.err(), Some(CmdError::NotReady));
}

#[test]
fn every_tag_can_be_in_flight() {
    for (slots, depth) in [
        (1, 32),
        (2, 32),
        (31, 32),
        (32, 32),
        (32, 31),
        (32, 1),
        (8, 4),
    ] {
        let rig = Rig::started(Config {
            slots,
            ..Config::with(Drive {
                depth: Some(depth),
                ..Drive::new(9, 64)
            })
        });
        let mut queue = rig.queue();
        let tags = usize::from(slots.min(depth));
        assert_eq!(queue.0.queue.capacity(), tags);
        assert_eq!(usize::from(rig.ahci[0].limits().tags), tags);
        let data = rig.map(&[0; 512], 0, 0);
        for round in 0..3 {
            rig.model.state().hold = true;
            for _ in 0..tags {
                let cmd = command(Op::Read, 0, 1);
                queue.start(&cmd, &data.segments()).unwrap();
            }
            assert!(queue.free_tag().is_none());
            assert!(queue.drain().is_empty());
            rig.model.state().hold = false;
            rig.model.run();
            assert_eq!(queue.drain().len(), tags, "round {round}, {slots}, {depth}");
        }
        assert_eq!(queue.violations(), 0);
        data.unmap();
        rig.model.check();
    }
}

#[test]
fn a_batch_is_two_writes_and_its_end_one_read() {
    let rig = Rig::started(queued());
    let mut queue = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    let bind = |queue: &mut crate::rig::Line| {
        let cmd = command(Op::Read, 0, 1);
        queue.bind(&cmd, &data.segments()).unwrap()
    };
    let before = rig.model.state().accesses;
    assert!(!queue.check());
    let bound: Vec<_> = (0..16).map(|_| bind(&mut queue)).collect();
    assert_eq!(rig.model.state().accesses, before, "binding tells nothing");
    assert_eq!(queue.issue(bound), 2);
    assert_eq!(rig.model.state().accesses, before + 2);
    assert!(queue.check());
    assert_eq!(rig.model.state().accesses, before + 2, "from memory");
    assert_eq!(queue.drain_once().len(), 16);
    assert_eq!(rig.model.state().accesses, before + 3);
    assert!(!queue.check());
    // With the interrupt: one write more, as no other device is on the line.
    let bound = bind(&mut queue);
    queue.issue([bound]);
    let before = rig.model.state().accesses;
    assert_eq!(rig.ahci[0].interrupt(0), hal::Cause::Queues);
    assert_eq!(rig.model.state().accesses, before + 1);
    assert_eq!(queue.drain_once().len(), 1);
    assert_eq!(rig.model.state().accesses, before + 2);
    let mut none = TagBatch::default();
    let written = queue.0.queue.release_tags(&mut queue.0.drain, &mut none);
    assert_eq!((queue.issue([]), written), (0, 0));
    data.unmap();
    rig.model.check();
}

#[test]
fn unissued_commands_can_be_taken_back() {
    let rig = Rig::started(queued());
    let mut queue = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    for round in 0..20u64 {
        let mut bound: Vec<_> = (0..5)
            .map(|n| {
                let cmd = command(Op::Read, round * 5 + n, 1);
                queue.bind(&cmd, &data.segments()).unwrap()
            })
            .collect();
        let mut back = TagBatch::default();
        for at in [3, 1] {
            back.push(bound.remove(at).unbind()).unwrap();
        }
        queue.0.queue.unget_tags(&mut queue.0.issue, &mut back);
        queue.issue(bound);
        assert_eq!(queue.drain().len(), 3);
        let log = rig.model.state().data_log();
        let lbas: Vec<u64> = log.iter().rev().take(3).map(|taken| taken.lba).collect();
        assert_eq!(lbas, [round * 5 + 4, round * 5 + 2, round * 5]);
    }
    data.unmap();
    rig.model.check();
}

#[test]
fn blocks_of_4096_bytes_are_counted_as_such() {
    let rig = Rig::started(Config::with(Drive::new(12, 64)));
    let mut queue = rig.queue();
    let unit = rig.units(0)[0].unwrap();
    assert_eq!((unit.block_shift, unit.blocks), (12, 64));
    let data = pattern(8192, 9);
    let from = rig.map(&data, 0, 0);
    let cmd = Command {
        block_shift: 12,
        ..command(Op::Write, 62, 2)
    };
    assert_eq!(queue.run(&cmd, &from.segments()), Ok(()));
    from.unmap();
    let state = rig.model.state();
    assert_eq!(
        state.ports[0].drive.as_ref().unwrap().data[62 << 12..],
        data[..]
    );
    drop(state);
    rig.model.check();
}
