// SPDX-License-Identifier: GPL-2.0
//! The running thread and its CPU, as the strategy asks about them.

use crate::shims_safe::{hiops_is_awake, hiops_may_yield, hiops_pause};
use engine::Waiting;

/// A thread that came to sleep, and its CPU.
pub(crate) struct Here {
    /// It has not yielded for this wait, and its CPU is shared by threads like it.
    pub(crate) may_yield: bool,
}

impl Waiting for Here {
    #[inline]
    fn is_awake(&self) -> bool {
        hiops_is_awake()
    }

    #[inline]
    fn pause(&self) -> bool {
        hiops_pause()
    }

    #[inline]
    fn may_yield(&self) -> bool {
        self.may_yield && hiops_may_yield()
    }
}
