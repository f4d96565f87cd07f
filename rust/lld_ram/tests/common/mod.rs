// SPDX-License-Identifier: GPL-2.0
//! A backing on the host, and a device in it with the engine above.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing
)]

use engine::Context;
use hal::mock::{MockBus, MockPlatform};
use hal::{Controller, Op, Segment};
use lld_ram::{Backing, Config, Device, Interface, Latency, Ram, RamQueue};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use testkit::{command, Ended, Host, Io, Job};

pub const BLOCK: usize = 512;

struct Parts {
    device: Device,
    bus: Arc<MockBus>,
    now: AtomicU64,
    medium: Mutex<Vec<u8>>,
    timers: Mutex<BTreeMap<u16, u64>>,
}

/// A clock that stands still until told, timers that fire when the clock passes them, and a medium.
#[derive(Clone)]
pub struct HostBacking(Arc<Parts>);

impl HostBacking {
    pub fn new(bus: Arc<MockBus>, config: Config) -> Self {
        let medium = vec![0; config.bytes as usize];
        Self(Arc::new(Parts {
            device: Device::new(config).unwrap(),
            bus,
            now: AtomicU64::new(0),
            medium: Mutex::new(medium),
            timers: Mutex::default(),
        }))
    }

    /// Moves the clock to the next timer; which queues' fire.
    pub fn to_next_timer(&self) -> Vec<u16> {
        let mut timers = self.0.timers.lock().unwrap();
        let Some(at) = timers.values().copied().min() else {
            return Vec::new();
        };
        self.0.now.fetch_max(at, Ordering::SeqCst);
        let fired: Vec<u16> = timers
            .iter()
            .filter(|(_, due)| **due <= at)
            .map(|(q, _)| *q)
            .collect();
        timers.retain(|_, due| *due > at);
        fired
    }

    /// When the next timer fires.
    pub fn next_timer(&self) -> Option<u64> {
        self.0.timers.lock().unwrap().values().copied().min()
    }

    /// Moves the clock to `at`, whatever timer is passed.
    pub fn move_to(&self, at: u64) {
        self.0.now.fetch_max(at, Ordering::SeqCst);
    }

    pub fn now(&self) -> u64 {
        self.0.now.load(Ordering::SeqCst)
    }

    /// The medium is full of `byte`.
    pub fn fill(&self, byte: u8) {
        self.0.medium.lock().unwrap().fill(byte);
    }

    pub fn medium(&self) -> Vec<u8> {
        self.0.medium.lock().unwrap().clone()
    }
}

impl Backing for HostBacking {
    fn device(&self) -> &Device {
        &self.0.device
    }
    fn now_ns(&self) -> u64 {
        self.now()
    }
    fn arm(&self, queue: u16, at_ns: u64) {
        self.0.timers.lock().unwrap().insert(queue, at_ns);
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

/// What became of a request.
#[derive(Debug)]
pub struct Over {
    pub outcome: Ended,
    pub data: Vec<u8>,
}

/// A device with its first queue under the engine.
pub struct Rig {
    pub platform: MockPlatform,
    pub backing: HostBacking,
    pub ram: Ram<MockPlatform, HostBacking>,
    pub io: Io<RamQueue<MockPlatform, HostBacking>>,
    pub host: Arc<Host>,
    next: usize,
}

pub fn config() -> Config {
    Config {
        queues: 1,
        tags: 8,
        interface: Interface::Queue,
        channels: 4,
        latency: Latency::Fixed(1000),
        write_latency: None,
        link_mb_s: 0,
        holes: lld_ram::Holes::No,
        seed: 42,
        bytes: 1 << 20,
        block_shift: 9,
    }
}

impl Rig {
    pub fn new(config: Config) -> Self {
        let platform = MockPlatform::new();
        let backing = HostBacking::new(platform.bus(), config);
        let ram = Ram::new(platform.clone(), backing.clone(), 0);
        ram.start().unwrap();
        let host = Host::new(&platform);
        Self {
            io: host.io(ram.create_queue(0, Some(0)).unwrap()),
            platform,
            backing,
            ram,
            host,
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
        let cmd = command(1, op, lba, blocks);
        self.io.submit(Job::shaped(id, cmd, data, (0, 4096)), true);
        id
    }

    /// Serves timers until none is set.
    pub fn run(&self) {
        loop {
            let fired = self.backing.to_next_timer();
            if fired.is_empty() {
                return;
            }
            for queue in fired {
                self.ram.interrupt(queue);
                self.io.drain(Context::Irq);
            }
        }
    }

    pub fn over(&self, id: usize) -> Option<Over> {
        let (Job { data, .. }, outcome) = self.host.take_one(id)?;
        Some(Over { outcome, data })
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
