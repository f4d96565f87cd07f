// SPDX-License-Identifier: GPL-2.0
//! When a command is over: its medium's time, then its turn on the link, to the nanosecond.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod common;

use common::*;
use engine::Context;
use hal::{CmdError, Controller, Op};
use lld_ram::{Config, Latency};
use testkit::{command, Dice, Job};

/// The medium takes 1 us, and a block as long on the link.
fn linked() -> Config {
    Config {
        link_mb_s: 512,
        ..config()
    }
}

fn zeroed(blocks: usize) -> Vec<u8> {
    vec![0; blocks * BLOCK]
}

/// What ended by now, and when.
fn note(rig: &Rig, ends: &mut Vec<(usize, u64)>) {
    let now = rig.backing.now();
    ends.extend(rig.host.take().into_iter().map(|(job, outcome)| {
        assert_eq!(outcome, Ok(()));
        (job.id, now)
    }));
}

/// Serves the timers that fire before `until`; how many of them fired for nothing.
fn serve(rig: &Rig, until: u64, ends: &mut Vec<(usize, u64)>) -> usize {
    let mut in_vain = 0;
    while rig.backing.next_timer().is_some_and(|at| at < until) {
        for queue in rig.backing.to_next_timer() {
            rig.ram.interrupt(queue);
            rig.io.drain(Context::Irq);
        }
        let before = ends.len();
        note(rig, ends);
        in_vain += usize::from(before == ends.len());
    }
    in_vain
}

/// All that was submitted, in the order in which it ended, and when.
fn ends(rig: &Rig) -> Vec<(usize, u64)> {
    let mut ends = Vec::new();
    assert_eq!(serve(rig, u64::MAX, &mut ends), 0, "rung for nothing");
    ends
}

#[test]
fn the_medium_and_then_the_bytes() {
    for (link_mb_s, blocks, at) in [
        (512, 1, 2000),
        (512, 2, 3000),
        (512, 64, 65_000),
        (1, 1, 513_000),
        // Rounded up.
        (3, 1, 1000 + 170_667),
        (u32::MAX, 64, 1001),
        // Without it they take no time.
        (0, 1, 1000),
        (0, 64, 1000),
    ] {
        for op in [Op::Read, Op::Write] {
            let mut rig = Rig::new(Config {
                link_mb_s,
                ..config()
            });
            let id = rig.submit(op, 0, zeroed(blocks));
            assert_eq!(ends(&rig), [(id, at)], "{op:?} of {blocks} at {link_mb_s}");
        }
    }
}

#[test]
fn those_at_once_take_turns() {
    let mut rig = Rig::new(linked());
    let (a, b) = (
        rig.submit(Op::Read, 0, zeroed(2)),
        rig.submit(Op::Read, 8, zeroed(4)),
    );
    // The second is later by its bytes.
    assert_eq!(ends(&rig), [(a, 3000), (b, 7000)]);
    // Eight on four channels: while the first four have their turns, the channels have done with
    // the others.
    let mut rig = Rig::new(linked());
    let ids: Vec<usize> = (0..8).map(|n| rig.submit(Op::Read, n, zeroed(1))).collect();
    let expected: Vec<_> = (2..).map(|us| us * 1000).take(8).collect();
    let ended = ends(&rig);
    assert_eq!(ended.iter().map(|end| end.0).collect::<Vec<_>>(), ids);
    assert_eq!(ended.iter().map(|end| end.1).collect::<Vec<_>>(), expected);
    // One channel, which is slower than the link: the link waits for it.
    let mut rig = Rig::new(Config {
        channels: 1,
        latency: Latency::Fixed(5000),
        ..linked()
    });
    (0..3).for_each(|n| {
        rig.submit(Op::Read, n, zeroed(1));
    });
    assert_eq!(ends(&rig), [(0, 6000), (1, 11_000), (2, 16_000)]);
}

#[test]
fn queues_share_the_link() {
    let mut rig = Rig::new(Config {
        queues: 2,
        ..linked()
    });
    let other = rig.host.io(rig.ram.create_queue(1, Some(1)).unwrap());
    let mine = rig.submit(Op::Read, 0, zeroed(4));
    let cmd = command(1, Op::Read, 8, 4);
    other.submit(Job::shaped(99, cmd, zeroed(4), (0, 4096)), true);
    let mut ends = Vec::new();
    while rig.backing.next_timer().is_some() {
        // Who looks first has the first turn: let it be queue 0.
        let mut fired = rig.backing.to_next_timer();
        fired.sort_unstable();
        for queue in fired {
            rig.ram.interrupt(queue);
            [&rig.io, &other][usize::from(queue)].drain(Context::Irq);
        }
        note(&rig, &mut ends);
    }
    assert_eq!(ends, [(mine, 5000), (99, 9000)]);
}

#[test]
fn what_changes_the_medium_has_a_time_of_its_own() {
    for (write_latency, write_at) in [
        (Some(Latency::Fixed(5000)), 5000),
        (Some(Latency::Fixed(0)), 0),
        (Some(Latency::Fixed(u64::MAX - 1000)), u64::MAX - 1000),
        // As reads.
        (None, 1000),
    ] {
        for (op, data, at) in [
            (Op::Read, 1, 2000),
            (Op::Write, 1, write_at + 1000),
            // No bytes, no turn.
            (Op::WriteZeroes, 0, write_at),
            (Op::Discard, 0, write_at),
            (Op::Flush, 0, 1000),
        ] {
            let mut rig = Rig::new(Config {
                write_latency,
                ..linked()
            });
            let id = rig.submit_range(op, 0, 1, zeroed(data));
            let mut ended = Vec::new();
            note(&rig, &mut ended);
            ended.extend(ends(&rig));
            match at {
                // So far no timer is set.
                u64::MAX => assert_eq!(ended, []),
                _ => assert_eq!(ended, [(id, at)], "{op:?} with {write_latency:?}"),
            }
        }
    }
}

