// SPDX-License-Identifier: GPL-2.0
//! The cooperative strategy of HIOPS (ATC '14): every thread that passes by takes completions, its
//! own and others', and one that waits spins for a moment, or lets the others run, before it
//! sleeps.
//!
//! # What is deferred
//! Commands that are no whole batch, while the device has work enough: no more than a batch less
//! than it has tags. On a CPU that others wait for, who come by soon, a batch is enough: there the
//! CPU is what is short, and whoever comes next has commands to add. There, as long as yielding
//! pays, a polled queue defers even what the device could begin with: a device that is told of
//! three answers three, and so whoever drains for them tells of three again.
//!
//! # Who passes by
//! Where the queue interrupts, what has come is announced anyway, and nobody looks for it in
//! passing. Where it is polled, whoever passes by looks, when nobody has for most of the
//! interval of the ticks, which puts the next tick off: while threads pass by, there are none.
//!
//! # What pays
//! Each way to wait is taken only while it pays: an [`Account`] of each queue's says so, of what it
//! saves and takes, which was measured. Whether a hybrid queue is polled: [`hybrid`].

use crate::hybrid::{Cpu, Noted, Notice, Watch};
use engine::{
    Context, Costs, Drained, Expected, Foretells, Learned, Nap, Outlook, Plan, Seen, Spun, Staged,
    Strategy, Switches, Turn, View,
};
use hal::{Error, Op, Platform};

use crate::predict::{Carried, Foresight};
use crate::{Account, Stakes};

/// How many requests one visit ends. It has its CPU for itself meanwhile, and issues as many in
/// their place: with SATA some 25,000 instructions, where the longest interrupt handler of libata
/// takes 40,000 (`bench/run handlers-sata`).
const VISIT: usize = 8;
/// A command is deferred for so many intervals of the ticks at most: however long the device takes,
/// a batch is there by then, or the threads have something else to do.
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
    /// When commands are over, and whether it pays to go by that.
    foresight: Foresight<P>,
}

/// What is at stake where a sleep is to be saved, and a trial may take so many.
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
            foresight: Foresight::new(platform)?,
        })
    }

    /// When commands are over, and what is done about it.
    pub fn foresight(&self) -> &Foresight<P> {
        &self.foresight
    }

    /// Whether several commands are worth telling the device of at once.
    #[inline]
    fn coalesces(view: &impl View) -> bool {
        view.batch() > 1
    }

    /// Whether threads wait for this CPU that, as far as is known, yield to each other while they
    /// wait for I/O: they find completions, and more at once, if they are left to it.
    #[inline]
    fn is_left_to_waiters(&self, view: &impl View) -> bool {
        Self::coalesces(view) && self.yielding.is_open(view.now_ms()) && view.is_crowded()
    }

    /// Whether the device has work enough.
    #[inline]
    fn is_filled(view: &impl View) -> bool {
        let (outstanding, batch) = (view.outstanding(), view.batch());
        let enough = view.tags().saturating_sub(batch);
        outstanding >= batch && (outstanding >= enough || view.is_crowded())
    }

    /// Whom a drain keeps from this CPU, if it was noticed so; `wakes`: somebody sleeps for what it
    /// ended.
    #[inline]
    fn interrupted(view: &impl View, by: Notice, wakes: bool) -> Cpu {
        match by {
            Notice::Passing => Cpu::Io,
            _ if !view.interrupts_thread() => Cpu::Idle,
            _ if wakes && !view.interrupts_waiter() => Cpu::Other,
            _ => Cpu::Io,
        }
    }

    /// Whether a thread that is going to wait does well to come by before it sleeps. What the
    /// interrupt finds is looked for in vain where all sleep anyway; without one, or where commands
    /// are deferred, a thread that waits has its part in finding it.
    #[inline]
    fn visits_pay(&self, view: &impl View) -> bool {
        view.is_polled() || view.is_deferring() || self.visits.is_open(view.now_ms())
    }
}

impl<P: Platform> Strategy for Coop<P> {
    type Notes = Watch;

