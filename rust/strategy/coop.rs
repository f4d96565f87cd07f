// SPDX-License-Identifier: GPL-2.0
//! The cooperative strategy of HIOPS (ATC '14): every thread that passes by takes completions, its
//! own and others', and one that waits spins for a moment, or lets the others run, before it sleeps.
//!
//! # What is deferred
//! Commands that are no whole batch, while the device has work enough: no more than a batch less
//! than it has tags. On a CPU that others wait for, who come by soon, a batch is enough: there the
//! CPU is what is short, and whoever comes next has commands to add. There, as long as yielding pays,
//! a polled queue defers even what the device could begin with: a device that is told of three
//! answers three, and so whoever drains for them tells of three again.
//!
//! # What pays
//! Each way to wait is taken only while it pays ([`patience`]), which each queue learns for itself.
//! Whether a hybrid queue is polled: [`hybrid`].

mod hybrid;
mod patience;

use engine::{Context, Drained, Next, Spin, Spun, Staged, Strategy, Switches, Turn, View};
use hybrid::Watch;
use patience::{Patience, POLLING, VISITS, YIELDING};

/// How many requests one visit ends. It has its CPU for itself meanwhile, and issues as many in their
/// place: with SATA some 25,000 instructions, where the longest interrupt handler of libata takes
/// 40,000 (`bench/run handlers-sata`).
const VISIT: usize = 8;

/// The cooperative strategy, for one queue.
pub struct Coop {
    /// Whether it pays to spin before a sleep,
    spinning: Patience,
    /// to yield instead of one,
    yielding: Patience,
    /// and to come by before one at all.
    visits: Patience,
}

impl Default for Coop {
    fn default() -> Self {
        Self {
            spinning: Patience::new(POLLING),
            yielding: Patience::new(YIELDING),
            visits: Patience::new(VISITS),
        }
    }
}

impl Coop {
    /// Whether several commands are worth telling the device of at once.
    #[inline]
    fn gathers(view: &impl View) -> bool {
        view.batch() > 1
    }

    /// Whether threads wait for this CPU that, as far as is known, yield to each other while they
    /// wait for I/O: they find completions, and more at once, if they are left to it.
    #[inline]
    fn is_left_to_waiters(&self, view: &impl View) -> bool {
        Self::gathers(view) && self.yielding.is_on() && view.is_crowded()
    }

    /// Whether the device has work enough.
    #[inline]
    fn is_filled(view: &impl View) -> bool {
        let (outstanding, batch) = (view.outstanding(), view.batch());
        let enough = view.tags().saturating_sub(batch);
        outstanding >= batch && (outstanding >= enough || view.is_crowded())
    }

    /// Whether a thread that is going to wait does well to come by before it sleeps. What the
    /// interrupt finds is looked for in vain where all sleep anyway; without one, or where commands
    /// are deferred, a thread that waits has its part in finding it.
    #[inline]
    fn visits_pay(&self, view: &impl View) -> bool {
        view.is_polled() || view.is_deferring() || self.visits.is_on() || self.tries_visits()
    }

    /// Whether visits are to be tried again; then so is what they are good for.
    fn tries_visits(&self) -> bool {
        let due = self.visits.is_due();
        if due {
            self.spinning.hasten();
            self.yielding.hasten();
        }
        due
    }

    fn tick_cost(&self, view: &impl View) -> u32 {
        let dear = view.is_interrupt_dear();
        // Threads that find their completions before they sleep are disturbed by an interrupt that
        // comes after, wherever the tick was.
        let idle = !dear && !self.visits.is_on() && !view.interrupts_thread();
        hybrid::tick(dear, idle)
    }
}

impl Strategy for Coop {
    type Notes = Watch;

    const NAMES: &'static [&'static str] = &["coop"];

    #[inline]
    fn defers(&self, view: &impl View, staged: Staged) -> bool {
        let waiters = || view.is_polled() && self.is_left_to_waiters(view);
        Self::is_filled(view) || (staged == Staged::Open && waiters())
    }

    #[inline]
    fn notes_owner(&self, view: &impl View, switches: Switches) -> bool {
        switches.lazy() || (switches.coop() && self.visits_pay(view))
    }

    #[inline(always)]
    fn looks(&self, view: &impl View, switches: Switches) -> bool {
        switches.coop() && view.outstanding() > 1 && !self.is_left_to_waiters(view)
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
        watch.begin(view.now_ms());
    }

    #[inline(always)]
    fn polls(&self, watch: &mut Watch, view: &impl View, drained: Drained) -> bool {
        let polled = view.is_polled();
        // A tick costs more than an interrupt that takes no registers, and none is spared by it.
        if !polled && !view.is_interrupt_dear() {
            return false;
        }
        let Drained { by, depth, ended } = drained;
        // Who passed by was at work; so was whom the interrupt kept from it.
        let (cost, busy) = match by {
            Context::Irq => (hybrid::INTERRUPT, depth > 1 || view.interrupts_thread()),
            Context::Poll => (self.tick_cost(view), true),
            Context::Lazy | Context::Coop | Context::Sweep => (0, true),
        };
        watch.note(polled, cost, ended, depth, busy, || view.now_ms())
    }

    /// Where commands are gathered, those come first who are ready: they have some to add, and
    /// whoever looks then finds more.
    #[inline]
    fn yields_first(&self, view: &impl View) -> bool {
        Self::gathers(view)
    }

    #[inline]
    fn yields(&self) -> bool {
        self.yielding.pays()
    }

    #[inline]
    fn spins(&self) -> Spin {
        let on = self.spinning.is_on();
        match self.spinning.pays() {
            false => Spin::No,
            true if on => Spin::Yes,
            true => Spin::Trial,
        }
    }

    #[inline]
    fn spun(&self, spin: Spin, came: Spun) {
        match came {
            // Who is woken by then speaks for spinning only where that is done anyway.
            Spun::AtOnce if spin != Spin::Yes => {}
            Spun::AtOnce | Spun::Found => self.spinning.succeed(),
            Spun::Vain => self.spinning.fail(),
        }
    }

    #[inline]
    fn waited(&self, next: Next) {
        match next {
            Next::Sleep => self.visits.fail(),
            Next::GoOn | Next::Yield => self.visits.succeed(),
        }
    }

    #[inline]
    fn yielded(&self, turn: Turn) {
        match turn {
            Turn::Paid => self.yielding.succeed(),
            Turn::Vain => self.yielding.fail(),
        }
    }
}
