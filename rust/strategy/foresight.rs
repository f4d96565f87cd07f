// SPDX-License-Identifier: GPL-2.0
//! Precompletion: a thread that waits is woken before its I/O is over, so that waking and switching
//! overlap with what the device still has to do, and spins only for the little that is left.
//!
//! ```text
//!   issue                                                        T: over, give or take
//!     │                                                          │
//!     ├── asleep ──────────────────────┬── lead ──┬── margin ────┼── margin ────┐
//!     │                             timer        first          answer,        asleep again,
//!     │                             expires      look           seen to come   if in vain
//! ```
//!
//! The *lead* is what lies between a timer's expiry and its thread's first look: the interrupt, the
//! switch, leaving an idle CPU. It is measured at each nap. The *margin* is some spreads of it and
//! of the command, learnt so that one nap in 16 comes too late: what is seen to come early is cut
//! off by the nap itself, so the spread alone would shrink for ever.
//!
//! # Ticks
//! A thread that does not pass the wait hook, as one of io_uring, is woken by the tick that finds
//! its I/O on a polled queue. One that comes soon after the command is expected is enough, as a
//! rule; but what is there at the first look is not measured. So every few commands the ticks begin
//! earlier, in steps that are short enough to measure it.
//!
//! # When there is no nap
//! * The spread is more than a wake-up takes: to look for so long saves nothing.
//! * It is due sooner than a sleep takes: the thread spins for it.
//! * It is due so late that nobody would notice a wake-up.
//! * Others are outstanding on its queue: whoever is woken for those finds its, and there is enough
//!   to do for the CPU without looking for what has not come.
//! * It does not pay: an [`Account`] of what the looks have saved, and what they and the timers
//!   took. Beside a thread that computes, whom the scheduler lets finish its slice, nappers come
//!   too late each time.

use crate::forecast::{Class, Delay, Forecast, Known};
use crate::{Account, Stakes};
use cell::sync::{AtomicU32, Ordering};
use engine::{Due, Expected, Foretold, Nap, Outlook, Plan, Seen, Spun, View};
use hal::{Error, Op, Platform};

/// A thread looks for so many microseconds after a nap, at most, where nothing else is said.
const DEFAULT_WINDOW_US: u32 = 16;

/// What is looked out for is alone on its queue.
const ALONE: u64 = 1;
/// A wait that is so many times as long as a sleep takes, as a power of two, is slept through:
/// what a nap hides of it is a thousandth at most.
const MOST_SLEEPS: u32 = 10;
/// What may be lost before naps are given up, in sleeps,
const MOST: u64 = 64;
/// and by a trial: some naps are vain until the forecast and the lead are known.
const TRIAL: u64 = 16;
/// What is so many spreads late does not come as expected.
const SPREADS: u64 = 2;
/// A thread looks from so many parts of a spread before what it expects until as many after, in the
/// beginning: by then nine of ten have come, if they are off as throws of dice are.
const MARGIN: u32 = 2 * PART;
const PART: u32 = 64;
/// Whoever comes too late widens that by so many parts, whoever does not narrows it by one: so one
/// of so many and one more comes too late.
const WIDER: u32 = 15;
/// It is that wide at most, and at least.
const WIDEST: u32 = 8 * PART;
const NARROWEST: u32 = PART / 2;
/// A look that found nothing shows when a command was over, within that part of what it took, as a
/// power of two; it is measured then ([`Seen::Came`]).
const CLOSE: u32 = 4;
/// Of so many commands that a timer looks for, as a power of two, one is measured, if the device is
/// regular,
const PROBES: u32 = 4;
/// and one of so many, if it is not known to be.
const PROBES_OF_VAGUE: u32 = 2;
/// A thread that looks so many sleeps after its timer was kept waiting by another's slice: that is
/// no lead, and can't be slept around.
const MOST_LEAD: u64 = 4;

/// What is foretold of one queue's commands, and whether threads nap by it.
pub struct Foresight<P: Platform> {
    forecast: Forecast<P>,
    lead: Delay,
    /// In parts of a spread.
    margin: AtomicU32,
    napping: Account,
    window_us: AtomicU32,
}

impl<P: Platform> Foresight<P> {
    /// One that knows nothing. Control path; may sleep.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub(crate) fn new(platform: &P) -> Result<Self, Error> {
        Ok(Self {
            forecast: Forecast::new(platform)?,
            lead: Delay::default(),
            margin: AtomicU32::new(MARGIN),
            napping: Account::default(),
            window_us: AtomicU32::new(DEFAULT_WINDOW_US),
        })
    }
}

/// A class and the bytes of its command, as one word that is never 0.
fn mark(class: Class, bytes: u64) -> u64 {
    (bytes << u8::BITS) | u64::from(class.code())
}

/// Whether that which was issued then is one of 2 to the power of `n`: by the golden ratio, so that
/// no rhythm has always the same one picked.
fn is_one_of(at_ns: u64, n: u32) -> bool {
    at_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - n) == 0
}

fn stakes(view: &impl View) -> Stakes {
    let sleep_ns = view.costs().sleep_ns;
    Stakes {
        most_ns: sleep_ns.saturating_mul(MOST),
        trial_ns: sleep_ns.saturating_mul(TRIAL),
    }
}

impl<P: Platform> Foresight<P> {
    /// From now on a thread looks for so many microseconds after a nap, at most.
    pub fn set_window_us(&self, us: u32) {
        self.window_us.store(us, Ordering::Relaxed);
    }

    /// For how many microseconds one does.
    pub fn window_us(&self) -> u32 {
        self.window_us.load(Ordering::Relaxed)
    }

    /// What is known of when commands of `class` are over.
    pub fn known(&self, class: Class) -> Option<Known> {
        self.forecast.known(class)
    }

