// SPDX-License-Identifier: GPL-2.0
//! Mixes of commands as a device would take them: channels that each do one command's medium at a
//! time, and one link after them, which takes the commands in the order in which they get there.
//!
//! ```text
//!   threads, each with one command at a time       channels          link
//!   issue ─────────────────────────────────────> [ medium ] ──┐
//!   issue ─────────────────────────────────────> [ medium ] ──┴──> [ bytes ] ──> over
//! ```
//!
//! What is kept is the order of what happens, so that each predictor sees the same, and at each
//! moment only what was over by then.

mod chance;

pub use chance::about;

use hal::Op;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use testkit::Dice;

/// A thread: it issues one command after another, of these sizes.
#[derive(Clone)]
pub struct Thread {
    pub op: Op,
    pub sizes: Vec<u64>,
    /// Between two commands it computes for up to so long.
    pub thinks_ns: u64,
}

pub fn reader(sizes: &[u64]) -> Thread {
    Thread {
        op: Op::Read,
        sizes: sizes.to_vec(),
        thinks_ns: 2_000,
    }
}

/// What a device is like.
pub struct Device {
    pub channels: usize,
    /// Of the n-th command.
    pub medium: fn(&mut Dice, usize, Op) -> u64,
    /// What the link moves in a microsecond.
    pub bytes_a_us: u64,
}

impl Device {
    pub fn link_ns(&self, bytes: u64) -> u64 {
        bytes * 1_000 / self.bytes_a_us
    }
}

pub struct Mix {
    pub name: &'static str,
    pub device: Device,
    pub threads: Vec<Thread>,
    pub commands: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Command {
    pub op: Op,
    pub bytes: u64,
    /// Commands outstanding when it was issued, itself counted,
    pub outstanding: u64,
    /// and their bytes.
    pub all_bytes: u64,
    pub took_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Issued(usize),
    Over(usize),
}

pub struct Record {
    pub commands: Vec<Command>,
    pub events: Vec<Event>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The thread issues.
    Issue(usize),
    /// The medium is done with a command of a thread.
    Link(usize, usize),
    Over(usize, usize),
}

impl Mix {
    pub fn record(&self, seed: u64) -> Record {
        let mut dice = Dice(seed);
        let mut steps = BinaryHeap::new();
        for thread in 0..self.threads.len() {
            let begins = dice.roll(self.threads[thread].thinks_ns + 1);
            steps.push(Reverse((begins, Step::Issue(thread))));
        }
        let mut channels = vec![0u64; self.device.channels];
        let mut link = 0u64;
        let (mut outstanding, mut all_bytes) = (0, 0);
        let (mut commands, mut events, mut issued) = (Vec::<Command>::new(), Vec::new(), vec![]);
        while let Some(Reverse((now, step))) = steps.pop() {
            match step {
                Step::Issue(thread) => {
                    let Thread { op, sizes, .. } = &self.threads[thread];
                    let n = commands.len();
                    let bytes = sizes[dice.roll(sizes.len() as u64) as usize];
                    outstanding += 1;
                    all_bytes += bytes;
                    events.push(Event::Issued(n));
                    issued.push(now);
                    commands.push(Command {
                        op: *op,
                        bytes,
                        outstanding,
                        all_bytes,
                        took_ns: 0,
                    });
                    let at = dice.roll(channels.len() as u64) as usize;
                    let done = channels[at].max(now) + (self.device.medium)(&mut dice, n, *op);
                    channels[at] = done;
                    steps.push(Reverse((done, Step::Link(thread, n))));
                }
                Step::Link(thread, n) => {
                    link = link.max(now) + self.device.link_ns(commands[n].bytes);
                    steps.push(Reverse((link, Step::Over(thread, n))));
                }
                Step::Over(thread, n) => {
                    outstanding -= 1;
                    all_bytes -= commands[n].bytes;
                    commands[n].took_ns = now - issued[n];
                    events.push(Event::Over(n));
                    if commands.len() < self.commands {
                        let then = now + dice.roll(self.threads[thread].thinks_ns + 1);
                        steps.push(Reverse((then, Step::Issue(thread))));
                    }
                }
            }
        }
        Record { commands, events }
    }
}
