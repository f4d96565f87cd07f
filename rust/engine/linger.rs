// SPDX-License-Identifier: GPL-2.0
//! What a thread that waits for its own I/O does before it sleeps: it polls a little while, or lets others have its CPU.
//!
//! To sleep and to be woken costs a thread a fixed amount of work. Who polls for no longer than that loses at most as much
//! again, and a fast device often answers within it. Where others are ready to run, a thread need not go to sleep for them either: it stays ready
//! itself, and when its turn comes again one of the others has, as a rule, found its completion. What does not pay on a device, or beside the other
//! threads of a machine, is not done there, save now and then.

use crate::drain::VISIT;
use crate::queue::IoQueue;
use crate::{Context, Upper};
use hal::{Platform, Queue};

/// Looks at the device, each after a pause of the CPU: together about the work of going to sleep and being woken.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 40 };

/// The thread that waits, and its CPU.
pub trait Waiting {
    /// It was woken: there is nothing to wait for any more.
    fn is_awake(&self) -> bool;

    /// Rests for a moment; whether to go on polling: it was not woken, and nobody is more urgent.
    fn pause(&self) -> bool;

    /// It may let others run without going to sleep: it has not done so for this wait, and will have its turn again like any of them.
    fn may_give_way(&self) -> bool;
}

/// What such a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It was woken, and goes on.
    GoOn,
    /// It lets others run, and stays ready itself.
    GiveWay,
    /// It sleeps.
    Sleep,
}

/// What came of giving way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The I/O was over when the thread's turn came.
    Paid,
    /// It was not.
    Vain,
}

impl<P: Platform, Q: Queue, U: Upper> IoQueue<P, Q, U> {
    /// Whether a thread that is going to wait for I/O on this queue does well to [`IoQueue::linger`] before it sleeps. Asked once for each. What the interrupt
    /// finds is looked for in vain where all sleep anyway; without one, or where commands are held, a thread that waits has its part in finding it.
    #[inline]
    pub fn is_worth_a_visit(&self) -> bool {
        !self.may_do_without_visits() || self.visits.is_on() || self.is_worth_a_trial()
    }

    /// Whether visits are to be tried again; then so is what they are good for.
    fn is_worth_a_trial(&self) -> bool {
        let due = self.visits.is_due();
        if due {
            self.patience.hasten();
            self.giving_way.hasten();
        }
        due
    }

    fn may_do_without_visits(&self) -> bool {
        !self.is_polled() && !self.is_holding()
    }

    /// The caller, `thread`, waits for I/O of its own on this queue: takes completions under [`Context::Coop`], polls for more as long as that pays, and says
    /// what it does next. `ended`: how many it has ended in this visit, if it has taken completions just now. With preemption off.
    pub fn linger(&self, thread: &impl Waiting, ended: Option<usize>) -> Next {
        let next = self.linger_once(thread, ended);
        match next {
            Next::Sleep => self.visits.fail(),
            Next::GoOn | Next::GiveWay => self.visits.succeed(),
        }
        next
    }

    fn linger_once(&self, thread: &impl Waiting, ended: Option<usize>) -> Next {
        // Where commands are gathered, those come first who are ready: they have some to add, and whoever looks then finds more.
        let ready_first = self.gathers();
        if ready_first && !thread.is_awake() && self.gives_way(thread) {
            return Next::GiveWay;
        }
        let ended = ended.unwrap_or_else(|| self.visit(Context::Coop, false));
        if thread.is_awake() {
            return Next::GoOn;
        }
        let polled = self.patience.is_on();
        let polls = self.patience.pays();
        if polls {
            // A device that was not told does not answer.
            self.tell_held();
        } else {
            self.let_go();
        }
        // The first rest is no poll: who is woken by then speaks for polling only where that is done anyway, and does not bring it back.
        let paid = if thread.pause() {
            polls && self.poll_for(thread, ended)
        } else {
            polled
        };
        if paid && thread.is_awake() {
            self.patience.succeed();
        }
        if thread.is_awake() {
            return Next::GoOn;
        }
        if !ready_first && self.gives_way(thread) {
            return Next::GiveWay;
        }
        Next::Sleep
    }

    /// Whether `thread` lets others run instead of sleeping. Asked once for each wait.
    #[inline]
    fn gives_way(&self, thread: &impl Waiting) -> bool {
        thread.may_give_way() && self.giving_way.pays()
    }

    /// A thread that was told to give way had its turn again, and tells what came of it. How many requests it has ended, if it had to look
    /// for its own: for [`IoQueue::linger`], if that follows. With preemption off.
    #[inline]
    pub fn gave_way(&self, turn: Turn, thread: &impl Waiting) -> Option<usize> {
        match turn {
            Turn::Paid => self.giving_way.succeed(),
            Turn::Vain => {
                let ended = self.visit(Context::Coop, false);
                // It left the look to others, and they to it.
                match thread.is_awake() {
                    true => self.giving_way.succeed(),
                    false => self.giving_way.fail(),
                }
                return Some(ended);
            }
        }
        None
    }

    /// Polls while `thread` is neither woken nor kept from it by somebody more urgent, nor has ended what one visit may; `false`: in vain, which is a
    /// failure of polling where it has not found enough for others.
    #[inline]
    fn poll_for(&self, thread: &impl Waiting, ended: usize) -> bool {
        let mut ended = ended;
        for _ in 0..LOOKS {
            if ended >= VISIT {
                return false;
            }
            if let Some(due) = self.peek() {
                ended = ended.wrapping_add(self.visit(Context::Coop, due));
            }
            if !thread.pause() {
                return true;
            }
        }
        self.patience.fail();
        false
    }

    /// Whether there is anything to drain, and if so, whether it is due even where nothing has come: who knocked meanwhile, an interrupt perhaps, relies on it.
    #[inline]
    fn peek(&self) -> Option<bool> {
        let mut side = self.drain.try_lock()?;
        let came = self.hw.check_event(&mut side.hw);
        let knocked = side.release();
        (came || knocked).then_some(knocked)
    }
}
