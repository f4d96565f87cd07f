// SPDX-License-Identifier: GPL-2.0
//! What drains a queue when its controller asks for it: in place of an interrupt that injected
//! faults keep from it.

use crate::aim::Aim;
use crate::hrtimer::{Expired, HrTimer};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A queue with an alarm.
pub(crate) trait Woken: Send + Sync {
    /// It goes off. Hard interrupt context.
    fn wake(&self);
}

/// The alarm of one queue. Clones are the same alarm.
#[derive(Clone)]
pub struct Alarm(Arc<Timer>);

struct Timer {
    timer: KBox<HrTimer>,
    queue: Aim<dyn Woken>,
    /// The queue is about to go.
    quiet: AtomicBool,
}

impl Expired for Timer {
    fn expired(&self) {
        if self.quiet.load(Ordering::Acquire) {
            return;
        }
        if let Some(queue) = self.queue.get() {
            queue.wake();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.timer.cancel();
    }
}

impl Alarm {
    /// An alarm of nothing yet. Sleeps.
    pub(crate) fn new() -> Result<Self, Error> {
        let timer = Timer {
            timer: HrTimer::new().map_err(|_| Error::NoMemory)?,
            queue: Aim::new(),
            quiet: AtomicBool::new(false),
        };
        let timer = Arc::new(timer, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: shared, so it stays where it is; its drop cancels.
        unsafe { timer.timer.aim(NonNull::from(&*timer)) };
        Ok(Self(timer))
    }

    /// From now on it wakes `queue`; once.
    ///
    /// # Safety
    /// `queue` stays where it is, and is valid until [`Alarm::quiet`] has returned.
    pub(crate) unsafe fn aim(&self, queue: NonNull<dyn Woken>) {
        // SAFETY: by the caller's promise; afterwards `quiet` keeps all from asking for it.
        unsafe { self.0.queue.set(queue) };
    }

    /// Never wakes it again. Sleeps.
    pub(crate) fn quiet(&self) {
        self.0.quiet.store(true, Ordering::Release);
        self.0.timer.cancel();
    }

    /// Wakes it in `us` microseconds, instead of when it would have. Any context.
    pub fn wake_in(&self, us: u32) {
        self.0.timer.start(us);
    }
}
