// SPDX-License-Identifier: GPL-2.0
//! Commands, one queue, one thread.

use crate::model::{Config, Namespace};
use crate::rig::{command, Rig, UNIT};
use hal::{CmdError, Command, Controller, Op, Queue, RetryHint, TagBatch};
use testkit::pattern;

/// Writes and reads back through every way of describing data.
fn moves_data(config: Config) {
    let rig = Rig::started(config);
    let cases = [
        (512, 0, 0),
        (512, 3584, 0),
        (1024, 3584, 0),
        (4096, 0, 0),
        (4096, 512, 0),
        (8192, 0, 4096),
        (65536, 0, 4096),
        (65536, 0, 0),
        (131_072, 2048, 0),
    ];
    rig.queue(0).moves_data(&rig.machine, UNIT, &cases);
    rig.model.check();
}

#[test]
fn moves_data_by_prp() {
    moves_data(Config::default());
}

#[test]
fn moves_data_by_sgl() {
    for sgls in [1, 2] {
        moves_data(Config {
            sgls,
            ..Config::default()
        });
    }
}

#[test]
fn moves_data_with_shadow_doorbells() {
    moves_data(Config {
        doorbell_buffer: true,
        ..Config::default()
    });
}

#[test]
fn moves_data_with_distant_doorbells() {
    for doorbell_buffer in [false, true] {
        moves_data(Config {
            dstrd: 3,
            doorbell_buffer,
            ..Config::default()
        });
    }
}

#[test]
fn moves_data_with_larger_pages() {
    // The machine gives 4 KiB pages only, so not every allocation fits the device's 8 KiB.
    let config = Config {
        mpsmin: 1,
        ..Config::default()
    };
    match Rig::new(config) {
        Ok(rig) => assert!(matches!(
            rig.nvme.start(),
            Ok(()) | Err(hal::Error::Unsupported)
        )),
        Err(why) => assert_eq!(why, hal::Error::Unsupported),
    }
}

#[test]
fn the_other_commands_say_what_they_mean() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    rig.model.state().config.namespaces[0].data.fill(0x55);
    let fua = Command {
        fua: true,
        ..command(Op::Write, 3, 1)
    };
    let from = rig.map(&[0xaa; 512], 0, 0);
    assert_eq!(queue.run(&fua, &from.segments()), Ok(()));
    from.unmap();
    assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    assert_eq!(queue.run(&command(Op::WriteZeroes, 10, 2), &[]), Ok(()));
    assert_eq!(queue.run(&command(Op::Discard, 20, 3), &[]), Ok(()));
    let state = rig.model.state();
    let byte = |block: usize| state.config.namespaces[0].data[block * 512];
    assert_eq!([byte(2), byte(3), byte(4)], [0x55, 0xaa, 0x55]);
    assert_eq!([byte(9), byte(10), byte(11), byte(12)], [0x55, 0, 0, 0x55]);
    assert_eq!(
        [byte(19), byte(20), byte(22), byte(23)],
        [0x55, 0xdd, 0xdd, 0x55]
    );
    assert_eq!(state.io_log[0][6], 1 << 30, "FUA, one block");
    assert_eq!(state.io_log[0][0] >> 32, 1, "NSID");
    assert_eq!(state.io_log[1][5], 0, "a flush has no range");
    drop(state);
    rig.model.check();
}

#[test]
fn a_long_discard_is_one_command() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    assert_eq!(queue.run(&command(Op::Discard, 0, 4096), &[]), Ok(()));
    assert_eq!(
        queue.run(&command(Op::Discard, 1, 4096), &[]),
        Err(CmdError::Range)
    );
    assert_eq!(
        queue.run(&command(Op::Discard, 0, 0), &[]),
        Err(CmdError::Invalid)
    );
}

