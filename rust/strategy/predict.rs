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
//! of the command, so many that one nap in four comes too late ([`Margin`]).
//!
//! # What it costs
//! To foretell and to note who waits costs some 5 % of a read. Where next to nothing came of it for
//! 256 commands, no nap and no tick, none of the next 1,024 is foretold; then 64 are, and so on.
//!
//! # When there is no nap
//! * The spread is more than a wake-up takes: to look for so long saves nothing.
//! * It is due sooner than a sleep takes: the thread spins for it, while that pays.
//! * It is due sooner than the lead and a sleep take.
//! * It is due so late that nobody would notice a wake-up.
//! * Others are outstanding on its queue: the thread that is woken for those finds its, and there
//!   is enough to do for the CPU without looking for what has not come.
//! * It does not pay: an [`Account`] of what the looks have saved, and what they and the timers
//!   took, and slices that a thread was kept waiting for. Beside one that computes a napper, which
//!   uses more of the CPU than a sleeper, is kept waiting more often.
//!
//! A thread that knows that it waits for longer than a sleep takes does not spin before it sleeps.
//!
//! # A hybrid queue that naps carry without its interrupt
//! The interrupt comes just as the thread looks, and its handler is what a nap does not hide. So
//! the queue is polled while naps find what they are for one after the other, and an interval is
//! long enough that no tick comes meanwhile.
//!
//! # The margin
//! How long before a command is expected a thread is to look, and how long after.
//!
//! It is learnt so that one nap in four comes too late: what is seen to come early is cut off by
//! the nap itself, so the spread alone would shrink for ever. Who comes a little late has still
//! hidden most of its wake-up; to be in time always is paid with looks by everybody.
//!
//! # Ticks
//! When the timer of a polled queue looks for a command that is alone, and that no thread looks for
//! itself: as one of io_uring, whose thread is woken by the tick that finds it.
//!
//! One tick that comes soon after the command is expected is enough, as a rule. But what is there
//! at the first look is not measured ([`engine::Seen::Found`]). So every few commands the ticks
//! begin earlier, in steps that are short enough to measure it:
//!
//! ```text
//!                                        T - s   T   T + s
//!   most                                                 tick   tick   tick ...  steps of s
//!   one in 16                              tick tick tick tick ...               short steps
//!   not regular (yet): most                      tick   tick   tick ...
//!   one in four                            tick tick tick tick ...
//!   not known yet: one in four   tick tick tick tick tick tick tick ...
//! ```

use cell::sync::{AtomicBool, AtomicU16, AtomicU8, Ordering};
use engine::{
    Alone, Costs, Due, Expected, Nap, Predicted, Prediction, Predictor, Seen, View, CLOSE,
    DEFAULT_POLL_INTERVAL_US,
};
use hal::{Error, Op, Platform};

use crate::estimator::{is_one_of, Class, Delay, Forecast, Known};
use crate::{Account, Stakes};

/// For how many microseconds a thread polls after a nap, at most, where nothing else is said.
const DEFAULT_WINDOW_US: u8 = 16;

/// What is looked out for is alone on its queue.
const ALONE: u64 = 1;
/// A wait that is this many times as long as a sleep takes, as a power of two, is slept through:
/// what a nap hides of it is a thousandth at most.
const MOST_SLEEPS: u32 = 10;
/// What may be lost before naps are given up, in sleeps,
const MOST: u64 = 64;
/// and by a trial: some naps are vain until the forecast and the lead are known.
const TRIAL: u64 = 16;
/// By how many spreads a completion is late that does not come as expected.
const SPREADS: u64 = 2;
/// Where something comes of fewer than one in this many commands, predicting is of no use.
const USED: u8 = 32;
/// After how many commands that is seen.
const USELESS: u8 = u8::MAX;
/// For how many commands nothing is predicted then.
const PAUSE: u16 = 1024;
/// For how many it is tried after that: a sixteenth of them all, so that of the 2 to 3 % that it
/// costs two thousandths are left (docs/results.md, "Where it does not pay").
const TRIED: u8 = 64;
/// Of naps that the lead seems too long for, one of 2 to the power of this is taken: threads may
/// have been kept waiting, and nothing but a nap measures it again. A nap takes up to a third more
/// CPU time than a sleep (docs/results.md, "Threads that nap"), so that is a hundredth of it.
const ONE_TOO_SHORT: u32 = 5;
/// A thread that polls this many sleeps after its timer was kept waiting by another's slice: that
/// is no lead, and can't be slept around. It is a loss: a napper uses more of the CPU, and so has
/// its share of it used up sooner: 5 of 100 reads waited for a slice instead of 2 (docs/results.md,
/// "Where it does not pay"). (Not on a polled queue: a sleeper there waits for a tick, longer.)
const MOST_LEAD: u64 = 4;

