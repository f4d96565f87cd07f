// SPDX-License-Identifier: GPL-2.0
//! A machine, a model and a driver, plugged together.

use crate::model::{Config, Model, State};
use hal::mock::{MockMapping, MockPlatform};
use hal::{Cause, Command, Controller, Error, Op, Refused, Unit};
use lld_ahci::{AhciController, AhciQueue, Hba, Port, Site};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use testkit::{Host, Io, Job, Whole};

struct Shared {
    port: Port<MockPlatform, Model>,
    calls: AtomicUsize,
}

/// Where a port lives in a test.
#[derive(Clone)]
pub struct Place(Arc<Shared>);

impl Site for Place {
    type Platform = MockPlatform;
    type Mmio = Model;

    fn port(&self) -> &Port<MockPlatform, Model> {
        &self.0.port
    }

    fn schedule_eh(&self) {
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
pub type Line = testkit::Line<AhciQueue<Place>>;
pub type Queue = Io<AhciQueue<Place>>;

/// The three of them, the first port's controller at hand.
pub struct Rig {
    pub machine: MockPlatform,
    pub model: Model,
    pub hba: Hba<Model>,
    pub places: Vec<Place>,
    pub ahci: Vec<Ahci>,
}

impl Rig {
    /// With an HBA that is up, and its ports not touched.
    pub fn new(config: Config) -> Result<Self, Error> {
        let machine = MockPlatform::new();
        let model = Model::new(State::new(&machine, config));
        Self::on(machine, model)
    }

    pub fn on(machine: MockPlatform, model: Model) -> Result<Self, Error> {
        let (ids, fua) = {
            let state = model.state();
            (state.config.ids, state.config.fua)
        };
        let mut hba = Hba::new(model.clone(), &ids)?;
        hba.start(&machine)?;
        let mut places = Vec::new();
        for number in 0..32 {
            if let Some(plan) = hba.port(number) {
                let plan = plan.with_fua(fua);
                let port = Port::new(machine.clone(), model.clone(), plan)?;
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
        Line::of(&self.ahci[0], 0, 0)
    }

    /// The first port's queue under the engine, and what is above that.
    pub fn io(&self) -> (Arc<Host>, Queue) {
        let host = Host::new(&self.machine);
        let queue = host.io(self.queue().0);
        (host, queue)
    }

    /// All that belongs to it.
    pub fn whole(&self) -> Whole<'_, Ahci, State> {
        let (machine, model) = (&self.machine, &self.model);
        Whole::new(machine, model, &self.ahci[0], UNIT, [self.queue()])
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
    pub fn ports(&self) -> u32 {
        self.hba.ports()
    }

    /// Serves interrupts until the line is down; `drain` is what follows at the port. Returns how
    /// many there were.
    #[track_caller]
    pub fn interrupts(&self, mut drain: impl FnMut(usize)) -> usize {
        let raised = || {
            let state = self.model.state();
            state.ports.iter().map(|port| port.raised).sum::<usize>()
        };
        let (mut served, before) = (0, raised());
        while self.model.line() {
            let ours = self.hba.interrupt(true, self.ports(), |port| {
                let at = usize::from(port);
                match self.ahci[at].interrupt(0) {
                    Cause::None => false,
                    Cause::Queues | Cause::AsyncEvent => {
                        drain(at);
                        true
                    }
                }
            });
            assert!(ours, "the line is up, and nobody did it");
            served += 1;
            // Beside what came in the meantime there is what each port had already in PxIS, and in
            // PxSERR.
            let reasons = raised() - before + 2 * self.ahci.len();
            assert!(
                served <= reasons,
                "the line stays up: {served} of {reasons}"
            );
        }
        served
    }
}

/// The drive at the first port.
pub const UNIT: u32 = 0;

/// A command for the drive at port 0 with 512-byte blocks.
pub fn command(op: Op, lba: u64, blocks: u32) -> Command {
    testkit::command(UNIT, op, lba, blocks)
}

pub fn flush(id: usize) -> Box<Job> {
    Job::new(id, command(Op::Flush, 0, 0), Vec::new())
}

pub fn read(id: usize, lba: u64) -> Box<Job> {
    Job::new(id, command(Op::Read, lba, 1), vec![0; 512])
}

/// Reads of blocks 0 and up, each named by its block.
pub fn reads(count: usize) -> impl Iterator<Item = Box<Job>> {
    (0..count).map(|id| read(id, id as u64))
}
