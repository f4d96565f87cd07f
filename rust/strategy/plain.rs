// SPDX-License-Identifier: GPL-2.0
//! What the in-tree drivers do: the device is told at once, and what notices completions, which is
//! the interrupt (or the timer, where an operator wants that), ends all that are there. No
//! thread does anything for another, or before it sleeps.

use engine::Strategy;

/// The plain strategy. It has nothing to learn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

/// All as it comes: a drain ends as many as the engine grants, for instance; `nvme_poll_cq` of
/// Linux 7.3 knows no bound either.
impl Strategy for Plain {
    type Notes = ();
    type Predictor = ();

    #[inline(always)]
    fn predictor(&self) -> &() {
        &()
    }
}
