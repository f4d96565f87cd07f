// SPDX-License-Identifier: GPL-2.0
//! What polling one hardware queue needs of the adapter: a timer, and the interrupt turned off.

use crate::hrtimer::HrTimer;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use kernel::error::Error;
use kernel::ffi::c_void;
use kernel::prelude::*;

/// What a queue can do for its poller. Each takes the queue that the poller was aimed at.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    /// The timer has expired.
    pub(crate) tick: unsafe fn(*const c_void),
    /// Whether the interrupt can be turned off.
    pub(crate) can_poll: unsafe fn(*const c_void) -> bool,
    /// Turns it on or off.
    pub(crate) set_interrupt: unsafe fn(*const c_void, bool),
}

/// The poller of one hardware queue.
///
/// # Invariants
/// `queue` is null, or what `calls` take, and valid until [`Poller::quiet`] returns.
pub(crate) struct Poller {
    timer: KBox<HrTimer>,
    queue: AtomicPtr<c_void>,
    calls: Calls,
}

impl Poller {
    /// A poller of nothing yet. Sleeps.
    pub(crate) fn new(calls: Calls) -> Result<KBox<Self>, Error> {
        let poller = Self {
            timer: HrTimer::new(calls.tick)?,
            queue: AtomicPtr::new(null_mut()),
            calls,
        };
        Ok(KBox::new(poller, GFP_KERNEL)?)
    }

    /// From now on it polls `queue`.
    ///
    /// # Safety
    /// `queue` is what the calls take, and stays valid until [`Poller::quiet`].
    pub(crate) unsafe fn aim(&self, queue: *const c_void) {
        self.queue.store(queue.cast_mut(), Ordering::Release);
        // SAFETY: by the caller's promise.
        unsafe { self.timer.aim(queue) };
    }

    fn aimed(&self) -> Option<*const c_void> {
        let queue = self.queue.load(Ordering::Acquire);
        (!queue.is_null()).then_some(queue.cast_const())
    }

    /// Whether the queue's interrupt can be turned off.
    pub(crate) fn can_poll(&self) -> bool {
        // SAFETY: by the invariant.
        (self.aimed()).is_some_and(|queue| unsafe { (self.calls.can_poll)(queue) })
    }

    /// Turns the queue's interrupt on or off, if that can be.
    pub(crate) fn set_interrupt(&self, on: bool) -> bool {
        match self.aimed() {
            Some(queue) if self.can_poll() => {
                // SAFETY: by the invariant.
                unsafe { (self.calls.set_interrupt)(queue, on) };
                true
            }
            _ => on,
        }
    }

    /// The queue is looked at in `us` microseconds.
    #[inline]
    pub(crate) fn start(&self, us: u32) {
        self.timer.start(us);
    }

    /// No tick runs any more, nor will. Sleeps.
    pub(crate) fn quiet(&self) {
        self.timer.cancel();
    }
}
