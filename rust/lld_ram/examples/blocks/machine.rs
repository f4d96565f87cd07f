// SPDX-License-Identifier: GPL-2.0
//! A machine of events: the device that takes blocks, the real engine and strategy above it, one
//! interrupt handler, and threads on some CPUs, or each on one of its own.

use engine::{Context, Cpu, Data, Interrupted, IoQueue, Strategy, Upper};
use hal::mock::MockPlatform;
use hal::{CmdError, Command, Controller, Op, Outcome, Segment};
use lld_ram::{Backing, Blocks, Config, Device, Holes, Interface, Latency, Ram, RamQueue};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use strategy::{Coop, Plain};

/// Bytes of a descriptor's data at most: a page.
const PAGE: u64 = 4096;
const SECTOR: u64 = 512;
const NEVER: u64 = u64::MAX;

/// Who says of how many commands a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// `plain`: as many as there are.
    Plain,
    /// `coop`: it waits a moment for who comes again, while that pays.
    Coop,
}

/// What is asked of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub blocks: Blocks,
    pub says: Says,
    /// What the host takes for an interrupt, until what it brought is ended and the next block is
    /// told of, in nanoseconds.
    pub host_ns: u64,
    pub threads: usize,
    /// What a thread takes of its CPU, in nanoseconds, from the end of its request until the next
    /// one is submitted.
    pub think_ns: u64,
    /// How many CPUs the threads have together; `None`: each its own.
    pub cpus: Option<usize>,
    pub op: Op,
    /// Of each request.
    pub bytes: u64,
    pub requests: usize,
}

/// What came of it, once the first tenth of the requests was over.
#[derive(Clone, Copy, Debug)]
pub struct Played {
    /// Requests a second.
    pub rate: f64,
    /// From a request's submission to its end, in nanoseconds, on average.
    pub mean_ns: f64,
}

struct Parts {
    device: Device,
    now: AtomicU64,
    bell: AtomicU64,
}

#[derive(Clone)]
struct Clock(Arc<Parts>);

impl Backing for Clock {
    fn device(&self) -> &Device {
        &self.0.device
    }
    fn now_ns(&self) -> u64 {
        self.0.now.load(SeqCst)
    }
    fn arm(&self, _: u16, at_ns: u64) {
        self.0.bell.store(at_ns, SeqCst);
    }
    fn read(&self, _: u64, _: Segment) {}
    fn write(&self, _: u64, _: Segment) {}
    fn zero(&self, _: u64, _: u64) {}
}

/// A piece of a thread's request.
struct Piece {
    thread: usize,
    op: Op,
    bytes: u64,
}

/// The layer above: it notes whose pieces are over.
struct Top {
    clock: Clock,
    /// When the timer fires.
    tick: AtomicU64,
    over: Mutex<Vec<usize>>,
}

impl Cpu for Top {
    fn interrupted(&self) -> Interrupted {
        Interrupted::Nobody
    }
    fn now_ms(&self) -> u64 {
        self.clock.now_ns() / 1_000_000
    }
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }
}

impl Upper for Top {
    type Request = Piece;
    type Ended = Vec<usize>;

    fn command(&self, piece: &Piece) -> Command {
        Command {
            op: piece.op,
            unit: 1,
            lba: 0,
            // CAST: of a page at most.
            blocks: (piece.bytes / SECTOR) as u32,
            block_shift: 9,
            fua: false,
            unmap: false,
        }
    }

    fn data<'a>(
        &'a self,
        piece: &'a mut Piece,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        let one = Segment {
            addr: 1 << 32,
            // CAST: likewise.
            len: piece.bytes as u32,
        };
        Data::<std::iter::Empty<_>>::One(one)
    }

    fn begin_cmd(&self, _: &mut Piece) {}
    fn unmap(&self, _: &mut Piece) {}
    fn deferred(&self, _: &Piece) {}

    fn end_cmd(&self, ended: &mut Vec<usize>, piece: Piece, outcome: Outcome) {
        assert_eq!(outcome, Ok(()));
        ended.push(piece.thread);
    }

    fn finish(&self, ended: &mut Vec<usize>, _: Context) {
        self.over.lock().expect("nobody has failed").append(ended);
    }

    fn retry_later(&self) {
        unreachable!("nothing here is to be tried again");
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn arm_poll(&self, us: u32) {
        let at = self.clock.now_ns() + u64::from(us) * 1000;
        self.tick.store(at, SeqCst);
    }
}

/// A thread: the pieces of its request that are not over, and when it was submitted.
#[derive(Clone, Copy, Default)]
struct Thread {
    pieces: u64,
    since: u64,
}

type Io<S> = IoQueue<MockPlatform, RamQueue<MockPlatform, Clock>, Top, S>;

struct Machine<S: Strategy> {
    load: Load,
    clock: Clock,
    ram: Ram<MockPlatform, Clock>,
    io: Io<S>,
    threads: Vec<Thread>,
    /// By CPU: when it is free.
    cpus: Vec<u64>,
    /// Those that submit, by when.
    ready: BTreeMap<(u64, usize), usize>,
    /// When the handler that runs is to drain.
    drains_at: u64,
    order: usize,
    submitted: usize,
    /// By request that is over: when, and what it took.
    over: Vec<(u64, u64)>,
}

