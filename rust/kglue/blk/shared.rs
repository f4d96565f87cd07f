// SPDX-License-Identifier: GPL-2.0
//! The part of a disk that may outlive its adapter.

use super::lane::{Lane, Sums};
use super::names::{self, Names};
use super::numbers::{Major, Number};
use super::owner::{Gate, Owner};
use crate::aim::Stays;
use crate::compat::synchronize_rcu;
use core::sync::atomic::{AtomicUsize, Ordering};
use hal::{Error, Unit};
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::time::{delay::fsleep, Delta};

/// What lives as long as somebody has the disk open, which may be longer than the adapter.
pub(crate) struct DiskShared {
    pub(crate) unit: Unit,
    pub(crate) names: Names,
    /// `None`: the block layer numbers the disk.
    pub(crate) number: Option<Number>,
    pub(crate) lanes: KVec<Lane>,
    /// The way to the adapter, closed when that goes.
    pub(crate) gate: Arc<Gate>,
    /// The adapter itself, for the disk's attributes: they go before it does.
    pub(crate) owner: Stays<dyn Owner>,
}

impl DiskShared {
    /// The part of the disk `unit` that lives as long as it is open. Sleeps.
    pub(crate) fn new(
        unit: Unit,
        lanes: KVec<Lane>,
        gate: Arc<Gate>,
        owner: Stays<dyn Owner>,
    ) -> Result<KBox<Self>, Error> {
        let names = Names::take(&unit)?;
        let number = Number::take(&unit)?;
        ALIVE.fetch_add(1, Ordering::Relaxed);
        let shared = Self {
            unit,
            names,
            number,
            lanes,
            gate,
            owner,
        };
        KBox::new(shared, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// Whether `which` is on.
    pub(crate) fn switch(&self, which: u8) -> bool {
        (self.lanes.first()).is_some_and(|lane| lane.switches.get().0 & which != 0)
    }

    /// Turns `which` on or off.
    pub(crate) fn turn(&self, which: u8, on: bool) {
        (self.lanes.iter()).for_each(|lane| lane.switches.turn(which, on));
    }

    /// What was counted on all lanes.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for lane in &self.lanes {
            lane.stats.add_to(&mut sums);
        }
        sums
    }
}

/// How many [`DiskShared`] there are. The last close of a disk frees its own after the module's
/// reference count has gone down, so leaving the module means waiting for them.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

impl Drop for DiskShared {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Release);
    }
}

/// All disks of the module: when it is dropped, it waits until none is being freed any more.
pub struct AllDisks {
    _major: Major,
}

impl AllDisks {
    /// Before the first disk; once. Sleeps.
    pub fn begin() -> Result<Self, Error> {
        let major = Major::take()?;
        names::init();
        Ok(Self { _major: major })
    }
}

impl Drop for AllDisks {
    fn drop(&mut self) {
        // TIMEOUT: none: nobody has a disk open any more, so what is left is on its way through
        // `free_disk`.
        while ALIVE.load(Ordering::Acquire) != 0 {
            fsleep(Delta::from_millis(1));
        }
        // Whoever was in `free_disk` has left this module's text after it.
        synchronize_rcu();
    }
}
