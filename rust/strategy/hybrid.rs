// SPDX-License-Identifier: GPL-2.0
//! When a hybrid queue polls: the paper's future work (ATC '14, section 6).
//!
//! An interrupt takes the CPU for a while, and each completion may have one. Ticks of a timer take
//! it at the most once an interval, and less often where threads that pass by find the completions
//! themselves; but a completion that nobody passes by lies for half an interval, on average. Where
//! the CPU is idle meanwhile, that is lost; and where somebody sleeps for it, and a thread has the
//! CPU that does nothing for I/O, it is lost to I/O. Elsewhere it is late as one of so many that
//! are outstanding, and that much of what they would have done is.
//!
//! So in windows of some completions two sums are compared, in nanoseconds: what interrupts took,
//! and what ticks take, or would, together with what is late. A queue that interrupts is polled on
//! trial when ticks would cost less. It goes back when they cost more than interrupts did, some
//! windows together, as an [`Account`] has it: loads come in bursts. A failed trial is followed by
//! a rest, unless the load has become a deeper one meanwhile.
//!
//! What a tick finds late on an idle CPU is only estimated, and with a fast device most of an
//! interval is lost: it answers at once, and nobody looks. So a polled window in which the CPU was
//! idle, and which took longer than one of interrupts, has saved nothing, and spends what those
//! took.

use engine::{Costs, View};

use crate::{Account, Stakes};

#[cfg(all(test, not(loom)))]
#[path = "hybrid_tests.rs"]
mod tests;

/// Completions after which the load is judged.
const WINDOW: u32 = 256;
/// What ticks save in one window may be spent in later ones: no more at once than the interrupts
/// of this many windows.
const MOST_SAVED: u64 = 4;
/// The same for a trial, for which nothing was saved yet.
const TRIAL: u64 = 2;
/// A load more than this many times as deep as the one that the last trial began on is another one;
/// and so is one that is so much less deep, where an idle CPU shows that all of it is outstanding.
const DEEPER: u64 = 2;
/// A trial of polling may be given up after this many completions, before its window is over. The
/// project's own choice: what it takes to find the first ones late weighs little by then.
const EARLY: u32 = WINDOW / 4;
/// It is given up if they took longer than with interrupts by more than one in this many parts. The
/// project's own choice: four times what a window may vary by ([`SLOWER`]).
const MUCH_SLOWER: u64 = 8;
/// A trial that was given up counts as this many failed ones: as long as no more is outstanding,
/// the next one would find the same. That begins after 128 times what was lost.
const STAYS: u32 = 4;
/// A window counts as slower from that part of its length on. The project's own choice: with it a
/// drive of 5 us is interrupted, and one of 80 us with 32 reads in flight polled.
const SLOWER: u64 = 32;
const NS_PER_MS: u64 = 1_000_000;

/// How completions were noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// By an interrupt.
    Interrupt,
    /// By a tick, or there were none.
    Tick,
    /// By a thread that passed by.
    Passing,
}

/// Whom an interrupt or a tick keeps from the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuUser {
    /// Nobody.
    Idle,
    /// A thread that does nothing for I/O here, while another sleeps for what the drain ended: who
    /// was woken earlier would have run.
    Other,
    /// Any other thread.
    Io,
}

/// A drain, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Who drained.
    pub(crate) by: Source,
    /// Who had its CPU, if it interrupted anybody.
    pub(crate) cpu: CpuUser,
    /// Commands that were ended.
    pub(crate) ended: usize,
    /// How many were outstanding before.
    pub(crate) depth: u64,
    /// How many drains it stands for.
    pub(crate) drains: u32,
}

