// SPDX-License-Identifier: GPL-2.0
//! The running thread and its CPU, as the strategy asks about them.

use crate::shims;
use engine::Waiting;

/// A thread that came to sleep, and its CPU.
pub(crate) struct Here {
    /// It has not yielded for this wait, and its CPU is shared by threads like it.
    pub(crate) may_yield: bool,
}

impl Waiting for Here {
    #[inline]
    fn is_awake(&self) -> bool {
        // SAFETY: may be called in any thread.
        unsafe { shims::hiops_is_awake() }
    }

    #[inline]
    fn pause(&self) -> bool {
        // SAFETY: may be called in any thread.
        unsafe { shims::hiops_pause() }
    }

    #[inline]
    fn may_yield(&self) -> bool {
        // SAFETY: may be called in any thread.
        self.may_yield && unsafe { shims::hiops_may_yield() }
    }
}
