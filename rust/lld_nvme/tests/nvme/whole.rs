// SPDX-License-Identifier: GPL-2.0
//! Strategy and driver together against the model: what an adapter in the kernel does, without the kernel.

use crate::host::{flush, queue, Host, Job, BLOCKS};
use crate::model::{Config, Namespace};
use crate::rig::{command, Rig};
use hal::{CmdError, Command, Controller, Op};
use std::sync::atomic::{AtomicBool, Ordering};
use strategy::Context;

/// A generator of numbers; the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn configs() -> impl Iterator<Item = Config> {
    let all = (0..3).flat_map(|sgls| [false, true].map(|shadow| (sgls, shadow)));
    all.flat_map(|(sgls, doorbell_buffer)| {
        [(3u16, 9u8), (0x7ff, 12)].map(|(mqes, lbads)| Config {
            sgls,
            doorbell_buffer,
            mqes,
            namespaces: vec![Namespace::new(1, lbads, BLOCKS)],
            ..Config::default()
        })
    })
}

/// A random command on a disk whose content `disk` will be when it is its turn; what a read has to find.
fn random_job(
    dice: &mut Dice,
    id: usize,
    disk: &mut [u8],
    shift: u8,
    any_shape: bool,
) -> (Job, Vec<u8>) {
    let total = disk.len() as u64 >> shift;
    let lba = dice.roll(total);
    let most = (total - lba).min(if shift == 9 { 48 } else { 6 });
    let blocks = 1 + dice.roll(most);
    let range = (lba << shift) as usize..((lba + blocks) << shift) as usize;
    let op = match dice.roll(10) {
        0 => Op::Flush,
        1 => Op::WriteZeroes,
        2 => Op::Discard,
        3..=5 => Op::Write,
        _ => Op::Read,
    };
    let data = match op {
        Op::Write => {
            let data: Vec<u8> = range.clone().map(|_| dice.roll(256) as u8).collect();
            disk[range.clone()].copy_from_slice(&data);
            data
        }
        Op::WriteZeroes => {
            disk[range.clone()].fill(0);
            Vec::new()
        }
        Op::Discard => {
            disk[range.clone()].fill(0xdd);
            Vec::new()
        }
        Op::Read => vec![0; range.len()],
        Op::Flush => Vec::new(),
    };
    let shape = match (any_shape, dice.roll(3)) {
        (true, 0) => (
            dice.roll(1024) as usize * 4,
            4 + dice.roll(2000) as usize * 4,
        ),
        (_, 1) => (0, 4096),
        _ => (dice.roll(1024) as usize * 4, 0),
    };
    // SGLs hold 128 pieces.
    let shape = (
        shape.0,
        if data.len() > shape.1 * 100 {
            0
        } else {
            shape.1
        },
    );
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

#[test]
fn random_commands_do_what_they_say_in_every_configuration() {
    for config in configs() {
        let text = format!("{config:?}");
        let shift = config.namespaces[0].lbads;
        let any_shape = config.sgls != 0;
        let rig = Rig::started(config);
        let host = Host::new(&rig.machine);
        let queue = queue(&rig, &host, 0);
        let blocks_alive = rig.machine.bus().blocks_alive();
        let mut disk = vec![0; (BLOCKS << shift) as usize];
        let mut dice = Dice(42);
        let mut expected = Vec::new();
        for id in 0..if cfg!(miri) { 20 } else { 300 } {
            let (job, data) = random_job(&mut dice, id, &mut disk, shift, any_shape);
            expected.push(data);
            queue.submit(Box::new(job), dice.roll(4) != 0);
            match dice.roll(8) {
                0 => {
                    queue.drain(Context::Irq);
                }
                1 => rig.model.state().hold ^= true,
                _ => {}
            }
        }
        queue.commit();
        // The device carries on by itself; from here on only doorbells wake it.
        rig.model.state().hold = false;
        rig.model.run();
        while queue.drain(Context::Irq) != 0 {}
        assert_eq!(queue.in_flight() + queue.queued(), 0, "{text}");
        let ended = host.take();
        assert_eq!(ended.len(), expected.len(), "{text}");
        for (job, outcome) in ended {
            assert_eq!(outcome, Ok(()), "{:?}, {text}", job.cmd);
            assert!(job.data == expected[job.id], "{:?}, {text}", job.cmd);
        }
        assert!(
            rig.model.state().config.namespaces[0].data == disk,
            "{text}"
        );
        assert_eq!(rig.machine.bus().blocks_alive(), blocks_alive);
        assert_eq!(queue.violations(), 0);
        rig.model.check();
    }
}

/// Two queues, four threads that submit, one that drains, and a device that only doorbells wake.
fn threads(config: Config, rounds: usize) {
    let rig = Rig::started(config);
    let host = Host::new(&rig.machine);
    let queues = [queue(&rig, &host, 0), queue(&rig, &host, 1)];
    rig.model.state().detached = true;
    let done = AtomicBool::new(false);
    let per_thread = 64u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                if !rig.model.serve() {
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let drained: usize = queues.iter().map(|queue| queue.drain(Context::Irq)).sum();
                if drained == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let workers: Vec<_> = (0..4u64)
            .map(|thread| {
                let queue = &queues[thread as usize % 2];
                scope.spawn(move || {
                    let mut dice = Dice(thread);
                    for round in 0..rounds {
                        let block = thread * per_thread + dice.roll(per_thread);
                        for op in [Op::Write, Op::Read] {
                            queue.submit(
                                Box::new(Job {
                                    id: round,
                                    cmd: command(op, block, 1),
                                    data: vec![thread as u8; 512],
                                    shape: (0, 0),
                                    mapped: None,
                                }),
                                true,
                            );
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        // What was submitted ends, or this test does not: then a doorbell was owed.
        while host.count.load(Ordering::Acquire) < rounds * 8 {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Release);
    });
    for (job, outcome) in host.take() {
        let thread = job.cmd.lba / per_thread;
        assert_eq!(outcome, Ok(()));
        // Written and read by the same thread only; a read may come before the first write is carried out by nobody else.
        assert_eq!(job.data, vec![thread as u8; 512]);
    }
    rig.model.check();
}

/// A device small enough for Miri, which looks for missing fences, to set up in reasonable time.
fn small() -> Config {
    Config {
        mqes: 7,
        mdts: 1,
        namespaces: vec![Namespace::new(1, 9, 256)],
        ..Config::default()
    }
}

/// Rounds of each thread.
const ROUNDS: usize = if cfg!(miri) { 4 } else { 1500 };

#[test]
fn threads_lose_nothing_with_registers() {
    threads(small(), ROUNDS);
    if !cfg!(miri) {
        threads(Config::default(), ROUNDS);
    }
}

#[test]
fn threads_lose_nothing_with_shadow_doorbells() {
    let config = Config {
        doorbell_buffer: true,
        ..small()
    };
    threads(config, ROUNDS);
}

#[test]
fn a_reset_fails_what_was_in_flight_and_keeps_what_waited() {
    for doorbell_buffer in [false, true] {
        let rig = Rig::started(Config {
            mqes: 8,
            doorbell_buffer,
            ..Config::default()
        });
        let host = Host::new(&rig.machine);
        let queue = queue(&rig, &host, 0);
        for reset in 0..5 {
            rig.model.state().hold = true;
            for id in 0..20 {
                queue.submit(flush(id), true);
            }
            assert_eq!((queue.in_flight(), queue.queued()), (8, 12));
            let mut paused = queue.pause(&rig.machine);
            rig.nvme.stop().unwrap();
            paused.reap(CmdError::Timeout);
            paused.rewind();
            rig.model.state().hold = false;
            rig.nvme.start().unwrap();
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
fn a_controller_that_does_not_come_back_fails_everything_with_gone() {
    let rig = Rig::started(Config {
        mqes: 4,
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
    assert!(rig.nvme.stop().is_err());
    paused.reap(CmdError::Gone);
    paused.rewind();
    assert!(rig.nvme.start().is_err());
    paused.kill();
    queue.submit(flush(10), true);
    let ended = host.take();
    assert_eq!(ended.len(), 11);
    assert!(ended
        .iter()
        .all(|(_, outcome)| *outcome == Err(CmdError::Gone)));
}

#[test]
fn a_lying_device_ends_nothing_twice_and_is_found_out() {
    let rig = Rig::started(Config::default());
    let host = Host::new(&rig.machine);
    let queue = queue(&rig, &host, 0);
    let mut dice = Dice(7);
    rig.model.state().liar = Some(Box::new(move |_, truth| {
        let mut lie = truth;
        lie.cid = dice.roll(0x1_0000) as u16;
        match dice.roll(4) {
            0 => vec![truth, truth],
            1 => vec![lie],
            2 => vec![lie, truth],
            _ => vec![truth],
        }
    }));
    let mut seen = vec![0; 2000];
    let total = seen.len();
    for id in 0..total {
        queue.submit(flush(id), true);
        queue.drain(Context::Irq);
        if queue.in_flight() > 200 {
            let mut paused = queue.pause(&rig.machine);
            rig.nvme.stop().unwrap();
            paused.reap(CmdError::Timeout);
            paused.rewind();
            rig.nvme.start().unwrap();
            paused.resume();
        }
    }
    assert!(queue.violations() > 0);
    let mut paused = queue.pause(&rig.machine);
    rig.nvme.stop().unwrap();
    paused.reap(CmdError::Timeout);
    paused.kill();
    for (job, _) in host.take() {
        seen[job.id] += 1;
    }
    assert_eq!(seen, vec![1; total]);
}
