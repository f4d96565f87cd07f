// SPDX-License-Identifier: GPL-2.0
//! Drives that an operator has taken off: each is in its slot, and not served, until another comes
//! in its place, or all slots are scanned. As the files `delete` and `scan` of the kernel's SCSI
//! layer have it (Linux 7.3, drivers/scsi/scsi_sysfs.c).

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::caller::Caller;

/// Which of a home's are. Clones are the same.
#[derive(Clone)]
pub(crate) struct TakenOff(Arc<Asked>);

struct Asked {
    /// The slots, one bit each.
    slots: AtomicU32,
    /// They are to be served again.
    scan: AtomicBool,
}

impl TakenOff {
    /// None is. Sleeps.
    pub(crate) fn new() -> Result<Self, Error> {
        let none = Asked {
            slots: AtomicU32::new(0),
            scan: AtomicBool::new(false),
        };
        let none = Arc::new(none, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(none))
    }

    /// Whether those of `slots`, one bit each, are.
    pub(crate) fn has(&self, slots: u32) -> bool {
        self.0.slots.load(Ordering::Acquire) & slots != 0
    }

    /// Those of `slots` are no more.
    pub(crate) fn forget(&self, slots: u32) {
        self.0.slots.fetch_and(!slots, Ordering::AcqRel);
    }

    /// Whether a scan was asked for, which is not any more.
    pub(crate) fn take_scan(&self) -> bool {
        self.0.scan.swap(false, Ordering::AcqRel)
    }

    /// Whether who is served in `slot`, a bit, is to leave, or a scan is asked for.
    pub(crate) fn is_exchange_due(&self, slot: u32) -> bool {
        self.has(slot) || self.0.scan.load(Ordering::Acquire)
    }
}

/// How who is served in a slot asks for it.
pub struct TakeOff {
    taken_off: TakenOff,
    caller: Caller,
    /// Its bit.
    slot: u32,
}

impl TakeOff {
    /// By the one in slot `number`, whose attention `caller` calls for.
    pub(crate) fn new(taken_off: TakenOff, caller: Caller, number: u8) -> Self {
        Self {
            taken_off,
            caller,
            slot: 1u32.wrapping_shl(u32::from(number)),
        }
    }

    /// It leaves, soon, and stays away. Any context.
    pub(crate) fn leave(&self) {
        self.taken_off.0.slots.fetch_or(self.slot, Ordering::AcqRel);
        let _ = self.caller.call();
    }

    /// Those that were taken off are served again, soon. Any context.
    pub(crate) fn scan(&self) {
        self.taken_off.0.scan.store(true, Ordering::Release);
        let _ = self.caller.call();
    }
}
