// SPDX-License-Identifier: GPL-2.0
//! A high-resolution timer that may be started from anywhere, its own handler included.
//!
//! The kernel crate's handle cancels on drop, which waits for the handler: it can't be dropped inside it. Here the owner cancels, once.

use crate::aim::Aim;
use core::ptr::NonNull;
use kernel::bindings;
use kernel::error::Error;
use kernel::prelude::*;
use kernel::types::Opaque;

/// Whoever a timer is for.
pub(crate) trait Expired: Send + Sync {
    /// It has expired. Hard interrupt context.
    fn expired(&self);
}

/// A timer with whom its handler is called for. It lives in its own allocation: the timer queue points into it.
///
/// # Invariants
/// `timer` is set up.
#[repr(C)]
pub(crate) struct HrTimer {
    timer: Opaque<bindings::hrtimer>,
    target: Aim<dyn Expired>,
}

// SAFETY: a timer may be started from any context.
unsafe impl Send for HrTimer {}
// SAFETY: as above; the timer's own lock orders it.
unsafe impl Sync for HrTimer {}

impl HrTimer {
    /// A timer for nobody yet.
    pub(crate) fn new() -> Result<KBox<Self>, Error> {
        let timer = KBox::new(
            Self {
                timer: Opaque::uninit(),
                target: Aim::new(),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: it stays where it is until it was cancelled (`KBox`, never moved out of).
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

    /// From now on it is for `target`; once.
    ///
    /// # Safety
    /// `target` stays where it is, and is valid until the last [`HrTimer::cancel`].
    pub(crate) unsafe fn aim(&self, target: NonNull<dyn Expired>) {
        // SAFETY: by the caller's promise.
        unsafe { self.target.set(target) };
    }

    /// Expires in `us` microseconds, on this CPU, instead of when it would have. Any context.
    #[inline]
    pub(crate) fn start(&self, us: u32) {
        // SAFETY: set up.
        unsafe {
            bindings::hrtimer_start_range_ns(
                self.timer.get(),
                i64::from(us).wrapping_mul(1000),
                0,
                bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED,
            );
        }
    }

    /// Does not expire any more unless started again; waits for a handler that runs. Sleeps or spins for that long.
    pub(crate) fn cancel(&self) {
        // SAFETY: set up; the caller holds nothing that the handler takes.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }

    /// # Safety
    /// Called by the timer core with the timer of an `HrTimer`.
    unsafe extern "C" fn handler(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: `timer` is the first field (`repr(C)`) of one that is not freed before it was cancelled.
        let this = unsafe { &*timer.cast::<Self>() };
        if let Some(target) = this.target.get() {
            target.expired();
        }
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }
}
