// SPDX-License-Identifier: GPL-2.0
//! Answers that nobody can foresee: what the engine holds, it holds whatever a strategy says.
//!
//! For tests: on the host, and in a module for a kernel with `CONFIG_FAULT_INJECTION_DEBUG_FS`.

use cell::sync::{AtomicU64, Ordering};
use engine::{
    Drained, Due, Expected, Foretells, Foretold, Outlook, Plan, Staged, Strategy, Switches, View,
};
use hal::Op;

/// A strategy that answers with dice.
pub struct Random(AtomicU64);

impl Random {
    /// One whose answers are the same every time, as long as it is asked by one CPU at a time.
    pub fn new(seed: u64) -> Self {
        // Never 0, from which the generator would not get away.
        Self(AtomicU64::new(seed.wrapping_mul(2).wrapping_add(1)))
    }

    /// A number below `n`: xorshift64 (Marsaglia, "Xorshift RNGs", 2003). Two CPUs at once may get
    /// the same.
    fn below(&self, n: u64) -> u64 {
        let mut x = self.0.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.store(x, Ordering::Relaxed);
        x.checked_rem(n).unwrap_or(0)
    }

    fn flip(&self) -> bool {
        self.below(2) == 0
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new(0x4849_4f50)
    }
}

impl Strategy for Random {
    type Notes = ();

    const NAMES: &'static [&'static str] = &["random"];

    fn defers(&self, _: &impl View, _: Staged) -> u64 {
        match self.below(8) {
            0 => 0,
            n => u64::MAX >> (8 * n),
        }
    }

    fn notes_owner(&self, _: &impl View, _: Switches) -> bool {
        self.flip()
    }

    fn looks(&self, _: &impl View, _: Switches) -> bool {
        self.flip()
    }

    /// None is no answer that could hold up anybody, nor are all.
    fn budget(&self, _: &impl View) -> usize {
        match self.below(8) {
            0 => usize::MAX,
            n => 1 << (n - 1) >> 1,
        }
    }

    fn leaves_rest(&self, _: &impl View) -> bool {
        self.flip()
    }

    fn polls(&self, (): &mut (), _: &impl View, _: Drained) -> bool {
        self.flip()
    }

    fn yields_first(&self, _: &impl View) -> bool {
        self.flip()
    }

    fn yields(&self, _: &impl View) -> bool {
        self.flip()
    }

    fn spins(&self, _: &impl View) -> Option<u64> {
        match self.below(3) {
            0 => None,
            1 => Some(0),
            _ => Some(u64::MAX),
        }
    }

    fn foretells(&self, _: &impl View, _: Op, _: u64, _: u64) -> Foretells {
        let due = Due {
            after_ns: 1 << self.below(40),
            spread_ns: 1 << self.below(20),
        };
        match self.below(16) {
            0 => Foretells::NothingFor(1 << self.below(6)),
            1..8 => Foretells::Nothing,
            _ => Foretells::This(Foretold {
                mark: 1 + self.below(u64::MAX),
                due: self.flip().then_some(due),
            }),
        }
    }

    fn plans(&self, view: &impl View, _: Expected) -> Plan {
        let ns = 1u64 << self.below(40);
        match self.below(4) {
            0 => Plan::Any,
            1 => Plan::Block,
            2 => Plan::Spin { for_ns: ns },
            _ => Plan::Nap {
                until_ns: view.now_ns().saturating_add(ns),
                for_ns: 1 << self.below(40),
            },
        }
    }

    fn looks_in(&self, _: &impl View, _: Option<Outlook>) -> Option<u64> {
        self.flip().then(|| 1 << self.below(40))
    }
}
