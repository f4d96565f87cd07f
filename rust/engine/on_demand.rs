// SPDX-License-Identifier: GPL-2.0
//! A worker that is there while there is work.

use cell::sync::{fence, AtomicBool, Ordering::*};

/// Whether a worker, a timer say, comes for work that others leave.
///
/// # The hand-over
/// Whoever leaves work says so, passes a full fence, and looks whether the worker is on. The worker
/// that finds no work goes off, passes a full fence, and looks for work again. One of the two sees
/// the other, and of two that do, one turns it on.
pub struct OnDemand {
    on: AtomicBool,
}

impl Default for OnDemand {
    fn default() -> Self {
        let on = AtomicBool::new(false);
        Self { on }
    }
}

impl OnDemand {
    /// Whether it is on at this moment; only a hint.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Work was left, and a full fence passed since. `true`: the caller turns the worker on, as
    /// nobody else does. Any context.
    #[inline]
    pub fn start(&self) -> bool {
        !self.is_on() && !self.on.swap(true, AcqRel)
    }

    /// The worker has found no work. Whether it stays on after all, as there `is` some now, which
    /// nobody else comes for. By the worker.
    #[inline]
    pub fn stop(&self, is: impl FnOnce() -> bool) -> bool {
        self.on.store(false, Relaxed);
        fence(SeqCst);
        is() && self.start()
    }
}
