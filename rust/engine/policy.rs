// SPDX-License-Identifier: GPL-2.0
//! What the engine asks and a strategy decides: the traits [`Strategy`] and [`View`], the types
//! that they speak of, and what the machine takes for what a strategy can choose between
//! ([`Costs`]).
//!
//! The engine is mechanism: it issues, drains, ends, arms the timer and hands over, under its
//! tokens and past its fences. When and how much of it is done is a *strategy's* to say. It sees
//! counts and times through [`View`], answers with a decision, and holds nothing of the queue's.
//!
//! | the engine asks | when | the answer |
//! | --- | --- | --- |
//! | [`Strategy::defers`] | commands are staged, or a drain is over | for how long they may wait |
//! | [`Strategy::notes_owner`] | a thread submits | whether to know who waits for a request |
//! | [`Strategy::looks`] | a thread has submitted | whether it takes completions in passing |
//! | [`Strategy::budget`] | somebody takes completions in passing | how many to end at most |
//! | [`Strategy::leaves_rest`] | the budget is spent | whether others come for the rest |
//! | [`Strategy::polls`] | completions were taken, or a tick found none | interrupt or timer |
//! | [`Strategy::yields`], [`Strategy::spins`] | a thread waits | yield, spin, or sleep |
//! | [`Strategy::foretells`] | a command is issued | when it is over |
//! | [`Strategy::plans`] | a thread waits for what is expected | nap, spin, or as above |
//! | [`Strategy::looks_in`] | the timer is armed, or a command issued | when it looks |
//!
//! # What no answer changes
//! A strategy decides when a thing is done, never whether. Commands that it defers are told of by
//! the next tick, by whoever finds the device with nothing else to do, and at a reset; what a
//! budget leaves is taken up by somebody who is certain to come; a queue that goes back to its
//! interrupt is looked at once more. `rust/strategy/tests/random.rs` answers with dice.
//!
//! # Contexts
//! Every method may be called from any context, interrupts included, with preemption off, and by
//! several CPUs at once, save those that are given `&mut` [`Strategy::Notes`]. None sleeps.

use cell::sync::{AtomicU64, Ordering};
use hal::Op;