#[test]
fn what_cannot_be_said_is_refused_and_leaves_nothing() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    let data = rig.map(&[1; 8192], 0, 4096);
    let two = data.segments();
    let refused = [
        // No data, too little, too much, none asked for.
        (command(Op::Read, 0, 8), vec![]),
        (command(Op::Read, 0, 16), vec![two[0]]),
        (command(Op::Read, 0, 4), vec![two[0]]),
        (command(Op::Read, 0, 0), vec![two[0]]),
        // More than MDTS, more than 65,536 blocks.
        (command(Op::Write, 0, 1025), two.clone()),
        (command(Op::WriteZeroes, 0, 65_537), vec![]),
    ];
    for (cmd, segments) in refused {
        assert_eq!(
            queue.run(&cmd, &segments),
            Err(CmdError::Invalid),
            "{cmd:?}"
        );
    }
    let mut odd = two.clone();
    odd[0].addr += 2;
    odd[1].addr += 512;
    assert_eq!(
        queue.run(&command(Op::Read, 0, 16), &odd),
        Err(CmdError::Invalid)
    );
    assert!(rig.model.state().io_log.is_empty());
    assert_eq!(queue.run(&command(Op::Read, 0, 16), &two), Ok(()));
    data.unmap();
    rig.model.check();
}

#[test]
fn an_error_from_the_mapping_is_passed_on() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    let refused = [Err(CmdError::NotReady)].into_iter();
    let bound = queue.bind_each(&command(Op::Read, 0, 1), refused);
    assert_eq!(bound.err(), Some(CmdError::NotReady));
}

#[test]
fn every_tag_can_be_in_flight_and_the_queue_wraps() {
    for mqes in [1, 2, 3, 1022, 1023, 1024, 0xffff] {
        let rig = Rig::started(Config {
            mqes,
            ..Config::default()
        });
        let mut queue = rig.queue(0);
        let tags = usize::from(mqes.min(1023));
        assert_eq!(queue.0.queue.capacity(), tags);
        assert_eq!(usize::from(rig.nvme.limits().tags), tags);
        for round in 0..5 {
            rig.model.state().hold = true;
            for _ in 0..tags {
                queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
            }
            assert!(queue.free_tag().is_none());
            assert!(queue.drain().is_empty());
            rig.model.state().hold = false;
            rig.model.run();
            assert_eq!(queue.drain().len(), tags, "round {round} of mqes {mqes}");
        }
        assert_eq!(queue.violations(), 0);
        rig.model.check();
    }
}

#[test]
fn a_batch_costs_one_doorbell_and_a_drain_one() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    let before = rig.model.state().doorbells;
    let bound: Vec<_> = (0..16)
        .map(|_| queue.bind(&command(Op::Flush, 0, 0), &[]).unwrap())
        .collect();
    assert_eq!(rig.model.state().doorbells, before, "binding tells nothing");
    assert_eq!(queue.issue(bound), 1);
    assert_eq!(rig.model.state().doorbells, before + 1);
    assert_eq!(queue.issue([]), 0);
    assert_eq!(queue.drain().len(), 16);
    assert_eq!(rig.model.state().doorbells, before + 2);
    let mut none = TagBatch::default();
    let written = queue.0.queue.release_tags(&mut queue.0.drain, &mut none);
    assert_eq!(written, 0, "nothing taken, nothing to tell");
    rig.model.check();
}

#[test]
fn shadow_doorbells_spare_register_writes() {
    let rig = Rig::started(Config {
        doorbell_buffer: true,
        ..Config::default()
    });
    let mut queue = rig.queue(0);
    rig.model.state().hold = true;
    let before = rig.model.state().doorbells;
    // A device that is asleep asks to be told of the next entry, and of that one only.
    queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    assert_eq!(rig.model.state().doorbells, before + 1);
    let (values, events) = rig.model.state().shadow.unwrap();
    let bus = rig.machine.bus();
    // One that is busy does not: its EventIdx stays behind.
    bus.write32(events + 8, 0).unwrap();
    for _ in 0..100 {
        queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    }
    assert_eq!(rig.model.state().doorbells, before + 1);
    assert_eq!(bus.read32(values + 8), Ok(101));
    rig.model.run();
    assert_eq!(queue.drain().len(), 101);
    assert_eq!(bus.read32(values + 12), Ok(101), "the head, too");
    assert_eq!(rig.model.state().doorbells, before + 1);
    rig.model.check();
}

