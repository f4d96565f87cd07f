// SPDX-License-Identifier: GPL-2.0
//! What drains a queue when its controller asks for it: in place of an interrupt that injected
//! faults keep from it.

use crate::hrtimer::HrTimer;
use hal::Error;
use kernel::ffi::c_void;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The alarm of one queue. Clones are the same alarm.
#[derive(Clone)]
pub struct Alarm(Arc<Timer>);

struct Timer(KBox<HrTimer>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Alarm {
    /// An alarm that calls `wake` once it is aimed. Sleeps.
    pub(crate) fn new(wake: unsafe fn(*const c_void)) -> Result<Self, Error> {
        let timer = HrTimer::new(wake).map_err(|_| Error::NoMemory)?;
        let timer = Arc::new(Timer(timer), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(timer))
    }

    /// From now on it wakes `queue`.
    ///
    /// # Safety
    /// `queue` is what `wake` takes, and stays valid until [`Alarm::quiet`].
    pub(crate) unsafe fn aim(&self, queue: *const c_void) {
        // SAFETY: by the caller's promise; `quiet` cancels it and leaves it without a target.
        unsafe { self.0 .0.aim(queue) };
    }

    /// Never wakes it again. Sleeps.
    pub(crate) fn quiet(&self) {
        // SAFETY: nothing is what it is called for from here on.
        unsafe { self.0 .0.aim(core::ptr::null()) };
        self.0 .0.cancel();
    }

    /// Wakes it in `us` microseconds, instead of when it would have. Any context.
    pub fn wake_in(&self, us: u32) {
        self.0 .0.start(us);
    }
}
