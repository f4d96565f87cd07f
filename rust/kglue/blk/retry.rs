// SPDX-License-Identifier: GPL-2.0
//! A coarse timer. Behind `Upper::retry_later` it looks again at a queue whose first request could
//! not be mapped; for waiters, it looks after offers that nobody claims, and after time-outs.
//!
//! The kernel crate (Linux 7.2 and 7.3) has timers of high resolution only.

use crate::aim::{Aim, Stays};
use crate::context::{jiffies, PreemptOff};
use crate::shims;
use kernel::bindings;
use kernel::error::Error;
use kernel::ffi::c_ulong;
use kernel::prelude::*;
use kernel::types::Opaque;

/// Whoever looks again.
pub(crate) trait Kicked: Send + Sync {
    /// It is time to. Soft interrupt context, with preemption off.
    fn kicked(&self);
}

/// A timer that kicks one queue. It lives in its own allocation: the timer wheel points into it.
///
/// # Invariants
/// `timer` is set up.
#[repr(C)]
pub(crate) struct Retry {
    timer: Opaque<bindings::timer_list>,
    queue: Aim<dyn Kicked>,
}

// SAFETY: timers may be armed from any context, and run in any.
unsafe impl Send for Retry {}
// SAFETY: as above; the timer's own lock orders it.
unsafe impl Sync for Retry {}

impl Retry {
    /// A timer that kicks nothing yet.
    pub(crate) fn new() -> Result<KBox<Self>, Error> {
        let retry = KBox::new(
            Self {
                timer: Opaque::uninit(),
                queue: Aim::new(),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: it stays where it is until it is shut down (`KBox`, never moved out of).
        unsafe { shims::hiops_timer_setup(retry.timer.get(), Some(Self::expired)) };
        // INVARIANT: set up.
        Ok(retry)
    }

    /// From now on it kicks `queue`; once. [`Retry::shutdown`] silences it.
    pub(crate) fn aim<Q: Kicked + 'static>(&self, queue: Stays<Q>) {
        self.queue.set(queue.seen_as(|queue| queue));
    }

    /// Kicks in about two ticks. Any context.
    pub(crate) fn arm(&self) {
        self.arm_in(2);
    }

    /// Kicks in about so many ticks. Any context.
    pub(crate) fn arm_in(&self, ticks: c_ulong) {
        // SAFETY: set up. After a shutdown it does nothing.
        unsafe { bindings::mod_timer(self.timer.get(), jiffies().wrapping_add(ticks)) };
    }

    /// Never kicks again; returns when no kick runs any more. Sleeps.
    pub(crate) fn shutdown(&self) {
        // SAFETY: set up; no lock is held that the kick takes.
        unsafe { bindings::timer_shutdown_sync(self.timer.get()) };
    }

    /// # Safety
    /// Called by the timer wheel with the timer of a `Retry`.
    unsafe extern "C" fn expired(timer: *mut bindings::timer_list) {
        // SAFETY: `timer` is the first field (`repr(C)`) of a `Retry` that is not shut down.
        let retry = unsafe { &*timer.cast::<Self>() };
        if let Some(queue) = retry.queue.get() {
            let _stay = PreemptOff::new();
            queue.kicked();
        }
    }
}