/// Plays the load through.
pub fn play(load: Load) -> Played {
    match load.says {
        Says::Plain => play_by(Plain, load),
        Says::Coop => play_by(Coop::new(&MockPlatform::new()).expect("memory"), load),
    }
}

fn play_by<S: Strategy>(strategy: S, load: Load) -> Played {
    let mut machine = Machine::new(strategy, load);
    for thread in 0..load.threads {
        machine.think(thread);
    }
    while machine.over.len() < load.requests {
        machine.next();
    }
    let (first, rest) = machine.over.split_at(load.requests / 10);
    let begun = first.last().map_or(0, |&(at, _)| at);
    let ended = rest.last().map_or(begun, |&(at, _)| at);
    let took: u64 = rest.iter().map(|&(_, took)| took).sum();
    Played {
        rate: rest.len() as f64 * 1e9 / (ended - begun).max(1) as f64,
        mean_ns: took as f64 / rest.len() as f64,
    }
}

impl<S: Strategy> Machine<S> {
    fn new(strategy: S, load: Load) -> Self {
        let config = Config {
            queues: 1,
            tags: 1024,
            interface: Interface::Blocks(load.blocks),
            channels: 1,
            latency: Latency::Fixed(0),
            write_latency: None,
            link_mb_s: 0,
            holes: Holes::No,
            seed: 1,
            bytes: PAGE,
            block_shift: 9,
        };
        let clock = Clock(Arc::new(Parts {
            device: Device::new(config).expect("the figures are good"),
            now: AtomicU64::new(1_000_000),
            bell: AtomicU64::new(NEVER),
        }));
        let platform = MockPlatform::new();
        let ram = Ram::new(platform.clone(), clock.clone(), 0);
        ram.start().expect("it is there");
        let queue = ram.create_queue(0, Some(0)).expect("memory");
        let top = Top {
            clock: clock.clone(),
            tick: AtomicU64::new(NEVER),
            over: Mutex::default(),
        };
        Self {
            io: IoQueue::new(&platform, queue, top, strategy, 4096).expect("memory"),
            load,
            clock,
            ram,
            threads: vec![Thread::default(); load.threads],
            cpus: vec![0; load.cpus.unwrap_or(load.threads)],
            ready: BTreeMap::new(),
            drains_at: NEVER,
            order: 0,
            submitted: 0,
            over: Vec::new(),
        }
    }

    /// That thread submits soon, if it is to.
    fn think(&mut self, thread: usize) {
        // Some are on their way when the last one that counts is over.
        if self.submitted < self.load.requests + self.load.threads {
            self.submitted += 1;
            self.order += 1;
            let at = thread % self.cpus.len();
            let begins = self.cpus[at].max(self.clock.now_ns());
            self.cpus[at] = begins + self.load.think_ns;
            self.ready.insert((self.cpus[at], self.order), thread);
        }
    }

    /// What comes next.
    fn next(&mut self) {
        let bell = self.clock.0.bell.load(SeqCst);
        let bell = if self.drains_at == NEVER { bell } else { NEVER };
        let submits = self.ready.keys().next().map_or(NEVER, |&(at, _)| at);
        let tick = self.io.upper().tick.load(SeqCst);
        let at = bell.min(self.drains_at).min(submits).min(tick);
        assert!(at != NEVER, "nobody comes: {:?}", self.load);
        self.clock.0.now.fetch_max(at, SeqCst);
        if at == self.drains_at {
            self.drains_at = NEVER;
            self.io.drain(Context::Irq);
            self.end();
        } else if at == tick && submits > tick {
            self.io.upper().tick.store(NEVER, SeqCst);
            self.io.tick();
            self.end();
        } else if at == bell {
            self.clock.0.bell.store(NEVER, SeqCst);
            self.ram.interrupt(0);
            self.drains_at = self.clock.now_ns() + self.load.host_ns;
        } else if let Some((_, thread)) = self.ready.pop_first() {
            self.submit(thread);
        }
    }

    fn submit(&mut self, thread: usize) {
        let Load { op, bytes, .. } = self.load;
        let pieces = bytes.div_ceil(PAGE);
        self.threads[thread] = Thread {
            pieces,
            since: self.clock.now_ns(),
        };
        let piece = |_| Piece {
            thread,
            op,
            bytes: bytes.min(PAGE),
        };
        // One after the other, as the block layer submits the pieces of what it splits.
        (0..pieces).for_each(|n| self.io.submit(piece(n), true));
        self.end();
    }

    /// Threads whose requests are over go on.
    fn end(&mut self) {
        let over = std::mem::take(&mut *self.io.upper().over.lock().expect("nobody has failed"));
        let now = self.clock.now_ns();
        for thread in over {
            let Thread { pieces, since } = &mut self.threads[thread];
            *pieces -= 1;
            if *pieces == 0 {
                self.over.push((now, now - *since));
                self.think(thread);
            }
        }
    }
}
