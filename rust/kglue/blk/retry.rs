// SPDX-License-Identifier: GPL-2.0
//! A coarse timer. Behind `Upper::retry_later` it looks again at a queue whose first request could not be mapped; for waiters, it looks after
//! offers that nobody claims.

use crate::context::{jiffies, PreemptOff};
use crate::shims;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use kernel::bindings;
use kernel::error::Error;
use kernel::ffi::c_void;
use kernel::prelude::*;
use kernel::types::Opaque;

/// A timer that kicks one queue. It lives in its own allocation: the timer wheel points into it.
///
/// # Invariants
/// `timer` is set up. `queue` is null, or what `kick` takes, and valid until [`Retry::shutdown`] returns.
#[repr(C)]
pub(crate) struct Retry {
    timer: Opaque<bindings::timer_list>,
    queue: AtomicPtr<c_void>,
    kick: unsafe fn(*const c_void),
}

// SAFETY: timers may be armed from any context, and run in any.
unsafe impl Send for Retry {}
// SAFETY: as above; the timer's own lock orders it.
unsafe impl Sync for Retry {}

impl Retry {
    /// A timer that kicks nothing yet.
    pub(crate) fn new(kick: unsafe fn(*const c_void)) -> Result<KBox<Self>, Error> {
        let retry = KBox::new(
            Self {
                timer: Opaque::uninit(),
                queue: AtomicPtr::new(null_mut()),
                kick,
            },
            GFP_KERNEL,
        )?;
        // SAFETY: it stays where it is until it is shut down (`KBox`, never moved out of).
        unsafe { shims::hiops_timer_setup(retry.timer.get(), Some(Self::expired)) };
        // INVARIANT: set up; the queue is null.
        Ok(retry)
    }

    /// From now on it kicks `queue`.
    ///
    /// # Safety
    /// `queue` is what `kick` takes, and stays valid until [`Retry::shutdown`].
    pub(crate) unsafe fn aim(&self, queue: *const c_void) {
        self.queue.store(queue.cast_mut(), Ordering::Release);
    }

    /// Kicks in about two ticks. Any context.
    pub(crate) fn arm(&self) {
        // SAFETY: set up. After a shutdown it does nothing.
        unsafe { bindings::mod_timer(self.timer.get(), jiffies().wrapping_add(2)) };
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
        let queue = retry.queue.load(Ordering::Acquire);
        if !queue.is_null() {
            let _stay = PreemptOff::new();
            // SAFETY: by the invariant.
            unsafe { (retry.kick)(queue) };
        }
    }
}
