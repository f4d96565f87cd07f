// SPDX-License-Identifier: GPL-2.0
//! What the in-tree drivers do: the device is told at once, and whoever notices completions, which
//! is the interrupt (or the timer, where an operator wants that), ends all that are there. No
//! thread does anything for another, or before it sleeps.

use engine::{Drained, Staged, Strategy, Switches, View};

/// The plain strategy. It has nothing to learn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Strategy for Plain {
    type Notes = ();

    const NAMES: &'static [&'static str] = &["plain"];

    #[inline(always)]
    fn defers(&self, _: &impl View, _: Staged) -> u64 {
        0
    }

    #[inline(always)]
    fn notes_owner(&self, _: &impl View, _: Switches) -> bool {
        false
    }

    #[inline(always)]
    fn looks(&self, _: &impl View, _: Switches) -> bool {
        false
    }

    /// As many as the engine grants: `nvme_poll_cq` of Linux 7.3 knows no bound either.
    #[inline(always)]
    fn budget(&self, _: &impl View) -> usize {
        usize::MAX
    }

    #[inline(always)]
    fn leaves_rest(&self, _: &impl View) -> bool {
        false
    }

    #[inline(always)]
    fn polls(&self, (): &mut (), _: &impl View, _: Drained) -> bool {
        false
    }

    #[inline(always)]
    fn yields_first(&self, _: &impl View) -> bool {
        false
    }

    #[inline(always)]
    fn yields(&self, _: &impl View) -> bool {
        false
    }

    #[inline(always)]
    fn spins(&self, _: &impl View) -> Option<u64> {
        None
    }
}
