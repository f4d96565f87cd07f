// SPDX-License-Identifier: GPL-2.0
//! A thread that waits for its own I/O, before it sleeps: it takes completions, spins, or lets
//! others have its CPU, as the strategy decides.
//!
//! ```text
//!  waits -- Nap ----------------------> Nap, and then: poll, spin; GoOn
//!    |   -- Spin --> flush; spin --- woken ----> GoOn, else Sleep
//!    |
//!  Poll, yields First --yes--> Yield
//!    | no
//!  poll: up to a budget ---- woken ----> GoOn
//!    |
//!  spin_ns --yes--> flush; pause, poll, pause ... --- woken ----> GoOn
//!    | no, or in vain
//!  yields Last --yes--> Yield
//!    | no
//!  Sleep
//! ```

use hal::{Platform, Queue};

use crate::policy::{Expected, Nap, Next, Staged, Strategy, View, WaitOutcome, WaitPlan, Yield};
use crate::queue::{IoQueue, Upper};

/// Polls of one thread that spins, at most: several times as many as a sleep takes the time of.
const MOST_POLLS: u32 = if cfg!(loom) { 1 } else { 1_000 };

/// For so many microseconds a thread polls after a nap, at most, whatever a strategy says: it has
/// preemption off.
pub const MOST_WINDOW_US: u32 = 100;

/// The thread that waits, and its CPU.
pub trait Waiting {
    /// It was woken: there is nothing to wait for any more.
    fn is_awake(&self) -> bool;

    /// Rests for a moment; whether to go on spinning: it was not woken, and nobody is more urgent.
    fn pause(&self) -> bool;

    /// When what it waits for is over, as far as that was predicted.
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
        let expected = match self.is_predicting() {
            true => thread.expects(),
            false => None,
        };
        let plan = self.strategy.waits(self, expected);
        if self.is_predicting() {
            self.plan_ticks(plan);
        }
        let (spin_ns, yields) = match plan {
            WaitPlan::Nap { until_ns, for_ns } => {
                // A device that was not told does not answer.
                self.flush();
                return Next::Nap { until_ns, for_ns };
            }
            WaitPlan::Spin { for_ns } => {
                let spread_ns = expected.map_or(0, |what| what.spread_ns.saturating_mul(2));
                let most = spread_ns.saturating_add(self.costs.get().sleep_ns);
                return self.spins_for(thread, for_ns.min(most));
            }
            WaitPlan::Poll { spin_ns, yields } => (spin_ns, yields),
        };
        let yields = yields.filter(|_| thread.may_yield());
        if yields == Some(Yield::First) {
            return Next::Yield;
        }
        let since = self.upper.now_ns();
        let next = self.polls_once(thread, ended, spin_ns, yields);
        if next == Next::Sleep {
            let ns = self.upper.now_ns().saturating_sub(since);
            self.strategy.ended(self, WaitOutcome::Slept { ns });
        }
        next
    }

    /// `thread` looks for what it expects, for up to `for_ns`, and then sleeps.
    fn spins_for(&self, thread: &impl Waiting, for_ns: u64) -> Next {
        self.flush();
        if let Some((found, ns)) = self.spin(thread, for_ns, 0) {
            self.strategy.ended(self, WaitOutcome::Spun { found, ns });
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
        self.poll_cq(false);
        let nap = match thread.is_awake() {
            true => Nap::Late,
            false => {
                if let Some((found, ns)) = self.spin(thread, for_ns.min(most), 0) {
                    (self.strategy).ended(self, WaitOutcome::NapSpun { found, ns });
                }
                match thread.is_awake() {
                    true => Nap::Hit,
                    false => Nap::Vain,
                }
            }
        };
        if nap == Nap::Vain && self.polling.is_on() {
            self.time_ticks();
        }
        self.note_nap(nap, late_ns);
        nap
    }

    /// A nap of some thread's ended so, `late_ns` after it was to, with nothing left to look for.
    /// With preemption off.
    pub fn note_nap(&self, nap: Nap, late_ns: u64) {
        (self.strategy).ended(self, WaitOutcome::Napped { nap, late_ns });
    }

    /// Takes completions up to a budget, spins for `spin_ns`, or yields, if that is for then.
    fn polls_once(
        &self,
        thread: &impl Waiting,
        ended: Option<usize>,
        spin_ns: Option<u64>,
        yields: Option<Yield>,
    ) -> Next {
        let ended = ended.unwrap_or_else(|| self.poll_cq(false));
        if thread.is_awake() {
            let (found, ns) = (true, 0);
            self.strategy.ended(self, WaitOutcome::Spun { found, ns });
            return Next::GoOn;
        }
        match spin_ns {
            None => self.flush_unless_deferred(Staged::Closing),
            Some(ns) => {
                // A device that was not told does not answer.
                self.flush();
                let limit = ns.min(self.costs.get().sleep_ns);
                if let Some((found, ns)) = self.spin(thread, limit, ended) {
                    self.strategy.ended(self, WaitOutcome::Spun { found, ns });
                }
            }
        }
        if thread.is_awake() {
            return Next::GoOn;
        }
        match yields {
            Some(_) => Next::Yield,
            None => Next::Sleep,
        }
    }

    /// A thread that was told to yield had its turn again. `found`: what it waits for was over
    /// then; else it polls. How many requests it has ended, if it had to poll for its own: for
    /// [`IoQueue::wait`], if that follows. With preemption off.
    #[inline]
    pub fn yielded(&self, found: bool, thread: &impl Waiting) -> Option<usize> {
        if found {
            self.strategy.ended(self, WaitOutcome::Yielded { found });
            return None;
        }
        let ended = self.poll_cq(false);
        // It left the poll to others, and they to it.
        let found = thread.is_awake();
        self.strategy.ended(self, WaitOutcome::Yielded { found });
        Some(ended)
    }

    /// Looks for completions for up to `limit_ns`, while `thread` is neither woken nor kept from it
    /// by somebody more urgent, nor has ended what one visit may. Whether what it waits for was
    /// found, and after how long; where it finds that much for others, nothing is said of spinning.
    #[inline]
    fn spin(&self, thread: &impl Waiting, limit_ns: u64, ended: usize) -> Option<(bool, u64)> {
        let since = self.upper.now_ns();
        let (mut ended, mut spun) = (ended, 0);
        let budget = self.drain_budget();
        for _ in 0..MOST_POLLS {
            let awake = !thread.pause();
            // Once for each pass, as that is most of what one takes.
            let now = self.upper.now_ns();
            spun = now.saturating_sub(since);
            if awake {
                return thread.is_awake().then_some((true, spun));
            }
            if ended >= budget {
                return None;
            }
            if let Some(due) = self.peek(now) {
                ended = ended.wrapping_add(self.poll_cq(due));
            }
            if spun >= limit_ns {
                break;
            }
        }
        Some((thread.is_awake(), spun))
    }

    /// Whether there is anything to drain, and if so, whether it is due even where nothing has
    /// come: who knocked meanwhile, an interrupt perhaps, relies on it. It is `now`.
    #[inline]
    fn peek(&self, now: u64) -> Option<bool> {
        let mut side = self.drain.try_lock()?;
        let came = self.hw.check_event(&mut side.hw);
        if !came {
            self.found_nothing(now);
        }
        let knocked = side.release();
        (came || knocked).then_some(knocked)
    }
}
