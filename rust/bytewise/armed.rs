// SPDX-License-Identifier: GPL-2.0
//! Whether somebody will look at what has begun, later: a timer is set for the first of it, and not
//! again until it has looked.
//!
//! Who begins something says so, passes a fence, and looks whether a look is due; who looks says
//! that none is any more, passes a fence, and looks for what has begun. One of the two sees the
//! other (`tests/loom_armed.rs`).

use cell::sync::{fence, AtomicBool, Ordering};

/// Whether a look is due.
pub struct Armed(AtomicBool);

impl Default for Armed {
    fn default() -> Self {
        Self::new()
    }
}

impl Armed {
    /// None is.
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// One is due from now on, as something has begun, which the caller has said where who looks
    /// will find it. Whether the caller has to see to it. Any context.
    #[inline]
    #[must_use = "nobody looks unless it is seen to"]
    pub fn arm(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed)
    }

    /// The caller looks now, at all that has begun. Any context.
    pub fn disarm(&self) {
        self.0.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}