/// Decisions about one queue.
pub trait Strategy: Send + Sync + 'static {
    /// What it keeps from drain to drain, behind the drain token.
    type Notes: Default + Send + 'static;

    /// The names of the strategies that this one can be, for an operator.
    const NAMES: &'static [&'static str];

    /// Which of [`Strategy::NAMES`] it is at present.
    fn chosen(&self) -> usize {
        0
    }

    /// It is to be that one from now on. With the queue at rest ([`crate::Paused`]).
    fn choose(&self, which: usize) {
        let _ = which;
    }

    /// For how many nanoseconds commands that are staged, but are no whole batch, may wait for
    /// more; 0: the device is told at once. Asked of a polled queue only. The engine cuts it short
    /// at [`View::most_deferred_ns`].
    fn defers(&self, view: &impl View, staged: Staged) -> u64;

    /// Whether it is of use to know which thread waits for a request that it submits now: only such
    /// a thread is asked what it does before it sleeps, and only to such a one completions are
    /// offered.
    fn notes_owner(&self, view: &impl View, switches: Switches) -> bool;

    /// Whether the thread that has just submitted takes the completions that are there; of a polled
    /// queue, only where nobody has for a while.
    fn looks(&self, view: &impl View, switches: Switches) -> bool;

    /// How many requests one visit in passing ends, and how many whoever passes by issues for
    /// others beside as many as it has freed tags for. The engine makes 8 to
    /// [`hal::TagBatch::MAX`] of it.
    fn budget(&self, view: &impl View) -> usize;

    /// Whether threads that wait for this CPU come for what a visit has left. A tick comes after an
    /// interval if they do not, and else at once.
    fn leaves_rest(&self, view: &impl View) -> bool;

    /// A window of what [`Strategy::polls`] goes by begins: the mode was set.
    fn begin(&self, notes: &mut Self::Notes, view: &impl View) {
        let _ = (notes, view);
    }

    /// Whether the queue is to be polled from now on. Asked of a hybrid queue only.
    fn polls(&self, notes: &mut Self::Notes, view: &impl View, drained: Drained) -> bool;

    /// Whether a thread that waits lets others run before it takes completions, or after, if it
    /// does at all.
    fn yields_first(&self, view: &impl View) -> bool;

    /// Whether it lets others run instead of sleeping. Asked once for each wait of a thread that
    /// may.
    fn yields(&self, view: &impl View) -> bool;

    /// For how many nanoseconds it spins, having found nothing of its own. The engine cuts it short
    /// at what a sleep takes ([`Costs::sleep_ns`]).
    fn spins(&self, view: &impl View) -> Option<u64>;

    /// What came of a visit, or of spinning for `ns`, as was planned ([`Plan::Spin`]) or not.
    fn spun(&self, view: &impl View, came: Spun, ns: u64) {
        let _ = (view, came, ns);
    }

    /// A thread has come by for `ns`, in vain, and sleeps.
    fn slept(&self, view: &impl View, ns: u64) {
        let _ = (view, ns);
    }

    /// The thread that yielded had its turn again.
    fn yielded(&self, view: &impl View, turn: Turn) {
        let _ = (view, turn);
    }

    /// When a command of so many bytes is over that is about to be issued beside so many others.
    /// Asked while [`View::is_foretelling`].
    fn foretells(&self, view: &impl View, op: Op, bytes: u64, beside: u64) -> Foretells {
        let _ = (view, op, bytes, beside);
        Foretells::Nothing
    }

    /// The command with that mark was answered after `took_ns`.
    fn answered(&self, view: &impl View, mark: u64, took_ns: u64, seen: Seen) {
        let _ = (view, mark, took_ns, seen);
    }

    /// What a thread does that waits for what is expected then.
    fn plans(&self, view: &impl View, what: Expected) -> Plan {
        let _ = (view, what);
        Plan::Any
    }

    /// In how many nanoseconds the timer of a polled queue looks for the only command that is
    /// outstanding, or, if nothing is foretold of it, or there are several, for whatever comes;
    /// `None`: after an interval, which it does at the latest.
    fn looks_in(&self, view: &impl View, what: Option<Outlook>) -> Option<u64> {
        let _ = (view, what);
        None
    }

    /// What came of looking, for `ns`, for what was expected after a nap.
    fn foreseen(&self, view: &impl View, came: Spun, ns: u64) {
        let _ = (view, came, ns);
    }

    /// How a nap ended. `late_ns`: so long after it was to be over the thread looked, unless it was
    /// woken.
    fn napped(&self, view: &impl View, nap: Nap, late_ns: u64) {
        let _ = (view, nap, late_ns);
    }

    /// Tells what it has learnt: a name, and whatever can be said of it.
    fn learned(&self, now_ms: u64, tell: &mut dyn FnMut(&'static str, Learned)) {
        let _ = (now_ms, tell);
    }
}

/// What a strategy sees of a queue.
pub trait View {
    /// Commands that the device has been told of and has not answered. May err by what others are
    /// at just now.
    fn outstanding(&self) -> u64;

    /// The queue's tags.
    fn tags(&self) -> u64;

    /// So many commands are worth telling the device of ([`hal::Queue::batch`]), at least 1.
    fn batch(&self) -> u64;

    /// Commands are staged that the device was not told of, as the strategy deferred that.
    fn is_deferring(&self) -> bool;

    /// How the operator wants completions to be noticed.
    fn mode(&self) -> Mode;

    /// The interrupt is off: a timer looks for completions.
    fn is_polled(&self) -> bool;

    /// A tenth of what the device has lately taken for a command, in nanoseconds; 0: not known, as
    /// where [`View::batch`] is 1.
    fn most_deferred_ns(&self) -> u64;

    /// What things take on this machine.
    fn costs(&self) -> Costs;

    /// Threads that wait for I/O like this are ready, and this CPU has no time for them yet
    /// ([`crate::Upper::is_crowded`]).
    fn is_crowded(&self) -> bool;

    /// It is foretold when commands are over ([`crate::IoQueue::set_foretelling`]), and the
    /// strategy has not asked to be left alone ([`Foretells::NothingFor`]).
    fn is_foretelling(&self) -> bool;

    /// What runs on this CPU, if this is an interrupt, is a thread at work.
    fn interrupts_thread(&self) -> bool;

    /// That thread is one that has waited for I/O of its own here, as far as that was noted.
    fn interrupts_waiter(&self) -> bool;

    /// The interval between two ticks, in nanoseconds.
    fn interval_ns(&self) -> u64;

    /// A coarse monotonic clock, in milliseconds.
    fn now_ms(&self) -> u64;

    /// A fine monotonic clock, in nanoseconds, for intervals up to seconds.
    fn now_ns(&self) -> u64;
}

