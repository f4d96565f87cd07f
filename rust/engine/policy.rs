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
//! | [`Strategy::batches`] | commands are staged, or a drain is over | for how long they may wait |
//! | [`Strategy::block`] | the device takes a block in | of how many commands it is |
//! | [`Strategy::tracks`] | a thread submits | whether to know who waits for a request |
//! | [`Strategy::polls_on_submit`] | a thread has submitted | whether it takes completions |
//! | [`Strategy::budget`] | somebody takes completions in passing | how many to end at most |
//! | [`Strategy::leaves_to_waiters`] | the budget is spent | whether others come for the rest |
//! | [`Strategy::polls`] | completions were taken, or a tick found none | interrupt or timer |
//! | [`Strategy::waits`] | a thread waits | nap, spin, yield, or sleep |
//!
//! It is told of the way that each wait has ended ([`Strategy::ended`]), and its [`Predictor`], if
//! it has one, of commands.
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

use cell::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use hal::Op;

use crate::on_demand::OnDemand;

/// Decisions about one queue. As it comes it decides as the in-tree drivers do: see
/// `strategy::Plain`.
pub trait Strategy: Send + Sync + 'static {
    /// What it keeps from drain to drain, behind the drain token.
    type Notes: Default + Send + 'static;
    /// What predicts when commands are over; `()`: nothing does, and the engine has no code for it.
    type Predictor: Predictor;

    /// What predicts.
    fn predictor(&self) -> &Self::Predictor;

    /// For how many nanoseconds commands that are staged, but are no whole batch, may wait for
    /// more; 0: the device is told at once. Asked of a polled queue only. The engine cuts it short
    /// at [`Batching::most_ns`].
    #[inline(always)]
    fn batches(&self, view: &impl View, staged: Staged) -> u64 {
        let _ = (view, staged);
        0
    }

    /// Of how many commands a block is that the device takes in now ([`hal::Queue::takes`]); 0: it
    /// waits for more. Asked with the issue token held, for each command that is staged meanwhile,
    /// and at the end of [`Block::may_wait_ns`]. Of more the engine makes as many as there are and
    /// the device takes, and, where they may not wait any longer, 1 of 0.
    fn block(&self, view: &impl View, block: Block) -> usize {
        let _ = view;
        block.staged.min(block.most)
    }

    /// Whether it is of use to know which thread waits for a request that it submits now: only such
    /// a thread is asked what it does before it sleeps, and only to such a one completions are
    /// offered.
    #[inline(always)]
    fn tracks(&self, view: &impl View, switches: Switches) -> bool {
        let _ = (view, switches);
        false
    }

    /// Whether the thread that has just submitted takes the completions that are there; of a polled
    /// queue, only where nobody has for a while.
    #[inline(always)]
    fn polls_on_submit(&self, view: &impl View, switches: Switches) -> bool {
        let _ = (view, switches);
        false
    }

    /// How many requests one drain in passing ends, and how many whoever passes by issues for
    /// others beside as many as it has freed tags for. The engine makes 8 to
    /// [`hal::TagBatch::MAX`] of it.
    #[inline(always)]
    fn budget(&self, view: &impl View) -> usize {
        let _ = view;
        usize::MAX
    }

    /// Whether threads that wait for this CPU come for what a drain in passing has left. If not, a
    /// tick comes for it at once; else, should they not come after all, after half an interval, or
    /// when it was due on a polled queue.
    #[inline(always)]
    fn leaves_to_waiters(&self, view: &impl View) -> bool {
        let _ = view;
        false
    }

    /// Whether the queue is to be polled from now on. Asked of a hybrid queue only: when it becomes
    /// one or gets this strategy (`drained` is `None`: what the answers go by begins anew), and
    /// after drains.
    #[inline(always)]
    fn polls(&self, notes: &mut Self::Notes, view: &impl View, drained: Option<Drained>) -> bool {
        let _ = (notes, view, drained);
        false
    }

    /// What a thread does before it sleeps. `expected`: when what it waits for is over, where that
    /// is predicted.
    #[inline(always)]
    fn waits(&self, view: &impl View, expected: Option<Expected>) -> WaitPlan {
        let _ = (view, expected);
        WaitPlan::SLEEP
    }

    /// A part of a thread's wait has ended so.
    #[inline(always)]
    fn ended(&self, view: &impl View, outcome: WaitOutcome) {
        let _ = (view, outcome);
    }
}