/// What is foretold of one queue's commands, and whether threads nap by it.
pub struct Foresight<P: Platform> {
    forecast: Forecast<P>,
    lead: Delay,
    margin: Margin,
    napping: Account,
    window_us: AtomicU8,
    carrying: Carrying,
    /// Commands that were asked about, less [`USED`] for each that it was of use for.
    unused: AtomicU8,
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
            margin: Margin::default(),
            napping: Account::default(),
            window_us: AtomicU8::new(DEFAULT_WINDOW_US),
            carrying: Carrying::default(),
            unused: AtomicU8::new(0),
        })
    }
}

/// A class and the bytes of its command, as one word that is never 0.
fn mark(class: Class, bytes: u64) -> u64 {
    (bytes << u8::BITS) | u64::from(class.code())
}

fn stakes(view: &impl View) -> Stakes {
    let sleep_ns = view.costs().sleep_ns;
    Stakes {
        most_ns: sleep_ns.saturating_mul(MOST),
        trial_ns: sleep_ns.saturating_mul(TRIAL),
    }
}

impl<P: Platform> Foresight<P> {
    /// From now on a thread polls for `us` microseconds after a nap, at most.
    pub fn set_window_us(&self, us: u32) {
        let us = u8::try_from(us).unwrap_or(u8::MAX);
        self.window_us.store(us, Ordering::Relaxed);
    }

    /// For how many microseconds one does.
    pub fn window_us(&self) -> u32 {
        u32::from(self.window_us.load(Ordering::Relaxed))
    }

    /// What is known of when commands of `class` are over.
    pub fn known(&self, class: Class) -> Option<Known> {
        self.forecast.known(class)
    }

    pub(crate) fn account(&self) -> &Account {
        &self.napping
    }

    /// Whether it is of use to know which thread waits for the command that is issued next.
    #[inline]
    pub(crate) fn tracks(&self, view: &impl View) -> bool {
        view.outstanding() < ALONE
    }

    /// Something came of what was foretold.
    #[inline]
    fn was_of_use(&self) {
        let unused = self.unused.load(Ordering::Relaxed);
        (self.unused).store(unused.saturating_sub(USED), Ordering::Relaxed);
    }

    /// What a thread does that waits for `what`; `spins`: it pays to spin instead of sleeping.
    #[inline]
    pub(crate) fn waits(
        &self,
        view: &impl View,
        what: Expected,
        spins: impl FnOnce() -> bool,
    ) -> Planned {
        let Expected { at_ns, spread_ns } = what;
        let sleep_ns = view.costs().sleep_ns;
        let now = view.now_ns();
        let late = now > at_ns.saturating_add(spread_ns.saturating_mul(SPREADS));
        let left = at_ns.saturating_sub(now);
        let wake_up = sleep_ns.saturating_add(u64::from(self.lead.expected_ns()));
        let vague = late || spread_ns > wake_up;
        if view.outstanding() > ALONE || vague {
            return Planned::Any;
        }
        if left <= sleep_ns && spins() {
            let for_ns = left.saturating_add(spread_ns.saturating_mul(SPREADS));
            self.was_of_use();
            return Planned::Spin { for_ns };
        }
        if left >> MOST_SLEEPS > sleep_ns || !self.napping.is_open(view.now_ms()) {
            self.carrying.slept_through();
            return Planned::NoSpin;
        }
        let (lead, off) = self.lead.or(sleep_ns);
        let apart = self.margin.of(spread_ns.saturating_add(off));
        // A window that is too short for all of it has what is expected in its middle.
        let window = u64::from(self.window_us()).saturating_mul(1000);
        let apart = apart.min(window / 2);
        let early = lead.saturating_add(apart);
        let for_ns = early.saturating_add(apart).min(window);
        // Nobody goes to sleep and sets a timer up for less than that takes.
        if left <= early.saturating_add(sleep_ns) {
            self.carrying.slept_through();
            let until_ns = now.saturating_add(sleep_ns);
            return match left > sleep_ns && is_one_of(now, ONE_TOO_SHORT) {
                true => Planned::Nap { until_ns, for_ns },
                false => Planned::NoSpin,
            };
        }
        self.was_of_use();
        self.carrying.set_reach(left.saturating_add(apart));
        Planned::Nap {
            until_ns: at_ns.saturating_sub(early),
            for_ns,
        }
    }

