// SPDX-License-Identifier: GPL-2.0
//! Reservations: of this host, beside others that the model plays.

use crate::model::reservations::{Reservations, US};
use crate::model::Config;
use crate::rig::{command, Rig, UNIT};
use hal::{
    Access, Answer, CmdError, Controller, Denied, Error, Failure, Holder, Op, Registered, Reserve,
    RetryHint,
};

const OTHER: u64 = 2;
/// Opcodes, and dword 10 of Register, Acquire, Release.
const REGISTER: u8 = 0x0d;
const ACQUIRE: u8 = 0x11;

fn never() -> bool {
    false
}

fn rig() -> Rig {
    Rig::started(Config {
        oncs: 0x2c,
        rescap: 0xff,
        ..Config::default()
    })
}

fn ask(rig: &Rig, what: Reserve) -> Result<Answer<()>, Error> {
    rig.nvme
        .reservations()
        .unwrap()
        .reserve(UNIT, &what, &never)
}

fn register(rig: &Rig, old: u64, new: u64) -> Result<Answer<()>, Error> {
    let ignore = false;
    ask(rig, Reserve::Register { old, new, ignore })
}

fn acquire(rig: &Rig, key: u64, access: Access) -> Result<Answer<()>, Error> {
    let (access, ignore) = (Some(access), false);
    ask(
        rig,
        Reserve::Acquire {
            key,
            access,
            ignore,
        },
    )
}

fn holder(rig: &Rig) -> Result<Answer<Holder>, Error> {
    rig.nvme.reservations().unwrap().holder(UNIT, &never)
}

fn registered(rig: &Rig, keys: &mut [u64]) -> Result<Answer<Registered>, Error> {
    (rig.nvme.reservations().unwrap()).registered(UNIT, keys, &never)
}

/// Another host does this.
fn other(rig: &Rig, opcode: u8, dword10: u32, keys: [u64; 2]) -> Result<(), u16> {
    let mut state = rig.model.state();
    state.reservations.change(OTHER, (opcode, dword10, keys))
}

fn kept(rig: &Rig) -> Reservations {
    rig.model.state().reservations.clone()
}

const WORKED: Result<Answer<()>, Error> = Ok(Ok(()));
const CONFLICT: Result<Answer<()>, Error> = Ok(Err(Denied::Conflict));
const INVALID: Result<Answer<()>, Error> = Ok(Err(Denied::Invalid));

#[test]
fn a_key_is_registered_changed_and_cleared() {
    let rig = rig();
    assert_eq!(register(&rig, 5, 6), CONFLICT, "there is none to replace");
    assert_eq!(register(&rig, 0, 5), WORKED);
    assert_eq!(kept(&rig).registrants, [(US, 5)]);
    assert!(kept(&rig).persists);
    assert_eq!(register(&rig, 0, 7), CONFLICT);
    assert_eq!(register(&rig, 7, u64::MAX), CONFLICT);
    assert_eq!(register(&rig, 5, u64::MAX), WORKED);
    assert_eq!(kept(&rig).registrants, [(US, u64::MAX)]);
    let what = Reserve::Register {
        old: 1,
        new: 9,
        ignore: true,
    };
    assert_eq!(ask(&rig, what), WORKED);
    assert_eq!(kept(&rig).registrants, [(US, 9)]);
    assert_eq!(ask(&rig, Reserve::Clear { key: 8 }), CONFLICT);
    // That ignores the key, which version 1.3 took away.
    assert_eq!(ask(&rig, Reserve::Clear { key: 0 }), INVALID);
    assert_eq!(ask(&rig, Reserve::Clear { key: 9 }), WORKED);
    assert_eq!(kept(&rig).registrants, []);
    rig.model.check();
}

#[test]
fn who_holds_it_gives_it_up() {
    let rig = rig();
    let access = Some(Access::ExclusiveAccess);
    assert_eq!(acquire(&rig, 5, Access::ExclusiveAccess), CONFLICT);
    assert_eq!(register(&rig, 0, 5), WORKED);
    assert_eq!(acquire(&rig, 5, Access::ExclusiveAccess), WORKED);
    assert_eq!(kept(&rig).held, Some((2, US)));
    assert_eq!(acquire(&rig, 5, Access::WriteExclusive), CONFLICT);
    let nothing = Reserve::Release {
        key: 5,
        access: None,
    };
    assert_eq!(ask(&rig, nothing), INVALID);
    assert_eq!(ask(&rig, Reserve::Release { key: 6, access }), CONFLICT);
    assert_eq!(ask(&rig, Reserve::Release { key: 5, access }), WORKED);
    assert_eq!(kept(&rig).held, None);
    let ignore = true;
    let access = None;
    let key = 5;
    assert_eq!(
        ask(
            &rig,
            Reserve::Acquire {
                key,
                access,
                ignore
            }
        ),
        INVALID
    );
    rig.model.check();
}

