// SPDX-License-Identifier: GPL-2.0
//! Timers, each of which its owner cancels: one of high resolution that may be started from
//! anywhere, its own handler included ([`HrTimer`]); a coarse one ([`CoarseTimer`]); and what
//! polling one hardware queue needs of the adapter, a timer and the interrupt turned off
//! ([`Poller`]).
//!
//! The coarse one, behind `Upper::retry_later`, looks again at a queue whose first request could
//! not be mapped; for waiters, it looks after offers that are not claimed, and after time-outs.
//!
//! The kernel crate's (`kernel::time::hrtimer`, Linux 7.2 and 7.3) is no use here: its start
//! gives a handle whose drop cancels, and so waits for the handler, in which it can't be dropped
//! then. A `start(&self)` of a timer whose owner cancels it is what it lacks; and it has no coarse
//! ones.

use kernel::bindings;
use kernel::error::Error;
use kernel::ffi::{c_int, c_ulong};
use kernel::prelude::*;

use crate::compat::NORESTART;
use crate::platform::{jiffies, PreemptOff};
use crate::shims;
use crate::work::{Pinned, SetUp, Target};

// Safe to call: they ask for a timer that was set up, which the type says. Each is as its header
// says it: see the constants below.
unsafe extern "C" {
    /// It expires at `ns`, and up to `delta_ns` later, as `mode` says; and not when it would have.
    /// Any context.
    safe fn hrtimer_start_range_ns(
        timer: &SetUp<bindings::hrtimer>,
        ns: bindings::ktime_t,
        delta_ns: u64,
        mode: bindings::hrtimer_mode,
    );
    /// It does not expire any more; waits for a handler that runs.
    safe fn hrtimer_cancel(timer: &SetUp<bindings::hrtimer>) -> c_int;
    /// It expires at that tick, unless it was shut down. Any context.
    safe fn mod_timer(timer: &SetUp<bindings::timer_list>, at: c_ulong) -> c_int;
    /// It never expires again; waits for a handler that runs. Sleeps.
    safe fn timer_shutdown_sync(timer: &SetUp<bindings::timer_list>) -> c_int;
}

const _: [unsafe extern "C" fn(
    *mut bindings::hrtimer,
    bindings::ktime_t,
    u64,
    bindings::hrtimer_mode,
); 1] = [bindings::hrtimer_start_range_ns];
const _: [unsafe extern "C" fn(*mut bindings::hrtimer) -> c_int; 1] = [bindings::hrtimer_cancel];
const _: [unsafe extern "C" fn(*mut bindings::timer_list, c_ulong) -> c_int; 1] =
    [bindings::mod_timer];
const _: [unsafe extern "C" fn(*mut bindings::timer_list) -> c_int; 1] =
    [bindings::timer_shutdown_sync];

/// What a high-resolution timer is for.
pub(crate) trait Expired: Send + Sync {
    /// It has expired. Hard interrupt context.
    fn expired(&self);
}

impl Expired for Target<dyn Expired> {
    #[inline]
    fn expired(&self) {
        if let Some(target) = self.get() {
            target.expired();
        }
    }
}

/// A timer with what its handler is called for. It lives in its own allocation: the timer queue
/// points into it. Dropped, it is cancelled.
#[repr(C)]
pub(crate) struct HrTimer<T: Expired = Target<dyn Expired>> {
    timer: SetUp<bindings::hrtimer>,
    target: T,
}

// SAFETY: a timer may be started from any context.
unsafe impl<T: Expired> Send for HrTimer<T> {}
// SAFETY: as above; the timer's own lock orders it.
unsafe impl<T: Expired> Sync for HrTimer<T> {}

impl HrTimer {
    /// A timer without a target yet.
    pub(crate) fn new() -> Result<KBox<Self>, Error> {
        Self::of(Target::new())
    }
}

