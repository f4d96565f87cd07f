// SPDX-License-Identifier: GPL-2.0
//! The smallest controller queue and the smallest layer above that loom can try all interleavings
//! of. The strategy, the FIFO, the cells and the tag table are the real ones.

use cell::sync::{AtomicU32, Ordering};
use engine::{Context, Cpu, Data, IoQueue, Mode, Strategy, Upper};
use hal::mock::MockPlatform;
use hal::{
    Bound, CmdError, Command, Completed, Detached, Event, Free, FreeTags, NewQueue, Op, Outcome,
    Queue, Segment, Tag, TagBatch, TagTable, Unbound,
};
use loom::thread::{self, JoinHandle};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use strategy::Coop;

pub type ModelQueue<S = Coop<MockPlatform>> = IoQueue<MockPlatform, Hw, Top, S>;

/// A queue whose device completes what it is told to; tag `n` is bit `n`.
pub struct Hw {
    tags: TagTable<MockPlatform>,
    /// The completions that the device has written. The one atomic of the hardware that the model
    /// schedules.
    posted: AtomicU32,
    /// Tags that the device was told of. Not an atomic of loom's: only for checks.
    pub told: AtomicUsize,
    batch: usize,
    /// The device takes so many commands at once, and no more until all of them are over.
    block: Option<usize>,
    /// So many of these are not over.
    out: AtomicU32,
}

impl Hw {
    /// The device finishes `tag`.
    pub fn post(&self, tag: u16) {
        self.posted.fetch_or(1 << tag, Ordering::Release);
    }
}

impl Queue for Hw {
    type Issue = ();
    type Drain = ();