#[test]
fn another_host_is_preempted_and_its_commands_aborted() {
    for abort in [false, true] {
        let rig = rig();
        other(&rig, REGISTER, 0, [0, 7]).unwrap();
        other(&rig, ACQUIRE, 2 << 8, [7, 0]).unwrap();
        assert_eq!(register(&rig, 0, 5), WORKED);
        assert_eq!(acquire(&rig, 5, Access::ExclusiveAccess), CONFLICT);
        let preempt = |victim| Reserve::Preempt {
            key: 5,
            victim,
            access: Some(Access::WriteExclusive),
            abort,
        };
        assert_eq!(ask(&rig, preempt(8)), CONFLICT, "nobody has that key");
        assert_eq!(ask(&rig, preempt(7)), WORKED);
        let kept = kept(&rig);
        assert_eq!(kept.registrants, [(US, 5)]);
        assert_eq!(kept.held, Some((1, US)));
        let aborted: &[u64] = if abort { &[OTHER] } else { &[] };
        assert_eq!(kept.aborted, aborted);
        rig.model.check();
    }
}

#[test]
fn a_conflict_fails_the_command_for_good() {
    let rig = rig();
    let mut queue = rig.queue(0);
    other(&rig, REGISTER, 0, [0, 7]).unwrap();
    let data = rig.map(&[0; 512], 0, 0);
    let conflict = Failure {
        error: CmdError::Reserved,
        retry: RetryHint::Never,
    };
    // The type; whether others may write, and read; and once they are registered.
    for (kind, write_ok, read_ok, registered_ok) in [
        (1, false, true, false),
        (2, false, false, false),
        (3, false, true, true),
        (4, false, false, true),
        (5, false, true, true),
        (6, false, false, true),
    ] {
        other(&rig, ACQUIRE, kind << 8, [7, 0]).unwrap();
        for registered in [false, true] {
            if registered {
                assert_eq!(register(&rig, 0, 5), WORKED);
            }
            let registered = registered && registered_ok;
            for (op, allowed) in [(Op::Write, write_ok), (Op::Read, read_ok)] {
                let cmd = command(op, 0, 1);
                let text = format!("{kind} {op:?} {registered}");
                match allowed || registered {
                    true => assert_eq!(queue.run(&cmd, &data.segments()), Ok(()), "{text}"),
                    false => {
                        let failure = queue.failure(&cmd, &data.segments());
                        assert_eq!(failure, conflict, "{text}");
                    }
                }
            }
        }
        let mut state = rig.model.state();
        state.reservations.held = None;
        state
            .reservations
            .registrants
            .retain(|(host, _)| *host != US);
    }
    data.unmap();
    rig.model.check();
}

#[test]
fn keys_are_read_as_far_as_there_is_room() {
    for short_hosts in [false, true] {
        let rig = rig();
        rig.model.state().reservations.short_hosts = short_hosts;
        let mut none = [];
        let said = |generation, keys| Ok(Ok(Registered { generation, keys }));
        assert_eq!(registered(&rig, &mut none), said(0, 0));
        for n in 1..=100 {
            let mut state = rig.model.state();
            state
                .reservations
                .change(n, (REGISTER, 0, [0, n << 32]))
                .unwrap();
        }
        for room in [0, 1, 63, 64, 99, 100, 101, 1000] {
            let mut keys = vec![0; room];
            assert_eq!(registered(&rig, &mut keys), said(100, 100), "{room}");
            for (n, key) in (1..).zip(&keys) {
                assert_eq!(*key, if n <= 100 { n << 32 } else { 0 }, "{room}");
            }
        }
        let forms: Vec<u64> = (rig.model.state().io_log.iter())
            .map(|sqe| sqe[5] >> 32)
            .collect();
        let each: &[u64] = if short_hosts { &[1, 0] } else { &[1] };
        assert_eq!(forms, each.repeat(9), "the extended one is asked for first");
        rig.model.check();
    }
}

#[test]
fn more_than_a_transfer_is_not_asked_for() {
    let rig = Rig::started(Config {
        oncs: 0x2c,
        rescap: 0xff,
        mdts: 1,
        ..Config::default()
    });
    let most = rig.nvme.limits().max_transfer as usize / 64 - 1;
    assert!(registered(&rig, &mut vec![0; most]).unwrap().is_ok());
    let mut keys = vec![0; most + 1];
    assert_eq!(registered(&rig, &mut keys), Err(Error::Invalid));
    assert_eq!(rig.model.state().io_log.len(), 1);
    rig.model.check();
}

