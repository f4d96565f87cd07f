// SPDX-License-Identifier: GPL-2.0
//! Answers that nobody can foresee: what the engine holds, it holds whatever a strategy says.
//!
//! For tests: on the host, and in a module for a kernel with `CONFIG_FAULT_INJECTION_DEBUG_FS`.

use cell::sync::{AtomicU64, Ordering};
use engine::{
    Alone, Block, Drained, Due, Expected, Predicted, Prediction, Predictor, Seen, Staged, Strategy,
    Switches, View, WaitPlan, Yield,
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
    type Predictor = Self;

    fn predictor(&self) -> &Self {
        self
    }

    fn batches(&self, _: &impl View, _: Staged) -> u64 {
        match self.below(8) {
            0 => 0,
            n => u64::MAX >> (8 * n),
        }
    }

    fn block(&self, _: &impl View, _: Block) -> usize {
        // CAST: below 128.
        self.below(128) as usize
    }

    fn tracks(&self, _: &impl View, _: Switches) -> bool {
        self.flip()
    }

    fn polls_on_submit(&self, _: &impl View, _: Switches) -> bool {
        self.flip()
    }

    /// None is no answer that could hold up anybody, nor are all.
    fn budget(&self, _: &impl View) -> usize {
        match self.below(8) {
            0 => usize::MAX,
            n => 1 << (n - 1) >> 1,
        }
    }

    fn leaves_to_waiters(&self, _: &impl View) -> bool {
        self.flip()
    }

    fn polls(&self, (): &mut (), _: &impl View, _: Option<Drained>) -> bool {
        self.flip()
    }

    fn waits(&self, view: &impl View, expected: Option<Expected>) -> WaitPlan {
        let ns = 1u64 << self.below(40);
        match expected.map_or(0, |_| self.below(4)) {
            2 => WaitPlan::Spin { for_ns: ns },
            3 => WaitPlan::Nap {
                until_ns: view.now_ns().saturating_add(ns),
                for_ns: 1 << self.below(40),
            },
            _ => WaitPlan::Poll {
                spin_ns: [None, Some(0), Some(u64::MAX)]
                    .get(self.below(3) as usize)
                    .copied()
                    .flatten(),
                yields: [None, None, Some(Yield::First), Some(Yield::Last)]
                    .get(self.below(4) as usize)
                    .copied()
                    .flatten(),
            },
        }
    }
}

impl Predictor for Random {
    fn issued(&self, _: &impl View, _: Op, _: u64, _: u64) -> Prediction {
        let due = Due {
            after_ns: 1 << self.below(40),
            spread_ns: 1 << self.below(20),
        };
        match self.below(16) {
            0 => Prediction::NothingFor(1 << self.below(6)),
            1..8 => Prediction::Nothing,
            _ => Prediction::This(Predicted {
                mark: 1 + self.below(u64::MAX),
                due: self.flip().then_some(due),
            }),
        }
    }

    fn completed(&self, _: &impl View, _: u64, _: u64, _: Seen) {}

    fn next_poll(&self, _: &impl View, _: Option<Alone>) -> Option<u64> {
        self.flip().then(|| 1 << self.below(40))
    }
}
