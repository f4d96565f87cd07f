// SPDX-License-Identifier: GPL-2.0
//! A queue of the device as a hal queue: a command gets its time when it is issued, and is reported
//! when it is due, in the order of that, or as the device's faults have it.
//!
//! # Blocks
//! Where the device takes blocks ([`Interface::Blocks`]), a block is what is issued at once, and it
//! is the device's from then until all of its commands are released: the host owns the queue's
//! descriptors again, and rings for the next. One of which an answer is lost stays out, until the
//! queue is rewound.

use crate::blocks::{Blocks, Fill, PATIENCE_NS};
use crate::device::{Backing, Interface};
use crate::heap::Heap;
use crate::latency::Rng;
use crate::link::LinkFifo;
use crate::service::{tag_of, Commands};
use cell::sync::{AtomicU32, AtomicU64, Ordering};
use hal::{
    Bound, CmdError, Command, Completed, Detached, Error, Event, Free, FreeTags, NewQueue,
    Platform, Queue, Segment, Tag, TagBatch, TagTable, Unbound,
};

/// The shared part of a queue.
pub struct RamQueue<P: Platform, B: Backing> {
    index: u16,
    backing: B,
    tags: TagTable<P>,
    commands: Commands<P>,
    /// Commands that were issued, by the issuer, and released, by the drainer; both wrap. What is
    /// between them is with the device.
    issued: AtomicU32,
    released: AtomicU32,
}

/// The issuer's part.
pub struct RamIssue<P: Platform> {
    /// By channel: when it is free.
    channels: P::Table<AtomicU64>,
    rng: Rng,
    /// Those whose bytes go over the link.
    fifo: LinkFifo,
    /// Sets words apart that report the same tag.
    generation: u16,
    /// Since when a block is held back that is not full, in nanoseconds.
    held_since: Option<u64>,
}

/// The drainer's part.
pub struct RamDrain<P: Platform> {
    /// By when they are due.
    heap: Heap<P>,
    /// Those that have to go over the link first, by when they are ready for it.
    to_link: Heap<P>,
    /// Where in the ring it is.
    head: u32,
    rng: Rng,
    /// A word to be reported once more.
    again: Option<u32>,
    /// A word to be reported after a lie.
    truth: Option<u32>,
    violations: u32,
}

impl<P: Platform, B: Backing> RamQueue<P, B> {
    /// Queue `index` of the device in `backing`. Control path.
    pub(crate) fn create(platform: &P, backing: B, index: u16) -> Result<NewQueue<Self>, Error> {
        let config = backing.device().config;
        let seed = config.seed.wrapping_add(u64::from(index) << 32);
        Ok(NewQueue {
            issue: RamIssue {
                channels: platform.table(config.channels.into(), |_| AtomicU64::new(0))?,
                rng: Rng::new(seed),
                fifo: LinkFifo::default(),
                generation: 0,
                held_since: None,
            },
            drain: RamDrain::new(platform, config.tags, !seed)?,
            queue: Self {
                index,
                tags: TagTable::new(platform, config.tags)?,
                commands: Commands::new(platform, config.tags)?,
                backing,
                issued: AtomicU32::new(0),
                released: AtomicU32::new(0),
            },
        })
    }
}

impl<P: Platform> RamDrain<P> {
    /// That of a queue of `tags` tags.
    fn new(platform: &P, tags: u16, seed: u64) -> Result<Self, Error> {
        Ok(Self {
            heap: Heap::new(platform, tags.into())?,
            to_link: Heap::new(platform, tags.into())?,
            head: 0,
            rng: Rng::new(seed),
            again: None,
            truth: None,
            violations: 0,
        })
    }

    /// Nothing is with the device; what it is given next is at `head` of the ring.
    fn rewind(&mut self, head: u32) {
        self.heap.clear();
        self.to_link.clear();
        self.head = head;
        self.again = None;
        self.truth = None;
    }
}

impl<P: Platform, B: Backing> Queue for RamQueue<P, B> {
    type Issue = RamIssue<P>;
    type Drain = RamDrain<P>;

    fn capacity(&self) -> usize {
        self.tags.capacity()
    }

    /// Its registers cost next to nothing: it has none. But a block costs the device time.
    fn batch(&self) -> usize {
        match &self.backing.device().config.interface {
            Interface::Queue => 1,
            Interface::Blocks(blocks) => blocks.most.into(),
        }
    }

