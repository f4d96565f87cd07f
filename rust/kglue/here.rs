// SPDX-License-Identifier: GPL-2.0
//! The running thread and its CPU, as the strategy asks about them.

use crate::shims;
use strategy::Waiting;

/// A thread that came to sleep, and its CPU.
pub(crate) struct Here {
    /// It has not given way for this wait.
    pub(crate) fresh: bool,
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
    fn is_alone(&self) -> bool {
        // SAFETY: may be called in any context.
        unsafe { shims::hiops_is_alone() }
    }

    #[inline]
    fn may_give_way(&self) -> bool {
        // SAFETY: may be called in any thread.
        self.fresh && unsafe { shims::hiops_may_give_way() }
    }
}