/// A strategy as an operator sees it: which of several it is, and what it has learnt.
pub trait Selectable {
    /// The names of the strategies that this one can be.
    const NAMES: &'static [&'static str];

    /// Which of [`Selectable::NAMES`] it is at present.
    fn selected(&self) -> usize;

    /// It is to be that one from now on. With the queue at rest ([`crate::Quiesced`]).
    fn select(&self, which: usize);

    /// Tells what it has learnt: a name, and whatever can be said of it.
    fn learned(&self, now_ms: u64, tell: &mut dyn FnMut(&'static str, Learned));
}

/// Predicts when commands are over, by what it is told of those before. Any context, with
/// preemption off; several CPUs at once.
pub trait Predictor: Send + Sync + 'static {
    /// Whether it predicts anything, ever.
    const ENABLED: bool = true;

    /// When a command of `bytes` is over that is about to be issued while `beside` others are
    /// outstanding. Asked while [`View::is_predicting`].
    fn issued(&self, view: &impl View, op: Op, bytes: u64, beside: u64) -> Prediction;

    /// The command with that mark was answered after `took_ns`.
    fn completed(&self, view: &impl View, mark: u64, took_ns: u64, seen: Seen);

    /// In how many nanoseconds the timer of a polled queue fires for the only command that is
    /// outstanding, or, if nothing is predicted of it, or there are several, for whatever comes;
    /// `None`: after an interval, which it does at the latest.
    fn next_poll(&self, view: &impl View, alone: Option<Alone>) -> Option<u64>;
}

/// Predicts nothing.
impl Predictor for () {
    const ENABLED: bool = false;

    fn issued(&self, _: &impl View, _: Op, _: u64, _: u64) -> Prediction {
        Prediction::Nothing
    }

    fn completed(&self, _: &impl View, _: u64, _: u64, _: Seen) {}

    fn next_poll(&self, _: &impl View, _: Option<Alone>) -> Option<u64> {
        None
    }
}

/// What a strategy sees of a queue.
pub trait View {
    /// Commands that the device has been told of and has not answered. May err by what others are
    /// at just now.
    fn outstanding(&self) -> u64;

    /// How many commands are worth telling the device of at once, and whether some wait for more.
    fn batching(&self) -> &Batching;

    /// The mode, and the timer.
    fn polling(&self) -> &Polling;

    /// It is predicted when commands are over ([`crate::IoQueue::set_predicting`]), and the
    /// predictor has not asked to be left alone ([`Prediction::NothingFor`]).
    fn is_predicting(&self) -> bool;

    /// What things take on this machine.
    fn costs(&self) -> Costs;

    /// Threads that wait for I/O like this are ready, and this CPU has no time for them yet
    /// ([`Cpu::is_crowded`]).
    fn is_crowded(&self) -> bool;

    /// Whom an interrupt on this CPU keeps from running.
    fn interrupted(&self) -> Interrupted;

    /// A coarse monotonic clock, in milliseconds.
    fn now_ms(&self) -> u64;

    /// A fine monotonic clock, in nanoseconds, for intervals up to seconds.
    fn now_ns(&self) -> u64;
}

/// The CPU that the caller runs on, and its clocks. In the kernel `kglue` has it. Any context.
pub trait Cpu {
    /// Whom an interrupt that runs here keeps from running.
    fn interrupted(&self) -> Interrupted {
        Interrupted::Nobody
    }

    /// Whether threads are ready that this CPU has no time for at the moment, and that come by
    /// soon: none that computes is known to be among them.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Whether any queue of the machine may have prediction on: where none has, the compiler or
    /// the kernel can take out what asks. Cheap.
    fn may_predict(&self) -> bool {
        true
    }

