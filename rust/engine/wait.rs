// SPDX-License-Identifier: GPL-2.0
//! A thread that waits for its own I/O, before it sleeps: it takes completions, spins, or lets
//! others have its CPU, as the strategy decides.
//!
//! ```text
//!  plans, if it is expected -- Nap --> Nap, and then: look, spin; GoOn
//!      | Any, Block         -- Spin --> flush; spin --- woken ----> GoOn, else Sleep
//!  yields, if yields_first --yes--> Yield
//!      | no
//!  visit: up to a budget ---- woken ----> GoOn
//!      |
//!  spins, unless Block --yes--> flush; pause, look, pause ... --- woken ----> GoOn
//!      | no, or in vain
//!  yields, unless yields_first --yes--> Yield
//!      | no
//!  Sleep
//! ```

use hal::{Platform, Queue};

use crate::policy::{Expected, Nap, Next, Plan, Spun, Staged, Strategy, Turn, View};
use crate::queue::{IoQueue, Upper};

/// Looks of one thread that spins, at most: several times as many as a sleep takes the time of.
const MOST_LOOKS: u32 = if cfg!(loom) { 1 } else { 1_000 };

/// For so many microseconds a thread looks after a nap, at most, whatever a strategy says: it has
/// preemption off.
pub const MOST_WINDOW_US: u32 = 100;

/// The thread that waits, and its CPU.
pub trait Waiting {
    /// It was woken: there is nothing to wait for any more.
    fn is_awake(&self) -> bool;

    /// Rests for a moment; whether to go on spinning: it was not woken, and nobody is more urgent.
    fn pause(&self) -> bool;

    /// When what it waits for is over, as far as that was foretold.
    fn expects(&self) -> Option<Expected> {
        None
    }

    /// It may let others run without going to sleep: it has not done so for this wait, and will
    /// have its turn again like any of them.
    fn may_yield(&self) -> bool;
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// The caller, `thread`, waits for I/O of its own on this queue: takes completions under
    /// [`crate::Context::Coop`], and says what it does next. `ended`: how many it has ended in this
    /// visit, if it has taken completions just now. With preemption off.
    pub fn wait(&self, thread: &impl Waiting, ended: Option<usize>) -> Next {
        if thread.is_awake() {
            return Next::GoOn;
        }
        let mut plan = Plan::Any;
        if self.is_foretelling() {
            plan = self.plan(thread);
            match plan {
                Plan::Any | Plan::Block => {}
                Plan::Nap { until_ns, for_ns } => {
                    // A device that was not told does not answer.
                    self.flush();
                    return Next::Nap { until_ns, for_ns };
                }
                Plan::Spin { for_ns } => return self.spins_for(thread, for_ns),
            }
        }
        let yields_first = self.strategy.yields_first(self);
        if yields_first && self.yields(thread) {
            return Next::Yield;
        }
        let since = self.upper.now_ns();
        let next = self.comes_by(thread, ended, yields_first, plan);
        if next == Next::Sleep {
            let ns = self.upper.now_ns().saturating_sub(since);
            self.strategy.slept(self, ns);
        }
        next
    }

    /// What `thread` does about what it expects.
    #[cold]
    fn plan(&self, thread: &impl Waiting) -> Plan {
        let plan = match thread.expects() {
            Some(what) => self.planned(what),
            None => Plan::Any,
        };
        self.plan_ticks(plan);
        plan
    }

    /// What the strategy has it do, within bounds.
    fn planned(&self, what: Expected) -> Plan {
        match self.strategy.plans(self, what) {
            Plan::Spin { for_ns } => {
                let most = what.spread_ns.saturating_mul(2);
                let most = most.saturating_add(self.costs.get().sleep_ns);
                Plan::Spin {
                    for_ns: for_ns.min(most),
                }
            }
            plan => plan,
        }
    }

    /// `thread` looks for what it expects, for up to `for_ns`, and then sleeps.
    fn spins_for(&self, thread: &impl Waiting, for_ns: u64) -> Next {
        self.flush();
        if let Some((came, ns)) = self.spin(thread, for_ns, 0) {
            self.strategy.spun(self, came, ns);
        }
        match thread.is_awake() {
            true => Next::GoOn,
            false => Next::Sleep,
        }
    }

