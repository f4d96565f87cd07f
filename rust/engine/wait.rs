// SPDX-License-Identifier: GPL-2.0
//! A thread that waits for its own I/O, before it sleeps: it takes completions, spins, or lets
//! others have its CPU, as the strategy decides.
//!
//! ```text
//!  yields, if yields_first --yes--> Yield
//!      | no
//!  visit: up to a budget ---- woken ----> GoOn
//!      |
//!  spins --yes--> flush; pause, look, pause ... --- woken ----> GoOn
//!      | no, or in vain
//!  yields, unless yields_first --yes--> Yield
//!      | no
//!  Sleep
//! ```

use crate::queue::IoQueue;
use crate::strategy::{Next, Spun, Staged, Strategy, Turn};
use crate::Upper;
use hal::{Platform, Queue};

/// Looks of one thread that spins, at most: several times as many as a sleep takes the time of.
const MOST_LOOKS: u32 = if cfg!(loom) { 1 } else { 1_000 };

/// The thread that waits, and its CPU.
pub trait Waiting {
    /// It was woken: there is nothing to wait for any more.
    fn is_awake(&self) -> bool;

    /// Rests for a moment; whether to go on spinning: it was not woken, and nobody is more urgent.
    fn pause(&self) -> bool;

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
        let yields_first = self.strategy.yields_first(self);
        if yields_first && self.yields(thread) {
            return Next::Yield;
        }
        let since = self.upper.now_ns();
        let next = self.comes_by(thread, ended, yields_first);
        if next == Next::Sleep {
            let ns = self.upper.now_ns().saturating_sub(since);
            self.strategy.slept(self, ns);
        }
        next
    }

    /// Takes completions, spins, or yields, if it has not yet.
    fn comes_by(&self, thread: &impl Waiting, ended: Option<usize>, yields_first: bool) -> Next {
        let ended = ended.unwrap_or_else(|| self.visit(false));
        if thread.is_awake() {
            self.strategy.spun(self, Spun::Found, 0);
            return Next::GoOn;
        }
        match self.strategy.spins(self) {
            None => self.flush_unless_deferred(Staged::Closing),
            Some(ns) => {
                // A device that was not told does not answer.
                self.flush();
                self.spin(thread, ns.min(self.costs.get().sleep_ns), ended);
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
    /// by somebody more urgent, nor has ended what one visit may: where it finds that much for
    /// others, nothing is said of spinning.
    #[inline]
    fn spin(&self, thread: &impl Waiting, limit_ns: u64, ended: usize) {
        let since = self.upper.now_ns();
        let spun = || self.upper.now_ns().saturating_sub(since);
        let mut ended = ended;
        let budget = self.budget();
        for _ in 0..MOST_LOOKS {
            if !thread.pause() {
                if thread.is_awake() {
                    self.strategy.spun(self, Spun::Found, spun());
                }
                return;
            }
            if ended >= budget {
                return;
            }
            if let Some(due) = self.peek() {
                ended = ended.wrapping_add(self.visit(due));
            }
            if spun() >= limit_ns {
                break;
            }
        }
        self.strategy.spun(self, Spun::Vain, spun());
    }

    /// Whether there is anything to drain, and if so, whether it is due even where nothing has
    /// come: who knocked meanwhile, an interrupt perhaps, relies on it.
    #[inline]
    fn peek(&self) -> Option<bool> {
        let mut side = self.drain.try_lock()?;
        let came = self.hw.check_event(&mut side.hw);
        let knocked = side.release();
        (came || knocked).then_some(knocked)
    }
}
