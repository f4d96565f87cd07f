// SPDX-License-Identifier: GPL-2.0
//! Strategy and driver together, from several threads at once.

use crate::host::{flush, queue, Host, Job};
use crate::model::{Config, Drive};
use crate::rig::{command, Rig};
use crate::whole::Dice;
use hal::{Controller, Op};
use std::sync::atomic::{AtomicBool, Ordering};
use strategy::Context;

/// Four threads that submit, one that drains as an interrupt would or as a poll timer, and a device that only registers wake.
fn threads(config: Config, polls: bool, rounds: usize) {
    let rig = Rig::started(config);
    let host = Host::new(&rig.machine);
    let queue = queue(&rig, &host, 0);
    rig.ahci[0].set_interrupt(0, !polls);
    rig.model.state().detached = true;
    let done = AtomicBool::new(false);
    let per_thread = 64u64;
    let jobs = rounds * 4 * 2 + rounds / 8 * 4;
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
                let drained = match polls {
                    true => queue.drain(Context::Poll),
                    false => rig.interrupts(|_| {
                        queue.drain(Context::Irq);
                    }),
                };
                if drained == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let workers: Vec<_> = (0..4u64)
            .map(|thread| {
                let queue = &queue;
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
                        if round % 8 == 7 {
                            queue.submit(flush(round), true);
                        }
                        if polls {
                            queue.drain(Context::Coop);
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        // What was submitted ends, or this test does not: then a completion was overlooked, or a turn owed.
        while host.count.load(Ordering::Acquire) < jobs {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Release);
    });
    for (job, outcome) in host.take() {
        assert_eq!(outcome, Ok(()));
        if job.cmd.op != Op::Flush {
            // Written and read by the same thread only.
            let thread = (job.cmd.lba / per_thread) as u8;
            let zero = job.cmd.op == Op::Read && job.data == vec![0; 512];
            assert!(zero || job.data == vec![thread; 512]);
        }
    }
    rig.model.check();
}

/// A drive of which a read that overtakes a write finds what the write will leave.
fn small() -> Config {
    let mut drive = Drive::new(9, 256);
    for (thread, part) in drive.data.chunks_mut(64 * 512).enumerate() {
        part.fill(thread as u8);
    }
    Config {
        slots: 8,
        ..Config::with(drive)
    }
}

const ROUNDS: usize = if cfg!(miri) { 8 } else { 1000 };

#[test]
fn threads_lose_nothing_with_interrupts() {
    threads(small(), false, ROUNDS);
}

#[test]
fn threads_lose_nothing_when_polled() {
    threads(small(), true, ROUNDS);
}

#[test]
fn threads_lose_nothing_when_polled_with_registers_that_lag() {
    let config = Config {
        lag: 2,
        batches: false,
        ..small()
    };
    threads(config, true, ROUNDS);
}

#[test]
fn threads_lose_nothing_without_queues() {
    let mut config = small();
    config.ncq = false;
    threads(config.clone(), false, ROUNDS);
    threads(config, true, ROUNDS);
}