/// The switches of a disk, as they stand when a request of it is submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches(pub u8);

impl Switches {
    /// Finished I/O is ended by the thread that sleeps for it.
    pub const LAZY: u8 = 1;
    /// Whoever passes by takes completions.
    pub const COOP: u8 = 2;

    /// Whether [`Switches::LAZY`] is on.
    #[inline(always)]
    pub fn lazy(self) -> bool {
        self.0 & Self::LAZY != 0
    }

    /// Whether [`Switches::COOP`] is on.
    #[inline(always)]
    pub fn coop(self) -> bool {
        self.0 & Self::COOP != 0
    }
}

/// In which context requests were ended. Every request counts once, under one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The controller's interrupt.
    Irq,
    /// The thread that slept for it.
    Lazy,
    /// Any thread that passed by.
    Coop,
    /// The poll timer.
    Poll,
    /// None of these: a reset, a removal, a time-out, or a timer that sweeps up what nobody came
    /// for; or whoever submitted what could not be issued.
    Sweep,
}

/// How completions are noticed when nobody passes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the controller's interrupt.
    Irq,
    /// By a timer.
    Poll,
    /// By whichever of the two serves the present load better.
    Hybrid,
}

/// Commands that are staged, and who asks about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staged {
    /// Fewer than a batch, by whoever issues or drains: others may add to them.
    Open,
    /// By who leaves its CPU, or by the timer: from here nobody adds to them.
    Closing,
}

/// A drain that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Under which context.
    pub by: Context,
    /// How many commands were outstanding when it began; 0 where nothing had come.
    pub depth: u64,
    /// How many it has ended.
    pub ended: usize,
    /// A thread that is asleep waits for one of these.
    pub wakes: bool,
}

/// What a thread that waits has done or does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It was woken, and goes on.
    GoOn,
    /// It lets others run, and stays ready itself.
    Yield,
    /// It sleeps.
    Sleep,
    /// It sleeps until then, unless it is woken before, and looks for a while
    /// ([`crate::IoQueue::look_again`]).
    Nap {
        /// By the clock of [`View::now_ns`].
        until_ns: u64,
        /// So many nanoseconds it looks.
        for_ns: u64,
    },
}

/// What came of a visit, and of spinning, if the thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spun {
    /// What the thread waits for was found.
    Found,
    /// The thread looked in vain, up to the end.
    Vain,
}

/// What came of yielding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The I/O was over when the thread's turn came.
    Paid,
    /// It was not.
    Vain,
}

/// When a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// So many nanoseconds after it was issued,
    pub after_ns: u64,
    /// by so many more or less, on average.
    pub spread_ns: u64,
}

/// When what a thread waits for is over, by the clock of [`Upper::now_ns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Then,
    pub at_ns: u64,
    /// give or take so much, on average.
    pub spread_ns: u64,
}

/// How a completion was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was seen to come: a look just before found nothing, or the interrupt brought it. What it
    /// took is measured.
    Came,
    /// It was there at the first look. It took as long at most.
    Found,
}

/// What a strategy foretells of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foretold {
    /// What the strategy is to be told with the answer; never 0.
    pub mark: u64,
    /// When the command is over; `None`: nobody knows yet.
    pub due: Option<Due>,
}

/// What a strategy answers to the question when a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foretells {
    /// That.
    This(Foretold),
    /// It can't be told, now or ever.
    Nothing,
    /// Nor is it of use to ask about so many commands after this one: none of them is foretold, nor
    /// is the strategy told when they were answered.
    NothingFor(u16),
}

/// What a thread does about I/O that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// As if nothing were known of it.
    Any,
    /// It sleeps until then, looks, and spins for a moment.
    Nap {
        /// By the clock of [`Upper::now_ns`].
        until_ns: u64,
        /// For so many nanoseconds it spins afterwards, at most.
        for_ns: u64,
    },
    /// It looks for so many nanoseconds, and then sleeps.
    Spin {
        /// From now on. The engine cuts it short at what a sleep takes ([`crate::Costs::sleep_ns`])
        /// and twice the spread.
        for_ns: u64,
    },
    /// As if nothing were known of it, but that it does not spin: that would be in vain.
    Block,
}

/// How a nap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nap {
    /// What the thread waits for came while it looked.
    Hit,
    /// It was over when the nap was, or at the first look.
    Late,
    /// It did not come while the thread looked.
    Vain,
    /// The thread was woken before.
    Woken,
}

