// SPDX-License-Identifier: GPL-2.0
//! What polling one hardware queue needs of the adapter: a timer, and the interrupt turned off.

use crate::aim::{Aim, Stays};
use crate::hrtimer::{Expired, HrTimer};
use kernel::error::Error;
use kernel::prelude::*;

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
    queue: Aim<dyn Polled>,
}

impl Poller {
    /// A poller of nothing yet. Sleeps.
    pub(crate) fn new() -> Result<KBox<Self>, Error> {
        let poller = Self {
            timer: HrTimer::new()?,
            queue: Aim::new(),
        };
        Ok(KBox::new(poller, GFP_KERNEL)?)
    }

    /// From now on it polls `queue`; once. [`Poller::quiet`] silences it, save for who calls it.
    pub(crate) fn aim<Q: Polled + 'static>(&self, queue: Stays<Q>) {
        self.queue.set(queue.seen_as(|queue| queue));
        self.timer.target().set(queue.seen_as(|queue| queue));
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
