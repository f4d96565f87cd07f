// SPDX-License-Identifier: GPL-2.0
//! Strategy and driver together against the model: what an adapter in the kernel does, without the kernel.

use crate::host::{flush, queue, Host, Job, Queue, BLOCKS};
use crate::model::{Config, Drive};
use crate::rig::{command, Rig};
use hal::{CmdError, Command, Controller, Op};
use lld_ahci::News;
use strategy::Context;

/// A generator of numbers; the same every time.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What the glue does when a port calls.
pub fn attend(rig: &Rig, queue: &Queue) -> Result<News, hal::Error> {
    let paused = queue.pause(&rig.machine);
    let news = rig.ahci[0].attend();
    paused.resume();
    while queue.drain(Context::Irq) != 0 {}
    news
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

/// First block and length of a command.
fn roll_range(dice: &mut Dice, total: u64, shift: u8) -> (u64, u64) {
    let lba = dice.roll(total);
    let most = (total - lba).min(if shift == 9 { 20 } else { 3 });
    (lba, 1 + dice.roll(most))
}

/// What the next command will be about.
fn next_range(mut dice: Dice, total: u64, shift: u8) -> std::ops::Range<u64> {
    let (lba, blocks) = roll_range(&mut dice, total, shift);
    lba..lba + blocks
}

/// A random command on a disk whose content `disk` will be when it is its turn; what a read has to find.
fn random_job(dice: &mut Dice, id: usize, disk: &mut [u8], shift: u8) -> (Job, Vec<u8>) {
    let total = disk.len() as u64 >> shift;
    let (lba, blocks) = roll_range(dice, total, shift);
    let range = (lba << shift) as usize..((lba + blocks) << shift) as usize;
    let op = match dice.roll(10) {
        0 => Op::Flush,
        1 => Op::Discard,
        2..=5 => Op::Write,
        _ => Op::Read,
    };
    let data = match op {
        Op::Write => {
            let data: Vec<u8> = range.clone().map(|_| dice.roll(256) as u8).collect();
            disk[range.clone()].copy_from_slice(&data);
            data
        }
        Op::Discard => {
            disk[range.clone()].fill(0xdd);
            Vec::new()
        }
        Op::Read => vec![0; range.len()],
        _ => Vec::new(),
    };
    let shape = match dice.roll(3) {
        0 => (
            dice.roll(1024) as usize * 4,
            512 + dice.roll(2000) as usize * 4,
        ),
        1 => (0, 4096),
        _ => (dice.roll(1024) as usize * 4, 0),
    };
    let cmd = Command {
        block_shift: shift,
        ..match op {
            Op::Flush => command(op, 0, 0),
            _ => command(op, lba, blocks as u32),
        }
    };
    let expected = match op {
        Op::Read => disk[range].to_vec(),
        _ => data.clone(),
    };
    let job = Job {
        id,
        cmd,
        data,
        shape,
        mapped: None,
    };
    (job, expected)
}

/// Everything that was submitted ends. With a lag the registers show a bit a little longer than the FIS says: another look is owed, and
/// taken by whoever polls.
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

/// Commands of which any two that are with the device at once are about different blocks: there is no order among those.
#[test]
fn random_commands_do_what_they_say_in_every_configuration() {
    for config in configs() {
        let text = format!("{:?}", (config.slots, config.reverses, config.lag));
        let shift = config.drives[0].as_ref().unwrap().block_shift;
        let rig = Rig::started(config);
        let host = Host::new(&rig.machine);
        let queue = queue(&rig, &host, 0);
        let blocks_alive = rig.machine.bus().blocks_alive();
        let mut disk = vec![0; (BLOCKS << shift) as usize];
        let mut dice = Dice(42);
        let mut expected = Vec::new();
        let mut busy: Vec<std::ops::Range<u64>> = Vec::new();
        for id in 0..250 {
            // As a file system does: it waits for what it needs.
            let range = next_range(Dice(dice.0), disk.len() as u64 >> shift, shift);
            let meets =
                |other: &std::ops::Range<u64>| range.start < other.end && other.start < range.end;
            if busy.iter().any(meets) {
                finish(&rig, &queue);
                busy.clear();
            }
            let (job, data) = random_job(&mut dice, id, &mut disk, shift);
            busy.push(range);
            expected.push(data);
            queue.submit(Box::new(job), dice.roll(4) != 0);
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
        finish(&rig, &queue);
        for (job, outcome) in host.take() {
            assert_eq!(outcome, Ok(()), "{:?}, {text}", job.cmd);
            assert!(job.data == expected[job.id], "{:?}, {text}", job.cmd);
        }
        let state = rig.model.state();
        assert!(
            state.ports[0].drive.as_ref().unwrap().data == disk,
            "{text}"
        );
        drop(state);
        assert_eq!(rig.machine.bus().blocks_alive(), blocks_alive);
        assert_eq!(queue.violations(), 0);
        rig.model.check();
    }
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
        let host = Host::new(&rig.machine);
        let queue = queue(&rig, &host, 0);
        for reset in 0..5 {
            rig.model.state().hold = true;
            for id in 0..20 {
                let mut job = flush(id);
                job.cmd = command(Op::Read, id as u64, 1);
                job.data = vec![1; 512];
                queue.submit(job, true);
            }
            assert_eq!((queue.in_flight(), queue.queued()), (8, 12));
            let mut paused = queue.pause(&rig.machine);
            rig.ahci[0].stop().unwrap();
            paused.reap(CmdError::Timeout);
            paused.rewind();
            rig.model.state().hold = false;
            rig.ahci[0].start().unwrap();
            paused.resume();
            while queue.drain(Context::Irq) != 0 {}
            let ended = host.take();
            assert_eq!(ended.len(), 20, "reset {reset}");
            for (job, outcome) in ended {
                let expected = match job.id {
                    0..8 => Err(CmdError::Timeout),
                    _ => Ok(()),
                };
                assert_eq!(outcome, expected, "{} of reset {reset}", job.id);
            }
        }
        rig.model.check();
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
        let host = Host::new(&rig.machine);
        let queue = queue(&rig, &host, 0);
        for (id, hold) in [(0, false), (1, true), (2, true)] {
            rig.model.state().hold = hold;
            let mut job = flush(id);
            job.cmd = command(Op::Read, id as u64, 1);
            job.data = vec![1; 512];
            queue.submit(job, true);
            if id == 0 && depth.is_none() {
                queue.drain(Context::Irq);
            }
        }
        let mut paused = queue.pause(&rig.machine);
        rig.ahci[0].stop().unwrap();
        paused.reap(CmdError::Timeout);
        let mut ended: Vec<_> = host
            .take()
            .iter()
            .map(|(job, out)| (job.id, *out))
            .collect();
        ended.sort_by_key(|(id, _)| *id);
        let late = Err(CmdError::Timeout);
        assert_eq!(ended, [(0, Ok(())), (1, late), (2, late)], "{depth:?}");
        paused.kill();
        rig.model.check();
    }
}

#[test]
fn a_controller_that_is_gone_fails_everything_with_gone() {
    let rig = Rig::started(Config {
        slots: 4,
        ..Config::default()
    });
    let host = Host::new(&rig.machine);
    let queue = queue(&rig, &host, 0);
    rig.model.state().hold = true;
    for id in 0..10 {
        queue.submit(flush(id), true);
    }
    {
        let mut state = rig.model.state();
        state.config.vanish_at = Some(state.accesses);
    }
    let mut paused = queue.pause(&rig.machine);
    assert!(rig.ahci[0].stop().is_err());
    paused.reap(CmdError::Gone);
    paused.rewind();
    assert!(rig.ahci[0].start().is_err());
    paused.kill();
    queue.submit(flush(10), true);
    let ended = host.take();
    assert_eq!(ended.len(), 11);
    let gone = |(_, outcome): &(Job, _)| *outcome == Err(CmdError::Gone);
    assert!(ended.iter().all(gone));
}

#[test]
fn a_full_queue_costs_a_fifth_of_a_register_access_for_each_command() {
    let rig = Rig::started(Config::with(Drive::new(9, 64)));
    let host = Host::new(&rig.machine);
    let queue = queue(&rig, &host, 0);
    rig.model.state().hold = true;
    let before = rig.model.state().accesses;
    queue.submit_many((0..256).map(|id| {
        let mut job = flush(id);
        job.cmd = command(Op::Read, id as u64 % 64, 1);
        job.data = vec![1; 512];
        job
    }));
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
