// SPDX-License-Identifier: GPL-2.0
//! What drains a queue when its controller asks for it: in place of an interrupt that injected
//! faults keep from it.

use crate::aim::{Aim, Stays};
use crate::hrtimer::{Expired, HrTimer};
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
pub struct Alarm(Arc<KBox<HrTimer<Sleeper>>>);

struct Sleeper {
    queue: Aim<dyn Woken>,
    /// The queue is about to go.
    quiet: AtomicBool,
}

impl Expired for Sleeper {
    fn expired(&self) {
        if self.quiet.load(Ordering::Acquire) {
            return;
        }
        if let Some(queue) = self.queue.get() {
            queue.wake();
        }
    }
}

impl Alarm {
    /// An alarm of nothing yet. Sleeps.
    pub(crate) fn new() -> Result<Self, Error> {
        let sleeper = Sleeper {
            queue: Aim::new(),
            quiet: AtomicBool::new(false),
        };
        let timer = HrTimer::of(sleeper).map_err(|_| Error::NoMemory)?;
        let timer = Arc::new(timer, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(timer))
    }

    /// From now on it wakes `queue`; once. [`Alarm::quiet`] silences it.
    pub(crate) fn aim<Q: Woken + 'static>(&self, queue: Stays<Q>) {
        self.0.target().queue.set(queue.seen_as(|queue| queue));
    }

    /// Never wakes it again. Sleeps.
    pub(crate) fn quiet(&self) {
        self.0.target().quiet.store(true, Ordering::Release);
        self.0.cancel();
    }

    /// Wakes it in `us` microseconds, instead of when it would have. Any context.
    pub fn wake_in(&self, us: u32) {
        self.0.start(us);
    }
}