    /// A coarse monotonic clock, in milliseconds.
    fn now_ms(&self) -> u64;

    /// A fine monotonic clock, in nanoseconds, for intervals up to seconds.
    fn now_ns(&self) -> u64;
}

/// Whom an interrupt keeps from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// Nobody: the CPU was idle.
    Nobody,
    /// A thread that has waited for I/O of its own here, as far as that was tracked.
    Waiter,
    /// Another thread.
    Thread,
}

/// The switches of a disk, as they stand when a request of it is submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches(pub u8);

impl Switches {
    /// Finished I/O is ended by the thread that sleeps for it.
    pub const LAZY: u8 = 1;
    /// Whoever passes by takes completions.
    pub const COOP: u8 = 2;
    /// The layer above measures how long requests take ([`crate::latency`]).
    pub const LATENCY: u8 = 4;
    /// It does so by the kernel's clock, as the CPUs' counters are not the same on all of them.
    pub const LATENCY_BY_CLOCK: u8 = 8;

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

    /// Whether [`Switches::LATENCY`] is on.
    #[inline(always)]
    pub fn latency(self) -> bool {
        self.0 & Self::LATENCY != 0
    }

    /// Whether [`Switches::LATENCY_BY_CLOCK`] is on.
    #[inline(always)]
    pub fn by_clock(self) -> bool {
        self.0 & Self::LATENCY_BY_CLOCK != 0
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
    /// The poll timer, or a thread of polled I/O of the block layer's.
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

/// The interval that a new queue polls at, in microseconds: within the 16 to 32 of HIOPS (ATC '14,
/// section 4).
pub const DEFAULT_POLL_INTERVAL_US: u32 = 32;

/// The part of an interval before a tick in which who passes by looks, and puts the tick off: the
/// less, the more each look finds, and the more ticks come because nobody did. By `bench/run timed
/// --model sata --unheld --loads psync-64,uring-32` a half has 65,357 and 65,430 IOPS, a third
/// 67,464 and 65,230.
pub(crate) const LAST: u64 = 3;

/// A queue's mode, and where its timer is.
pub struct Polling {
    pub(crate) mode: AtomicU8,
    pub(crate) interval_us: AtomicU32,
    /// The interrupt is off. Written by the drain token's holder.
    pub(crate) on: AtomicBool,
    /// The timer is armed, or its tick is under way, while anything is outstanding.
    pub(crate) timer: OnDemand,
    /// When the timer expires, by the clock of [`Cpu::now_ns`]: an interval after the last look
    /// that left nothing, at the latest.
    pub(crate) due_ns: AtomicU64,
}

impl Polling {
    /// By interrupts.
    pub fn new() -> Self {
        Self {
            mode: AtomicU8::new(Mode::Irq as u8),
            interval_us: AtomicU32::new(DEFAULT_POLL_INTERVAL_US),
            on: AtomicBool::new(false),
            timer: OnDemand::default(),
            due_ns: AtomicU64::new(0),
        }
    }

    /// How the operator wants completions to be noticed.
    #[inline]
    pub fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            mode if mode == Mode::Poll as u8 => Mode::Poll,
            mode if mode == Mode::Hybrid as u8 => Mode::Hybrid,
            _ => Mode::Irq,
        }
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// The interrupt is off from now on, or on. With the drain token held.
    pub fn turn(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// The interrupt is off: a timer polls for completions.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn interval_us(&self) -> u32 {
        self.interval_us.load(Ordering::Relaxed)
    }

    /// The interval between two ticks, in nanoseconds.
    #[inline]
    pub fn interval_ns(&self) -> u64 {
        u64::from(self.interval_us()).saturating_mul(1000)
    }

    /// When the timer expires.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns.load(Ordering::Relaxed)
    }

    /// Whether the next tick is due within a third of an interval of `now_ns`.
    #[inline]
    pub(crate) fn is_poll_due(&self, now_ns: u64) -> bool {
        let due = self.due_ns();
        now_ns.saturating_add(self.interval_ns() / LAST) >= due
    }
}

