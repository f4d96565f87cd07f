// SPDX-License-Identifier: GPL-2.0
//! What is asked of the machine, what things take there, and what was seen.

use engine::Mode;

/// What things take, in nanoseconds: a look at the clock,
pub(super) const LOOK_NS: u64 = 50;
/// to bind a command, to end one,
pub(super) const BIND_NS: u64 = 300;
pub(super) const END_NS: u64 = 300;
/// to get into an interrupt, or out of it,
pub(super) const INTERRUPT_NS: u64 = 500;
/// one pause of a thread that spins,
pub(super) const PAUSE_NS: u64 = 200;
/// a kick that was asked for,
pub(super) const KICK_NS: u64 = 8_000_000;
/// a switch to a thread that was asleep, as a rule,
pub const SWITCH_NS: u64 = 2_000;
/// and the turn of a neighbour.
pub(super) const SLICE_NS: u64 = 3_000_000;

pub(super) const NEVER: u64 = u64::MAX;

/// What is asked of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub seed: u64,
    pub mode: Mode,
    /// Threads that compute, and wait for nothing.
    pub neighbours: usize,
    /// Threads that read.
    pub readers: usize,
    pub tags: u16,
    /// Of how many commands the device is best told at once.
    pub batch: usize,
    /// What the device takes for a command at least, and how much more at most.
    pub latency_ns: (u64, u64),
    /// Of every second read it takes so much instead.
    pub second_ns: Option<(u64, u64)>,
    /// From that read on it takes so much instead.
    pub later: Option<(u32, (u64, u64))>,
    /// Of every other read, at random, which is large then, it takes so much instead.
    pub large_ns: Option<(u64, u64)>,
    /// What a switch to a thread takes that was asleep, which is known.
    pub switch_ns: u64,
    /// To the threads of four reads from that one on it takes so much instead.
    pub slow_switches: Option<(u32, u64)>,
    /// It tells of what it has finished at multiples of this.
    pub burst_ns: u64,
    pub reads: u32,
    /// Now and then a thread submits several at once, as io_uring has them.
    pub several: bool,
    /// It is foretold when commands are over.
    pub predict: bool,
    /// A polled queue's.
    pub interval_us: u32,
    /// Threads ask the queue what they do while they wait; those of io_uring do not.
    pub hooked: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    pub longest: Longest,
    /// Interrupts of the device's, and ticks of the timer.
    pub interrupts: u32,
    pub ticks: u32,
    /// Sleeps of threads that waited for small and for large reads.
    pub sleeps: [u32; 2],
    /// Reads whose end was foretold.
    pub foretold: u32,
    /// How naps ended, by [`engine::Nap`], in its order.
    pub naps: [u32; 4],
    /// From the end of what a thread waited for until it went on, of all reads together.
    pub delay_ns: u64,
    /// For so long all threads that read had the CPU, or handlers.
    pub busy_ns: u64,
}

/// The longest times that were seen, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Longest {
    /// A command was finished, and nobody had taken it,
    pub unnoticed: u64,
    /// or who waited for it had not gone on.
    pub delay: u64,
    /// A command was staged, and the device not told; how much longer that is than was granted.
    pub deferred: u64,
    pub deferred_too_long: u64,
    /// A request waited, though a tag was free.
    pub waited: u64,
    /// An interrupt, or a tick.
    pub handler: u64,
}

impl Longest {
    pub fn or(self, other: Self) -> Self {
        Self {
            unnoticed: self.unnoticed.max(other.unnoticed),
            delay: self.delay.max(other.delay),
            deferred: self.deferred.max(other.deferred),
            deferred_too_long: self.deferred_too_long.max(other.deferred_too_long),
            waited: self.waited.max(other.waited),
            handler: self.handler.max(other.handler),
        }
    }
}

impl Load {
    /// Whether that read is a large one.
    pub(super) fn is_large(&self, id: u32) -> bool {
        self.large_ns.is_some() && testkit::Dice(u64::from(id) + 1).roll(2) == 1
    }

    /// What a switch to the thread takes that waits for that read.
    pub(super) fn switch_to(&self, id: u32) -> u64 {
        (self.slow_switches)
            .filter(|&(from, _)| (from..from + 4).contains(&id))
            .map_or(self.switch_ns, |(_, ns)| ns)
    }

    /// For how long handlers run that end and issue as many commands as there are tags, in the
    /// smallest steps, a microsecond from one to the next.
    pub fn ring_ns(&self) -> u64 {
        let tags = u64::from(self.tags);
        let steps = tags.div_ceil(8) + 2;
        tags * (BIND_NS + END_NS) + steps * (2 * INTERRUPT_NS + 1_000 + 20 * LOOK_NS)
    }
}