    /// `thread` was told to nap until `until_ns`, and has; what it waits for was not over when last
    /// looked at. It looks, and spins for up to `for_ns`, of which the engine grants
    /// [`MOST_WINDOW_US`]. With preemption off.
    pub fn look_again(&self, thread: &impl Waiting, until_ns: u64, for_ns: u64) -> Nap {
        let most = u64::from(MOST_WINDOW_US).saturating_mul(1_000);
        let late_ns = self.upper.now_ns().saturating_sub(until_ns);
        self.visit(false);
        let nap = match thread.is_awake() {
            true => Nap::Late,
            false => {
                if let Some((came, ns)) = self.spin(thread, for_ns.min(most), 0) {
                    self.strategy.foreseen(self, came, ns);
                }
                match thread.is_awake() {
                    true => Nap::Hit,
                    false => Nap::Vain,
                }
            }
        };
        if nap == Nap::Vain && self.is_polled() {
            self.time_ticks();
        }
        self.note_nap(nap, late_ns);
        nap
    }

    /// A nap of some thread's ended so, `late_ns` after it was to, with nothing left to look for.
    /// With preemption off.
    pub fn note_nap(&self, nap: Nap, late_ns: u64) {
        self.strategy.napped(self, nap, late_ns);
    }

    /// Takes completions, spins, or yields, if it has not yet.
    fn comes_by(
        &self,
        thread: &impl Waiting,
        ended: Option<usize>,
        yields_first: bool,
        plan: Plan,
    ) -> Next {
        let ended = ended.unwrap_or_else(|| self.visit(false));
        if thread.is_awake() {
            self.strategy.spun(self, Spun::Found, 0);
            return Next::GoOn;
        }
        let spins = match plan {
            Plan::Block => None,
            _ => self.strategy.spins(self),
        };
        match spins {
            None => self.flush_unless_deferred(Staged::Closing),
            Some(ns) => {
                // A device that was not told does not answer.
                self.flush();
                let limit = ns.min(self.costs.get().sleep_ns);
                if let Some((came, ns)) = self.spin(thread, limit, ended) {
                    self.strategy.spun(self, came, ns);
                }
            }
        }
        if thread.is_awake() {
            return Next::GoOn;
        }
        if !yields_first && self.yields(thread) {
            return Next::Yield;
        }
        Next::Sleep
    }

    /// Whether `thread` lets others run instead of sleeping. Asked once for each wait.
    #[inline]
    fn yields(&self, thread: &impl Waiting) -> bool {
        thread.may_yield() && self.strategy.yields(self)
    }

    /// A thread that was told to yield had its turn again, and tells what came of it. How many
    /// requests it has ended, if it had to look for its own: for [`IoQueue::wait`], if that
    /// follows. With preemption off.
    #[inline]
    pub fn yielded(&self, turn: Turn, thread: &impl Waiting) -> Option<usize> {
        if turn == Turn::Paid {
            self.strategy.yielded(self, turn);
            return None;
        }
        let ended = self.visit(false);
        // It left the look to others, and they to it.
        let turn = match thread.is_awake() {
            true => Turn::Paid,
            false => Turn::Vain,
        };
        self.strategy.yielded(self, turn);
        Some(ended)
    }

    /// Looks for completions for up to `limit_ns`, while `thread` is neither woken nor kept from it
    /// by somebody more urgent, nor has ended what one visit may. What came of it, and after how
    /// long; where it finds that much for others, nothing is said of spinning.
    #[inline]
    fn spin(&self, thread: &impl Waiting, limit_ns: u64, ended: usize) -> Option<(Spun, u64)> {
        let since = self.upper.now_ns();
        let (mut ended, mut spun) = (ended, 0);
        let budget = self.budget();
        for _ in 0..MOST_LOOKS {
            let awake = !thread.pause();
            // Once for each look, as that is most of what one takes.
            let now = self.upper.now_ns();
            spun = now.saturating_sub(since);
            if awake {
                return thread.is_awake().then_some((Spun::Found, spun));
            }
            if ended >= budget {
                return None;
            }
            if let Some(due) = self.peek(now) {
                ended = ended.wrapping_add(self.visit(due));
            }
            if spun >= limit_ns {
                break;
            }
        }
        let came = match thread.is_awake() {
            true => Spun::Found,
            false => Spun::Vain,
        };
        Some((came, spun))
    }

    /// Whether there is anything to drain, and if so, whether it is due even where nothing has
    /// come: who knocked meanwhile, an interrupt perhaps, relies on it. It is `now`.
    #[inline]
    fn peek(&self, now: u64) -> Option<bool> {
        let mut side = self.drain.try_lock()?;
        let came = self.hw.check_event(&mut side.hw);
        if !came {
            side.empty_ns = now;
        }
        let knocked = side.release();
        (came || knocked).then_some(knocked)
    }
}