impl Default for Polling {
    fn default() -> Self {
        Self::new()
    }
}

/// The part of a command's time that it may be late by.
const LATE_SHARE: u64 = 10;

/// How many commands the device is best told of at once, and whether some wait for more at this
/// moment.
pub struct Batching {
    /// [`hal::Queue::batch`].
    batch: usize,
    /// The queue's tags.
    tags: usize,
    /// Staged commands wait for more of them. Written by the issue token's holder.
    pub(crate) on: AtomicBool,
    /// The device is told by then, by the clock of [`Cpu::now_ns`].
    pub(crate) until_ns: AtomicU64,
    /// What the device has lately taken for a command, in nanoseconds; 0: not known. Written by the
    /// drain token's holder.
    pub(crate) device_ns: Ewma<3>,
    /// The tag of a command whose time is taken, plus 1; 0: of none.
    pub(crate) sampled: AtomicU32,
    /// When the device was told of it.
    pub(crate) told_ns: AtomicU64,
}

impl Batching {
    /// For a queue of `tags` tags, whose device is best told of `batch` commands at once.
    pub fn new(batch: usize, tags: usize) -> Self {
        Self {
            batch,
            tags,
            on: AtomicBool::new(false),
            until_ns: AtomicU64::new(0),
            device_ns: Ewma::new(),
            sampled: AtomicU32::new(0),
            told_ns: AtomicU64::new(0),
        }
    }

    /// How many commands are worth telling the device of at once ([`hal::Queue::batch`]), at least
    /// 1.
    #[inline(always)]
    pub fn batch(&self) -> u64 {
        // CAST: usize is at most 64 bits wide.
        self.batch as u64
    }

    /// The queue's tags.
    #[inline(always)]
    pub fn tags(&self) -> u64 {
        // CAST: as above.
        self.tags as u64
    }

    /// Whether commands are staged that the device was not told of: the strategy deferred that, or
    /// the device takes none.
    #[inline(always)]
    pub fn is_pending(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// For how long commands may wait for others: a tenth of what the device has lately taken for
    /// one, in nanoseconds; 0: that is not known, as where [`Batching::batch`] is 1.
    #[inline]
    pub fn most_ns(&self) -> u64 {
        self.device_ns.get() / LATE_SHARE
    }

    /// When the device is told of what is deferred, at the latest.
    #[inline]
    pub(crate) fn until_ns(&self) -> u64 {
        self.until_ns.load(Ordering::Relaxed)
    }

    /// The device is told of `tag`, and maybe of others. By the issuer.
    #[inline]
    pub(crate) fn begin_sample(&self, tag: u32, now_ns: impl FnOnce() -> u64) {
        if self.batch > 1 && self.sampled.load(Ordering::Relaxed) == 0 {
            self.told_ns.store(now_ns(), Ordering::Relaxed);
            // Release: who finds the tag finds when that was.
            self.sampled.store(tag.wrapping_add(1), Ordering::Release);
        }
    }

    /// The device has answered `tag`. By the drainer.
    #[inline]
    pub(crate) fn end_sample(&self, tag: usize, now_ns: impl FnOnce() -> u64) {
        // CAST: a tag is 16 bits wide.
        let sampled = (tag as u32).wrapping_add(1);
        if self.batch > 1 && self.sampled.load(Ordering::Acquire) == sampled {
            let took = now_ns().saturating_sub(self.told_ns.load(Ordering::Relaxed));
            self.note_device(took);
            self.sampled.store(0, Ordering::Relaxed);
        }
    }

    /// The device took so long for a command, which counts as twice the average at most: one that
    /// the drive had to try again is no measure of others.
    #[inline]
    fn note_device(&self, took_ns: u64) {
        match self.device_ns.get() {
            0 => self.device_ns.set(took_ns),
            usual => self.device_ns.note(took_ns.min(usual.saturating_mul(2))),
        }
    }

    /// The device answers nothing of before any more. With both tokens.
    pub(crate) fn forget_sample(&self) {
        self.sampled.store(0, Ordering::Relaxed);
    }

    /// What is staged is held back.
    pub(crate) fn hold(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    /// Nothing is staged any more, or it goes to the device now.
    pub(crate) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
    }
}

/// A block that the device would take in now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Commands that are staged, at least 1.
    pub staged: usize,
    /// How many the device takes at once, at least 1.
    pub most: usize,
    /// How many will be staged if each thread that was answered with the last block submits again:
    /// the commands of that block, and those that were staged beside it.
    pub expected: usize,
    /// For how many nanoseconds the block has waited for `expected` commands.
    pub waited_ns: u64,
    /// For how many nanoseconds it may wait in all.
    pub may_wait_ns: u64,
}

