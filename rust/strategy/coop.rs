// SPDX-License-Identifier: GPL-2.0
//! The cooperative strategy of HIOPS (ATC '14): every thread that passes by takes completions, its
//! own and others', and one that waits spins for a moment, or lets the others run, before it
//! sleeps.
//!
//! # What is deferred
//! Commands that are no whole batch, while the device has work enough: no more than a batch less
//! than it has tags. On a CPU that others wait for, who come by soon, a batch is enough: there the
//! CPU is what is short, and the next thread has commands to add. There, as long as yielding
//! pays, a polled queue defers even what the device could begin with: a device that is told of
//! three answers three, and so the thread that drains them tells of three again.
//!
//! # Blocks
//! A device that takes blocks, one at a time, takes a block as long as it has one, however few
//! commands that is of. Of threads that wait, those of a block that is over come again in a moment,
//! when the next has begun: two blocks would take turns for ever, each with what a block costs. So
//! the next one waits until as many are there as there were, if that pays: for no longer than a
//! tenth of what the device takes for one.
//!
//! # Polling on submission
//! Where the queue interrupts, a completion is announced anyway, and no thread polls for it as it
//! submits. Where it is polled, a thread that submits polls, when none has for most of the timer's
//! interval, which puts the next tick off: while threads submit, there are none.
//!
//! # What pays
//! Each way to wait is taken only while it pays: an [`Account`] of each queue's says so, of what it
//! saves and takes, which was measured. Whether a hybrid queue is polled: [`hybrid`].

use engine::{
    Block, Context, Costs, Drained, Expected, Interrupted, Learned, Staged, Strategy, Switches,
    View, WaitOutcome, WaitPlan, Yield,
};
use hal::{Error, Platform};

use crate::hybrid::{CpuUser, LoadWindow, Sample, Source};
use crate::predict::{Carried, Foresight, Planned};
use crate::{Account, Stakes};

/// How many requests one drain in passing ends, a tick's too. It has its CPU for itself meanwhile,
/// and issues as many in their place: with SATA some 25,000 instructions, where the longest
/// interrupt handler of libata takes 40,000 (`bench/run handlers-sata`).
const VISIT: usize = 8;
/// For how many intervals of the ticks a command is deferred at most: however long the device
/// takes, a batch is there by then, or the threads have something else to do.
const MOST_DEFERRED: u64 = 2;
/// What may be lost before a way to wait is given up, in sleeps,
const MOST: u64 = if cfg!(loom) { 2 } else { 64 };
/// by a trial,
const TRIAL: u64 = if cfg!(loom) { 1 } else { 2 };
/// and by one of yielding, which is long enough for those to try it, too, whom one lets run.
const YIELDING: u64 = if cfg!(loom) { 1 } else { 16 };

/// The cooperative strategy, for one queue.
pub struct Coop<P: Platform> {
    /// Whether it pays to spin before a sleep,
    spinning: Account,
    /// to yield instead of one,
    yielding: Account,
    /// and to come by before one at all.
    visits: Account,
    /// Whether it pays to poll.
    polling: Account,
    /// Whether it pays that a block waits for more commands: in the device's time, as what it saves
    /// is that.
    gathering: Account,
    /// When commands are over, and whether it pays to go by that.
    foresight: Foresight<P>,
}

/// What is at stake where a sleep is to be saved, and a trial may take `trial` of them.
#[inline]
fn stakes(costs: &Costs, trial: u64) -> Stakes {
    Stakes {
        most_ns: costs.sleep_ns.saturating_mul(MOST),
        trial_ns: costs.sleep_ns.saturating_mul(trial),
    }
}

