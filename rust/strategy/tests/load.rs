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
use engine::{Context, Mode, Next, Waiting};
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
        let rig = Rig::gathering(TAGS, 256, batch);
        // Polled, as a queue at work is.
        let mut quiesced = rig.queue.quiesce(&MockPlatform::new());
        quiesced.set_mode(Mode::Poll).unwrap();
        quiesced.unquiesce();
        let world = World {
            rig,
            now_us: Cell::new(0),
            latency_us: self.latency_us,
            burst_us: self.burst_us,
            tick_at: Cell::new(u64::MAX),
            at_work: RefCell::default(),
        };
        let cpus = self.cpus;
        let mut schedule = Schedule::new(&world, self.threads, cpus);
        while world.rig.log.ended_count() < READS {
            for cpu in 0..cpus {
                world.advance(WORK_US / cpus as u64);
                schedule.interrupt(cpu);
                schedule.wake(cpu);
                schedule.run(cpu);
            }
        }
        let registers = 2 * world.rig.device.doorbells() + world.rig.device.releases();
        (registers, world.now_us.get())
    }
}

/// The threads, each of which stays on its CPU, and those that are ready, by CPU.
struct Schedule<'a> {
    world: &'a World,
    threads: Vec<Thread>,
    ready: Vec<VecDeque<usize>>,
    /// The next read.
    next: u32,
    /// Looks in a row that found nothing.
    idle: u32,
}

impl<'a> Schedule<'a> {
    fn new(world: &'a World, threads: usize, cpus: usize) -> Self {
        let mut ready = vec![VecDeque::new(); cpus];
        (0..threads).for_each(|n| ready[n % cpus].push_back(n));
        Self {
            world,
            threads: vec![Thread::Working; threads],
            ready,
            next: 0,
            idle: 0,
        }
    }

    /// The interrupt, or the timer: it comes to a CPU that is idle.
    fn interrupt(&mut self, cpu: usize) {
        let rig = &self.world.rig;
        let ended = rig.log.ended_count();
        if self.ready[cpu].is_empty() {
            rig.log.crowded.store(false, SeqCst);
            rig.queue.drain(Context::Poll);
            self.idle = if rig.log.ended_count() == ended {
                self.idle + 1
            } else {
                0
            };
            assert!(self.idle < 10_000, "a read was left");
        }
    }

    /// Those whose read is over are ready.
    fn wake(&mut self, cpu: usize) {
        let cpus = self.ready.len();
        for n in (0..self.threads.len()).filter(|n| n % cpus == cpu) {
            if matches!(self.threads[n], Thread::Asleep(id) if self.world.is_over(id)) {
                self.threads[n] = Thread::Working;
                self.ready[cpu].push_back(n);
            }
        }
    }

    /// The next that is ready runs until it has to wait, and as far as the queue says.
    fn run(&mut self, cpu: usize) {
        let Some(n) = self.ready[cpu].pop_front() else {
            return;
        };
        let crowded = !self.ready[cpu].is_empty();
        self.world.rig.log.crowded.store(crowded, SeqCst);
        let Some((id, then)) = self.turn(self.threads[n], crowded) else {
            return;
        };
        self.threads[n] = match then {
            Next::GoOn => Thread::Working,
            Next::Yield => Thread::GaveWay(id),
            Next::Sleep | Next::Nap { .. } => Thread::Asleep(id),
        };
        if then != Next::Sleep {
            self.ready[cpu].push_back(n);
        }
    }

    /// Which read the thread waits for, and how. None: there is nothing left to read.
    fn turn(&mut self, thread: Thread, crowded: bool) -> Option<(u32, Next)> {
        let world = self.world;
        let queue = &world.rig.queue;
        let here = |id, fresh| Here {
            world,
            id,
            fresh,
            crowded,
        };
        match thread {
            Thread::GaveWay(id) if world.is_over(id) => {
                queue.yielded(true, &here(id, true));
                Some((id, Next::GoOn))
            }
            Thread::GaveWay(id) => {
                let ended = queue.yielded(false, &here(id, false));
                Some((id, queue.wait(&here(id, false), ended)))
            }
            _ if self.next == READS => None,
            _ => {
                let id = self.next;
                self.next += 1;
                world.rig.submit([id]);
                queue.poll_on_submit(COOP);
                Some((id, queue.wait(&here(id, true), None)))
            }
        }
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