    pub(crate) fn account(&self) -> &Account {
        &self.napping
    }

    /// A command that is issued now is alone.
    #[inline]
    pub(crate) fn is_of_use(view: &impl View) -> bool {
        view.outstanding() < ALONE
    }

    #[inline]
    pub(crate) fn foretells(&self, view: &impl View, op: Op, bytes: u64) -> Option<Foretold> {
        if !Self::is_of_use(view) {
            return None;
        }
        let class = Class::of(op, bytes, ALONE)?;
        Some(Foretold {
            mark: mark(class, bytes),
            due: self.forecast.due(class, bytes),
        })
    }

    #[inline]
    pub(crate) fn answered(&self, mark: u64, took_ns: u64, seen: Seen) {
        // CAST: the lowest eight bits.
        if let Some(class) = Class::from_code(mark as u8) {
            self.forecast.saw(class, mark >> u8::BITS, took_ns, seen);
        }
    }

    #[inline]
    pub(crate) fn plans(&self, view: &impl View, what: Expected) -> Plan {
        let Expected { at_ns, spread_ns } = what;
        let sleep_ns = view.costs().sleep_ns;
        let now = view.now_ns();
        let late = now > at_ns.saturating_add(spread_ns.saturating_mul(SPREADS));
        let left = at_ns.saturating_sub(now);
        let wake_up = sleep_ns.saturating_add(u64::from(self.lead.expected_ns()));
        let vague = late || spread_ns > wake_up;
        if view.outstanding() > ALONE || vague || left >> MOST_SLEEPS > sleep_ns {
            return Plan::Any;
        }
        if left <= sleep_ns {
            let for_ns = left.saturating_add(spread_ns.saturating_mul(SPREADS));
            return Plan::Spin { for_ns };
        }
        if !self.napping.is_open(view.now_ms()) {
            return Plan::Any;
        }
        let (lead, off) = self.lead_ns(sleep_ns);
        let margin = u64::from(self.margin.load(Ordering::Relaxed));
        let apart = spread_ns.saturating_add(off);
        let apart = apart.saturating_mul(margin) / u64::from(PART);
        let early = lead.saturating_add(apart);
        // Nobody goes to sleep and sets a timer up for less than that takes.
        if left <= early.saturating_add(sleep_ns) {
            return Plan::Any;
        }
        let window = u64::from(self.window_us()).saturating_mul(1000);
        Plan::Nap {
            until_ns: at_ns.saturating_sub(early),
            for_ns: early.saturating_add(apart).min(window),
        }
    }

    /// The lead, and how far it is from that; until one was measured, what a sleep takes.
    fn lead_ns(&self, sleep_ns: u64) -> (u64, u64) {
        match self.lead.seen() {
            0 => (sleep_ns, 0),
            _ => (
                u64::from(self.lead.expected_ns()),
                u64::from(self.lead.spread_ns()),
            ),
        }
    }

    /// In how long a timer looks: as one look is worth a tick, soon after the command is expected.
    /// Some are looked for earlier, as what is there at the first look is not measured.
    pub(crate) fn looks_in(&self, view: &impl View, what: Outlook) -> Option<u64> {
        let costs = view.costs();
        let least = costs.tick_ns;
        // Half of what is close enough: a timer comes late, and so did the one before.
        let close = what.since_ns >> CLOSE >> 1;
        let Some(due) = what.due else {
            return is_one_of(what.at_ns, PROBES_OF_VAGUE).then_some(close);
        };
        let Due {
            after_ns,
            spread_ns,
        } = due;
        let apart = spread_ns.max(least);
        let vague = spread_ns > after_ns >> CLOSE;
        let probes = match vague || spread_ns > costs.sleep_ns {
            true => PROBES_OF_VAGUE,
            false => PROBES,
        };
        let (first, step) = match (is_one_of(what.at_ns, probes), vague) {
            (true, _) => (after_ns.saturating_sub(apart), close.min(apart)),
            (false, true) => (after_ns, apart),
            (false, false) => (after_ns.saturating_add(spread_ns), apart),
        };
        let late = what.since_ns > after_ns.saturating_add(apart.saturating_mul(SPREADS));
        Some(match first.checked_sub(what.since_ns) {
            Some(left) if left != 0 => left,
            _ if late => close.max(apart),
            _ => step,
        })
    }

    #[inline]
    pub(crate) fn foreseen(&self, view: &impl View, came: Spun, ns: u64) {
        let (stakes, now_ms) = (stakes(view), view.now_ms());
        match came {
            Spun::Found => {
                // A wake-up is hidden.
                let hidden = u64::from(self.lead.expected_ns());
                let saved = view.costs().sleep_ns.saturating_add(hidden);
                self.napping.earn(saved.saturating_sub(ns), stakes, now_ms);
            }
            Spun::Vain => self.napping.spend(ns, stakes, now_ms),
        }
    }

    #[inline]
    pub(crate) fn napped(&self, view: &impl View, nap: Nap, late_ns: u64) {
        let costs = view.costs();
        if nap != Nap::Woken && late_ns <= costs.sleep_ns.saturating_mul(MOST_LEAD) {
            self.lead.came(late_ns);
        }
        let margin = self.margin.load(Ordering::Relaxed);
        let margin = match nap {
            Nap::Late => margin.saturating_add(WIDER),
            Nap::Hit => margin.saturating_sub(1),
            Nap::Vain | Nap::Woken => margin,
        };
        self.margin
            .store(margin.clamp(NARROWEST, WIDEST), Ordering::Relaxed);
        if nap != Nap::Hit {
            (self.napping).spend(costs.tick_ns, stakes(view), view.now_ms());
        }
    }
}