#[test]
fn the_holder_is_told_whatever_the_number_of_others() {
    for short_hosts in [false, true] {
        let rig = rig();
        rig.model.state().reservations.short_hosts = short_hosts;
        let said = |generation, access, key| {
            Ok(Ok(Holder {
                generation,
                access,
                key,
            }))
        };
        assert_eq!(holder(&rig), said(0, None, 0));
        for n in 10..=200 {
            let mut state = rig.model.state();
            state.reservations.change(n, (REGISTER, 0, [0, n])).unwrap();
            if matches!(n, 10 | 72 | 73 | 74 | 200) {
                drop(state);
                let count = n as u32 - 9;
                assert_eq!(holder(&rig), said(count, None, 0));
                let mut state = rig.model.state();
                state
                    .reservations
                    .change(n, (ACQUIRE, 3 << 8, [n, 0]))
                    .unwrap();
                drop(state);
                let access = Some(Access::WriteExclusiveRegistrants);
                assert_eq!(holder(&rig), said(count, access, n));
                rig.model.state().reservations.held = None;
            }
        }
        // All that are registered hold it: the first is told.
        let mut state = rig.model.state();
        state
            .reservations
            .change(99, (ACQUIRE, 6 << 8, [99, 0]))
            .unwrap();
        drop(state);
        assert_eq!(
            holder(&rig),
            said(191, Some(Access::ExclusiveAccessAll), 10)
        );
        rig.model.check();
    }
}

#[test]
fn a_report_that_lies_ends() {
    let rig = rig();
    // As long as can be said, and longer each time than it was said to be.
    for (controllers, expected) in [(0xffff, Error::Invalid), (100, Error::Malformed)] {
        let mut lie = vec![0xff; 64];
        lie[5..7].copy_from_slice(&u16::to_le_bytes(controllers));
        let mut state = rig.model.state();
        state.reservations.lie = Some(lie);
        drop(state);
        let before = rig.model.state().io_log.len();
        assert_eq!(holder(&rig), Err(expected));
        let asked = rig.model.state().io_log.len() - before;
        assert!((1..=4).contains(&asked), "{asked}");
        let mut keys = [7; 3];
        let said = registered(&rig, &mut keys).unwrap().unwrap();
        assert!(said.keys >= u32::from(controllers));
    }
    rig.model.check();
}

#[test]
fn statuses_are_answers_and_no_answer_is_an_error() {
    let rig = rig();
    for (status, denied) in [
        (0x0083, Denied::Conflict),
        (0x4001, Denied::Invalid),
        (0x4180, Denied::Invalid),
        (0x0371, Denied::Path),
        (0x4006, Denied::Failed),
    ] {
        for _ in 0..3 {
            rig.model.state().io_status = vec![status];
            assert_eq!(register(&rig, 0, 5), Ok(Err(denied)));
            rig.model.state().io_status = vec![status];
            assert_eq!(holder(&rig), Ok(Err(denied)));
            rig.model.state().io_status = vec![status];
            assert_eq!(registered(&rig, &mut []), Ok(Err(denied)));
        }
    }
    // In whatever form.
    rig.model.state().io_status = vec![0x4018, 0x4018];
    assert_eq!(holder(&rig), Ok(Err(Denied::Failed)));
    assert_eq!(rig.model.state().io_status, []);
    rig.model.state().hold = true;
    assert_eq!(register(&rig, 0, 5), Err(Error::Timeout));
    assert_eq!(holder(&rig), Err(Error::Timeout), "until it is reset");
    rig.model.state().hold = false;
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    assert_eq!(register(&rig, 0, 5), WORKED);
    rig.model.check();
}

#[test]
fn who_says_no_is_not_asked() {
    for (oncs, rescap) in [(0x0c, 0xff), (0x2c, 0), (0, 0)] {
        let rig = Rig::started(Config {
            oncs,
            rescap,
            ..Config::default()
        });
        assert_eq!(register(&rig, 0, 5), INVALID);
        assert_eq!(holder(&rig), Ok(Err(Denied::Invalid)));
        assert_eq!(registered(&rig, &mut [0]), Ok(Err(Denied::Invalid)));
        assert_eq!(rig.model.state().io_log, Vec::<[u64; 8]>::new());
    }
    let rig = Rig::started(Config {
        oncs: 0x2c,
        rescap: 1,
        queues: 1,
        ..Config::default()
    });
    let _queue = rig.queue(0);
    assert_eq!(register(&rig, 0, 5), Err(Error::Unsupported), "no queue");
    let nobody = rig.nvme.reservations().unwrap().holder(7, &never);
    assert_eq!(nobody, Ok(Err(Denied::Invalid)), "there is no such disk");
}