    fn get_free_tags(&self, _side: &mut RamIssue<P>, want: usize) -> FreeTags {
        self.tags.take(want)
    }

    fn bind_tag_cmd(
        &self,
        _side: &mut RamIssue<P>,
        tag: Tag<Free>,
        cmd: &Command,
        data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<Tag<Bound>, Unbound> {
        let holes = self.backing.device().config.holes;
        match self.commands.write(tag.index(), cmd, holes, data) {
            Ok(()) => Ok(tag.bind()),
            Err(why) => Err(Unbound { tag, why }),
        }
    }

    const BLOCKS: bool = true;

    #[inline]
    fn takes_blocks(&self) -> bool {
        matches!(self.backing.device().config.interface, Interface::Blocks(_))
    }

    #[inline]
    fn takes(&self, side: &RamIssue<P>, staged: usize) -> usize {
        match &self.backing.device().config.interface {
            Interface::Queue => staged,
            Interface::Blocks(blocks) => self.takes_of(blocks, side, staged),
        }
    }

    fn hold(&self, side: &mut RamIssue<P>, _staged: usize) {
        // A block that is out says itself when it is over.
        if !self.is_out() && self.backing.device().runs() {
            let since = *side.held_since.get_or_insert_with(|| self.backing.now_ns());
            self.arm_at(since.saturating_add(PATIENCE_NS));
        }
    }

    fn issue_tags(&self, side: &mut RamIssue<P>, tags: &mut TagBatch<Bound>) -> usize {
        if tags.is_empty() {
            return 0;
        }
        if let Interface::Blocks(blocks) = &self.backing.device().config.interface {
            return self.issue_block(blocks, side, tags);
        }
        let now = self.backing.now_ns();
        let mut earliest = u64::MAX;
        for tag in tags.drain() {
            let number = tag.number();
            let ready = self.ready(side, number.into(), now);
            side.generation = side.generation.wrapping_add(1);
            earliest = earliest.min(self.due(side, number.into(), ready));
            self.tags.issue(tag);
            self.commands.issue(number, side.generation, ready);
        }
        if self.backing.device().runs() {
            self.arm_at(earliest);
        }
        1
    }

    fn unget_tags(&self, _side: &mut RamIssue<P>, tags: &mut TagBatch<Free>) {
        self.tags.put_back(tags);
    }

    fn check_event(&self, side: &mut RamDrain<P>) -> bool {
        if !self.backing.device().runs() {
            return false;
        }
        self.pull(side);
        if side.truth.is_some() || side.again.is_some() || self.commands.has_aborted() {
            return true;
        }
        let now = self.backing.now_ns();
        self.take_turns(side, now);
        if side.heap.due().is_some_and(|due| due <= now) {
            return true;
        }
        self.set_bell(side);
        false
    }

    fn fetch_event(&self, side: &mut RamDrain<P>) -> Option<Event> {
        if !self.backing.device().runs() {
            return None;
        }
        if let Some(event) = self.aborted() {
            return Some(event);
        }
        loop {
            self.pull(side);
            let Some(word) = self.report(side) else {
                self.set_bell(side);
                return None;
            };
            // What a driver may believe: the word of a command that was issued, and not reported
            // before. CAST: the tag is the low half.
            let tag = match self.commands.answers(word) {
                true => self.tags.complete(tag_of(word) as u16),
                false => None,
            };
            match tag {
                Some(tag) => {
                    let outcome = match self.backing.device().faults.fail.fires() {
                        false => self.commands.execute(&self.backing, word),
                        true => Err(CmdError::Io.retryable()),
                    };
                    return Some(Event { tag, outcome });
                }
                None => side.violations = side.violations.saturating_add(1),
            }
        }
    }

    fn detach_tag_cmd(&self, _side: &mut RamDrain<P>, tag: Tag<Completed>) -> Tag<Detached> {
        tag.detach()
    }

    fn release_tags(&self, _side: &mut RamDrain<P>, tags: &mut TagBatch<Detached>) -> usize {
        // CAST: at most 64.
        let count = tags.len() as u32;
        self.tags.release(tags);
        let released = self.released.load(Ordering::Relaxed).wrapping_add(count);
        self.released.store(released, Ordering::Relaxed);
        0
    }

    fn violations(&self, side: &RamDrain<P>) -> u32 {
        side.violations
    }

    fn reap_tag(&self, _side: &mut RamDrain<P>) -> Option<Event> {
        let number = self.tags.first_issued()?;
        Some(Event {
            tag: self.tags.complete(number)?,
            outcome: Err(CmdError::Aborted.retryable()),
        })
    }

    fn rewind(&self, issue: &mut RamIssue<P>, drain: &mut RamDrain<P>) {
        self.tags.rewind();
        for channel in issue.channels.iter() {
            channel.store(0, Ordering::Relaxed);
        }
        issue.fifo = LinkFifo::default();
        issue.held_since = None;
        let issued = self.issued.load(Ordering::Relaxed);
        self.released.store(issued, Ordering::Relaxed);
        drain.rewind(self.commands.tail());
        let _ = self.commands.take_aborted();
    }
}

/// A command that is made to be overtaken takes up to so many times its latency longer.
const OVERTAKEN: u64 = 8;

impl<P: Platform, B: Backing> RamQueue<P, B> {
    /// When the medium is done with the command of `tag` if it is issued now: the channel that is
    /// free first takes it.
    fn ready(&self, side: &mut RamIssue<P>, tag: usize, now: u64) -> u64 {
        let device = self.backing.device();
        let latency = match &device.config.write_latency {
            Some(own) if self.commands.changes(tag) => own,
            _ => &device.config.latency,
        };
        let takes = latency.draw(&mut side.rng);
        let takes = self.delayed(side, takes);
        let free_at = |channel: &&AtomicU64| channel.load(Ordering::Relaxed);
        match side.channels.iter().min_by_key(free_at) {
            Some(channel) => {
                let ready = now
                    .max(channel.load(Ordering::Relaxed))
                    .saturating_add(takes);
                channel.store(ready, Ordering::Relaxed);
                ready
            }
            None => now.saturating_add(takes),
        }
    }

