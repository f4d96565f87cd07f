// SPDX-License-Identifier: GPL-2.0
//! Many threads that read and wait, on few CPUs, played through by turns: how often the device is
//! told and looked at.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_range_loop,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::{Rig, COOP};
use engine::{Context, Mode, Next, Turn, Waiting};
use hal::mock::MockPlatform;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;

const TAGS: u16 = 32;
const BATCH: usize = 8;
/// A thread's work between two reads.
const WORK_US: u64 = 12;
/// One rest of a thread that polls.
const REST_US: u64 = 1;
const READS: u32 = 2048;
/// A read that was over so many reads ago has been seen by its thread.
const RECENT: usize = 128;

/// The device, and the clock: a command is over `latency_us` after it was told, and told to the
/// driver every `burst_us`.
struct World {
    rig: Rig,
    now_us: Cell<u64>,
    latency_us: u64,
    burst_us: u64,
    /// When the timer expires.
    tick_at: Cell<u64>,
    at_work: RefCell<VecDeque<(u64, u16)>>,
}

impl World {
    fn advance(&self, us: u64) {
        let now = self.now_us.get() + us;
        self.now_us.set(now);
        self.rig.log.now_ns.store(now * 1000, SeqCst);
        self.rig.log.now.store(now / 1000, SeqCst);
        let mut at_work = self.at_work.borrow_mut();
        while let Some(told) = self.rig.device.take() {
            let over = (now + self.latency_us).next_multiple_of(self.burst_us);
            at_work.push_back((over, told.number));
        }
        while at_work.front().is_some_and(|&(over, _)| over <= now) {
            let (_, number) = at_work.pop_front().unwrap();
            self.rig.device.post(number, Ok(()));
        }
        let armed_us = self.rig.log.armed_us.swap(0, SeqCst);
        if armed_us != 0 {
            self.tick_at.set(now + u64::from(armed_us));
        }
        if now >= self.tick_at.get() {
            self.tick_at.set(u64::MAX);
            self.rig.queue.tick();
        }
    }

    fn is_over(&self, id: u32) -> bool {
        let ended = self.rig.log.ended.lock().unwrap();
        let mut recent = ended.iter().rev().take(RECENT);
        recent.any(|&(ended, _)| ended == id)
    }
}

/// A thread that waits for read `id`.
struct Here<'a> {
    world: &'a World,
    id: u32,
    fresh: bool,
    crowded: bool,
}

impl Waiting for Here<'_> {
    fn is_awake(&self) -> bool {
        self.world.is_over(self.id)
    }

    fn pause(&self) -> bool {
        self.world.advance(REST_US);
        !self.is_awake()
    }

    fn may_yield(&self) -> bool {
        self.fresh && self.crowded
    }
}

#[derive(Clone, Copy)]
enum Thread {
    Working,
    GaveWay(u32),
    Asleep(u32),
}

/// So many threads read one after the other, on a device as in [`World`].
#[derive(Debug)]
struct Load {
    threads: usize,
    cpus: usize,
    latency_us: u64,
    burst_us: u64,
}

impl Load {
    /// Accesses to registers, two for each batch told and one for each look that found something,
    /// and the time taken.
    fn play(&self, batch: usize) -> (usize, u64) {
        let &Load {
            cpus,
            latency_us,
            burst_us,
            ..
        } = self;
        let rig = Rig::gathering(TAGS, 256, batch);
        // Polled, as a queue at work is.
        let mut paused = rig.queue.pause(&MockPlatform::new());
        paused.set_mode(Mode::Poll).unwrap();
        paused.resume();
        let world = World {
            rig,
            now_us: Cell::new(0),
            latency_us,
            burst_us,
            tick_at: Cell::new(u64::MAX),
            at_work: RefCell::default(),
        };
        let queue = &world.rig.queue;
        let mut threads = vec![Thread::Working; self.threads];
        let mut ready: Vec<VecDeque<usize>> = vec![VecDeque::new(); cpus];
        (0..threads.len()).for_each(|n| ready[n % cpus].push_back(n));
        let mut next = 0;
        let mut idle = 0;
        while world.rig.log.ended_count() < READS {
            for cpu in 0..cpus {
                world.advance(WORK_US / cpus as u64);
                // The interrupt, or the timer.
                let ended = world.rig.log.ended_count();
                if ready[cpu].is_empty() {
                    world.rig.log.crowded.store(false, SeqCst);
                    queue.drain(Context::Poll);
                    idle = if world.rig.log.ended_count() == ended {
                        idle + 1
                    } else {
                        0
                    };
                    assert!(idle < 10_000, "a read was left");
                }
                for n in (0..threads.len()).filter(|n| n % cpus == cpu) {
                    if matches!(threads[n], Thread::Asleep(id) if world.is_over(id)) {
                        threads[n] = Thread::Working;
                        ready[cpu].push_back(n);
                    }
                }
                let Some(n) = ready[cpu].pop_front() else {
                    continue;
                };
                let crowded = !ready[cpu].is_empty();
                world.rig.log.crowded.store(crowded, SeqCst);
                let here = |id, fresh| Here {
                    world: &world,
                    id,
                    fresh,
                    crowded,
                };
                let (id, then) = match threads[n] {
                    Thread::GaveWay(id) if world.is_over(id) => {
                        queue.yielded(Turn::Paid, &here(id, true));
                        (id, Next::GoOn)
                    }
                    Thread::GaveWay(id) => {
                        let ended = queue.yielded(Turn::Vain, &here(id, false));
                        (id, queue.wait(&here(id, false), ended))
                    }
                    _ if next == READS => continue,
                    _ => {
                        let id = next;
                        next += 1;
                        world.rig.submit([id]);
                        queue.pass_by(COOP);
                        (id, queue.wait(&here(id, true), None))
                    }
                };
                threads[n] = match then {
                    Next::GoOn => Thread::Working,
                    Next::Yield => Thread::GaveWay(id),
                    Next::Sleep | Next::Nap { .. } => Thread::Asleep(id),
                };
                if then != Next::Sleep {
                    ready[cpu].push_back(n);
                }
            }
        }
        let registers = 2 * world.rig.device.doorbells() + world.rig.device.releases();
        (registers, world.now_us.get())
    }
}

#[test]
fn many_threads_on_few_cpus_touch_a_dear_device_half_as_often() {
    for cpus in [1, 2] {
        let load = Load {
            threads: 64,
            cpus,
            latency_us: 400,
            burst_us: 1,
        };
        let (cheap, dear) = (load.play(1).0, load.play(BATCH).0);
        assert!(dear * 2 <= cheap, "{dear} beside {cheap}, {load:?}");
    }
}

#[test]
fn few_threads_are_served_as_where_nothing_is_deferred() {
    for (threads, cpus) in [(1, 1), (1, 2), (2, 2)] {
        for burst_us in [1, 200] {
            let load = Load {
                threads,
                cpus,
                latency_us: 400,
                burst_us,
            };
            assert_eq!(load.play(1), load.play(BATCH), "{load:?}");
        }
    }
}
