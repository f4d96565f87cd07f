// SPDX-License-Identifier: GPL-2.0
//! A thread that waits for its own I/O polls a little while before it sleeps.
//!
//! To sleep and to be woken costs a thread a fixed amount of work. Who polls for no longer than that loses at most as much
//! again, and a fast device often answers within it. Where it does not, the thread does not try, save now and then.

use crate::queue::IoQueue;
use crate::{Context, Upper};
use cell::sync::{AtomicU32, Ordering};
use hal::{Platform, Queue};

/// Looks at the device, each after a pause of the CPU: together about the work of going to sleep and being woken.
const LOOKS: u32 = 40;
/// What was learnt of the device: with every success one better, with every failure so many worse, from 0 to here.
const BEST: u32 = 64;
const WORSE: u32 = 2;
/// Of so many waits one is tried all the same.
const TRY_ONE_IN: u32 = 64;

/// What a queue's waiters have learnt. Several may write at once: it only guides.
pub(crate) struct Patience {
    /// 0: it does not pay.
    score: AtomicU32,
    waits: AtomicU32,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self {
            score: AtomicU32::new(BEST),
            waits: AtomicU32::new(0),
        }
    }

    fn pays(&self) -> bool {
        if self.score.load(Ordering::Relaxed) != 0 {
            return true;
        }
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(waits, Ordering::Relaxed);
        waits % TRY_ONE_IN == 0
    }

    fn learn(&self, success: bool) {
        let score = self.score.load(Ordering::Relaxed);
        let score = match success {
            true => score.saturating_add(1).min(BEST),
            false => score.saturating_sub(WORSE),
        };
        self.score.store(score, Ordering::Relaxed);
    }
}

impl<P: Platform, Q: Queue, U: Upper> IoQueue<P, Q, U> {
    /// The caller waits for I/O of its own on this queue: takes completions under [`Context::Coop`], and polls for more as long as that pays and
    /// `pause` lets it, which gives the CPU a rest and says whether to go on. With preemption off.
    pub fn linger(&self, pause: impl Fn() -> bool) {
        self.drain_for(Context::Coop, false);
        if !pause() || !self.patience.pays() {
            return;
        }
        for _ in 0..LOOKS {
            if self.peek() {
                self.drain_for(Context::Coop, false);
            }
            if !pause() {
                return self.patience.learn(true);
            }
        }
        self.patience.learn(false);
    }

    /// Whether an event is there, or somebody takes events at this moment.
    #[inline]
    fn peek(&self) -> bool {
        match self.drain.try_lock() {
            Some(mut side) => {
                let came = self.hw.check_event(&mut side.hw);
                // Who knocked meanwhile relies on a drain.
                side.release() || came
            }
            None => false,
        }
    }
}
