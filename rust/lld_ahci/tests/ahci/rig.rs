// SPDX-License-Identifier: GPL-2.0
//! A machine, a model and a driver, plugged together.

use crate::model::{Config, Model, Registers};
use hal::mock::{MockMapping, MockPlatform};
use hal::{
    Bound, Cause, CmdError, Command, Controller, Detached, Error, Free, NewQueue, Op, Outcome,
    Queue, Refused, Segment, Tag, TagBatch, Unit,
};
use lld_ahci::{AhciController, AhciQueue, Hba, Port, Site};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

struct Shared {
    port: Port<MockPlatform, Registers>,
    calls: AtomicUsize,
}

/// Where a port lives in a test.
#[derive(Clone)]
pub struct Place(Arc<Shared>);

impl Site for Place {
    type Platform = MockPlatform;
    type Mmio = Registers;

    fn port(&self) -> &Port<MockPlatform, Registers> {
        &self.0.port
    }

    fn call(&self) {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
    }
}

impl Place {
    /// How often the port asked to be attended since the last time it was asked this.
    pub fn calls(&self) -> usize {
        self.0.calls.swap(0, Ordering::SeqCst)
    }
}

pub type Ahci = AhciController<Place>;
pub type IoQueue = AhciQueue<Place>;

/// The three of them, the first port's controller at hand.
pub struct Rig {
    pub machine: MockPlatform,
    pub model: Model,
    pub hba: Hba<Registers>,
    pub places: Vec<Place>,
    pub ahci: Vec<Ahci>,
}

impl Rig {
    /// With an HBA that is up, and its ports not touched.
    pub fn new(config: Config) -> Result<Self, Error> {
        let machine = MockPlatform::new();
        let model = Model::new(&machine, config);
        Self::on(machine, model)
    }

    pub fn on(machine: MockPlatform, model: Model) -> Result<Self, Error> {
        let mut hba = Hba::new(model.registers())?;
        hba.start(&machine)?;
        let mut places = Vec::new();
        for number in 0..32 {
            if let Some(plan) = hba.port(number) {
                let port = Port::new(machine.clone(), model.registers(), plan)?;
                let calls = AtomicUsize::new(0);
                places.push(Place(Arc::new(Shared { port, calls })));
            }
        }
        let ahci = places.iter().cloned().map(Ahci::new).collect();
        Ok(Self {
            machine,
            model,
            hba,
            places,
            ahci,
        })
    }

    /// With all ports up, and listening.
    pub fn started(config: Config) -> Self {
        let rig = Self::new(config).unwrap();
        for ahci in &rig.ahci {
            ahci.start().unwrap();
        }
        rig.hba.set_interrupt(true);
        for ahci in &rig.ahci {
            ahci.set_interrupt(0, true);
        }
        rig
    }

    pub fn queue(&self) -> Line {
        Line(self.ahci[0].create_queue(0, Some(0)).unwrap())
    }

    pub fn units(&self, at: usize) -> Vec<Result<Unit, Refused>> {
        let mut all = Vec::new();
        self.ahci[at].units(&mut |unit| all.push(unit)).unwrap();
        all
    }

    pub fn map(&self, data: &[u8], offset: usize, piece: usize) -> MockMapping {
        self.machine.map(data, offset, piece)
    }

    /// The ports by bit.
    pub fn listening(&self) -> u32 {
        self.hba.ports()
    }

    /// Serves interrupts until the line is down; `drain` is what follows at the port. Returns how many there were.
    #[track_caller]
    pub fn interrupts(&self, mut drain: impl FnMut(usize)) -> usize {
        let mut served = 0;
        while self.model.line() {
            let ours = self.hba.interrupt(true, self.listening(), |port| {
                let at = usize::from(port);
                match self.ahci[at].interrupt(0) {
                    Cause::None => false,
                    Cause::Queues => {
                        drain(at);
                        true
                    }
                }
            });
            assert!(ours, "the line is up, and nobody did it");
            served += 1;
            assert!(served < 1000, "the line stays up");
        }
        served
    }
}