    /// Whether naps carry a hybrid queue, and it does without its interrupt then.
    pub(crate) fn carrying(&self) -> &Carrying {
        &self.carrying
    }

    #[inline]
    pub(crate) fn spun(&self, view: &impl View, found: bool, ns: u64) {
        let (stakes, now_ms) = (stakes(view), view.now_ms());
        match found {
            true => {
                // A wake-up is hidden.
                let hidden = u64::from(self.lead.expected_ns());
                let saved = view.costs().sleep_ns.saturating_add(hidden);
                // To look for longer than that is a loss, whatever came.
                match saved.checked_sub(ns) {
                    Some(won) => self.napping.earn(won, stakes, now_ms),
                    None => (self.napping).spend(ns.saturating_sub(saved), stakes, now_ms),
                }
            }
            false => self.napping.spend(ns, stakes, now_ms),
        }
    }

    #[inline]
    pub(crate) fn napped(&self, view: &impl View, nap: Nap, late_ns: u64) {
        let costs = view.costs();
        let kept_waiting = late_ns > costs.sleep_ns.saturating_mul(MOST_LEAD);
        let lost_ns = match nap {
            Nap::Hit | Nap::Late | Nap::Vain if kept_waiting && !view.polling().is_on() => late_ns,
            Nap::Hit => 0,
            Nap::Late | Nap::Vain | Nap::Woken => costs.tick_ns,
        };
        if nap != Nap::Woken && !kept_waiting {
            self.lead.came(late_ns);
        }
        self.carrying.napped(nap);
        self.margin.napped(nap);
        if lost_ns != 0 {
            (self.napping).spend(lost_ns, stakes(view), view.now_ms());
        }
    }
}

impl<P: Platform> Predictor for Foresight<P> {
    #[inline]
    fn issued(&self, view: &impl View, op: Op, bytes: u64, beside: u64) -> Prediction {
        let unused = self.unused.load(Ordering::Relaxed);
        if unused == USELESS {
            (self.unused).store(USELESS.saturating_sub(TRIED), Ordering::Relaxed);
            return Prediction::NothingFor(PAUSE);
        }
        self.unused
            .store(unused.saturating_add(1), Ordering::Relaxed);
        if beside >= ALONE {
            return Prediction::Nothing;
        }
        let Some(class) = Class::of(op, bytes, ALONE) else {
            return Prediction::Nothing;
        };
        if view.polling().is_on() {
            // Its timer goes by it.
            self.was_of_use();
        }
        Prediction::This(Predicted {
            mark: mark(class, bytes),
            due: self.forecast.due(class, bytes),
        })
    }

    #[inline]
    fn completed(&self, _: &impl View, mark: u64, took_ns: u64, seen: Seen) {
        // CAST: the lowest eight bits.
        if let Some(class) = Class::from_code(mark as u8) {
            self.forecast.saw(class, mark >> u8::BITS, took_ns, seen);
        }
    }

    fn next_poll(&self, view: &impl View, alone: Option<Alone>) -> Option<u64> {
        match alone {
            Some(alone) => looks_in(view.costs(), alone),
            None => self.carrying.looks_in(),
        }
    }
}

/// What a thread does about what it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned {
    /// As if nothing were known of it.
    Any,
    /// As if nothing were known of it, but that it does not spin: that would be in vain.
    NoSpin,
    /// As [`engine::WaitPlan::Nap`].
    Nap { until_ns: u64, for_ns: u64 },
    /// As [`engine::WaitPlan::Spin`].
    Spin { for_ns: u64 },
}

/// After this many naps in a row that were of use they do without the interrupt.
const IN_A_ROW: u8 = 32;
/// Meanwhile the timer comes after this many nanoseconds for what is not predicted, however long
/// the interval is: a thread that does not nap is not to wait for long.
const UNFORETOLD_NS: u64 = DEFAULT_POLL_INTERVAL_US as u64 * 1_000;

/// Whether naps carry a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// It is polled.
    Yes,
    /// They did until now: it takes interrupts again.
    NoMore,
    /// It is not theirs to say.
    No,
}

/// What one queue's naps were like of late. Small, as queues are made on a stack.
#[derive(Default)]
pub(crate) struct Carrying {
    /// For how many microseconds at most the last nap was to leave its queue alone.
    reach_us: AtomicU16,
    /// Naps in a row that were neither vain nor cut short.
    row: AtomicU8,
    /// They carried it, when last asked. Written with the drain token held.
    on: AtomicBool,
}

