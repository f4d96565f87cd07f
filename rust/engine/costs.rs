// SPDX-License-Identifier: GPL-2.0
//! What the machine takes for what a strategy can choose between.

use cell::sync::{AtomicU64, Ordering};

/// CPU time in nanoseconds, as measured on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A thread goes to sleep, and is woken.
    pub sleep_ns: u64,
    /// A thread lets another one run, and has its turn again.
    pub yield_ns: u64,
    /// A tick of the poll timer that finds nothing, from its entry to its exit.
    pub tick_ns: u64,
    /// An interrupt of the device's that finds nothing, likewise.
    pub interrupt_ns: u64,
}

impl Costs {
    /// Until something is measured: about what a core of 3 GHz takes, which only has to be right
    /// enough to begin with.
    pub const ASSUMED: Self = Self {
        sleep_ns: 2_000,
        yield_ns: 1_000,
        tick_ns: 1_000,
        interrupt_ns: 1_000,
    };
}

/// How much of a new measurement goes into the average: the part of 2 to the power of so much.
const WEIGHT: u32 = 4;

/// The costs of one queue. Anybody may read them at any time.
#[derive(Debug)]
pub(crate) struct Measured {
    sleep_ns: AtomicU64,
    yield_ns: AtomicU64,
    tick_ns: AtomicU64,
    /// What the interrupt's handler takes before it drains, times 2^[`WEIGHT`].
    lead: AtomicU64,
}

impl Measured {
    pub(crate) fn new() -> Self {
        let measured = Self {
            sleep_ns: AtomicU64::new(0),
            yield_ns: AtomicU64::new(0),
            tick_ns: AtomicU64::new(0),
            lead: AtomicU64::new(0),
        };
        measured.set(Costs::ASSUMED);
        measured
    }

    pub(crate) fn set(&self, costs: Costs) {
        self.sleep_ns
            .store(costs.sleep_ns.max(1), Ordering::Relaxed);
        self.yield_ns
            .store(costs.yield_ns.max(1), Ordering::Relaxed);
        self.tick_ns.store(costs.tick_ns.max(1), Ordering::Relaxed);
        let lead = costs.interrupt_ns.saturating_sub(costs.tick_ns);
        self.lead
            .store(lead.saturating_mul(1 << WEIGHT), Ordering::Relaxed);
    }

    /// An interrupt's handler took `ns` before it drained. One caller at a time.
    #[inline]
    pub(crate) fn note_lead(&self, ns: u64) {
        let sum = self.lead.load(Ordering::Relaxed);
        let sum = sum.saturating_sub(sum >> WEIGHT).saturating_add(ns);
        self.lead.store(sum, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> Costs {
        let tick_ns = self.tick_ns.load(Ordering::Relaxed);
        let lead = self.lead.load(Ordering::Relaxed) >> WEIGHT;
        Costs {
            sleep_ns: self.sleep_ns.load(Ordering::Relaxed),
            yield_ns: self.yield_ns.load(Ordering::Relaxed),
            tick_ns,
            // To get in and out of an interrupt takes what it does with a timer's.
            interrupt_ns: tick_ns.saturating_add(lead),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_costs_a_tick_and_what_its_handler_does_first() {
        let measured = Measured::new();
        measured.set(Costs {
            tick_ns: 3_000,
            interrupt_ns: 4_000,
            ..Costs::ASSUMED
        });
        assert_eq!(measured.get().interrupt_ns, 4_000);
        (0..200).for_each(|_| measured.note_lead(9_000));
        let costs = measured.get();
        assert!((11_900..=12_000).contains(&costs.interrupt_ns), "{costs:?}");
        assert_eq!(costs.tick_ns, 3_000);
    }

    #[test]
    fn a_clock_that_does_not_run_measures_no_zero() {
        let measured = Measured::new();
        measured.set(Costs {
            sleep_ns: 0,
            yield_ns: 0,
            tick_ns: 0,
            interrupt_ns: 0,
        });
        let costs = measured.get();
        assert!(costs.sleep_ns > 0 && costs.yield_ns > 0 && costs.tick_ns > 0);
    }
}
