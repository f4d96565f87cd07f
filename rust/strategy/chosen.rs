// SPDX-License-Identifier: GPL-2.0
//! Whichever strategy an operator has chosen.

use cell::sync::{AtomicU8, Ordering};
use engine::{
    Drained, Expected, Foretells, Learned, Nap, Outlook, Plan, Seen, Spun, Staged, Strategy,
    Switches, Turn, View,
};
use hal::{Error, Op, Platform};

use crate::{Coop, Plain};

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
pub struct Chosen<P: Platform> {
    which: AtomicU8,
    coop: Coop<P>,
    #[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
    random: crate::Random,
}

impl<P: Platform> Chosen<P> {
    /// [`Coop`], which has learnt nothing. Control path; may sleep.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(platform: &P) -> Result<Self, Error> {
        Ok(Self {
            which: AtomicU8::new(COOP),
            coop: Coop::new(platform)?,
            #[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
            random: crate::Random::default(),
        })
    }
}

impl<P: Platform> Chosen<P> {
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

impl<P: Platform> Strategy for Chosen<P> {
    type Notes = <Coop<P> as Strategy>::Notes;

    const NAMES: &'static [&'static str] = NAMES;

    fn chosen(&self) -> usize {
        usize::from(self.which.load(Ordering::Relaxed))
    }

    fn choose(&self, which: usize) {
        // CAST: a handful.
        if which < NAMES.len() {
            self.which.store(which as u8, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn defers(&self, view: &impl View, staged: Staged) -> u64 {
        ask!(self, defers(view, staged), ())
    }

    #[inline(always)]
    fn notes_owner(&self, view: &impl View, switches: Switches) -> bool {
        ask!(self, notes_owner(view, switches), ())
    }

    #[inline(always)]
    fn looks(&self, view: &impl View, switches: Switches) -> bool {
        ask!(self, looks(view, switches), ())
    }

    #[inline(always)]
    fn budget(&self, view: &impl View) -> usize {
        ask!(self, budget(view), ())
    }

    #[inline(always)]
    fn leaves_rest(&self, view: &impl View) -> bool {
        ask!(self, leaves_rest(view), ())
    }

    fn begin(&self, notes: &mut Self::Notes, view: &impl View) {
        ask!(self, begin(notes; view), notes);
    }

    #[inline(always)]
    fn polls(&self, notes: &mut Self::Notes, view: &impl View, drained: Drained) -> bool {
        ask!(self, polls(notes; view, drained), notes)
    }

    #[inline(always)]
    fn yields_first(&self, view: &impl View) -> bool {
        ask!(self, yields_first(view), ())
    }

    #[inline(always)]
    fn yields(&self, view: &impl View) -> bool {
        ask!(self, yields(view), ())
    }

    #[inline(always)]
    fn spins(&self, view: &impl View) -> Option<u64> {
        ask!(self, spins(view), ())
    }

    #[inline(always)]
    fn spun(&self, view: &impl View, came: Spun, ns: u64) {
        ask!(self, spun(view, came, ns), ());
    }

    #[inline(always)]
    fn slept(&self, view: &impl View, ns: u64) {
        ask!(self, slept(view, ns), ());
    }

    #[inline(always)]
    fn yielded(&self, view: &impl View, turn: Turn) {
        ask!(self, yielded(view, turn), ());
    }

    fn foretells(&self, view: &impl View, op: Op, bytes: u64, beside: u64) -> Foretells {
        ask!(self, foretells(view, op, bytes, beside), ())
    }

    fn answered(&self, view: &impl View, mark: u64, took_ns: u64, seen: Seen) {
        ask!(self, answered(view, mark, took_ns, seen), ());
    }

    fn plans(&self, view: &impl View, what: Expected) -> Plan {
        ask!(self, plans(view, what), ())
    }

    fn looks_in(&self, view: &impl View, what: Option<Outlook>) -> Option<u64> {
        ask!(self, looks_in(view, what), ())
    }

    fn foreseen(&self, view: &impl View, came: Spun, ns: u64) {
        ask!(self, foreseen(view, came, ns), ());
    }

    fn napped(&self, view: &impl View, nap: Nap, late_ns: u64) {
        ask!(self, napped(view, nap, late_ns), ());
    }

    fn learned(&self, now_ms: u64, tell: &mut dyn FnMut(&'static str, Learned)) {
        ask!(self, learned(now_ms, tell), ());
    }
}