    const NAMES: &'static [&'static str] = &["coop"];

    #[inline]
    fn defers(&self, view: &impl View, staged: Staged) -> u64 {
        let most_ns = view.most_deferred_ns();
        // No tick is to come for it that would not come anyway.
        if most_ns < view.interval_ns() {
            return 0;
        }
        let waiters = || staged == Staged::Open && self.is_left_to_waiters(view);
        match Self::is_filled(view) || waiters() {
            true => most_ns.min(view.interval_ns().saturating_mul(MOST_DEFERRED)),
            false => 0,
        }
    }

    #[inline]
    fn notes_owner(&self, view: &impl View, switches: Switches) -> bool {
        let naps = view.is_foretelling() && self.foresight.notes_owner(view);
        switches.lazy() || (switches.coop() && (naps || self.visits_pay(view)))
    }

    #[inline(always)]
    fn looks(&self, view: &impl View, switches: Switches) -> bool {
        switches.coop() && view.is_polled() && view.outstanding() > 1
    }

    #[inline(always)]
    fn budget(&self, _: &impl View) -> usize {
        VISIT
    }

    #[inline]
    fn leaves_rest(&self, view: &impl View) -> bool {
        self.is_left_to_waiters(view)
    }

    fn begin(&self, watch: &mut Watch, view: &impl View) {
        self.foresight.carrying().begin();
        watch.begin(view.now_ns());
    }

    #[inline(always)]
    fn polls(&self, watch: &mut Watch, view: &impl View, drained: Drained) -> bool {
        let carried = self.foresight.carrying().carries(view, drained.depth);
        if carried == Carried::NoMore {
            watch.begin(view.now_ns());
        }
        if carried != Carried::No {
            return carried == Carried::Yes;
        }
        let by = match drained.by {
            Context::Irq => Notice::Interrupt,
            Context::Poll => Notice::Tick,
            Context::Lazy | Context::Coop | Context::Sweep => Notice::Passing,
        };
        let noted = Noted {
            by,
            cpu: Self::interrupted(view, by, drained.wakes),
            ended: drained.ended,
            depth: drained.depth,
        };
        watch.note(noted, &self.polling, view)
    }

    /// Where the CPU is short of time, those come first who are ready: whoever looks then finds
    /// more.
    #[inline]
    fn yields_first(&self, view: &impl View) -> bool {
        view.is_polled() || Self::coalesces(view)
    }

    #[inline]
    fn yields(&self, view: &impl View) -> bool {
        self.yielding.is_open(view.now_ms())
    }

    #[inline]
    fn spins(&self, view: &impl View) -> Option<u64> {
        let open = self.spinning.is_open(view.now_ms());
        open.then(|| view.costs().sleep_ns)
    }

    #[inline]
    fn spun(&self, view: &impl View, came: Spun, ns: u64) {
        let (costs, now_ms) = (view.costs(), view.now_ms());
        let stakes = stakes(&costs, TRIAL);
        match came {
            Spun::Found => {
                let saved = costs.sleep_ns.saturating_sub(ns);
                self.spinning.earn(saved, stakes, now_ms);
                self.visits.earn(saved, stakes, now_ms);
            }
            Spun::Vain => self.spinning.spend(ns, stakes, now_ms),
        }
    }

    #[inline]
    fn slept(&self, view: &impl View, ns: u64) {
        let now_ms = view.now_ms();
        let tried = self.visits.has_credit();
        self.visits.spend(ns, stakes(&view.costs(), TRIAL), now_ms);
        // A trial of coming by is one of all that is done there.
        if !tried && self.visits.has_credit() {
            self.spinning.hasten();
            self.yielding.hasten();
        }
    }

    #[inline]
    fn yielded(&self, view: &impl View, turn: Turn) {
        let (costs, now_ms) = (view.costs(), view.now_ms());
        let (visits, yielding) = (stakes(&costs, TRIAL), stakes(&costs, YIELDING));
        match turn {
            Turn::Paid => {
                let saved = costs.sleep_ns.saturating_sub(costs.yield_ns);
                self.yielding.earn(saved, yielding, now_ms);
                self.visits.earn(saved, visits, now_ms);
            }
            Turn::Vain => {
                self.yielding.spend(costs.yield_ns, yielding, now_ms);
                self.visits.spend(costs.yield_ns, visits, now_ms);
            }
        }
    }

    #[inline]
    fn foretells(&self, view: &impl View, op: Op, bytes: u64, beside: u64) -> Foretells {
        self.foresight.foretells(view, op, bytes, beside)
    }

    #[inline]
    fn answered(&self, _: &impl View, mark: u64, took_ns: u64, seen: Seen) {
        self.foresight.answered(mark, took_ns, seen);
    }

    fn plans(&self, view: &impl View, what: Expected) -> Plan {
        (self.foresight).plans(view, what, || self.spinning.is_open(view.now_ms()))
    }

    fn looks_in(&self, view: &impl View, what: Option<Outlook>) -> Option<u64> {
        self.foresight.looks_in(view, what)
    }

    fn foreseen(&self, view: &impl View, came: Spun, ns: u64) {
        self.foresight.foreseen(view, came, ns);
    }

    fn napped(&self, view: &impl View, nap: Nap, late_ns: u64) {
        self.foresight.napped(view, nap, late_ns);
    }

    fn learned(&self, now_ms: u64, tell: &mut dyn FnMut(&'static str, Learned)) {
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