impl<P: Platform> Coop<P> {
    /// One that has learnt nothing. Control path; may sleep.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(platform: &P) -> Result<Self, Error> {
        Ok(Self {
            spinning: Account::default(),
            yielding: Account::default(),
            visits: Account::default(),
            polling: Account::default(),
            gathering: Account::default(),
            foresight: Foresight::new(platform)?,
        })
    }

    /// When commands are over, and what is done about it.
    pub fn foresight(&self) -> &Foresight<P> {
        &self.foresight
    }

    /// What is at stake where a trial may take `least` sleeps, or as many as threads wait, about:
    /// who is not known to wait is yielded to by nobody, and who is let run by few comes back too
    /// soon. So where many begin at once, a few that try it do so in vain, and all of them do not.
    #[inline]
    fn stakes_of_all(costs: &Costs, view: &impl View, least: u64) -> Stakes {
        stakes(costs, view.outstanding().clamp(least, MOST))
    }

    /// Whether several commands are worth telling the device of at once.
    #[inline]
    fn coalesces(view: &impl View) -> bool {
        view.batching().batch() > 1
    }

    /// Whether threads wait for this CPU that, as far as is known, yield to each other while they
    /// wait for I/O: they find completions, and more at once, if they are left to it.
    #[inline]
    fn is_left_to_waiters(&self, view: &impl View) -> bool {
        Self::coalesces(view) && self.yielding.is_open(view.now_ms()) && view.is_crowded()
    }

    /// Whether the device has work enough.
    #[inline]
    fn is_saturated(view: &impl View) -> bool {
        let (outstanding, batch) = (view.outstanding(), view.batching().batch());
        let enough = view.batching().tags().saturating_sub(batch);
        outstanding >= batch && (outstanding >= enough || view.is_crowded())
    }

    /// Whom a drain keeps from this CPU, if it was noticed so; `wakes`: somebody sleeps for what it
    /// ended.
    #[inline]
    fn interrupted(view: &impl View, by: Source, wakes: bool) -> CpuUser {
        if by == Source::Passing {
            return CpuUser::Io;
        }
        match view.interrupted() {
            Interrupted::Nobody => CpuUser::Idle,
            Interrupted::Thread if wakes => CpuUser::Other,
            _ => CpuUser::Io,
        }
    }

    /// Whether a thread that is going to wait does well to come by before it sleeps. What the
    /// interrupt finds is looked for in vain where all sleep anyway; without one, or where commands
    /// are deferred, a thread that waits has its part in finding it.
    #[inline]
    fn visits_pay(&self, view: &impl View) -> bool {
        view.polling().is_on() || view.batching().is_pending() || self.visits.is_open(view.now_ms())
    }
}

impl<P: Platform> Strategy for Coop<P> {
    type Notes = LoadWindow;
    type Predictor = Foresight<P>;

    #[inline(always)]
    fn predictor(&self) -> &Foresight<P> {
        &self.foresight
    }

    #[inline]
    fn batches(&self, view: &impl View, staged: Staged) -> u64 {
        let (most_ns, interval_ns) = (view.batching().most_ns(), view.polling().interval_ns());
        // No tick is to come for it that would not come anyway.
        if most_ns < interval_ns {
            return 0;
        }
        let waiters = || staged == Staged::Open && self.is_left_to_waiters(view);
        match Self::is_saturated(view) || waiters() {
            true => most_ns.min(interval_ns.saturating_mul(MOST_DEFERRED)),
            false => 0,
        }
    }

    fn block(&self, view: &impl View, block: Block) -> usize {
        let size = block.staged.min(block.most);
        let (now_ms, waited_ns) = (view.now_ms(), block.waited_ns);
        let stakes = Stakes {
            most_ns: block.may_wait_ns.saturating_mul(MOST),
            trial_ns: block.may_wait_ns.saturating_mul(TRIAL),
        };
        if size >= block.expected.min(block.most) {
            // They came within what may be lost: a block costs the device more.
            if waited_ns != 0 {
                let saved = block.may_wait_ns.saturating_sub(waited_ns);
                self.gathering.earn(saved, stakes, now_ms);
            }
            return size;
        }
        if block.may_wait() && self.gathering.is_open(now_ms) {
            return 0;
        }
        if waited_ns != 0 {
            self.gathering.spend(waited_ns, stakes, now_ms);
        }
        size
    }

    #[inline]
    fn tracks(&self, view: &impl View, switches: Switches) -> bool {
        let naps = view.is_predicting() && self.foresight.tracks(view);
        switches.lazy() || (switches.coop() && (naps || self.visits_pay(view)))
    }

    #[inline(always)]
    fn polls_on_submit(&self, view: &impl View, switches: Switches) -> bool {
        switches.coop() && view.polling().is_on() && view.outstanding() > 1
    }

    #[inline(always)]
    fn budget(&self, _: &impl View) -> usize {
        VISIT
    }

    #[inline]
    fn leaves_to_waiters(&self, view: &impl View) -> bool {
        self.is_left_to_waiters(view)
    }

