// SPDX-License-Identifier: GPL-2.0
//! The last rung but one: for a port that can't be stopped, all that it is part of is reset.
//!
//! Until then the port is suspended, as the others are when it comes to it ([`crate::slots`]): what
//! they were told is tried again, and nothing fails of it.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::aim::Stays;
use crate::context::now_ms;
use crate::work::{ResetAll, Run, Work};

/// A port that can't be stopped again within this time is given up: each reset holds up the others.
/// As long as libata remembers a link's errors (`ata_eh_speed_down`, Linux 7.3).
const AGAIN_MS: u64 = 600_000;

/// How it is called for. Clones are the same.
#[derive(Clone)]
pub(crate) struct Rescue {
    work: Arc<Work<ResetAll>>,
    coming: Arc<AtomicBool>,
}

impl Rescue {
    /// The rescue of what has this number. Sleeps.
    pub(crate) fn new(number: i32) -> Result<Self, Error> {
        Ok(Self {
            work: Arc::new(Work::new(number)?, GFP_KERNEL).map_err(|_| Error::NoMemory)?,
            coming: Arc::new(AtomicBool::new(false), GFP_KERNEL).map_err(|_| Error::NoMemory)?,
        })
    }

    /// From now on `all` are reset; once. [`Rescue::silence`] silences it.
    pub(crate) fn aim<A: Run<ResetAll> + 'static>(&self, all: Stays<A>) {
        self.work.aim(all);
    }

    /// Whether it comes. Any context.
    fn call(&self) -> bool {
        if self.coming.swap(true, Ordering::AcqRel) || self.work.begin() {
            return true;
        }
        self.coming.store(false, Ordering::Release);
        false
    }

    /// It is there, with all ports suspended: who calls from now on calls for another.
    pub(crate) fn came(&self) {
        self.coming.store(false, Ordering::Release);
    }

    /// It does not come any more, and a port that was promised one is resumed, or abandoned, next.
    /// Sleeps: one that is there goes to its end.
    pub(crate) fn silence(&self) {
        self.work.disable();
        self.came();
    }

    /// Undoes [`Rescue::silence`].
    pub(crate) fn hear(&self) {
        self.work.enable();
    }
}

/// How a port calls for it.
pub(crate) struct RescueCall {
    rescue: Rescue,
    /// When it was last made; 0: never.
    made_ms: AtomicU64,
}

impl RescueCall {
    pub(crate) fn new(rescue: Rescue) -> Self {
        let made_ms = AtomicU64::new(0);
        Self { rescue, made_ms }
    }

    /// Another port can't be stopped, which has cut this one off: it waits for the rescue. `false`:
    /// none comes. Any context.
    pub(crate) fn wait(&self) -> bool {
        self.rescue.call()
    }

    /// The port can't be stopped. Whether it waits for the rescue; one that does not is rescued
    /// from, as its memory goes back to who uses it next. Any context.
    pub(crate) fn make(&self) -> bool {
        // 0 is never.
        let now = now_ms().max(1);
        let last = self.made_ms.swap(now, Ordering::Relaxed);
        self.rescue.call() && (last == 0 || now.saturating_sub(last) >= AGAIN_MS)
    }
}
