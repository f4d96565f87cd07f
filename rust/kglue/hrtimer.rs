// SPDX-License-Identifier: GPL-2.0
//! A high-resolution timer that may be started from anywhere, its own handler included.
//!
//! The kernel crate's (`kernel::time::hrtimer`, Linux 7.2 and 7.3) is no use here: who starts it
//! gets a handle whose drop cancels, and so waits for the handler, in which it can't be dropped
//! then. A `start(&self)` of a timer whose owner cancels it, as below, is what it lacks.

use crate::aim::Aim;
use crate::compat::NORESTART;
use kernel::bindings;
use kernel::error::Error;
use kernel::prelude::*;
use kernel::types::Opaque;

/// Whoever a timer is for.
pub(crate) trait Expired: Send + Sync {
    /// It has expired. Hard interrupt context.
    fn expired(&self);
}

impl Expired for Aim<dyn Expired> {
    #[inline]
    fn expired(&self) {
        if let Some(target) = self.get() {
            target.expired();
        }
    }
}

/// A timer with what its handler is called for. It lives in its own allocation: the timer queue
/// points into it. Dropped, it is cancelled.
///
/// # Invariants
/// `timer` is set up, and stays where it is.
#[repr(C)]
pub(crate) struct HrTimer<T: Expired = Aim<dyn Expired>> {
    timer: Opaque<bindings::hrtimer>,
    target: T,
}

// SAFETY: a timer may be started from any context.
unsafe impl<T: Expired> Send for HrTimer<T> {}
// SAFETY: as above; the timer's own lock orders it.
unsafe impl<T: Expired> Sync for HrTimer<T> {}

impl HrTimer {
    /// A timer for nobody yet.
    pub(crate) fn new() -> Result<KBox<Self>, Error> {
        Self::of(Aim::new())
    }
}

impl<T: Expired> HrTimer<T> {
    /// A timer for `target`.
    pub(crate) fn of(target: T) -> Result<KBox<Self>, Error> {
        // The memory first: a value that is none yet is never dropped, and so never cancelled.
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        let timer = Opaque::uninit();
        let timer = KBox::write(memory, Self { timer, target });
        // SAFETY: it stays where it is until the drop has cancelled it (`KBox`, never moved out
        // of).
        unsafe {
            bindings::hrtimer_setup(
                timer.timer.get(),
                Some(Self::handler),
                // CAST: 1.
                bindings::CLOCK_MONOTONIC as bindings::clockid_t,
                bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED,
            );
        }
        // INVARIANT: set up.
        Ok(timer)
    }

    /// What it is for.
    #[inline(always)]
    pub(crate) fn target(&self) -> &T {
        &self.target
    }

    /// Expires in `us` microseconds, on this CPU, instead of when it would have. Any context.
    #[inline]
    pub(crate) fn start(&self, us: u32) {
        let ns = i64::from(us).wrapping_mul(1000);
        self.expire(ns, bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED);
    }

    /// Likewise when the monotonic clock says `ns`.
    #[inline]
    pub(crate) fn start_at(&self, ns: i64) {
        self.expire(ns, bindings::hrtimer_mode_HRTIMER_MODE_ABS_PINNED);
    }

    #[inline(always)]
    fn expire(&self, ns: i64, mode: bindings::hrtimer_mode) {
        // SAFETY: set up.
        unsafe { bindings::hrtimer_start_range_ns(self.timer.get(), ns, 0, mode) };
    }

    /// Does not expire any more unless started again; waits for a handler that runs. Sleeps or
    /// spins for that long.
    pub(crate) fn cancel(&self) {
        // SAFETY: set up; the caller holds nothing that the handler takes.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }

    /// # Safety
    /// Called by the timer core with the timer of an `HrTimer<T>`.
    unsafe extern "C" fn handler(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: `timer` is the first field (`repr(C)`) of one that is not freed before it was
        // cancelled.
        let this = unsafe { &*timer.cast::<Self>() };
        this.target.expired();
        NORESTART
    }
}

impl<T: Expired> Drop for HrTimer<T> {
    fn drop(&mut self) {
        self.cancel();
    }
}
