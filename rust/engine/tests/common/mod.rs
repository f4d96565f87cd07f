// SPDX-License-Identifier: GPL-2.0
//! A layer above that remembers everything, over the mock controller's queue.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

use engine::{Context, Cpu, Data, IoQueue, Strategy, Switches, Upper, Waiting};
use hal::mock::{MockDevice, MockPlatform, MockQueue};
use hal::{CmdError, Command, Op, Outcome, RetryHint, Segment};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use strategy::Selected;

pub type TestQueue<S> = IoQueue<MockPlatform, MockQueue<MockPlatform>, Recorder, S>;

/// What a disk has on as it comes.
pub const COOP: Switches = Switches(Switches::COOP);

/// One request; it notices when it is dropped without having been ended.
#[derive(Debug)]
pub struct Rq {
    pub id: u32,
    pub mapped: bool,
    pub begun: bool,
    ended: bool,
    log: Arc<Log>,
}

impl Drop for Rq {
    fn drop(&mut self) {
        if !self.ended {
            self.log.dropped.fetch_add(1, SeqCst);
        }
    }
}

/// What a look at the clock takes.
const LOOK_NS: u64 = 50;

/// What others do in the middle of it.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// What happened so far.
#[derive(Default)]
pub struct Log {
    pub ended: Mutex<Vec<(u32, Result<(), CmdError>)>>,
    /// What each of those that failed said of another try.
    pub agains: Mutex<Vec<(u32, RetryHint)>>,
    pub finished: Mutex<Vec<(Context, usize)>>,
    pub deferred: AtomicUsize,
    pub unmapped: AtomicUsize,
    pub retries: AtomicUsize,
    pub starved: AtomicUsize,
    /// Requests that were dropped instead of ended.
    pub dropped: AtomicUsize,
    /// Requests that ended mapped though their command never began, or the other way round.
    pub misused: AtomicUsize,
    pub now: AtomicU64,
    /// Moments that have passed beside, in nanoseconds.
    pub now_ns: AtomicU64,
    /// When the next tick is due, as of the last wish.
    pub armed_us: AtomicU32,
    /// Threads are ready that the CPU has no time for.
    pub crowded: AtomicBool,
    /// The interrupt can't be turned off, and there is no timer.
    pub no_timer: AtomicBool,
    /// By request: the error that its mapping yields, once.
    pub map_errors: Mutex<BTreeMap<u32, CmdError>>,
    /// A device that finishes its oldest command at the moment before its interrupt is turned on:
    /// that one is not announced.
    pub just_before: Mutex<Option<Arc<MockDevice>>>,
    /// Happens while the next command is bound, with the issue token held.
    pub meanwhile: Mutex<Option<Meanwhile>>,
    /// Happens while the next request ends, with the drain token held.
    pub ending: Mutex<Option<Meanwhile>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ended()).finish()
    }
}

impl Log {
    pub fn ended(&self) -> Vec<(u32, Result<(), CmdError>)> {
        self.ended.lock().unwrap().clone()
    }

    pub fn ended_count(&self) -> u32 {
        self.ended.lock().unwrap().len() as u32
    }

    pub fn ended_ids(&self) -> Vec<u32> {
        self.ended().into_iter().map(|(id, _)| id).collect()
    }

    pub fn retries(&self) -> usize {
        self.retries.load(SeqCst)
    }

    /// Every one of `0..count` ended exactly once, nothing was lost on the way.
    #[track_caller]
    pub fn assert_each_once(&self, count: u32) {
        let mut ids = self.ended_ids();
        ids.sort_unstable();
        assert!(
            ids.iter().copied().eq(0..count),
            "{} of {count} ended",
            ids.len()
        );
        assert_eq!(self.dropped.load(SeqCst), 0, "requests were dropped");
        assert_eq!(
            self.misused.load(SeqCst),
            0,
            "requests were mapped or begun out of turn"
        );
        let finished: usize = self
            .finished
            .lock()
            .unwrap()
            .iter()
            .map(|batch| batch.1)
            .sum();
        assert_eq!(
            finished,
            ids.len(),
            "finish was not called for all that ended"
        );
    }
}

#[derive(Debug)]
pub struct Recorder(pub Arc<Log>);

impl Upper for Recorder {
    type Request = Rq;
    type Ended = Vec<Rq>;

    fn command(&self, rq: &Rq) -> Command {
        Command {
            op: Op::Read,
            unit: 1,
            lba: u64::from(rq.id),
            blocks: 1,
            block_shift: 9,
            fua: false,
            unmap: false,
        }
    }