/// A command that nobody waits for in the hook, or not with a nap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// When it was issued, by the clock of [`Upper::now_ns`],
    pub at_ns: u64,
    /// so many nanoseconds ago.
    pub since_ns: u64,
    /// When it is over; `None`: nobody knows yet.
    pub due: Option<Due>,
}

/// What is known of one thing that may pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// It is done, or is to be tried.
    pub open: bool,
    /// What it may lose before it is given up, in nanoseconds.
    pub credit_ns: u64,
}

/// CPU time in nanoseconds, as measured on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A thread goes to sleep, and is woken.
    pub sleep_ns: u64,
    /// A thread lets another one run, and has its turn again.
    pub yield_ns: u64,
    /// A tick of the poll timer that finds nothing, from its entry to its exit.
    pub tick_ns: u64,
    /// An interrupt of the device's that finds nothing, likewise.
    pub interrupt_ns: u64,
}

impl Costs {
    /// Until something is measured: about what a core of 3 GHz takes, which only has to be right
    /// enough to begin with.
    pub const ASSUMED: Self = Self {
        sleep_ns: 2_000,
        yield_ns: 1_000,
        tick_ns: 1_000,
        interrupt_ns: 1_000,
    };
}

/// How much of a new measurement goes into the average: the part of 2 to the power of so much.
const WEIGHT: u32 = 4;

/// The costs of one queue. Anybody may read them at any time.
#[derive(Debug)]
pub(crate) struct Measured {
    sleep_ns: AtomicU64,
    yield_ns: AtomicU64,
    tick_ns: AtomicU64,
    /// What the interrupt's handler takes before it drains, times 2^[`WEIGHT`].
    lead: AtomicU64,
}

impl Measured {
    pub(crate) fn new() -> Self {
        let measured = Self {
            sleep_ns: AtomicU64::new(0),
            yield_ns: AtomicU64::new(0),
            tick_ns: AtomicU64::new(0),
            lead: AtomicU64::new(0),
        };
        measured.set(Costs::ASSUMED);
        measured
    }

    pub(crate) fn set(&self, costs: Costs) {
        self.sleep_ns
            .store(costs.sleep_ns.max(1), Ordering::Relaxed);
        self.yield_ns
            .store(costs.yield_ns.max(1), Ordering::Relaxed);
        self.tick_ns.store(costs.tick_ns.max(1), Ordering::Relaxed);
        let lead = costs.interrupt_ns.saturating_sub(costs.tick_ns);
        self.lead
            .store(lead.saturating_mul(1 << WEIGHT), Ordering::Relaxed);
    }

    /// An interrupt's handler took `ns` before it drained. One caller at a time.
    #[inline]
    pub(crate) fn note_lead(&self, ns: u64) {
        let sum = self.lead.load(Ordering::Relaxed);
        let sum = sum.saturating_sub(sum >> WEIGHT).saturating_add(ns);
        self.lead.store(sum, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> Costs {
        let tick_ns = self.tick_ns.load(Ordering::Relaxed);
        let lead = self.lead.load(Ordering::Relaxed) >> WEIGHT;
        Costs {
            sleep_ns: self.sleep_ns.load(Ordering::Relaxed),
            yield_ns: self.yield_ns.load(Ordering::Relaxed),
            tick_ns,
            // To get in and out of an interrupt takes what it does with a timer's.
            interrupt_ns: tick_ns.saturating_add(lead),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_costs_a_tick_and_what_its_handler_does_first() {
        let measured = Measured::new();
        measured.set(Costs {
            tick_ns: 3_000,
            interrupt_ns: 4_000,
            ..Costs::ASSUMED
        });
        assert_eq!(measured.get().interrupt_ns, 4_000);
        (0..200).for_each(|_| measured.note_lead(9_000));
        let costs = measured.get();
        assert!((11_900..=12_000).contains(&costs.interrupt_ns), "{costs:?}");
        assert_eq!(costs.tick_ns, 3_000);
    }

    #[test]
    fn a_clock_that_does_not_run_measures_no_zero() {
        let measured = Measured::new();
        measured.set(Costs {
            sleep_ns: 0,
            yield_ns: 0,
            tick_ns: 0,
            interrupt_ns: 0,
        });
        let costs = measured.get();
        assert!(costs.sleep_ns > 0 && costs.yield_ns > 0 && costs.tick_ns > 0);
    }
}
