// SPDX-License-Identifier: GPL-2.0
//! Strategy and driver together against the model: what an adapter in the kernel does, without the
//! kernel.

use crate::model::{Config, Drive, KNOWN_GOOD};
use crate::rig::{read, Queue, Rig, UNIT};
use engine::Context;
use hal::{CmdError, Controller, Op};
use lld_ahci::EhOutcome;
use testkit::{Dice, Mix};

/// Blocks of the random test's disk.
const BLOCKS: u64 = 256;

/// What the glue does when a port calls.
pub fn run_eh(rig: &Rig, queue: &Queue) -> Result<EhOutcome, hal::Error> {
    let quiesced = queue.quiesce(&rig.machine);
    let outcome = rig.ahci[0].run_eh();
    quiesced.unquiesce();
    while queue.drain(Context::Irq) != 0 {}
    outcome
}

fn drives(shift: u8) -> impl Iterator<Item = Drive> {
    [
        (Some(32), false),
        (Some(2), true),
        (Some(32), true),
        (None, false),
    ]
    .into_iter()
    .map(move |(depth, queued_trim)| Drive {
        depth,
        queued_trim,
        model: KNOWN_GOOD,
        ..Drive::new(shift, BLOCKS)
    })
}

fn configs() -> impl Iterator<Item = Config> {
    let all = drives(9).chain(drives(12).take(1));
    all.flat_map(|drive| {
        [
            (32, true, false, 0),
            (3, false, true, 1),
            (32, false, true, 3),
        ]
        .map(|(slots, batches, reverses, lag)| Config {
            slots,
            batches,
            reverses,
            lag,
            ..Config::with(drive.clone())
        })
    })
}

/// Where the data of a command lies.
fn shape(dice: &mut Dice, _: usize) -> (usize, usize) {
    match dice.roll(3) {
        0 => (
            dice.roll(1024) as usize * 4,
            512 + dice.roll(2000) as usize * 4,
        ),
        1 => (0, 4096),
        _ => (dice.roll(1024) as usize * 4, 0),
    }
}

/// Everything that was submitted ends. With a lag the registers show a bit a little longer than the
/// FIS says: another look is owed, and taken by whoever polls.
fn finish(rig: &Rig, queue: &Queue) {
    queue.commit();
    rig.model.state().hold = false;
    rig.model.run();
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    let mut looks = 0;
    while queue.in_flight() + queue.queued() != 0 {
        queue.drain(Context::Poll);
        looks += 1;
        assert!(looks < 5000, "{} in flight", queue.in_flight());
    }
}

/// Interrupts and looks at any time, and the HBA holds what it has, or goes on.
fn disturb(rig: &Rig, queue: &Queue, dice: &mut Dice) {
    match dice.roll(8) {
        0 => {
            rig.interrupts(|_| {
                queue.drain(Context::Irq);
            });
        }
        1 => {
            queue.drain(Context::Coop);
        }
        2 => rig.model.state().hold ^= true,
        _ => {}
    }
}

/// Commands of which any two that are with the device at once are about different blocks: there is
/// no order among those.
fn serves_random_commands(config: Config) {
    let text = format!("{:?}", (config.slots, config.reverses, config.lag));
    let shift = config.drives[0].as_ref().unwrap().block_shift;
    let rig = Rig::started(config);
    let (host, queue) = rig.io();
    let mix = Mix {
        unit: UNIT,
        shift,
        most: if shift == 9 { 20 } else { 3 },
        ops: &[
            (Op::Flush, 1),
            (Op::Discard, 1),
            (Op::Write, 4),
            (Op::Read, 4),
        ],
        shape: &shape,
    };
    let blocks_alive = rig.machine.bus().blocks_alive();
    let mut disk = vec![0; (BLOCKS << shift) as usize];
    let mut dice = Dice(42);
    let mut expected = Vec::new();
    let mut busy: Vec<std::ops::Range<u64>> = Vec::new();
    for id in 0..250 {
        // As a file system does: it waits for what it needs.
        let range = mix.range(&mut dice.clone(), BLOCKS);
        let meets =
            |other: &std::ops::Range<u64>| range.start < other.end && other.start < range.end;
        if busy.iter().any(meets) {
            finish(&rig, &queue);
            busy.clear();
        }
        let (job, data) = mix.job(&mut dice, id, &mut disk);
        busy.push(range);
        expected.push(data);
        queue.submit(job, dice.roll(4) != 0);
        disturb(&rig, &queue, &mut dice);
    }
    finish(&rig, &queue);
    for (job, outcome) in host.take() {
        assert_eq!(outcome, Ok(()), "{:?}, {text}", job.cmd);
        assert!(job.data == expected[job.id], "{:?}, {text}", job.cmd);
    }
    let state = rig.model.state();
    let drive = state.ports[0].drive.as_ref().unwrap();
    assert!(drive.data == disk, "{text}");
    drop(state);
    assert_eq!(rig.machine.bus().blocks_alive(), blocks_alive);
    assert_eq!(queue.violations(), 0);
    rig.model.check();
}

#[test]
fn random_commands_do_what_they_say_in_every_configuration() {
    configs().for_each(serves_random_commands);
}

#[test]
fn a_reset_fails_what_was_in_flight_and_keeps_what_waited() {
    for depth in [Some(8), None] {
        let rig = Rig::started(Config {
            slots: 8,
            ..Config::with(Drive {
                depth,
                ..Drive::new(9, 64)
            })
        });
        rig.whole().survives_resets(8);
    }
}

#[test]
fn what_was_finished_before_a_stop_is_a_success_and_nothing_else_is() {
    for depth in [Some(8), None] {
        let rig = Rig::started(Config {
            slots: 8,
            batches: false,
            ..Config::with(Drive {
                depth,
                ..Drive::new(9, 64)
            })
        });
        let (host, queue) = rig.io();
        for (id, hold) in [(0, false), (1, true), (2, true)] {
            rig.model.state().hold = hold;
            queue.submit(read(id, id as u64), true);
            if id == 0 && depth.is_none() {
                queue.drain(Context::Irq);
            }
        }
        let mut quiesced = queue.quiesce(&rig.machine);
        rig.ahci[0].stop().unwrap();
        quiesced.reap(CmdError::Timeout.retryable());
        let late = Err(CmdError::Timeout);
        assert_eq!(
            host.outcomes(),
            [(0, Ok(())), (1, late), (2, late)],
            "{depth:?}"
        );
        quiesced.kill();
        rig.model.check();
    }
}

#[test]
fn a_controller_that_is_gone_fails_everything_with_gone() {
    let rig = Rig::started(Config {
        slots: 4,
        ..Config::default()
    });
    rig.whole().fails_all_when_gone();
}

#[test]
fn a_full_queue_costs_a_fifth_of_a_register_access_for_each_command() {
    let rig = Rig::started(Config::with(Drive::new(9, 64)));
    let (host, queue) = rig.io();
    rig.model.state().hold = true;
    let before = rig.model.state().accesses;
    queue.submit_many((0..256).map(|id| read(id, id as u64 % 64)));
    while queue.in_flight() != 0 {
        rig.model.run();
        rig.hba.interrupt(false, 1, |_| {
            assert_eq!(rig.ahci[0].interrupt(0), hal::Cause::Queues);
            queue.drain(Context::Irq);
            true
        });
    }
    assert_eq!(host.take().len(), 256);
    // Eight times: two writes to tell, two to acknowledge, one read.
    assert_eq!(rig.model.state().accesses - before, 8 * 5);
    assert!(!rig.model.line());
    rig.model.check();
}