    fn data<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        if std::mem::replace(&mut rq.mapped, true) {
            self.0.misused.fetch_add(1, SeqCst);
        }
        let addr = 0x1_0000_0000 + u64::from(rq.id) * 512;
        let second = match self.0.map_errors.lock().unwrap().remove(&rq.id) {
            Some(why) => Err(why),
            None => Ok(Segment {
                addr: addr + 256,
                len: 256,
            }),
        };
        Data::Many([Ok(Segment { addr, len: 256 }), second].into_iter())
    }

    fn begin_cmd(&self, rq: &mut Rq) {
        if std::mem::replace(&mut rq.begun, true) || !rq.mapped {
            self.0.misused.fetch_add(1, SeqCst);
        }
        let meanwhile = self.0.meanwhile.lock().unwrap().take();
        meanwhile.into_iter().for_each(|happens| happens());
    }

    fn unmap(&self, rq: &mut Rq) {
        self.0.unmapped.fetch_add(1, SeqCst);
        rq.mapped = false;
    }

    fn deferred(&self, _: &Rq) {
        self.0.deferred.fetch_add(1, SeqCst);
    }

    fn starved(&self, _: &Rq) {
        self.0.starved.fetch_add(1, SeqCst);
    }

    fn end_cmd(&self, ended: &mut Vec<Rq>, mut rq: Rq, outcome: Outcome) {
        if rq.mapped != rq.begun || (!rq.begun && outcome.is_ok()) {
            self.0.misused.fetch_add(1, SeqCst);
        }
        rq.ended = true;
        let happens = self.0.ending.lock().unwrap().take();
        happens.into_iter().for_each(|happens| happens());
        if let Err(failure) = outcome {
            let mut agains = self.0.agains.lock().unwrap();
            agains.push((rq.id, failure.retry));
        }
        let kind = outcome.map_err(|failure| failure.error);
        self.0.ended.lock().unwrap().push((rq.id, kind));
        ended.push(rq);
    }

    fn finish(&self, ended: &mut Vec<Rq>, by: Context) {
        assert!(!ended.is_empty(), "an empty batch is not finished");
        self.0.finished.lock().unwrap().push((by, ended.len()));
    }

    fn retry_later(&self) {
        self.0.retries.fetch_add(1, SeqCst);
    }

    fn can_poll(&self) -> bool {
        !self.0.no_timer.load(SeqCst)
    }

    fn set_interrupt(&self, enabled: bool) -> bool {
        if let Some(device) = self.0.just_before.lock().unwrap().take_if(|_| enabled) {
            device.complete_next(Ok(()));
        }
        true
    }

    fn arm_poll(&self, us: u32) {
        self.0.armed_us.store(us, SeqCst);
    }
}

impl Cpu for Recorder {
    fn is_crowded(&self) -> bool {
        self.0.crowded.load(SeqCst)
    }

    fn now_ms(&self) -> u64 {
        self.0.now.load(SeqCst)
    }

    /// Each look at it takes a moment.
    fn now_ns(&self) -> u64 {
        let moment = self.0.now_ns.fetch_add(LOOK_NS, SeqCst);
        moment + self.0.now.load(SeqCst) * 1_000_000
    }
}

/// A queue, its device and its log.
pub struct Rig<S: Strategy = Selected<MockPlatform>> {
    pub platform: MockPlatform,
    pub queue: TestQueue<S>,
    pub device: Arc<MockDevice>,
    pub log: Arc<Log>,
}

impl Rig {
    pub fn new(tags: u16, depth: usize) -> Self {
        Self::gathering(tags, depth, 1)
    }

    /// One whose device is dear to tell anything, save of `batch` commands at once.
    pub fn gathering(tags: u16, depth: usize, batch: usize) -> Self {
        Self::with(testkit::chosen(), tags, depth, batch)
    }
}

impl<S: Strategy> Rig<S> {
    /// One whose queue does as `strategy` decides.
    pub fn with(strategy: S, tags: u16, depth: usize, batch: usize) -> Self {
        let platform = MockPlatform::new();
        let log = Arc::new(Log::default());
        let (hw, device) = MockQueue::gathering(&platform, tags, batch).unwrap();
        let upper = Recorder(Arc::clone(&log));
        let queue = IoQueue::new(&platform, hw, upper, strategy, depth).unwrap();
        Self {
            platform,
            queue,
            device,
            log,
        }
    }

    pub fn rq(&self, id: u32) -> Rq {
        Rq {
            id,
            mapped: false,
            begun: false,
            ended: false,
            log: Arc::clone(&self.log),
        }
    }

    pub fn submit(&self, ids: impl IntoIterator<Item = u32>) {
        ids.into_iter()
            .for_each(|id| self.queue.submit(self.rq(id), true));
    }

    pub fn submit_many(&self, ids: std::ops::Range<u32>) {
        self.queue.submit_many(ids.map(|id| self.rq(id)));
    }

    /// The device finishes its oldest command well, and interrupts.
    pub fn complete_one(&self) -> Option<u32> {
        let issued = self.device.complete_next(Ok(()))?;
        self.queue.drain(Context::Irq);
        // CAST: the address is a request's number.
        Some(issued.command.lba as u32)
    }

    /// The device finishes everything, one by one, until nothing more comes.
    pub fn complete_all(&self) -> Vec<u32> {
        std::iter::from_fn(|| self.complete_one()).collect()
    }

    /// Numbers of the requests that the device has, in its order.
    pub fn at_device(&self) -> Vec<u32> {
        self.device
            .issued()
            .iter()
            .map(|issued| issued.command.lba as u32)
            .collect()
    }
}

/// Waits for what never comes, and has its CPU for itself.
pub struct Alone;

impl Waiting for Alone {
    fn is_awake(&self) -> bool {
        false
    }

    fn pause(&self) -> bool {
        true
    }

    fn may_yield(&self) -> bool {
        false
    }
}