    /// How long a command takes that takes so long where nothing is wrong.
    fn delayed(&self, side: &mut RamIssue<P>, takes: u64) -> u64 {
        let faults = &self.backing.device().faults;
        let mut takes = takes;
        if faults.reorder.fires() {
            let most = takes.max(1).saturating_mul(OVERTAKEN);
            takes = takes.saturating_add(side.rng.below(most));
        }
        if faults.delay.fires() {
            takes = takes.saturating_add(faults.delay_ns.load(Ordering::Relaxed));
        }
        takes
    }

    /// When the command of `tag` is due, at the earliest, with which the medium is done at `ready`.
    fn due(&self, side: &mut RamIssue<P>, tag: usize, ready: u64) -> u64 {
        match self.over_link(tag) {
            0 => ready,
            bytes => side.fifo.join(&self.backing.device().link, ready, bytes),
        }
    }

    /// The bytes of `tag`'s command that have to wait for their turn on the link.
    #[inline]
    fn over_link(&self, tag: usize) -> u64 {
        match self.backing.device().link.is_on() {
            true => self.commands.bytes(tag),
            false => 0,
        }
    }

    /// Has the timer fire at `due`, unless it fires earlier.
    fn arm_at(&self, due: u64) {
        if self.backing.device().needs_timer(self.index, due) {
            self.backing.arm(self.index, due);
        }
    }

    /// Gives up the command of `tag`, if it hangs; whether it did. Control path.
    pub(crate) fn abort(&self, tag: usize) -> bool {
        let aborted = self.commands.abort(tag);
        if aborted {
            self.arm_at(self.backing.now_ns());
        }
        aborted
    }
}

impl<P: Platform, B: Backing> RamQueue<P, B> {
    /// Whether the device has a block.
    fn is_out(&self) -> bool {
        self.issued.load(Ordering::Relaxed) != self.released.load(Ordering::Relaxed)
    }

    /// How many of `staged` commands the device takes in as a block now.
    fn takes_of(&self, blocks: &Blocks, side: &RamIssue<P>, staged: usize) -> usize {
        let most = usize::from(blocks.most);
        if self.is_out() {
            return 0;
        }
        let waited = |since: u64| since.saturating_add(PATIENCE_NS) <= self.backing.now_ns();
        match blocks.fill {
            Fill::Full if staged < most && !side.held_since.is_some_and(waited) => 0,
            _ => staged.min(most),
        }
    }

