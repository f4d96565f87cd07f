// SPDX-License-Identifier: GPL-2.0
//! The machine: its clock, its device, its interrupt and its timer.

use super::load::{Load, Longest, Played, INTERRUPT_NS, NEVER};
use engine::{Context, Expected, IoQueue, Strategy};
use hal::mock::{MockDevice, MockPlatform, MockQueue};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use testkit::Dice;

/// A command on its way.
pub(super) struct Staged {
    pub(super) at: u64,
    /// It may be deferred for so long.
    pub(super) most: u64,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) longest: Longest,
    /// By request: bound, and the device was not told.
    pub(super) staged: BTreeMap<u32, Staged>,
    /// The device has them: over at that time, the tag, the request.
    pub(super) at_work: Vec<(u64, u16, u32)>,
    /// By request: when the device had finished it.
    pub(super) finished: BTreeMap<u32, u64>,
    pub(super) waiting: BTreeSet<u32>,
    pub(super) bound: usize,
    /// Since when a request waits though a tag is free.
    pub(super) idle_since: Option<u64>,
    pub(super) ended: BTreeSet<u32>,
    /// By request that has ended: when the device had finished it.
    pub(super) over: BTreeMap<u32, u64>,
    /// By request: when it is expected to be over.
    pub(super) expected: BTreeMap<u32, Expected>,
    pub(super) played: Played,
}

pub(super) struct Machine {
    pub(super) load: Load,
    pub(super) device: Arc<MockDevice>,
    pub(super) now: AtomicU64,
    pub(super) timer: AtomicU64,
    pub(super) kick: AtomicU64,
    pub(super) interrupts: AtomicBool,
    pub(super) raised: AtomicBool,
    pub(super) in_handler: AtomicBool,
    /// It is tracked who waits for what is submitted.
    pub(super) sample: AtomicBool,
    /// A thread runs; one that is known for waiting; and so many such are ready.
    pub(super) busy: AtomicBool,
    pub(super) known: AtomicBool,
    pub(super) ready: AtomicUsize,
    pub(super) seen: Mutex<Seen>,
    pub(super) dice: Mutex<Dice>,
}

/// The layer above.
pub struct Top<S: Strategy> {
    pub(super) machine: Machine,
    pub(super) queue: OnceLock<Weak<Io<S>>>,
}

pub(super) type Io<S> = IoQueue<MockPlatform, MockQueue<MockPlatform>, Top<S>, S>;

/// A read.
pub struct Read(pub(super) u32);

impl Machine {
    pub(super) fn now(&self) -> u64 {
        self.now.load(SeqCst)
    }

    pub(super) fn seen<T>(&self, what: impl FnOnce(&mut Seen) -> T) -> T {
        what(&mut self.seen.lock().expect("nobody has failed"))
    }

    pub(super) fn roll(&self, sides: u64) -> u64 {
        let mut dice = self.dice.lock().expect("nobody has failed");
        dice.roll(sides)
    }

    /// The device begins with what it was told of.
    pub(super) fn begin(&self) {
        let now = self.now();
        while let Some(told) = self.device.take() {
            // CAST: a request's number.
            let id = told.command.lba as u32;
            let (least, more) = match self.load.later {
                Some((from, latency)) if from <= id => latency,
                _ => (self.load.second_ns.filter(|_| id % 2 == 1))
                    .or(self.load.large_ns.filter(|_| self.load.is_large(id)))
                    .unwrap_or(self.load.latency_ns),
            };
            let over = now + least + self.roll(more + 1);
            let over = over.next_multiple_of(self.load.burst_ns);
            self.seen(|seen| {
                seen.at_work.push((over, told.number, id));
                if let Some(Staged { at, most }) = seen.staged.remove(&id) {
                    let late = now - at;
                    seen.longest.deferred = seen.longest.deferred.max(late);
                    let too_long = late.saturating_sub(most);
                    seen.longest.deferred_too_long = seen.longest.deferred_too_long.max(too_long);
                }
            });
        }
    }

