// SPDX-License-Identifier: GPL-2.0
//! The strategies: policy alone. The engine does what they decide
//! ([`engine::Strategy`] says what it asks, and when); here is no fence, no token, no request.
//!
//! * [`Plain`]: what the in-tree drivers do.
//! * [`Coop`]: the cooperative strategy of HIOPS (ATC '14): every thread that comes by takes
//!   completions.
//! * `Random`: answers with dice, for tests.
//! * [`Selected`]: whichever of them an operator has chosen for a queue.
//!
//! Whatever is learnt of what pays is in an [`Account`]: what a success saves, and what a failure
//! takes. When a command is over is in a [`Forecast`].
#![no_std]
#![forbid(unsafe_code)]

mod account;
mod coop;
mod estimator;
mod hybrid;
mod predict;
#[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
mod random;

pub use account::{Account, Stakes};
pub use coop::Coop;
pub use estimator::{Class, Forecast, Known};
pub use predict::Foresight;
#[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
pub use random::Random;

use cell::sync::{AtomicU8, Ordering};
use engine::{
    Alone, Block, Drained, Expected, Learned, Prediction, Predictor, Seen, Selectable, Staged,
    Strategy, Switches, View, WaitOutcome, WaitPlan,
};
use hal::{Error, Op, Platform};

/// The plain strategy: what the in-tree drivers do. The device is told at once, and what notices
/// completions, which is the interrupt (or the timer, where an operator wants that), ends all that
/// are there. No thread does anything for another, or before it sleeps. It has nothing to learn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

/// All as it comes: a drain ends as many as the engine grants, for instance; `nvme_poll_cq` of
/// Linux 7.3 knows no bound either.
impl Strategy for Plain {
    type Notes = ();
    type Predictor = ();

    #[inline(always)]
    fn predictor(&self) -> &() {
        &()
    }
}

/// The names of the strategies, in the order of their numbers.
pub const NAMES: &[&str] = &[
    "plain",
    "coop",
    #[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
    "random",
];
const COOP: u8 = 1;
#[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
const RANDOM: u8 = 2;

/// A strategy that can be another one at any time: a word and a branch for each question. What one
/// has learnt is kept while another is at it.
pub struct Selected<P: Platform> {
    which: AtomicU8,
    coop: Coop<P>,
    #[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
    random: Random,
}

impl<P: Platform> Selected<P> {
    /// [`Coop`], which has learnt nothing. Control path; may sleep.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(platform: &P) -> Result<Self, Error> {
        Ok(Self {
            which: AtomicU8::new(COOP),
            coop: Coop::new(platform)?,
            #[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
            random: Random::default(),
        })
    }
}

impl<P: Platform> Selected<P> {
    /// What it is as [`Coop`], chosen or not.
    pub fn coop(&self) -> &Coop<P> {
        &self.coop
    }
}

/// Asks the strategy that is chosen.
macro_rules! ask {
    ($chosen:expr, $method:ident($($argument:expr),*), ()) => {
        match $chosen.which.load(Ordering::Relaxed) {
            COOP => $chosen.coop.$method($($argument),*),
            #[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
            RANDOM => $chosen.random.$method($($argument),*),
            _ => Plain.$method($($argument),*),
        }
    };
    ($chosen:expr, $method:ident($notes:expr; $($argument:expr),*), notes) => {
        match $chosen.which.load(Ordering::Relaxed) {
            COOP => $chosen.coop.$method($notes, $($argument),*),
            #[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
            RANDOM => $chosen.random.$method(&mut (), $($argument),*),
            _ => Plain.$method(&mut (), $($argument),*),
        }
    };
}

impl<P: Platform> Strategy for Selected<P> {
    type Notes = <Coop<P> as Strategy>::Notes;
    type Predictor = Self;

    #[inline(always)]
    fn predictor(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn batches(&self, view: &impl View, staged: Staged) -> u64 {
        ask!(self, batches(view, staged), ())
    }

    fn block(&self, view: &impl View, block: Block) -> usize {
        ask!(self, block(view, block), ())
    }

    #[inline(always)]
    fn tracks(&self, view: &impl View, switches: Switches) -> bool {
        ask!(self, tracks(view, switches), ())
    }

    #[inline(always)]
    fn polls_on_submit(&self, view: &impl View, switches: Switches) -> bool {
        ask!(self, polls_on_submit(view, switches), ())
    }

    #[inline(always)]
    fn budget(&self, view: &impl View) -> usize {
        ask!(self, budget(view), ())
    }

    #[inline(always)]
    fn leaves_to_waiters(&self, view: &impl View) -> bool {
        ask!(self, leaves_to_waiters(view), ())
    }

    #[inline(always)]
    fn polls(&self, notes: &mut Self::Notes, view: &impl View, drained: Option<Drained>) -> bool {
        ask!(self, polls(notes; view, drained), notes)
    }

    #[inline(always)]
    fn waits(&self, view: &impl View, expected: Option<Expected>) -> WaitPlan {
        ask!(self, waits(view, expected), ())
    }

    #[inline(always)]
    fn ended(&self, view: &impl View, outcome: WaitOutcome) {
        ask!(self, ended(view, outcome), ());
    }
}

/// Asks the predictor of the strategy that is chosen, if it has one.
macro_rules! ask_predictor {
    ($chosen:expr, $method:ident($($argument:expr),*), $none:expr) => {
        match $chosen.which.load(Ordering::Relaxed) {
            COOP => $chosen.coop.predictor().$method($($argument),*),
            #[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
            RANDOM => $chosen.random.predictor().$method($($argument),*),
            _ => $none,
        }
    };
}

impl<P: Platform> Predictor for Selected<P> {
    fn issued(&self, view: &impl View, op: Op, bytes: u64, beside: u64) -> Prediction {
        ask_predictor!(self, issued(view, op, bytes, beside), Prediction::Nothing)
    }

    fn completed(&self, view: &impl View, mark: u64, took_ns: u64, seen: Seen) {
        ask_predictor!(self, completed(view, mark, took_ns, seen), ());
    }

    fn next_poll(&self, view: &impl View, alone: Option<Alone>) -> Option<u64> {
        ask_predictor!(self, next_poll(view, alone), None)
    }
}

impl<P: Platform> Selectable for Selected<P> {
    const NAMES: &'static [&'static str] = NAMES;

    fn selected(&self) -> usize {
        usize::from(self.which.load(Ordering::Relaxed))
    }

    fn select(&self, which: usize) {
        // CAST: a handful.
        if which < NAMES.len() {
            self.which.store(which as u8, Ordering::Relaxed);
        }
    }

    fn learned(&self, now_ms: u64, tell: &mut dyn FnMut(&'static str, Learned)) {
        if self.which.load(Ordering::Relaxed) == COOP {
            self.coop.learned(now_ms, tell);
        }
    }
}
