// SPDX-License-Identifier: GPL-2.0
//! A machine, a model and a driver, plugged together.

use crate::model::{Config, Model, State};
use hal::mock::{MockMapping, MockPlatform};
use hal::{Command, Controller, Error, Op, Refused, Unit};
use lld_nvme::{NvmeController, NvmeQueue};
use testkit::{Job, Whole};

pub type Nvme = NvmeController<MockPlatform, Model>;
pub type IoQueue = NvmeQueue<MockPlatform, Model>;
pub type Line = testkit::Line<IoQueue>;

/// The namespace that is there unless a test says otherwise.
pub const UNIT: u32 = 1;

/// The three of them.
pub struct Rig {
    pub machine: MockPlatform,
    pub model: Model,
    pub nvme: Nvme,
}

impl Rig {
    pub fn new(config: Config) -> Result<Self, Error> {
        let machine = MockPlatform::new();
        let model = Model::new(State::new(&machine, config));
        Self::on(machine, model)
    }

    pub fn on(machine: MockPlatform, model: Model) -> Result<Self, Error> {
        let ids = model.state().config.ids;
        let nvme = Nvme::new(machine.clone(), model.clone(), &ids)?;
        Ok(Self {
            machine,
            model,
            nvme,
        })
    }

    pub fn started(config: Config) -> Self {
        let rig = Self::new(config).unwrap();
        rig.nvme.start().unwrap();
        rig
    }

    pub fn queue(&self, index: u16) -> Line {
        Line::of(&self.nvme, index, index + 1)
    }

    /// With so many queues under the engine.
    pub fn whole(&self, queues: u16) -> Whole<'_, Nvme, State> {
        let lines = (0..queues).map(|index| self.queue(index));
        Whole::new(&self.machine, &self.model, &self.nvme, UNIT, lines)
    }

    pub fn units(&self) -> Vec<Result<Unit, Refused>> {
        let mut all = Vec::new();
        self.nvme.units(&mut |unit| all.push(unit)).unwrap();
        all
    }

    pub fn map(&self, data: &[u8], offset: usize, piece: usize) -> MockMapping {
        self.machine.map(data, offset, piece)
    }
}

/// A command for namespace 1 with 512-byte blocks.
pub fn command(op: Op, lba: u64, blocks: u32) -> Command {
    testkit::command(UNIT, op, lba, blocks)
}

pub fn flush(id: usize) -> Box<Job> {
    Job::new(id, command(Op::Flush, 0, 0), Vec::new())
}
