// SPDX-License-Identifier: GPL-2.0
//! How a controller is attended: the work of it, and what was seen last.

use crate::hrtimer::HrTimer;
use crate::work::{Recovery, Run};
use core::sync::atomic::AtomicBool;
use hal::{Error, Refused, Unit};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Mutex};

/// What the controller says of its disks.
pub(crate) type Found = KVec<core::result::Result<Unit, Refused>>;

/// The work item of it, and the timer that puts it off.
pub(crate) struct Attention {
    pub(super) work: Recovery,
    pub(super) run: Run,
    /// Begins it later.
    pub(super) timer: KBox<HrTimer>,
    /// The disks are to be looked at anew, whatever the controller says.
    pub(super) look: AtomicBool,
    /// What the controller said of its disks when they last became that.
    known: Pin<KBox<Mutex<Found>>>,
}

impl Attention {
    pub(super) fn make(number: i32, run: Run, expired: Run) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        let known = new_mutex!(Found::new(), "hiops_known");
        Ok(Self {
            work: Recovery::that_attends(number)?,
            run,
            timer: HrTimer::new(expired).map_err(no_memory)?,
            look: AtomicBool::new(false),
            known: KBox::pin_init(known, GFP_KERNEL).map_err(no_memory)?,
        })
    }

    /// Nothing is attended any more, whoever calls. Sleeps.
    pub(crate) fn disable(&self) {
        self.work.disable();
        // Nobody starts it any more.
        self.timer.cancel();
    }

    /// The disks are what is `found`.
    pub(crate) fn know(&self, found: Found) {
        *self.known.lock() = found;
    }

    pub(super) fn knows(&self, found: &Found) -> bool {
        let known = self.known.lock();
        known.len() == found.len() && known.iter().eq(found.iter())
    }
}
