// SPDX-License-Identifier: GPL-2.0
//! How a controller calls for attention from a context that must not sleep.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use hal::Error;
use kernel::ffi::c_void;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::work::{Recovery, Run};

/// How a port calls for attention. Clones are the same caller.
#[derive(Clone)]
pub struct Caller(Arc<Call>);

struct Call {
    work: Recovery,
    /// What the work takes; null: nobody attends yet.
    aim: AtomicPtr<c_void>,
    run: Run,
}

impl Caller {
    /// The caller of `run`, whose workqueue has `number` in its name. Sleeps.
    pub(crate) fn new(number: i32, run: Run) -> Result<Self, Error> {
        Self::with(Recovery::new(number)?, run)
    }

    /// Likewise, of which `work` is made. Sleeps.
    pub(crate) fn with(work: Recovery, run: Run) -> Result<Self, Error> {
        let call = Call {
            work,
            aim: AtomicPtr::new(null_mut()),
            run,
        };
        let call = Arc::new(call, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(call))
    }

    /// The port is attended soon. `false`: it was called for before, or nobody attends. Any
    /// context.
    pub fn call(&self) -> bool {
        let aim = self.0.aim.load(Ordering::Acquire);
        // SAFETY: what was aimed at lives until the caller was silenced.
        !aim.is_null() && unsafe { self.0.work.begin(aim, self.0.run) }
    }

    /// # Safety
    /// `aim` is what `run` takes, and lives until [`Caller::silence`] has returned.
    pub(crate) unsafe fn aim(&self, aim: *const c_void) {
        self.0.aim.store(aim.cast_mut(), Ordering::Release);
    }

    /// Nothing is attended that was called for before. Sleeps.
    pub(crate) fn cancel(&self) {
        self.0.work.cancel();
    }

    /// Nothing is attended any more, whoever calls. Sleeps.
    pub(crate) fn silence(&self) {
        // Not only cancelled: an interrupt that comes meanwhile would begin it again.
        self.0.work.disable();
    }

    /// Undoes [`Caller::silence`].
    pub(crate) fn hear(&self) {
        self.0.work.enable();
    }
}