impl<T: Expired> HrTimer<T> {
    /// A timer for `target`.
    pub(crate) fn of(target: T) -> Result<KBox<Self>, Error> {
        // The memory first: a value that is none yet is never dropped, and so never cancelled.
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        // SAFETY: set up at once, and it stays where it is until the drop has cancelled it (`KBox`,
        // never moved out of).
        let timer = unsafe {
            let timer = SetUp::promised();
            let timer = KBox::write(memory, Self { timer, target });
            bindings::hrtimer_setup(
                timer.timer.as_raw(),
                Some(Self::handler),
                // CAST: 1.
                bindings::CLOCK_MONOTONIC as bindings::clockid_t,
                bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED,
            );
            timer
        };
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

    /// Expires when the monotonic clock says `ns`, instead of when it would have. Any context.
    #[inline]
    pub(crate) fn start_at(&self, ns: i64) {
        self.expire(ns, bindings::hrtimer_mode_HRTIMER_MODE_ABS_PINNED);
    }

    #[inline(always)]
    fn expire(&self, ns: i64, mode: bindings::hrtimer_mode) {
        hrtimer_start_range_ns(&self.timer, ns, 0, mode);
    }

    /// Does not expire any more unless started again; waits for a handler that runs. Sleeps or
    /// spins for that long.
    pub(crate) fn cancel(&self) {
        // The caller holds nothing that the handler takes.
        hrtimer_cancel(&self.timer);
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

/// What a coarse timer is for.
pub(crate) trait CoarseExpired: Send + Sync {
    /// The timer has expired. Soft interrupt context, with preemption off.
    fn coarse_expired(&self);
}

/// A coarse timer of one target. It lives in its own allocation: the timer wheel points into it.
#[repr(C)]
pub(crate) struct CoarseTimer {
    timer: SetUp<bindings::timer_list>,
    target: Target<dyn CoarseExpired>,
}

// SAFETY: timers may be armed from any context, and run in any.
unsafe impl Send for CoarseTimer {}
// SAFETY: as above; the timer's own lock orders it.
unsafe impl Sync for CoarseTimer {}

impl CoarseTimer {
    /// A timer that has no target yet.
    pub(crate) fn new() -> Result<KBox<Self>, Error> {
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        // SAFETY: set up at once, and it stays where it is until it is shut down (`KBox`, never
        // moved out of).
        let timer = unsafe {
            let (timer, target) = (SetUp::promised(), Target::new());
            let timer = KBox::write(memory, Self { timer, target });
            shims::hiops_timer_setup(timer.timer.as_raw(), Some(Self::expired));
            timer
        };
        Ok(timer)
    }

    /// From now on it calls `target`; once. [`CoarseTimer::shutdown`] silences it.
    pub(crate) fn set_target<T: CoarseExpired + 'static>(&self, target: Pinned<T>) {
        self.target.set(target.map(|target| target));
    }

    /// Expires in about two ticks. Any context.
    pub(crate) fn arm(&self) {
        self.arm_in(2);
    }

    /// Expires in about `ticks` ticks. Any context.
    pub(crate) fn arm_in(&self, ticks: c_ulong) {
        mod_timer(&self.timer, jiffies().wrapping_add(ticks));
    }

    /// Never expires again; returns when its target is not being called any more. Sleeps.
    pub(crate) fn shutdown(&self) {
        // No lock is held that the target takes.
        timer_shutdown_sync(&self.timer);
    }

    /// # Safety
    /// Called by the timer wheel with the timer of a `CoarseTimer`.
    unsafe extern "C" fn expired(timer: *mut bindings::timer_list) {
        // SAFETY: `timer` is the first field (`repr(C)`) of a `CoarseTimer` that is not shut down.
        let this = unsafe { &*timer.cast::<Self>() };
        if let Some(target) = this.target.get() {
            let _stay = PreemptOff::new();
            target.coarse_expired();
        }
    }
}

/// A queue that can be polled; when its timer has expired, it polls.
pub(crate) trait Polled: Expired {
    /// Whether its interrupt can be turned off.
    fn can_poll(&self) -> bool;
    /// Turns it on or off.
    fn set_interrupt(&self, on: bool);
}

/// The poller of one hardware queue.
pub(crate) struct Poller {
    timer: KBox<HrTimer>,
    queue: Target<dyn Polled>,
}

impl Poller {
    /// A poller of nothing yet. Sleeps.
    pub(crate) fn new() -> Result<KBox<Self>, Error> {
        let poller = Self {
            timer: HrTimer::new()?,
            queue: Target::new(),
        };
        Ok(KBox::new(poller, GFP_KERNEL)?)
    }

    /// From now on it polls `queue`; once. [`Poller::quiet`] silences it, save for direct calls.
    pub(crate) fn set_target<Q: Polled + 'static>(&self, queue: Pinned<Q>) {
        self.queue.set(queue.map(|queue| queue));
        self.timer.target().set(queue.map(|queue| queue));
    }

    /// Whether the queue's interrupt can be turned off.
    pub(crate) fn can_poll(&self) -> bool {
        (self.queue.get()).is_some_and(Polled::can_poll)
    }

    /// Turns the queue's interrupt on or off, if that can be.
    pub(crate) fn set_interrupt(&self, on: bool) -> bool {
        match self.queue.get() {
            Some(queue) if queue.can_poll() => {
                queue.set_interrupt(on);
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