    fn capacity(&self) -> usize {
        self.tags.capacity()
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn get_free_tags(&self, (): &mut (), want: usize) -> FreeTags {
        self.tags.take(want)
    }

    fn bind_tag_cmd(
        &self,
        (): &mut (),
        tag: Tag<Free>,
        _: &Command,
        _: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<Tag<Bound>, Unbound> {
        Ok(tag.bind())
    }

    const BLOCKS: bool = true;

    fn takes_blocks(&self) -> bool {
        self.block.is_some()
    }

    fn takes(&self, (): &(), staged: usize) -> usize {
        match self.block {
            Some(most) if self.out.load(Ordering::Relaxed) == 0 => staged.min(most),
            Some(_) => 0,
            None => staged,
        }
    }

    fn issue_tags(&self, (): &mut (), tags: &mut TagBatch<Bound>) -> usize {
        if self.block.is_some() {
            assert!(self.takes(&(), tags.len()) >= tags.len(), "too many");
            // CAST: a few.
            self.out.store(tags.len() as u32, Ordering::Relaxed);
        }
        for tag in tags.drain() {
            self.tags.issue(tag);
            self.told.fetch_add(1, SeqCst);
        }
        1
    }

    fn unget_tags(&self, (): &mut (), tags: &mut TagBatch<Free>) {
        self.tags.put_back(tags);
    }

    fn check_event(&self, (): &mut ()) -> bool {
        self.posted.load(Ordering::Relaxed) != 0
    }

    fn fetch_event(&self, (): &mut ()) -> Option<Event> {
        let posted = self.posted.load(Ordering::Acquire);
        // CAST: below 32.
        let number = (posted != 0).then(|| posted.trailing_zeros() as u16)?;
        self.posted.fetch_and(!(1 << number), Ordering::Relaxed);
        let tag = self
            .tags
            .complete(number)
            .expect("the model's device is honest");
        Some(Event {
            tag,
            outcome: Ok(()),
        })
    }

    fn detach_tag_cmd(&self, (): &mut (), tag: Tag<Completed>) -> Tag<Detached> {
        tag.detach()
    }

    fn release_tags(&self, (): &mut (), tags: &mut TagBatch<Detached>) -> usize {
        // CAST: a few.
        let over = tags.len() as u32;
        self.tags.release(tags);
        if self.block.is_some() && over != 0 {
            self.out.fetch_sub(over, Ordering::Relaxed);
        }
        1
    }

    fn violations(&self, (): &()) -> u32 {
        0
    }

    fn reap_tag(&self, (): &mut ()) -> Option<Event> {
        None
    }

    fn rewind(&self, (): &mut (), (): &mut ()) {}
}

/// A layer above that counts.
#[derive(Default)]
pub struct Top {
    pub ended: AtomicUsize,
    pub retries: AtomicUsize,
    /// How often the poll timer was armed.
    pub armed: AtomicUsize,
    /// Others want the CPU.
    pub crowded: AtomicBool,
    /// How often somebody has looked at the clock.
    looks: AtomicUsize,
}

impl Upper for Top {
    type Request = u8;
    type Ended = ();

    fn command(&self, _: &u8) -> Command {
        Command {
            op: Op::Flush,
            unit: 0,
            lba: 0,
            blocks: 0,
            block_shift: 9,
            fua: false,
            unmap: false,
        }
    }

    fn data<'a>(
        &'a self,
        _: &'a mut u8,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        Data::Many(std::iter::empty())
    }

    fn begin_cmd(&self, _: &mut u8) {}
    fn unmap(&self, _: &mut u8) {}
    fn deferred(&self, _: &u8) {}

    fn end_cmd(&self, (): &mut (), _: u8, _: Outcome) {
        self.ended.fetch_add(1, SeqCst);
    }

    fn finish(&self, (): &mut (), _: Context) {}

    fn retry_later(&self) {
        self.retries.fetch_add(1, SeqCst);
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn set_interrupt(&self, _: bool) -> bool {
        true
    }

    fn arm_poll(&self, _: u32) {
        self.armed.fetch_add(1, SeqCst);
    }
}

impl Cpu for Top {
    fn now_ms(&self) -> u64 {
        0
    }

    /// A millisecond passes from look to look: longer than any interval.
    fn now_ns(&self) -> u64 {
        self.looks.fetch_add(1, SeqCst) as u64 * 1_000_000
    }

    fn is_crowded(&self) -> bool {
        self.crowded.load(SeqCst)
    }
}

/// A fresh queue of `tags` tags. Only inside a loom model.
pub fn queue(tags: u16, depth: usize) -> Arc<ModelQueue> {
    gathering_queue(tags, depth, 1)
}

/// Likewise; the device is dear to tell, save of `batch` commands at once.
pub fn gathering_queue(tags: u16, depth: usize, batch: usize) -> Arc<ModelQueue> {
    let coop = Coop::new(&MockPlatform::new()).unwrap();
    queue_under(coop, tags, depth, batch)
}

/// A fresh queue, whose device takes blocks of up to `block` commands.
pub fn block_queue(tags: u16, depth: usize, block: usize) -> Arc<ModelQueue> {
    let coop = Coop::new(&MockPlatform::new()).unwrap();
    queue_of(coop, tags, depth, (1, Some(block)))
}

/// Likewise, under `strategy`.
pub fn queue_under<S: Strategy>(
    strategy: S,
    tags: u16,
    depth: usize,
    batch: usize,
) -> Arc<ModelQueue<S>> {
    queue_of(strategy, tags, depth, (batch, None))
}

fn queue_of<S: Strategy>(
    strategy: S,
    tags: u16,
    depth: usize,
    (batch, block): (usize, Option<usize>),
) -> Arc<ModelQueue<S>> {
    let platform = MockPlatform::new();
    let queue = Hw {
        block,
        out: AtomicU32::new(0),
        tags: TagTable::new(&platform, tags).unwrap(),
        posted: AtomicU32::new(0),
        told: AtomicUsize::new(0),
        batch,
    };
    let new = NewQueue {
        queue,
        issue: (),
        drain: (),
    };
    Arc::new(IoQueue::new(&platform, new, Top::default(), strategy, depth).unwrap())
}

/// From now on nobody but the timer and who passes by looks for completions.
pub fn poll(queue: &ModelQueue) {
    let mut quiesced = queue.quiesce(&MockPlatform::new());
    quiesced.set_mode(Mode::Poll).unwrap();
    quiesced.unquiesce();
}

/// Another CPU, on which the device finishes `tag`, and interrupts.
pub fn interrupt(queue: &Arc<ModelQueue>, tag: u16) -> JoinHandle<usize> {
    let queue = Arc::clone(queue);
    thread::spawn(move || {
        queue.hardware().post(tag);
        queue.drain(Context::Irq)
    })
}

/// RetryCount all interleavings, as far as they take no more than `preemptions` of them.
pub fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(model);
}

/// What has happened to the requests: ended, told to the device, waiting.
pub fn state<S: Strategy>(queue: &ModelQueue<S>) -> (usize, usize, usize) {
    let told = queue.hardware().told.load(SeqCst);
    assert_eq!(
        queue.upper().retries.load(SeqCst),
        0,
        "nobody is to be asked for a retry"
    );
    (queue.upper().ended.load(SeqCst), told, queue.queued())
}