impl Block {
    /// Whether the block may wait longer.
    pub fn may_wait(&self) -> bool {
        self.waited_ns < self.may_wait_ns
    }
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
    /// How many commands were outstanding until it ended some; 0 where nothing had come.
    pub depth: u64,
    /// How many it has ended.
    pub ended: usize,
    /// A thread that is asleep waits for one of these.
    pub wakes: bool,
    /// How many drains like it this one stands for, itself included.
    pub drains: u32,
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
        /// For how many nanoseconds the thread polls and spins afterwards, at most.
        for_ns: u64,
    },
}

/// What a thread does about I/O that it waits for, before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPlan {
    /// It sleeps until shortly before the I/O is expected to be over, polls, and spins.
    Nap {
        /// By the clock of [`View::now_ns`].
        until_ns: u64,
        /// For how many nanoseconds it spins afterwards, at most.
        for_ns: u64,
    },
    /// It polls for up to `for_ns` nanoseconds for what is expected, and then sleeps. The engine
    /// cuts it short at what a sleep takes ([`Costs::sleep_ns`]) and twice the spread.
    Spin {
        /// From now on.
        for_ns: u64,
    },
    /// It polls once, up to a budget, and then sleeps.
    Poll {
        /// For how many nanoseconds it spins after that, having found nothing of its own. The
        /// engine cuts it short at what a sleep takes; `None`: it does not.
        spin_ns: Option<u64>,
        /// When it lets others run instead of sleeping, if it may.
        yields: Option<Yield>,
    },
}

impl WaitPlan {
    /// It polls once, and sleeps.
    pub const SLEEP: Self = Self::Poll {
        spin_ns: None,
        yields: None,
    };
}

/// When a thread lets others run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// Before it takes completions.
    First,
    /// After it has polled and spun in vain.
    Last,
}

/// How a part of a thread's wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It polled, or spun for `ns`, as was planned ([`WaitPlan::Spin`]) or not.
    Spun {
        /// What it waits for was found; else it polled in vain, up to the end.
        found: bool,
        /// For how long.
        ns: u64,
    },
    /// It yielded.
    Yielded {
        /// The I/O was over when its turn came.
        found: bool,
    },
    /// It has polled for `ns` before, in vain, and sleeps.
    Slept {
        /// For how long it polled.
        ns: u64,
    },
    /// It spun for `ns` after a nap.
    NapSpun {
        /// What it waits for was found.
        found: bool,
        /// For how long.
        ns: u64,
    },
    /// A nap is over.
    Napped {
        /// How.
        nap: Nap,
        /// How long after it was to be over the thread polled, unless it was woken.
        late_ns: u64,
    },
}

/// When a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// From its issue to its end, in nanoseconds.
    pub after_ns: u64,
    /// How far commands like it are from that on average, in nanoseconds.
    pub spread_ns: u64,
}

/// When what a thread waits for is over, by the clock of [`Cpu::now_ns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The expected end, in nanoseconds.
    pub at_ns: u64,
    /// How far commands like it are from that on average, in nanoseconds.
    pub spread_ns: u64,
}

/// How a completion was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was seen to come: a look just before found nothing, or the interrupt brought it. What it
    /// took is measured.
    Came,
    /// It was there at the first poll. It took as long at most.
    Found,
}

