// SPDX-License-Identifier: GPL-2.0
//! What a port asks of the host that it is a slot of, from a context that must not sleep: that its
//! events be handled ([`Caller`]), to be taken off ([`TakeOff`]), and a reset of all
//! ([`HostResetCall`]).
//!
//! Drives that an operator has taken off are each in their slot, and not served, until another
//! comes in their place, or all slots are scanned. As the files `delete` and `scan` of the kernel's
//! SCSI layer have it (Linux 7.3, drivers/scsi/scsi_sysfs.c).
//!
//! A reset of all is the last rung but one, for a port that can't be stopped. Until then the port
//! is suspended, as the others are when it comes to it (`host_reset.rs`): what they were told is
//! tried again, and nothing fails of it.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::platform::now_ms;
use crate::work::{Pinned, PortEvents, ResetAll, Run, Work};

/// How a port calls for its events to be handled. Clones are the same caller.
#[derive(Clone)]
pub struct Caller(Arc<Work<PortEvents>>);

impl Caller {
    /// A caller without a target yet, whose workqueue has `number` in its name. Sleeps.
    pub(crate) fn new(number: i32) -> Result<Self, Error> {
        let work = Arc::new(Work::new(number)?, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(work))
    }

    /// The port's events are handled soon. `false`: it has called before, or has no target. Any
    /// context.
    pub fn call(&self) -> bool {
        self.0.begin()
    }

    /// From now on `port` handles the events; once. [`Caller::silence`] silences it.
    pub(crate) fn set_target<P: Run<PortEvents> + 'static>(&self, port: Pinned<P>) {
        self.0.set_target(port);
    }

    /// What was called for before is not handled. Sleeps.
    pub(crate) fn cancel(&self) {
        self.0.cancel();
    }

    /// No events are handled any more, whatever calls. Sleeps.
    pub(crate) fn silence(&self) {
        // Not only cancelled: an interrupt that comes meanwhile would begin it again.
        self.0.disable();
    }
}

/// Which drives of a host an operator has taken off. Clones are the same.
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

    /// Whether the drive that is served in `slot`, a bit, is to leave, or a scan is asked for.
    pub(crate) fn is_hotplug_due(&self, slot: u32) -> bool {
        self.has(slot) || self.0.scan.load(Ordering::Acquire)
    }
}

/// How a drive that is served in a slot is taken off, and a scan asked for.
pub struct TakeOff {
    taken_off: TakenOff,
    caller: Caller,
    /// Its bit.
    slot: u32,
}

impl TakeOff {
    /// For the port in slot `number`, which calls through `caller`.
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

/// A port that can't be stopped again within this time is given up: each reset holds up the others.
/// As long as libata remembers a link's errors (`ata_eh_speed_down`, Linux 7.3).
const AGAIN_MS: u64 = 600_000;

/// How a reset of all is called for. Clones are the same.
#[derive(Clone)]
pub(crate) struct HostReset {
    work: Arc<Work<ResetAll>>,
    coming: Arc<AtomicBool>,
}

impl HostReset {
    /// The reset of the host that has this number. Sleeps.
    pub(crate) fn new(number: i32) -> Result<Self, Error> {
        Ok(Self {
            work: Arc::new(Work::new(number)?, GFP_KERNEL).map_err(|_| Error::NoMemory)?,
            coming: Arc::new(AtomicBool::new(false), GFP_KERNEL).map_err(|_| Error::NoMemory)?,
        })
    }

    /// From now on `all` are reset; once. [`HostReset::silence`] silences it.
    pub(crate) fn set_target<A: Run<ResetAll> + 'static>(&self, all: Pinned<A>) {
        self.work.set_target(all);
    }

    /// Whether it comes. Any context.
    fn call(&self) -> bool {
        if self.coming.swap(true, Ordering::AcqRel) || self.work.begin() {
            return true;
        }
        self.coming.store(false, Ordering::Release);
        false
    }

    /// It is there, with all ports suspended: a call from now on calls for another.
    pub(crate) fn came(&self) {
        self.coming.store(false, Ordering::Release);
    }

    /// It does not come any more, and a port that was promised one is resumed, or abandoned, next.
    /// Sleeps: one that is there goes to its end.
    pub(crate) fn silence(&self) {
        self.work.disable();
        self.came();
    }

    /// Undoes [`HostReset::silence`].
    pub(crate) fn hear(&self) {
        self.work.enable();
    }
}

/// How a port calls for a reset of all.
pub(crate) struct HostResetCall {
    host_reset: HostReset,
    /// When it was last made; 0: never.
    made_ms: AtomicU64,
}

impl HostResetCall {
    pub(crate) fn new(host_reset: HostReset) -> Self {
        let made_ms = AtomicU64::new(0);
        Self {
            host_reset,
            made_ms,
        }
    }

    /// Another port can't be stopped, which has cut this one off: it waits for the reset.
    /// `false`: none comes. Any context.
    pub(crate) fn wait(&self) -> bool {
        self.host_reset.call()
    }

    /// The port can't be stopped. Whether it waits for the reset; where it does not, its requests
    /// end now, and their memory goes back to its next user. Any context.
    pub(crate) fn make(&self) -> bool {
        // 0 is never.
        let now = now_ms().max(1);
        let last = self.made_ms.swap(now, Ordering::Relaxed);
        self.host_reset.call() && (last == 0 || now.saturating_sub(last) >= AGAIN_MS)
    }
}
