// SPDX-License-Identifier: GPL-2.0
//! A machine, a model and a driver, plugged together.

use crate::model::{Config, Model, Registers};
use hal::mock::{MockMapping, MockPlatform};
use hal::{
    Bound, CmdError, Command, Controller, Detached, Error, Free, NewQueue, Op, Outcome, Queue,
    Refused, Segment, Tag, TagBatch, Unit,
};
use lld_nvme::{NvmeController, NvmeQueue};

pub type Nvme = NvmeController<MockPlatform, Registers>;
pub type IoQueue = NvmeQueue<MockPlatform, Registers>;

/// The three of them.
pub struct Rig {
    pub machine: MockPlatform,
    pub model: Model,
    pub nvme: Nvme,
}

impl Rig {
    pub fn new(config: Config) -> Result<Self, Error> {
        let machine = MockPlatform::new();
        let model = Model::new(&machine, config);
        let nvme = Nvme::new(machine.clone(), model.registers())?;
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
        Line(self.nvme.create_queue(index, Some(index + 1)).unwrap())
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
    Command {
        op,
        unit: 1,
        lba,
        blocks,
        block_shift: 9,
        fua: false,
    }
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
        let side = &mut self.0.issue;
        self.0
            .queue
            .bind_tag_cmd(side, tag, cmd, data)
            .map_err(|back| {
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

    /// All completions that are there.
    pub fn drain(&mut self) -> Vec<(u16, Outcome)> {
        let mut all = Vec::new();
        loop {
            let mut tags: TagBatch<Detached> = TagBatch::default();
            while !tags.is_full() {
                let Some(event) = self.0.queue.fetch_event(&mut self.0.drain) else {
                    break;
                };
                all.push((event.tag.number(), event.outcome));
                let tag = self.0.queue.detach_tag_cmd(&mut self.0.drain, event.tag);
                tags.push(tag).unwrap();
            }
            let more = tags.is_full();
            self.0.queue.release_tags(&mut self.0.drain, &mut tags);
            if !more {
                return all;
            }
        }
    }

    /// One command from start to end.
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