/// What was seen since the last judgement. Kept under the drain token.
#[derive(Default)]
pub struct LoadWindow {
    since_ns: u64,
    ended: u32,
    /// Interrupts, or ticks,
    noticed: u32,
    /// and what ticks kept an idle CPU, or one that others had, from.
    late_ns: u64,
    /// Interrupts that came to such a CPU.
    idle: u32,
    /// Commands that ticks ended while a thread had the CPU.
    found: u32,
    /// Drains that ended something.
    drains: u32,
    /// Commands outstanding at these, summed up.
    depth: u64,
    /// A tick found commands over on an idle CPU.
    idled: bool,
    /// What interrupts took in the window before the trial: what polling has to undercut.
    price_ns: u64,
    /// How long that window was.
    length_ns: u64,
    /// How deep the load was when the last trial began.
    tried_at: u64,
}

/// For how long a completion that only a tick finds has been there, on average.
fn late_ns(interval_ns: u64) -> u64 {
    interval_ns / 2
}

impl LoadWindow {
    /// Begins a window.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
        (self.ended, self.noticed, self.late_ns) = (0, 0, 0);
        (self.idle, self.found) = (0, 0);
        (self.drains, self.depth) = (0, 0);
        self.idled = false;
    }

    /// Notes a drain, and says whether the queue is to be polled, by what `polling` saves.
    #[inline]
    pub(crate) fn note(&mut self, sample: Sample, polling: &Account, view: &impl View) -> bool {
        // CAST: a batch at most.
        let ended = sample.ended as u32;
        self.ended = self.ended.wrapping_add(ended);
        if sample.by != Source::Passing {
            self.noticed = self.noticed.wrapping_add(sample.drains);
        }
        let polled = view.polling().is_on();
        if sample.by == Source::Tick && ended != 0 {
            if polled && self.is_shallow(sample) {
                self.begin(view.now_ns());
                return false;
            }
            self.note_late(sample.cpu, u64::from(ended), view.polling().interval_ns());
        }
        if ended != 0 {
            let idle = sample.cpu != CpuUser::Io && sample.by == Source::Interrupt;
            let drains = sample.drains;
            self.idle = self.idle.wrapping_add(if idle { drains } else { 0 });
            self.drains = self.drains.wrapping_add(drains);
            let depth = sample.depth.saturating_mul(u64::from(drains));
            self.depth = self.depth.saturating_add(depth);
        }
        let over = polled
            && sample.by == Source::Tick
            && (self.is_dear(polling, view) || self.has_failed(polling, view));
        if self.ended < WINDOW && !over {
            return polled;
        }
        self.evaluate(polled, polling, view)
    }

    /// Notes what a tick has kept waiting that found `ended` commands over.
    #[inline]
    fn note_late(&mut self, cpu: CpuUser, ended: u64, interval_ns: u64) {
        let kept = match cpu {
            CpuUser::Io => {
                // CAST: a batch at most.
                self.found = self.found.wrapping_add(ended as u32);
                return;
            }
            // The CPU, once; each that sleeps.
            CpuUser::Idle => {
                self.idled = true;
                1
            }
            CpuUser::Other => ended,
        };
        let late = late_ns(interval_ns).saturating_mul(kept);
        self.late_ns = self.late_ns.saturating_add(late);
    }

    /// The load has become a much less deep one than that of the trial.
    #[inline]
    fn is_shallow(&self, sample: Sample) -> bool {
        sample.cpu == CpuUser::Idle && sample.depth.saturating_mul(DEEPER) < self.tried_at
    }

    /// What ticks have taken, and what was late by them.
    fn polled_ns(&self, costs: &Costs, interval_ns: u64) -> u64 {
        let ticks = u64::from(self.noticed).saturating_mul(costs.tick_ns);
        let late = late_ns(interval_ns).saturating_mul(u64::from(self.found));
        let late = late
            .saturating_mul(u64::from(self.drains))
            .checked_div(self.depth);
        ticks
            .saturating_add(self.late_ns)
            .saturating_add(late.unwrap_or(0))
    }

    /// What ticks would have taken in a window of interrupts that was `ns` long. On an
    /// idle CPU one tick would have found what came within half an interval; where threads do I/O,
    /// those that submit may find it all, as the trial will tell.
    fn ticks_instead_ns(&self, costs: &Costs, interval_ns: u64, ns: u64) -> u64 {
        let ticks = ns.checked_div(interval_ns).unwrap_or(u64::MAX);
        let late = late_ns(interval_ns);
        let together = late.saturating_mul(u64::from(self.ended)).checked_div(ns);
        let idle = u64::from(self.idle) / together.unwrap_or(0).saturating_add(1);
        let late = late.saturating_mul(idle);
        ticks.saturating_mul(costs.tick_ns).saturating_add(late)
    }

    /// The CPU was idle now and then in this polled window, which took `ns`, and commands were
    /// slower than with interrupts, by more than one in `part`: whatever CPU time was saved, nobody
    /// had a use for it.
    fn is_slower(&self, ns: u64, part: u64) -> bool {
        let more = self.length_ns.checked_div(part).unwrap_or(0);
        let usual = self.length_ns.saturating_add(more);
        let ended = usual.saturating_mul(u64::from(self.ended)) / u64::from(WINDOW);
        self.idled && ns > ended
    }

    /// This is a trial, and it is seen before its window is over that commands are much slower: it
    /// has lost what a trial may.
    #[inline]
    fn has_failed(&self, polling: &Account, view: &impl View) -> bool {
        self.idled
            && self.ended >= EARLY
            && !polling.has_credit()
            && self.is_slower(view.now_ns().saturating_sub(self.since_ns), MUCH_SLOWER)
    }

    fn stakes(&self) -> Stakes {
        Stakes {
            most_ns: self.price_ns.saturating_mul(MOST_SAVED),
            trial_ns: self.price_ns.saturating_mul(TRIAL),
        }
    }

    /// Polling has taken more in this window than interrupts did, and all that it had saved.
    fn is_dear(&self, polling: &Account, view: &impl View) -> bool {
        let credit = match polling.credit_ns() {
            0 => self.stakes().trial_ns,
            credit => credit,
        };
        let took = self.polled_ns(&view.costs(), view.polling().interval_ns());
        took > self.price_ns.saturating_add(credit)
    }

    #[cold]
    fn evaluate(&mut self, polled: bool, polling: &Account, view: &impl View) -> bool {
        let (costs, now_ns) = (view.costs(), view.now_ns());
        let now_ms = now_ns / NS_PER_MS;
        let length_ns = now_ns.saturating_sub(self.since_ns);
        let depth = self.depth.checked_div(u64::from(self.drains)).unwrap_or(0);
        let poll = if polled {
            let stakes = self.stakes();
            let failed = self.has_failed(polling, view);
            let took = if failed {
                self.price_ns.saturating_add(stakes.trial_ns)
            } else if self.is_slower(length_ns, SLOWER) {
                self.price_ns.saturating_mul(2)
            } else {
                self.polled_ns(&costs, view.polling().interval_ns())
            };
            // Up to here it has taken the time of a window, or less.
            match took.checked_sub(self.price_ns) {
                Some(more) => {
                    polling.spend(more, stakes, now_ms);
                    if failed {
                        polling.persist(STAYS, now_ms);
                    }
                }
                None => {
                    let saved = self.price_ns.saturating_sub(took);
                    polling.earn(saved, stakes, now_ms);
                }
            }
            polling.is_open(now_ms)
        } else {
            if depth > self.tried_at.saturating_mul(DEEPER) {
                polling.hasten();
            }
            let price = u64::from(self.noticed).saturating_mul(costs.interrupt_ns);
            let instead = self.ticks_instead_ns(&costs, view.polling().interval_ns(), length_ns);
            let poll = price > instead && polling.is_open(now_ms);
            if poll {
                (self.tried_at, self.price_ns, self.length_ns) = (depth, price, length_ns);
            }
            poll
        };
        self.begin(now_ns);
        poll
    }
}