impl Carrying {
    /// The queue is left alone for `ns` nanoseconds.
    #[inline]
    fn set_reach(&self, ns: u64) {
        let us = u16::try_from(ns / 1_000).unwrap_or(u16::MAX);
        self.reach_us.store(us, Ordering::Relaxed);
    }

    /// A nap ended so.
    #[inline]
    pub(crate) fn napped(&self, nap: Nap) {
        let row = match nap {
            Nap::Hit | Nap::Late => self.row.load(Ordering::Relaxed).saturating_add(1),
            Nap::Vain | Nap::Woken => 0,
        };
        self.row.store(row, Ordering::Relaxed);
    }

    /// A wait is slept through without a nap: naps don't carry the queue.
    #[inline]
    fn slept_through(&self) {
        self.row.store(0, Ordering::Relaxed);
    }

    /// The mode was set: what was is over.
    pub(crate) fn begin(&self) {
        self.row.store(0, Ordering::Relaxed);
        self.on.store(false, Ordering::Relaxed);
    }

    /// Whether naps carry the hybrid queue, on which `depth` commands were outstanding when some
    /// ended. With the drain token held.
    #[inline]
    pub(crate) fn carries(&self, view: &impl View, depth: u64) -> Carried {
        let was = self.on.load(Ordering::Relaxed);
        if !was && !view.is_predicting() {
            return Carried::No;
        }
        if depth > ALONE {
            self.row.store(0, Ordering::Relaxed);
        }
        let in_a_row = self.row.load(Ordering::Relaxed) >= IN_A_ROW;
        let reach_us = u64::from(self.reach_us.load(Ordering::Relaxed));
        let is =
            view.is_predicting() && in_a_row && reach_us < view.polling().interval_ns() / 1_000;
        if is != was {
            self.on.store(is, Ordering::Relaxed);
        }
        match (is, was) {
            (true, _) => Carried::Yes,
            (false, true) => Carried::NoMore,
            (false, false) => Carried::No,
        }
    }

    /// In how long the timer looks for what is not foretold; `None`: after an interval.
    #[inline]
    pub(crate) fn looks_in(&self) -> Option<u64> {
        let on = self.on.load(Ordering::Relaxed);
        on.then_some(UNFORETOLD_NS)
    }
}

/// A thread polls from this many parts of a spread before what it expects until as many after, in
/// the beginning: by then nine of ten have come, if they are off as throws of dice are.
const MARGIN: u16 = 2 * PART;
const PART: u16 = 64;
/// A thread that comes too late widens that by this many parts, one that does not narrows it by
/// one: so one of `WIDER` + 1 comes too late. With 15 a read took 1 to 8 % more CPU time, and no
/// less of its own (docs/results.md, "Threads that nap").
const WIDER: u16 = 3;
/// It is that wide at most.
const WIDEST: u16 = 8 * PART;

/// A margin, in parts of a spread.
struct Margin(AtomicU16);

impl Default for Margin {
    fn default() -> Self {
        Self(AtomicU16::new(MARGIN))
    }
}

impl Margin {
    /// The margin in nanoseconds, for that spread.
    #[inline]
    pub(crate) fn of(&self, spread_ns: u64) -> u64 {
        let parts = u64::from(self.0.load(Ordering::Relaxed));
        spread_ns.saturating_mul(parts) / u64::from(PART)
    }

    /// A nap ended so.
    #[inline]
    pub(crate) fn napped(&self, nap: Nap) {
        let parts = self.0.load(Ordering::Relaxed);
        let parts = match nap {
            Nap::Late => parts.saturating_add(WIDER),
            Nap::Hit => parts.saturating_sub(1),
            Nap::Vain | Nap::Woken => parts,
        };
        self.0.store(parts.min(WIDEST), Ordering::Relaxed);
    }
}

/// Of how many commands, as a power of two, one is measured, if the device is regular.
const PROBES: u32 = 4;
/// The same if it is not known to be.
const PROBES_OF_VAGUE: u32 = 2;

/// In how many nanoseconds the next tick comes; `None`: after an interval.
pub(crate) fn looks_in(costs: Costs, what: Alone) -> Option<u64> {
    // Half of what is close enough: a timer comes late, and so did the one before.
    let close = what.since_ns >> CLOSE >> 1;
    let Some(Due {
        after_ns,
        spread_ns,
    }) = what.due
    else {
        return is_one_of(what.at_ns, PROBES_OF_VAGUE).then_some(close);
    };
    // No more often than a tick is worth.
    let apart = spread_ns.max(costs.tick_ns);
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