    /// When the device has finished its next command.
    pub(super) fn next_over(&self) -> u64 {
        self.seen(|seen| {
            seen.at_work
                .iter()
                .map(|&(over, ..)| over)
                .min()
                .unwrap_or(NEVER)
        })
    }

    /// The device finishes what is over.
    pub(super) fn finish(&self) {
        let now = self.now();
        let over: Vec<_> = self.seen(|seen| {
            seen.at_work.sort_unstable();
            let count = seen.at_work.partition_point(|&(over, ..)| over <= now);
            let over: Vec<_> = seen.at_work.drain(..count).collect();
            seen.finished
                .extend(over.iter().map(|&(at, _, id)| (id, at)));
            over
        });
        for &(_, tag, _) in &over {
            self.device.post(tag, Ok(()));
        }
        if !over.is_empty() && self.interrupts.load(SeqCst) {
            self.raised.store(true, SeqCst);
        }
    }

    /// What waits though a tag is free, from now on.
    pub(super) fn look_at_tags(&self) {
        let now = self.now();
        self.seen(|seen| {
            let idle = !seen.waiting.is_empty() && seen.bound < usize::from(self.load.tags);
            match (seen.idle_since, idle) {
                (None, true) => seen.idle_since = Some(now),
                (Some(since), false) => {
                    seen.longest.waited = seen.longest.waited.max(now - since);
                    seen.idle_since = None;
                }
                _ => {}
            }
        });
    }
}

impl<S: Strategy> Top<S> {
    pub(super) fn queue(&self) -> Arc<Io<S>> {
        let queue = self.queue.get().and_then(Weak::upgrade);
        queue.expect("it outlives what is done to it")
    }

    /// Time passes, and what comes meanwhile is served.
    pub(super) fn pass(&self, ns: u64) {
        let machine = &self.machine;
        let mut end = machine.now() + ns;
        loop {
            machine.begin();
            let next = machine.next_over().min(self.next_handler());
            let next = next.max(machine.now());
            if next > end {
                break;
            }
            machine.now.store(next, SeqCst);
            machine.finish();
            // Handlers take time of their own.
            end += self.serve();
        }
        machine.now.store(end, SeqCst);
    }

    /// When the next handler begins, if none runs.
    pub(super) fn next_handler(&self) -> u64 {
        let machine = &self.machine;
        match (machine.in_handler.load(SeqCst), machine.raised.load(SeqCst)) {
            (true, _) => NEVER,
            (_, true) => machine.now(),
            _ => machine.timer.load(SeqCst).min(machine.kick.load(SeqCst)),
        }
    }

    /// Serves an interrupt, a tick or a kick, if one is due and none is being served. For how long.
    pub(super) fn serve(&self) -> u64 {
        let machine = &self.machine;
        if self.next_handler() > machine.now() {
            return 0;
        }
        machine.in_handler.store(true, SeqCst);
        let since = machine.now();
        let due = |at: &AtomicU64| at.load(SeqCst) <= since && at.swap(NEVER, SeqCst) <= since;
        let queue = self.queue();
        if machine.raised.swap(false, SeqCst) {
            self.pass(INTERRUPT_NS);
            machine.seen(|seen| seen.played.interrupts += 1);
            queue.drain(Context::Irq);
        } else if due(&machine.timer) {
            self.pass(INTERRUPT_NS);
            machine.seen(|seen| seen.played.ticks += 1);
            queue.tick();
        } else if due(&machine.kick) {
            self.pass(INTERRUPT_NS);
            queue.kick();
        }
        self.pass(INTERRUPT_NS);
        let took = machine.now() - since;
        machine.seen(|seen| seen.longest.handler = seen.longest.handler.max(took));
        machine.in_handler.store(false, SeqCst);
        took
    }

    pub(super) fn is_over(&self, id: u32) -> bool {
        self.machine.seen(|seen| seen.ended.contains(&id))
    }
}