/// A command for the drive at port 0 with 512-byte blocks.
pub fn command(op: Op, lba: u64, blocks: u32) -> Command {
    Command {
        op,
        unit: 0,
        lba,
        blocks,
        block_shift: 9,
        fua: false,
    }
}

/// Bytes that say where they are.
pub fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at as u8).wrapping_mul(7) ^ (at >> 8) as u8 ^ seed)
        .collect()
}

/// One queue, used from one thread.
pub struct Line(pub NewQueue<IoQueue>);

impl Line {
    pub fn free_tag(&mut self) -> Option<Tag<Free>> {
        let mut tags = TagBatch::default();
        self.0.queue.get_free_tags(&mut self.0.issue, 1, &mut tags);
        tags.pop()
    }

    pub fn bind(&mut self, cmd: &Command, data: &[Segment]) -> Result<Tag<Bound>, CmdError> {
        let tag = self.free_tag().expect("a free tag");
        let data = data.iter().map(|segment| Ok(*segment));
        let bound = self.0.queue.bind_tag_cmd(&mut self.0.issue, tag, cmd, data);
        bound.map_err(|back| {
            let mut tags = TagBatch::default();
            tags.push(back.tag).unwrap();
            self.0.queue.unget_tags(&mut self.0.issue, &mut tags);
            back.why
        })
    }

    pub fn issue(&mut self, bound: impl IntoIterator<Item = Tag<Bound>>) -> usize {
        let mut tags = TagBatch::default();
        for tag in bound {
            tags.push(tag).unwrap();
        }
        let written = self.0.queue.issue_tags(&mut self.0.issue, &mut tags);
        assert!(tags.is_empty());
        written
    }

    /// Binds and issues one command. Returns its tag's number.
    pub fn start(&mut self, cmd: &Command, data: &[Segment]) -> Result<u16, CmdError> {
        let bound = self.bind(cmd, data)?;
        let number = bound.number();
        self.issue([bound]);
        Ok(number)
    }

    pub fn check(&mut self) -> bool {
        self.0.queue.check_event(&mut self.0.drain)
    }

    /// All completions that are there: drains until one finds nothing.
    pub fn drain(&mut self) -> Vec<(u16, Outcome)> {
        let mut all = Vec::new();
        loop {
            let now = self.drain_once();
            if now.is_empty() {
                return all;
            }
            all.extend(now);
        }
    }

    /// What one drain finds.
    pub fn drain_once(&mut self) -> Vec<(u16, Outcome)> {
        let mut all = Vec::new();
        let mut tags: TagBatch<Detached> = TagBatch::default();
        while let Some(event) = self.0.queue.fetch_event(&mut self.0.drain) {
            all.push((event.tag.number(), event.outcome));
            let tag = self.0.queue.detach_tag_cmd(&mut self.0.drain, event.tag);
            tags.push(tag).unwrap();
        }
        self.0.queue.release_tags(&mut self.0.drain, &mut tags);
        all
    }

    /// One command from start to end.
    #[track_caller]
    pub fn run(&mut self, cmd: &Command, data: &[Segment]) -> Outcome {
        let number = self.start(cmd, data)?;
        match self.drain().as_slice() {
            [(tag, outcome)] if *tag == number => *outcome,
            other => panic!("instead of tag {number}: {other:?}"),
        }
    }

    pub fn violations(&self) -> u32 {
        self.0.queue.violations(&self.0.drain)
    }

    /// Takes back what the device still has.
    pub fn reap(&mut self) -> Vec<(u16, Outcome)> {
        let mut all = Vec::new();
        while let Some(event) = self.0.queue.reap_tag(&mut self.0.drain) {
            all.push((event.tag.number(), event.outcome));
            let mut tags = TagBatch::default();
            let tag = self.0.queue.detach_tag_cmd(&mut self.0.drain, event.tag);
            tags.push(tag).unwrap();
            self.0.queue.release_tags(&mut self.0.drain, &mut tags);
        }
        all
    }

    pub fn rewind(&mut self) {
        self.0.queue.rewind(&mut self.0.issue, &mut self.0.drain);
    }
}
