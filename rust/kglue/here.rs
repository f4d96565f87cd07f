// SPDX-License-Identifier: GPL-2.0
//! The running thread and its CPU, as the strategy asks about them.

use crate::shims;
use engine::Waiting;

/// A thread that came to sleep, and its CPU.
pub(crate) struct Here {
    /// It has not given way for this wait, and its CPU is shared by threads like it.
    pub(crate) may_give_way: bool,
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
    fn may_give_way(&self) -> bool {
        // SAFETY: may be called in any thread.
        self.may_give_way && unsafe { shims::hiops_may_give_way() }
    }
}