    /// The device takes a block in.
    fn issue_block(
        &self,
        blocks: &Blocks,
        side: &mut RamIssue<P>,
        tags: &mut TagBatch<Bound>,
    ) -> usize {
        let now = self.backing.now_ns();
        side.held_since = None;
        // CAST: at most 64.
        let issued = self
            .issued
            .load(Ordering::Relaxed)
            .wrapping_add(tags.len() as u32);
        self.issued.store(issued, Ordering::Relaxed);
        let numbers = tags.numbers();
        let commands = numbers.map(|number| {
            let tag = usize::from(number);
            (self.commands.changes(tag), self.commands.bytes(tag))
        });
        let mut block = tags.drain();
        let mut earliest = u64::MAX;
        blocks.play(now, commands, |over| {
            let Some(tag) = block.next() else {
                return;
            };
            let over = now.saturating_add(self.delayed(side, over.saturating_sub(now)));
            side.generation = side.generation.wrapping_add(1);
            earliest = earliest.min(over);
            let number = tag.number();
            self.tags.issue(tag);
            self.commands.issue(number, side.generation, over);
        });
        if self.backing.device().runs() {
            self.arm_at(earliest);
        }
        1
    }

    /// The device takes over what was issued.
    fn pull(&self, side: &mut RamDrain<P>) {
        while let Some((word, ready)) = self.commands.next(side.head) {
            let heap = match self.over_link(tag_of(word)) {
                0 => &mut side.heap,
                _ => &mut side.to_link,
            };
            if !heap.push(ready, word) {
                return;
            }
            side.head = side.head.wrapping_add(1);
        }
    }

    /// Those that are ready for the link at `now` get their turns. By when they are ready, and not
    /// by when they are looked at: a look that comes late makes no command slower.
    #[inline]
    fn take_turns(&self, side: &mut RamDrain<P>, now: u64) {
        while side.to_link.due().is_some_and(|ready| ready <= now) {
            self.take_turn(side, now);
        }
    }

    fn take_turn(&self, side: &mut RamDrain<P>, now: u64) {
        if let Some((ready, word)) = side.to_link.first() {
            let bytes = self.over_link(tag_of(word));
            let due = self.backing.device().link.take(ready, bytes);
            side.to_link.pop(now);
            // There is room: either heap has it for all tags.
            side.heap.push(due, word);
        }
    }

    /// Has the timer fire for what is due next.
    fn set_bell(&self, side: &RamDrain<P>) {
        let to_link = side.to_link.first().map(|(ready, word)| {
            let bytes = self.over_link(tag_of(word));
            self.backing.device().link.earliest(ready, bytes)
        });
        if let Some(due) = side.heap.due().into_iter().chain(to_link).min() {
            self.arm_at(due);
        }
    }

    /// The command that was aborted, as it ended.
    fn aborted(&self) -> Option<Event> {
        let word = self.commands.take_aborted()?;
        if !self.commands.answers(word) {
            return None;
        }
        Some(Event {
            // CAST: the tag is the low half.
            tag: self.tags.complete(tag_of(word) as u16)?,
            outcome: Err(CmdError::Aborted.retryable()),
        })
    }

    /// What the device reports next, true or not.
    fn report(&self, side: &mut RamDrain<P>) -> Option<u32> {
        if let Some(word) = side.truth.take().or_else(|| side.again.take()) {
            return Some(word);
        }
        let faults = &self.backing.device().faults;
        loop {
            let now = self.backing.now_ns();
            self.take_turns(side, now);
            let word = side.heap.pop(now)?;
            if faults.drop.fires() {
                continue;
            }
            if faults.hang.fires() {
                self.commands.hang(word);
                continue;
            }
            if faults.duplicate.fires() {
                side.again = Some(word);
            }
            if faults.lie.fires() {
                side.truth = Some(word);
                return Some(self.lie(&mut side.rng));
            }
            return Some(word);
        }
    }

    /// A word that reports nothing that was issued: of a tag that there is not, or of one that may
    /// well be in flight, with a generation that it does not have now.
    fn lie(&self, rng: &mut Rng) -> u32 {
        let tags = self.tags.capacity().saturating_mul(2) as u64;
        // CAST: twice 4,096 at most; and any bits will do for a generation.
        let lie = ((rng.next() as u32) << 16) | rng.below(tags) as u32;
        match self.commands.answers(lie) {
            true => u32::MAX,
            false => lie,
        }
    }
}
