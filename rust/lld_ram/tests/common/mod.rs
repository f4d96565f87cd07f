// SPDX-License-Identifier: GPL-2.0
//! A world on the host, and a layer above that remembers what became of its requests.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing
)]

use hal::mock::{MockBus, MockMapping, MockPlatform};
use hal::{CmdError, Command, Controller, Op, Outcome, Segment};
use lld_ram::{Config, Device, Latency, Ram, RamQueue, World};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use strategy::{Context, IoQueue, Upper};

pub const BLOCK: usize = 512;

struct Parts {
    device: Device,
    bus: Arc<MockBus>,
    now: AtomicU64,
    medium: Mutex<Vec<u8>>,
    bells: Mutex<BTreeMap<u16, u64>>,
}

/// A clock that stands still until told, bells that ring when the clock passes them, and a medium.
#[derive(Clone)]
pub struct HostWorld(Arc<Parts>);

impl HostWorld {
    pub fn new(bus: Arc<MockBus>, config: Config) -> Self {
        let medium = vec![0; config.bytes as usize];
        Self(Arc::new(Parts {
            device: Device::new(config).unwrap(),
            bus,
            now: AtomicU64::new(0),
            medium: Mutex::new(medium),
            bells: Mutex::default(),
        }))
    }

    /// Moves the clock to the next bell; which queues ring.
    pub fn to_next_bell(&self) -> Vec<u16> {
        let mut bells = self.0.bells.lock().unwrap();
        let Some(at) = bells.values().copied().min() else {
            return Vec::new();
        };
        self.0.now.fetch_max(at, Ordering::SeqCst);
        let rings: Vec<u16> = bells
            .iter()
            .filter(|(_, due)| **due <= at)
            .map(|(q, _)| *q)
            .collect();
        bells.retain(|_, due| *due > at);
        rings
    }

    pub fn now(&self) -> u64 {
        self.0.now.load(Ordering::SeqCst)
    }

    pub fn medium(&self) -> Vec<u8> {
        self.0.medium.lock().unwrap().clone()
    }
}

impl World for HostWorld {
    fn device(&self) -> &Device {
        &self.0.device
    }
    fn now_ns(&self) -> u64 {
        self.now()
    }
    fn ring(&self, queue: u16, at_ns: u64) {
        self.0.bells.lock().unwrap().insert(queue, at_ns);
    }
    fn read(&self, at: u64, to: Segment) {
        let medium = self.0.medium.lock().unwrap();
        // A miss is counted by the bus.
        let _ = self
            .0
            .bus
            .write(to.addr, &medium[at as usize..][..to.len as usize]);
    }
    fn write(&self, at: u64, from: Segment) {
        let mut medium = self.0.medium.lock().unwrap();
        let _ = self
            .0
            .bus
            .read(from.addr, &mut medium[at as usize..][..from.len as usize]);
    }
    fn zero(&self, at: u64, len: u64) {
        self.0.medium.lock().unwrap()[at as usize..][..len as usize].fill(0);
    }
}

/// A request: what it asks for, with its data.
pub struct Rq {
    pub id: usize,
    pub cmd: Command,
    pub data: Vec<u8>,
    mapping: Option<MockMapping>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Over {
    pub outcome: Outcome,
    pub data: Vec<u8>,
}

/// Remembers every request that ended; one that ends twice panics.
#[derive(Default)]
pub struct Recorder {
    pub platform: MockPlatform,
    pub over: Arc<Mutex<BTreeMap<usize, Over>>>,
}

impl Upper for Recorder {
    type Request = Rq;
    type Ended = Vec<(usize, Over)>;

    fn command(&self, rq: &Rq) -> Command {
        rq.cmd
    }
    fn segments<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a {
        let mapping = self.platform.map(&rq.data, 0, 4096);
        let segments = mapping.segments();
        rq.mapping = Some(mapping);
        segments.into_iter().map(Ok)
    }
    fn begin_cmd(&self, _: &mut Rq) {}
    fn unmap(&self, rq: &mut Rq) {
        if let Some(mapping) = rq.mapping.take() {
            rq.data = mapping.unmap();
        }
    }
    fn deferred(&self, _: &Rq) {}
    fn end_cmd(&self, ended: &mut Self::Ended, mut rq: Rq, outcome: Outcome) {
        self.unmap(&mut rq);
        let data = rq.data;
        ended.push((rq.id, Over { outcome, data }));
    }
    fn finish(&self, ended: Self::Ended, _: Context) {
        let mut over = self.over.lock().unwrap();
        for (id, how) in ended {
            assert!(over.insert(id, how).is_none(), "request {id} ended twice");
        }
    }
    fn retry_later(&self) {}
    fn now_ms(&self) -> u64 {
        0
    }
}

pub type Io = IoQueue<MockPlatform, RamQueue<MockPlatform, HostWorld>, Recorder>;

/// A device with its first queue under the strategy.
pub struct Rig {
    pub platform: MockPlatform,
    pub world: HostWorld,
    pub ram: Ram<MockPlatform, HostWorld>,
    pub io: Io,
    pub over: Arc<Mutex<BTreeMap<usize, Over>>>,
    next: usize,
}

pub fn config() -> Config {
    Config {
        queues: 1,
        tags: 8,
        channels: 4,
        latency: Latency::Fixed(1000),
        seed: 42,
        bytes: 1 << 20,
        block_shift: 9,
    }
}

impl Rig {
    pub fn new(config: Config) -> Self {
        let platform = MockPlatform::new();
        let world = HostWorld::new(platform.bus(), config);
        let ram = Ram::new(platform.clone(), world.clone(), 0);
        ram.start().unwrap();
        let upper = Recorder {
            platform: platform.clone(),
            ..Default::default()
        };
        let over = upper.over.clone();
        let io = IoQueue::new(
            &platform,
            ram.create_queue(0, Some(0)).unwrap(),
            upper,
            1024,
            1000,
        )
        .unwrap();
        Self {
            platform,
            world,
            ram,
            io,
            over,
            next: 0,
        }
    }

    pub fn submit(&mut self, op: Op, lba: u64, data: Vec<u8>) -> usize {
        let blocks = (data.len() / BLOCK) as u32;
        self.submit_range(op, lba, blocks, data)
    }

    pub fn submit_range(&mut self, op: Op, lba: u64, blocks: u32, data: Vec<u8>) -> usize {
        let id = self.next;
        self.next += 1;
        let cmd = Command {
            op,
            unit: 1,
            lba,
            blocks,
            block_shift: 9,
            fua: false,
        };
        let rq = Rq {
            id,
            cmd,
            data,
            mapping: None,
        };
        self.io.submit(rq, true);
        id
    }

    /// Serves bells until none is set.
    pub fn run(&self) {
        loop {
            let rings = self.world.to_next_bell();
            if rings.is_empty() {
                return;
            }
            for queue in rings {
                self.ram.interrupt(queue);
                self.io.drain(Context::Irq);
            }
        }
    }

    pub fn over(&self, id: usize) -> Option<Over> {
        self.over.lock().unwrap().remove(&id)
    }

    /// One request, to its end.
    pub fn one(&mut self, op: Op, lba: u64, data: Vec<u8>) -> Over {
        let id = self.submit(op, lba, data);
        self.run();
        self.over(id).expect("it ended")
    }
}

pub fn pattern(seed: usize, blocks: usize) -> Vec<u8> {
    (0..blocks * BLOCK)
        .map(|at| (at.wrapping_mul(31) ^ seed.wrapping_mul(131) ^ (at >> 8)) as u8)
        .collect()
}