    #[inline(always)]
    fn polls(&self, watch: &mut LoadWindow, view: &impl View, drained: Option<Drained>) -> bool {
        let Some(drained) = drained else {
            self.foresight.carrying().begin();
            watch.begin(view.now_ns());
            return view.polling().is_on();
        };
        let carried = self.foresight.carrying().carries(view, drained.depth);
        if carried == Carried::NoMore {
            watch.begin(view.now_ns());
        }
        if carried != Carried::No {
            return carried == Carried::Yes;
        }
        let by = match drained.by {
            Context::Irq => Source::Interrupt,
            Context::Poll => Source::Tick,
            Context::Lazy | Context::Coop | Context::Sweep => Source::Passing,
        };
        let sample = Sample {
            by,
            cpu: Self::interrupted(view, by, drained.wakes),
            ended: drained.ended,
            depth: drained.depth,
            drains: drained.drains,
        };
        watch.note(sample, &self.polling, view)
    }

    /// Where the CPU is short of time, the threads that are ready run first: a thread that polls
    /// after them finds more.
    #[inline]
    fn waits(&self, view: &impl View, expected: Option<Expected>) -> WaitPlan {
        let spins = || self.spinning.is_open(view.now_ms());
        let planned = expected.map(|what| self.foresight.waits(view, what, spins));
        let may_spin = match planned {
            Some(Planned::Nap { until_ns, for_ns }) => return WaitPlan::Nap { until_ns, for_ns },
            Some(Planned::Spin { for_ns }) => return WaitPlan::Spin { for_ns },
            Some(Planned::NoSpin) => false,
            Some(Planned::Any) | None => true,
        };
        let first = view.polling().is_on() || Self::coalesces(view);
        let when = if first { Yield::First } else { Yield::Last };
        WaitPlan::Poll {
            spin_ns: (may_spin && spins()).then(|| view.costs().sleep_ns),
            yields: self.yielding.is_open(view.now_ms()).then_some(when),
        }
    }

    #[inline]
    fn ended(&self, view: &impl View, outcome: WaitOutcome) {
        match outcome {
            WaitOutcome::Spun { found, ns } => self.spun(view, found, ns),
            WaitOutcome::Yielded { found } => self.yielded(view, found),
            WaitOutcome::Slept { ns } => self.slept(view, ns),
            WaitOutcome::NapSpun { found, ns } => self.foresight.spun(view, found, ns),
            WaitOutcome::Napped { nap, late_ns } => self.foresight.napped(view, nap, late_ns),
        }
    }
}

impl<P: Platform> Coop<P> {
    fn spun(&self, view: &impl View, found: bool, ns: u64) {
        let (costs, now_ms) = (view.costs(), view.now_ms());
        let stakes = stakes(&costs, TRIAL);
        match found {
            true => {
                let saved = costs.sleep_ns.saturating_sub(ns);
                self.spinning.earn(saved, stakes, now_ms);
                let visits = Self::stakes_of_all(&costs, view, TRIAL);
                self.visits.earn(saved, visits, now_ms);
            }
            false => self.spinning.spend(ns, stakes, now_ms),
        }
    }

    fn slept(&self, view: &impl View, ns: u64) {
        let now_ms = view.now_ms();
        let tried = self.visits.has_credit();
        let visits = Self::stakes_of_all(&view.costs(), view, TRIAL);
        self.visits.spend(ns, visits, now_ms);
        // A trial of coming by is one of all that is done there.
        if !tried && self.visits.has_credit() {
            self.spinning.hasten();
            self.yielding.hasten();
        }
    }

    fn yielded(&self, view: &impl View, found: bool) {
        let (costs, now_ms) = (view.costs(), view.now_ms());
        let visits = Self::stakes_of_all(&costs, view, TRIAL);
        let yielding = Self::stakes_of_all(&costs, view, YIELDING);
        match found {
            true => {
                let saved = costs.sleep_ns.saturating_sub(costs.yield_ns);
                self.yielding.earn(saved, yielding, now_ms);
                self.visits.earn(saved, visits, now_ms);
            }
            false => {
                self.yielding.spend(costs.yield_ns, yielding, now_ms);
                self.visits.spend(costs.yield_ns, visits, now_ms);
            }
        }
    }

    /// Tells what it has learnt ([`engine::Selectable::learned`]).
    pub(crate) fn learned(&self, now_ms: u64, tell: &mut dyn FnMut(&'static str, Learned)) {
        let accounts = [
            ("visits", &self.visits),
            ("spinning", &self.spinning),
            ("yielding", &self.yielding),
            ("polling", &self.polling),
            ("napping", self.foresight.account()),
        ];
        for (name, account) in accounts {
            let open = account.is_open(now_ms);
            let credit_ns = account.credit_ns();
            tell(name, Learned { open, credit_ns });
        }
    }
}
