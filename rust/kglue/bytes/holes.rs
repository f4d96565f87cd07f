// SPDX-License-Identifier: GPL-2.0
//! Where a disk's reads may have holes.

use core::sync::atomic::{AtomicBool, Ordering};

/// What the device offers, and whether that is to be believed.
pub(crate) struct Holes {
    /// [`hal::Limits::hole_align`].
    pub(crate) offered: Option<u32>,
    is_right: AtomicBool,
}

impl Holes {
    /// As the controller says; but nowhere before it was tried.
    pub(crate) fn new(offered: Option<u32>) -> Self {
        Self {
            offered,
            is_right: AtomicBool::new(false),
        }
    }

    /// It was tried, and is right.
    pub(crate) fn believe(&self) {
        self.is_right.store(true, Ordering::Relaxed);
    }

    /// Low bits that neither their places nor their lengths have; `None`: there may be none.
    #[inline]
    pub(crate) fn align(&self) -> Option<u32> {
        match self.is_right.load(Ordering::Relaxed) {
            true => self.offered,
            false => None,
        }
    }
}
