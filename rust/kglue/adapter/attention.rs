// SPDX-License-Identifier: GPL-2.0
//! How a controller is attended: the work of it, and what was seen last.

use crate::aim::Stays;
use crate::hrtimer::{Expired, HrTimer};
use crate::work::{Attend, Run, Work};
use core::sync::atomic::{AtomicBool, Ordering};
use hal::{Error, Refused, Unit};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Mutex};

/// What the controller says of its disks.
pub(crate) type Found = KVec<core::result::Result<Unit, Refused>>;

/// The work item of it, and the timer that puts it off.
pub(crate) struct Attention {
    work: Work<Attend>,
    timer: KBox<HrTimer>,
    /// The disks are to be looked at anew, whatever the controller says.
    look: AtomicBool,
    /// What the controller said of its disks when they last became that.
    known: Pin<KBox<Mutex<Found>>>,
}

impl Attention {
    /// That of nobody yet. Sleeps.
    pub(super) fn new(number: i32) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        let known = new_mutex!(Found::new(), "hiops_known");
        Ok(Self {
            work: Work::new(number)?,
            timer: HrTimer::new().map_err(no_memory)?,
            look: AtomicBool::new(false),
            known: KBox::pin_init(known, GFP_KERNEL).map_err(no_memory)?,
        })
    }

    /// From now on it is `adapter`'s, who begins it when the timer has expired; once.
    /// [`Attention::disable`] silences it.
    pub(super) fn aim<A: Run<Attend> + Expired + 'static>(&self, adapter: Stays<A>) {
        self.work.aim(adapter);
        self.timer.target().set(adapter.seen_as(|adapter| adapter));
    }

    /// The controller is attended soon. Any context.
    pub(super) fn begin(&self) {
        self.work.begin();
    }

    /// Likewise, and its disks are looked at whatever it says.
    pub(super) fn begin_look(&self) {
        self.look.store(true, Ordering::Release);
        self.begin();
    }

    /// Whether the disks are to be looked at; not any more then.
    pub(super) fn take_look(&self) -> bool {
        self.look.swap(false, Ordering::AcqRel)
    }

    /// The controller is attended in `us` microseconds. By the work itself.
    pub(super) fn put_off(&self, us: u32) {
        self.timer.start(us);
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