#[test]
fn unissued_commands_can_be_taken_back() {
    let rig = Rig::started(Config {
        mqes: 7,
        ..Config::default()
    });
    let mut queue = rig.queue(0);
    for round in 0..20u64 {
        let mut bound: Vec<_> = (0..5)
            .map(|n| {
                let cmd = command(Op::WriteZeroes, round * 5 + n, 1);
                queue.bind(&cmd, &[]).unwrap()
            })
            .collect();
        let mut back = TagBatch::default();
        for at in [3, 1] {
            back.push(bound.remove(at).unbind()).unwrap();
        }
        queue.0.queue.unget_tags(&mut queue.0.issue, &mut back);
        assert!(back.is_empty());
        queue.issue(bound);
        assert_eq!(queue.drain().len(), 3);
        let state = rig.model.state();
        let lbas: Vec<u64> = state
            .io_log
            .iter()
            .rev()
            .take(3)
            .map(|sqe| sqe[5])
            .collect();
        assert_eq!(lbas, [round * 5 + 4, round * 5 + 2, round * 5]);
        drop(state);
        assert_eq!(queue.violations(), 0);
    }
    rig.model.check();
}

#[test]
fn statuses_come_through() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    let cases = [
        (0x0000, Ok(())),
        (0x4281, Err(CmdError::Medium)),
        (0x4080, Err(CmdError::Range)),
        (0x0082, Err(CmdError::NotReady)),
        (0x4082, Err(CmdError::NotReady)),
        (0x0081, Err(CmdError::NoSpace)),
        (0x0083, Err(CmdError::Reserved)),
    ];
    for (status, outcome) in cases {
        rig.model.state().io_status.push(status);
        assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), outcome);
    }
    // A read past the end, told by the device itself.
    let data = rig.map(&[0; 512], 0, 0);
    let past = queue.run(&command(Op::Read, 4096, 1), &data.segments());
    assert_eq!(past, Err(CmdError::Range));
    data.unmap();
}

#[test]
fn a_failure_says_whether_and_when_again() {
    let rig = Rig::started(Config {
        retry_delays: [2, 0, 700],
        ..Config::default()
    });
    let behavior = rig.model.state().host_behavior.clone().unwrap();
    assert_eq!(behavior[0], 1, "ACRE");
    assert!(behavior[1..].iter().all(|byte| *byte == 0));
    let mut queue = rig.queue(0);
    let cases = [
        (0x0281, RetryHint::Now),
        (0x4281, RetryHint::Never),
        (0x0a81, RetryHint::After(2)),
        (0x1281, RetryHint::Now),
        (0x1a81, RetryHint::After(700)),
    ];
    for (status, again) in cases {
        rig.model.state().io_status.push(status);
        let failure = queue.failure(&command(Op::Flush, 0, 0), &[]);
        assert_eq!(
            (failure.error, failure.retry),
            (CmdError::Medium, again),
            "{status:#06x}"
        );
    }
    rig.model.check();
}

#[test]
fn a_controller_without_delays_is_not_asked_for_them() {
    let rig = Rig::started(Config::default());
    assert_eq!(rig.model.state().host_behavior, None);
    let mut queue = rig.queue(0);
    rig.model.state().io_status.push(0x1a81);
    let failure = queue.failure(&command(Op::Flush, 0, 0), &[]);
    assert_eq!(
        failure.retry,
        RetryHint::Now,
        "a delay that it does not have"
    );
}

#[test]
fn a_controller_may_refuse_to_name_delays() {
    let rig = Rig::new(Config {
        retry_delays: [1; 3],
        ..Config::default()
    })
    .unwrap();
    // After Identify Controller.
    rig.model.state().refuse = Some((1, 0x4002));
    rig.nvme.start().unwrap();
    let log = rig.model.state().admin_log.clone();
    assert_eq!(log[1], (0x09, 0x16));
    assert_eq!(rig.model.state().host_behavior, None);
    // It is asked again after each reset.
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    assert!(rig.model.state().host_behavior.is_some());
}

#[test]
fn blocks_of_4096_bytes_are_counted_as_such() {
    let rig = Rig::started(Config {
        namespaces: vec![Namespace::new(1, 12, 64)],
        ..Config::default()
    });
    let mut queue = rig.queue(0);
    let data = pattern(8192, 9);
    let from = rig.map(&data, 0, 0);
    let cmd = Command {
        block_shift: 12,
        ..command(Op::Write, 62, 2)
    };
    assert_eq!(queue.run(&cmd, &from.segments()), Ok(()));
    from.unmap();
    let state = rig.model.state();
    assert_eq!(state.config.namespaces[0].data[62 << 12..], data[..]);
    assert_eq!(state.io_log[0][6], 1, "two blocks, less one");
}
