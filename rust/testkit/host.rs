// SPDX-License-Identifier: GPL-2.0
//! The layer above the engine, without a kernel: requests with data, mapped for the device and
//! compared afterwards.

use crate::job::{kind, Ended, Job};
use engine::{Context, Cpu, Data, IoQueue, Selectable, Upper};
use hal::mock::MockPlatform;
use hal::{CmdError, Command, NewQueue, Outcome, Platform, Queue, RetryHint, Segment};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use strategy::{Selected, NAMES};

/// Most requests that a test has outstanding.
const DEPTH: usize = 16_384;

/// The layer above: keeps what ended.
pub struct Host {
    platform: MockPlatform,
    ended: Mutex<Vec<(Job, Ended)>>,
    /// What each that failed said of another try.
    agains: Mutex<Vec<(usize, RetryHint)>>,
    /// How many ended so far.
    pub count: AtomicUsize,
}

impl Host {
    /// One for all queues of a machine.
    pub fn new(platform: &MockPlatform) -> Arc<Self> {
        Arc::new(Self {
            platform: platform.clone(),
            ended: Mutex::default(),
            agains: Mutex::default(),
            count: AtomicUsize::new(0),
        })
    }

    /// A queue under the engine, with this above.
    #[track_caller]
    pub fn io<Q: Queue>(self: &Arc<Self>, hw: NewQueue<Q>) -> Io<Q> {
        let layer = Layer(Arc::clone(self));
        Io::new(&self.platform, hw, layer, chosen(), DEPTH).unwrap()
    }

    /// What ended since it was taken last, in that order.
    pub fn take(&self) -> Vec<(Job, Ended)> {
        std::mem::take(&mut self.ended.lock().unwrap())
    }

    /// Of that, the request `id`.
    pub fn take_one(&self, id: usize) -> Option<(Job, Ended)> {
        let mut ended = self.ended.lock().unwrap();
        let at = ended.iter().position(|(job, _)| job.id == id)?;
        Some(ended.swap_remove(at))
    }

    /// How all of that ended, in the order of the names.
    pub fn outcomes(&self) -> Vec<(usize, Ended)> {
        let ended = self.take();
        let mut all: Vec<_> = ended.iter().map(|(job, out)| (job.id, *out)).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// What those that failed since this was asked last said of another try, in the order of the
    /// names.
    pub fn agains(&self) -> Vec<(usize, RetryHint)> {
        let mut all = std::mem::take(&mut *self.agains.lock().unwrap());
        all.sort_by_key(|(id, _)| *id);
        all
    }
}

/// A handle of it for each queue.
pub struct Layer(Arc<Host>);

/// A queue between a driver and a [`Host`].
pub type Io<Q> = IoQueue<MockPlatform, Q, Layer, Selected<MockPlatform>>;

/// The strategy that the environment's HIOPS_STRATEGY names; without it the one that a disk has as
/// it comes.
pub fn chosen() -> Selected<MockPlatform> {
    let chosen = Selected::new(&MockPlatform::new()).expect("memory");
    if let Ok(name) = std::env::var("HIOPS_STRATEGY") {
        let which = NAMES.iter().position(|known| *known == name);
        chosen.select(which.expect("HIOPS_STRATEGY names a strategy"));
    }
    chosen
}

impl Upper for Layer {
    type Request = Box<Job>;
    type Ended = Vec<(Box<Job>, Ended)>;

    fn command(&self, rq: &Box<Job>) -> Command {
        rq.cmd
    }

    fn data<'a>(
        &'a self,
        rq: &'a mut Box<Job>,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        let (offset, piece) = rq.shape;
        let mapped = rq
            .mapped
            .insert(self.0.platform.map(&rq.data, offset, piece));
        Data::Many(mapped.segments().into_iter().map(Ok))
    }

    fn begin_cmd(&self, _: &mut Box<Job>) {}

    fn unmap(&self, rq: &mut Box<Job>) {
        if let Some(mapped) = rq.mapped.take() {
            rq.data = mapped.unmap();
        }
    }

    fn deferred(&self, _: &Box<Job>) {}

    fn end_cmd(&self, ended: &mut Self::Ended, mut rq: Box<Job>, outcome: Outcome) {
        self.unmap(&mut rq);
        if let Err(failure) = outcome {
            let mut agains = self.0.agains.lock().unwrap();
            agains.push((rq.id, failure.retry));
        }
        ended.push((rq, kind(outcome)));
    }

    fn finish(&self, ended: &mut Self::Ended, _: Context) {
        self.0.count.fetch_add(ended.len(), Ordering::Relaxed);
        let mut all = self.0.ended.lock().unwrap();
        all.extend(ended.drain(..).map(|(job, outcome)| (*job, outcome)));
    }

    fn retry_later(&self) {}
}

impl Cpu for Layer {
    fn now_ms(&self) -> u64 {
        self.0.platform.now_us() / 1000
    }

    fn now_ns(&self) -> u64 {
        self.0.platform.now_us() * 1000
    }
}