#[test]
fn who_is_ready_first_goes_first() {
    let mut rig = Rig::new(Config {
        write_latency: Some(Latency::Fixed(5000)),
        ..linked()
    });
    // The write was issued first, but its medium takes longer: the read does not wait for it.
    let write = rig.submit(Op::Write, 0, zeroed(8));
    let read = rig.submit(Op::Read, 8, zeroed(1));
    let mut ended = Vec::new();
    assert_eq!(serve(&rig, 4500, &mut ended), 0);
    assert_eq!(ended, [(read, 2000)]);
    // This one is ready when the write has its turn, and waits for it.
    rig.backing.move_to(4500);
    let late = rig.submit(Op::Read, 16, zeroed(1));
    // This one has nothing to wait for.
    let flush = rig.submit(Op::Flush, 0, vec![]);
    let rest = [(flush, 5500), (write, 13_000), (late, 14_000)];
    assert_eq!(ends(&rig), rest);
}

#[test]
fn a_short_one_behind_a_long_one() {
    let mut rig = Rig::new(linked());
    let long = rig.submit(Op::Read, 0, zeroed(64));
    let short = rig.submit(Op::Read, 64, zeroed(1));
    assert_eq!(ends(&rig), [(long, 65_000), (short, 66_000)]);
    // And the other way.
    let now = rig.backing.now();
    let short = rig.submit(Op::Read, 64, zeroed(1));
    let long = rig.submit(Op::Read, 0, zeroed(64));
    assert_eq!(ends(&rig), [(short, now + 2000), (long, now + 66_000)]);
}

#[test]
fn a_late_look_makes_nothing_slower() {
    let mut rig = Rig::new(linked());
    let ids = [0, 8, 16].map(|lba| rig.submit(Op::Read, lba, zeroed(8)));
    rig.backing.move_to(10_000);
    rig.io.drain(Context::Irq);
    let mut ended = Vec::new();
    note(&rig, &mut ended);
    assert_eq!(ended, [(ids[0], 10_000)]);
    rig.ram.interrupt(0);
    rig.io.drain(Context::Irq);
    assert_eq!(ends(&rig), [(ids[1], 17_000), (ids[2], 25_000)]);
}

#[test]
fn a_reset_clears_the_link() {
    let mut rig = Rig::new(Config {
        link_mb_s: 1,
        ..config()
    });
    let id = rig.submit(Op::Read, 0, zeroed(64));
    // It has its turn, and another waits for its own.
    rig.backing.move_to(1500);
    let waits = rig.submit(Op::Read, 0, zeroed(1));
    rig.io.drain(Context::Irq);
    rig.backing.move_to(2000);
    let mut quiesced = rig.io.quiesce(&rig.platform);
    rig.ram.stop().unwrap();
    quiesced.reap(CmdError::Timeout.permanent());
    quiesced.rewind();
    rig.ram.start().unwrap();
    quiesced.unquiesce();
    for id in [id, waits] {
        assert_eq!(rig.over(id).unwrap().outcome, Err(CmdError::Timeout));
    }
    let id = rig.submit(Op::Read, 0, zeroed(1));
    assert_eq!(rig.over(id).map(|over| over.outcome), None);
    rig.run();
    assert_eq!(rig.backing.now(), 2000 + 1000 + 512_000);
    assert_eq!(rig.io.violations(), 0);
}

/// Whatever is issued, and whenever: it ends as one would reckon who knows all of it beforehand.
#[test]
fn any_mix_ends_when_it_should() {
    const READ: u64 = 3000;
    const WRITE: u64 = 20_000;
    let (mut fired_in_vain, mut commands) = (0, 0);
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let mut rig = Rig::new(Config {
            tags: 256,
            channels: 256,
            latency: Latency::Fixed(READ),
            write_latency: Some(Latency::Fixed(WRITE)),
            link_mb_s: 1000,
            ..config()
        });
        let (mut now, mut ended) = (0, Vec::new());
        // When it is ready, its name, and how long its turn is.
        let mut issued = Vec::new();
        for _ in 0..100 {
            now += dice.roll(4) * dice.roll(2000);
            fired_in_vain += serve(&rig, now, &mut ended);
            rig.backing.move_to(now);
            let blocks = 1 << dice.roll(5);
            let (op, takes, data) = match dice.roll(8) {
                0..4 => (Op::Read, READ, blocks),
                4..7 => (Op::Write, WRITE, blocks),
                _ => (Op::WriteZeroes, WRITE, 0),
            };
            let id = rig.submit_range(op, 0, blocks as u32, zeroed(data));
            note(&rig, &mut ended);
            issued.push((now + takes, id, (data * BLOCK) as u64));
        }
        fired_in_vain += serve(&rig, u64::MAX, &mut ended);
        commands += issued.len();
        issued.sort_unstable();
        let (mut free, mut expected) = (0, Vec::new());
        for (ready, id, turn) in issued {
            if turn == 0 {
                expected.push((id, ready));
            } else {
                free = ready.max(free) + turn;
                expected.push((id, free));
            }
        }
        expected.sort_unstable();
        ended.sort_unstable();
        assert_eq!(ended, expected, "{seed}");
    }
    // Where a command overtakes another, and finds a third before it.
    assert!(fired_in_vain * 100 < commands, "{fired_in_vain}");
}
