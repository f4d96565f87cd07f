// SPDX-License-Identifier: GPL-2.0
//! What the control path is at: for the log, when it fails or does not come to an end.

use cell::sync::{AtomicU8, Ordering};
use core::marker::PhantomData;

/// The steps of a driver's control path, numbered from 0.
pub trait Steps: Copy {
    /// What the log calls each, by its number.
    const NAMES: &'static [&'static str];

    /// Its number.
    fn number(self) -> u8;
}

/// The step under way, or the one that failed. Any context.
pub struct Progress<S> {
    at: AtomicU8,
    steps: PhantomData<fn(S)>,
}

impl<S: Steps> Progress<S> {
    /// `first` is under way.
    pub fn new(first: S) -> Self {
        Self {
            at: AtomicU8::new(first.number()),
            steps: PhantomData,
        }
    }

    /// `step` begins.
    pub fn at(&self, step: S) {
        self.at.store(step.number(), Ordering::Relaxed);
    }

    /// What the log calls the step that was begun last.
    pub fn name(&self) -> &'static str {
        let at = usize::from(self.at.load(Ordering::Relaxed));
        S::NAMES.get(at).copied().unwrap_or("nothing")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Step(u8);

    impl Steps for Step {
        const NAMES: &'static [&'static str] = &["first", "second"];

        fn number(self) -> u8 {
            self.0
        }
    }

    #[test]
    fn the_last_step_is_told() {
        let progress = Progress::new(Step(0));
        assert_eq!(progress.name(), "first");
        progress.at(Step(1));
        assert_eq!(progress.name(), "second");
        progress.at(Step(2));
        assert_eq!(progress.name(), "nothing", "no such step");
    }
}