/// What is predicted of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicted {
    /// What the predictor is to be told with the answer; never 0.
    pub mark: u64,
    /// When the command is over; `None`: nobody knows yet.
    pub due: Option<Due>,
}

/// What a predictor answers to the question when a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// The command's end is predicted, or at least measured.
    This(Predicted),
    /// The command's end can't be predicted.
    Nothing,
    /// As [`Prediction::Nothing`], also for this number of commands after it: the predictor is
    /// neither asked about them, nor told when they were answered.
    NothingFor(u16),
}

/// How a nap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nap {
    /// What the thread waits for came while it looked.
    Hit,
    /// It was over when the nap was, or at the first poll.
    Late,
    /// It did not come while the thread looked.
    Vain,
    /// The thread was woken before.
    Woken,
}

/// The only command that is outstanding, which nobody waits for in the hook, or not with a nap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// When it was issued, by the clock of [`Cpu::now_ns`].
    pub at_ns: u64,
    /// How long ago that was, in nanoseconds.
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

/// An average that forgets: each new value has a part of 2^`SHIFT` in it. One writer at a time,
/// anybody reads.
#[derive(Debug)]
pub(crate) struct Ewma<const SHIFT: u32> {
    /// Times 2^`SHIFT`.
    sum: AtomicU64,
}

impl<const SHIFT: u32> Ewma<SHIFT> {
    fn new() -> Self {
        Self {
            sum: AtomicU64::new(0),
        }
    }

    #[inline]
    fn get(&self) -> u64 {
        self.sum.load(Ordering::Relaxed) >> SHIFT
    }

    /// It is `value`, whatever was before.
    fn set(&self, value: u64) {
        let sum = value.saturating_mul(1 << SHIFT);
        self.sum.store(sum, Ordering::Relaxed);
    }

    #[inline]
    fn note(&self, value: u64) {
        let sum = self.sum.load(Ordering::Relaxed);
        let sum = sum.saturating_sub(sum >> SHIFT).saturating_add(value);
        self.sum.store(sum, Ordering::Relaxed);
    }
}

/// The costs of one queue. Anybody may read them at any time.
#[derive(Debug)]
pub(crate) struct Measured {
    sleep_ns: AtomicU64,
    yield_ns: AtomicU64,
    tick_ns: AtomicU64,
    /// What the interrupt's handler takes before it drains.
    lead_ns: Ewma<4>,
}

impl Measured {
    pub(crate) fn new() -> Self {
        let measured = Self {
            sleep_ns: AtomicU64::new(0),
            yield_ns: AtomicU64::new(0),
            tick_ns: AtomicU64::new(0),
            lead_ns: Ewma::new(),
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
        let lead_ns = costs.interrupt_ns.saturating_sub(costs.tick_ns);
        self.lead_ns.set(lead_ns);
    }

    /// An interrupt's handler took `ns` before it drained. One caller at a time.
    #[inline]
    pub(crate) fn note_lead(&self, ns: u64) {
        self.lead_ns.note(ns);
    }

    #[inline]
    pub(crate) fn get(&self) -> Costs {
        let tick_ns = self.tick_ns.load(Ordering::Relaxed);
        Costs {
            sleep_ns: self.sleep_ns.load(Ordering::Relaxed),
            yield_ns: self.yield_ns.load(Ordering::Relaxed),
            tick_ns,
            // To get in and out of an interrupt takes what it does with a timer's.
            interrupt_ns: tick_ns.saturating_add(self.lead_ns.get()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_slow_command_does_not_make_a_slow_device() {
        let batching = Batching::new(4, 32);
        batching.note_device(400_000);
        batching.note_device(30_000_000_000);
        let device = batching.device_ns.get();
        assert!(device <= 450_000, "{device}");
    }

    #[test]
    fn it_follows_a_device_that_has_become_slower() {
        let batching = Batching::new(4, 32);
        batching.note_device(400_000);
        (0..100).for_each(|_| batching.note_device(900_000));
        let slower = batching.device_ns.get();
        assert!((880_000..=900_000).contains(&slower), "{slower}");
    }
}
