// SPDX-License-Identifier: GPL-2.0
//! What a queue's waiters learn of each way to wait: whether it pays on this device, beside these threads.

use cell::sync::{AtomicU32, Ordering};

/// What does not pay is tried again after so many waits, and after twice as many each time that it still does not,
const FIRST_PAUSE: u32 = 64;
/// up to so many.
const LONGEST_PAUSE: u32 = 1 << 13;

/// What one way to wait saves and costs, in units of its own.
pub(crate) struct Stakes {
    /// Saved when it pays.
    saved: u32,
    /// Spent in vain when it does not.
    spent: u32,
    /// How much more may be spent than was saved before it is given up, at most,
    most: u32,
    /// and on a trial.
    trial: u32,
}

/// To poll before a sleep: in vain it costs about as much as the sleep that it saves, and so it has to pay twice as often as not.
pub(crate) const POLLING: Stakes = Stakes {
    saved: 1,
    spent: 2,
    most: if cfg!(loom) { 2 } else { 64 },
    trial: 1,
};

/// To yield instead of a sleep. One thread alone does not show whether that pays: it does where those do so whom it lets run.
pub(crate) const YIELDING: Stakes = Stakes {
    saved: 4,
    spent: 5,
    most: if cfg!(loom) { 2 } else { 256 },
    trial: if cfg!(loom) { 1 } else { 64 },
};

/// To come by before the sleep. Long enough on a trial for the other two to be tried.
pub(crate) const VISITS: Stakes = Stakes {
    saved: 8,
    spent: 1,
    most: if cfg!(loom) { 2 } else { 64 },
    trial: if cfg!(loom) { 1 } else { 32 },
};

/// What was learnt of one way to wait. Several may write at once: it only guides.
pub(crate) struct Patience {
    stakes: Stakes,
    /// What may be spent in vain before it is given up; 0: it was.
    score: AtomicU32,
    /// Waits since it was given up, or last tried.
    waits: AtomicU32,
    /// Waits until it is tried again.
    pause: AtomicU32,
}

impl Patience {
    pub(crate) fn new(stakes: Stakes) -> Self {
        Self {
            score: AtomicU32::new(stakes.most),
            waits: AtomicU32::new(0),
            pause: AtomicU32::new(FIRST_PAUSE),
            stakes,
        }
    }

    /// It was not given up, or is on trial.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.score.load(Ordering::Relaxed) != 0
    }

    /// Whether to do it at this wait. Asked once for each.
    #[inline]
    pub(crate) fn pays(&self) -> bool {
        self.is_on() || self.is_due()
    }

    /// Where it was given up: counts one more wait, and begins a trial if it was enough of them.
    pub(crate) fn is_due(&self) -> bool {
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        let pause = self.pause.load(Ordering::Relaxed);
        let due = waits >= pause;
        let waits = if due { 0 } else { waits };
        self.waits.store(waits, Ordering::Relaxed);
        if due {
            let pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            self.pause.store(pause, Ordering::Relaxed);
            self.score.store(self.stakes.trial, Ordering::Relaxed);
        }
        due
    }

    /// Where it was given up: the next wait is to try it.
    pub(crate) fn hasten(&self) {
        let pause = self.pause.load(Ordering::Relaxed);
        self.waits.store(pause, Ordering::Relaxed);
    }

    /// It has paid.
    #[inline]
    pub(crate) fn succeed(&self) {
        let score = self.score.load(Ordering::Relaxed);
        if score < self.stakes.most {
            let score = (score.saturating_add(self.stakes.saved)).min(self.stakes.most);
            self.score.store(score, Ordering::Relaxed);
            if score > self.stakes.most / 2 {
                self.pause.store(FIRST_PAUSE, Ordering::Relaxed);
            }
        }
    }

    /// It was in vain.
    #[inline]
    pub(crate) fn fail(&self) {
        let score = self.score.load(Ordering::Relaxed);
        let left = score.saturating_sub(self.stakes.spent);
        self.score.store(left, Ordering::Relaxed);
    }
}
