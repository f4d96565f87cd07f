// SPDX-License-Identifier: GPL-2.0
//! Has a disk's I/O looked at that no thread waits for: now and then while there is some, and when
//! it is called.

use bytewise::Armed;
use hal::Error;
use kernel::ffi::c_ulong;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::shims;
use crate::timers::{CoarseExpired, CoarseTimer};
use crate::work::{Pinned, Run, WatchBytes, Work};

/// At the latest after so many ticks it is looked for what is late, and for completions for which
/// no interrupt came. TIMEOUT: so long an I/O is late whose interrupt has gone with its CPU. CAST:
/// a small constant.
pub(crate) const LOOK_TICKS: u32 = 5 * shims::HIOPS_HZ;

/// A disk's.
pub(crate) struct Watchdog {
    timer: KBox<CoarseTimer>,
    work: Work<WatchBytes>,
    armed: Armed,
}

impl Watchdog {
    /// One that has nobody look yet, by a work queue with `number` in its name. Sleeps.
    pub(crate) fn new(number: i32) -> Result<Arc<Self>, Error> {
        let watchdog = Self {
            timer: CoarseTimer::new().map_err(|_| Error::NoMemory)?,
            work: Work::new(number)?,
            armed: Armed::new(),
        };
        Arc::new(watchdog, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// From now on `looks` does, with the watchdog that `of` finds in it, which is this; once.
    /// [`Watchdog::quiet`] silences it.
    pub(crate) fn set_target<T: Run<WatchBytes> + 'static>(
        looks: Pinned<T>,
        of: for<'a> fn(&'a T) -> &'a Self,
    ) {
        let this = looks.map(of);
        this.get().work.set_target(looks);
        this.get().timer.set_target(this);
    }

    /// An I/O has begun, which is said in what it has looked at. Any context.
    #[inline]
    pub(crate) fn arm(&self) {
        if self.armed.arm() {
            // CAST: a small constant.
            self.timer.arm_in(LOOK_TICKS as c_ulong);
        }
    }

    /// It is looked after I/O now, which is all that there is to look at until it is armed again.
    pub(crate) fn disarm(&self) {
        self.armed.disarm();
    }

    /// Has it looked soon. Any context.
    #[cold]
    pub(crate) fn call(&self) {
        self.work.begin();
    }

    /// Nobody looks any more, nor will. Sleeps.
    pub(crate) fn quiet(&self) {
        self.timer.shutdown();
        self.work.disable();
    }
}

impl CoarseExpired for Watchdog {
    fn coarse_expired(&self) {
        self.call();
    }
}
