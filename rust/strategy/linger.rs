// SPDX-License-Identifier: GPL-2.0
//! What a thread that waits for its own I/O does before it sleeps: it polls a little while, or lets others have its CPU.
//!
//! To sleep and to be woken costs a thread a fixed amount of work. Who polls for no longer than that loses at most as much
//! again, and a fast device often answers within it. Where others are ready to run, a thread need not go to sleep for them either: it stays ready
//! itself, and when its turn comes again one of the others has, as a rule, found its completion. What does not pay on a device, or beside the other
//! threads of a machine, is not done there, save now and then.

use crate::queue::IoQueue;
use crate::{Context, Upper};
use cell::sync::{AtomicU32, Ordering};
use hal::{Platform, Queue};

/// Looks at the device, each after a pause of the CPU: together about the work of going to sleep and being woken.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 40 };
/// What was learnt: with every success one better, with every failure so many worse, from 0 to here.
const BEST: u32 = if cfg!(loom) { 2 } else { 64 };
const WORSE: u32 = 2;
/// A wait that ended without a sleep saved about so many times what a visit in vain costs.
const WORTH: u32 = 8;
/// What does not pay is tried again after so many waits, and after twice as many each time that it still does not,
const FIRST_PAUSE: u32 = 64;
/// up to so many.
const LONGEST_PAUSE: u32 = 1 << 16;

/// The thread that waits, and its CPU.
pub trait Waiting {
    /// It was woken: there is nothing to wait for any more.
    fn is_awake(&self) -> bool;

    /// Rests for a moment; whether to go on polling: it was not woken, and nobody is more urgent.
    fn pause(&self) -> bool;

    /// Nobody else wants its CPU.
    fn is_alone(&self) -> bool;

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
    /// Most of the CPU's time is somebody's who does not wait for I/O: with a sleep, it would have been the thread's again the moment its I/O was over.
    Lost,
}

/// What a queue's waiters have learnt of one way to wait. Several may write at once: it only guides.
pub(crate) struct Patience {
    /// 0: it does not pay.
    score: AtomicU32,
    /// Waits since it was found so, or tried in vain.
    waits: AtomicU32,
    /// Waits until it is tried again.
    pause: AtomicU32,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self {
            score: AtomicU32::new(BEST),
            waits: AtomicU32::new(0),
            pause: AtomicU32::new(FIRST_PAUSE),
        }
    }

    /// It was not given up.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.score.load(Ordering::Relaxed) != 0
    }

    /// Whether to do it at this wait: it was not given up, or is to be tried again.
    #[inline]
    pub(crate) fn pays(&self) -> bool {
        if self.is_on() {
            return true;
        }
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        let due = waits >= self.pause.load(Ordering::Relaxed);
        self.waits
            .store(if due { 0 } else { waits }, Ordering::Relaxed);
        due
    }

    #[inline]
    fn succeed(&self, better: u32) {
        let score = self.score.load(Ordering::Relaxed);
        if score == 0 {
            self.pause.store(FIRST_PAUSE, Ordering::Relaxed);
        }
        if score < BEST {
            let score = score.saturating_add(better).min(BEST);
            self.score.store(score, Ordering::Relaxed);
        }
    }

    #[inline]
    fn fail(&self, worse: u32) {
        let score = self.score.load(Ordering::Relaxed);
        if score == 0 {
            let pause = self.pause.load(Ordering::Relaxed);
            let pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            self.pause.store(pause, Ordering::Relaxed);
        }
        self.score
            .store(score.saturating_sub(worse), Ordering::Relaxed);
    }
}

impl<P: Platform, Q: Queue, U: Upper> IoQueue<P, Q, U> {
    /// Whether a thread that is going to wait for I/O on this queue does well to [`IoQueue::linger`] before it sleeps. Asked once for each. What the interrupt
    /// finds is looked for in vain where all sleep anyway; without one, or where commands are held, a thread that waits has its part in finding it.
    #[inline]
    pub fn is_worth_a_visit(&self) -> bool {
        !self.may_do_without_visits() || self.visits.pays()
    }

    fn may_do_without_visits(&self) -> bool {
        !self.is_polled() && !self.gathers()
    }

    /// The caller, `thread`, waits for I/O of its own on this queue: takes completions under [`Context::Coop`], polls for more as long as that pays, and says
    /// what it does next. With preemption off.
    pub fn linger(&self, thread: &impl Waiting) -> Next {
        let next = self.linger_once(thread);
        match next {
            Next::Sleep => self.visits.fail(1),
            Next::GoOn | Next::GiveWay => self.visits.succeed(WORTH),
        }
        next
    }

    fn linger_once(&self, thread: &impl Waiting) -> Next {
        // The one visit of many: what it is good for, above all, is tried. (Not to give way: where that was given up, much may be lost by it.)
        let trial = self.may_do_without_visits() && !self.visits.is_on();
        // Where looks are dear, and the device does not answer a poll, those come first who are ready: whoever looks then, finds more. Elsewhere it is asked
        // after the first look whether to poll: a trial is not for a wait that ends there.
        let asked = self.gathers().then(|| self.patience.pays());
        let early = asked == Some(false) && !thread.is_awake() && thread.may_give_way();
        if early && self.giving_way.pays() {
            return Next::GiveWay;
        }
        self.drain_for(Context::Coop, false);
        if thread.is_awake() {
            return Next::GoOn;
        }
        if asked == Some(true) {
            // A device that was not told does not answer.
            self.tell_held();
        } else {
            self.let_go();
        }
        // The first rest is no poll: who is woken by then speaks for polling only where that is done anyway, and does not bring it back.
        let paid = if !thread.pause() {
            self.patience.is_on()
        } else {
            asked.unwrap_or_else(|| self.patience.pays() || trial) && self.poll_for(thread)
        };
        if paid && thread.is_awake() {
            self.patience.succeed(1);
        }
        if thread.is_awake() {
            return Next::GoOn;
        }
        if !early && thread.may_give_way() && self.giving_way.pays() {
            return Next::GiveWay;
        }
        if thread.is_alone() {
            self.hasten();
        }
        Next::Sleep
    }

    /// A thread that was told to give way had its turn again, and tells what came of it.
    #[inline]
    pub fn gave_way(&self, turn: Turn, thread: &impl Waiting) {
        match turn {
            // It left the look to others, and they to it.
            Turn::Vain if self.gathers() && self.finds(thread) => self.giving_way.succeed(1),
            Turn::Paid => self.giving_way.succeed(1),
            Turn::Vain => self.giving_way.fail(WORSE),
            Turn::Lost => self.giving_way.fail(BEST),
        }
    }

    /// Takes completions, and says whether `thread` waited for one of them.
    #[inline]
    fn finds(&self, thread: &impl Waiting) -> bool {
        self.drain_for(Context::Coop, false);
        thread.is_awake()
    }

    /// Polls while `thread` is neither woken nor kept from it by somebody more urgent; `false`: in vain, which is a failure of polling.
    #[inline]
    fn poll_for(&self, thread: &impl Waiting) -> bool {
        for _ in 0..LOOKS {
            if let Some(due) = self.peek() {
                self.drain_for(Context::Coop, due);
            }
            if !thread.pause() {
                return true;
            }
        }
        self.patience.fail(WORSE);
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
