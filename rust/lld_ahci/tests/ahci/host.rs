// SPDX-License-Identifier: GPL-2.0
//! The layer above the strategy, without a kernel: requests with data, mapped for the device and compared afterwards.

use crate::rig::{command, IoQueue, Rig};
use hal::mock::{MockMapping, MockPlatform};
use hal::{CmdError, Command, Controller, Op, Outcome, Platform, Segment};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use strategy::{Context, Upper};

/// A request, with its data before and after.
pub struct Job {
    pub id: usize,
    pub cmd: Command,
    pub data: Vec<u8>,
    /// Where in a page the data begins, and how long its pieces are.
    pub shape: (usize, usize),
    pub mapped: Option<MockMapping>,
}

/// The layer above: keeps what ended.
pub struct Host {
    platform: MockPlatform,
    ended: Mutex<Vec<(Job, Outcome)>>,
    pub count: AtomicUsize,
}

impl Host {
    pub fn new(platform: &MockPlatform) -> Arc<Self> {
        Arc::new(Self {
            platform: platform.clone(),
            ended: Mutex::default(),
            count: AtomicUsize::new(0),
        })
    }

    pub fn take(&self) -> Vec<(Job, Outcome)> {
        std::mem::take(&mut self.ended.lock().unwrap())
    }
}

/// A handle of it for each queue.
pub struct Layer(Arc<Host>);

impl Upper for Layer {
    type Request = Box<Job>;
    type Ended = Vec<(Box<Job>, Outcome)>;

    fn command(&self, rq: &Box<Job>) -> Command {
        rq.cmd
    }

    fn segments<'a>(
        &'a self,
        rq: &'a mut Box<Job>,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a {
        let (offset, piece) = rq.shape;
        let mapped = rq
            .mapped
            .insert(self.0.platform.map(&rq.data, offset, piece));
        mapped.segments().into_iter().map(Ok)
    }

    fn begin_cmd(&self, _: &mut Box<Job>) {}

    fn unmap(&self, rq: &mut Box<Job>) {
        if let Some(mapped) = rq.mapped.take() {
            mapped.unmap();
        }
    }

    fn deferred(&self, _: &Box<Job>) {}

    fn end_cmd(&self, ended: &mut Self::Ended, mut rq: Box<Job>, outcome: Outcome) {
        if let Some(mapped) = rq.mapped.take() {
            rq.data = mapped.unmap();
        }
        ended.push((rq, outcome));
    }

    fn finish(&self, ended: Self::Ended, _: Context) {
        self.0.count.fetch_add(ended.len(), Ordering::Relaxed);
        let mut all = self.0.ended.lock().unwrap();
        all.extend(ended.into_iter().map(|(job, outcome)| (*job, outcome)));
    }

    fn retry_later(&self) {}

    fn now_ms(&self) -> u64 {
        self.0.platform.now_us() / 1000
    }
}

/// Blocks of the random test's disk.
pub const BLOCKS: u64 = 256;
/// Most requests that a test has outstanding.
pub const DEPTH: usize = 16_384;

pub type Queue = strategy::IoQueue<MockPlatform, IoQueue, Layer>;

pub fn queue(rig: &Rig, host: &Arc<Host>, port: usize) -> Queue {
    let hw = rig.ahci[port].create_queue(0, Some(0)).unwrap();
    Queue::new(&rig.machine, hw, Layer(Arc::clone(host)), DEPTH, 30_000).unwrap()
}

pub fn flush(id: usize) -> Box<Job> {
    Box::new(Job {
        id,
        cmd: command(Op::Flush, 0, 0),
        data: Vec::new(),
        shape: (0, 0),
        mapped: None,
    })
}
