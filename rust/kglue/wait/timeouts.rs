// SPDX-License-Identifier: GPL-2.0
//! Sleepers with a time-out of seconds: one timer for all of them.
//!
//! blk_io_schedule() sleeps with half of kernel.hung_task_timeout_secs as its time-out, so that a
//! thread whose I/O takes minutes is seen alive. schedule_timeout() would set a timer up for that
//! and delete it again, for each I/O: 370 instructions, a fiftieth of a read. Here a sleeper writes
//! down when its time-out is over, and a timer that comes twice a second, while anybody sleeps so,
//! wakes who is due.
//!
//! # No sleeper is forgotten
//! The sleeper writes, passes a fence, and looks whether the timer is on. A timer that has found
//! nobody says that it is off, passes a fence, and looks again. One of the two sees the other.

use crate::aim::{Aim, Stays};
use crate::blk::retry::{Kicked, Retry};
use crate::context::jiffies;
use crate::shims;
use core::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use hal::Error;
use kernel::ffi::{c_long, c_ulong};
use kernel::prelude::*;

/// The timer's interval, in ticks: so late a sleeper may be woken. CAST: a small constant.
const INTERVAL: c_ulong = shims::HIOPS_HZ as c_ulong / 2;
/// A shorter time-out has a timer of its own: a tenth of it is all that one may be late.
const SHORTEST: c_ulong = 10 * INTERVAL;

/// When a sleeper's time-out is over, in ticks; 0: it has none, or nobody sleeps.
#[derive(Default)]
pub(super) struct Timeout(AtomicUsize);

impl Timeout {
    /// The sleeper is awake again.
    #[inline]
    pub(super) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Somebody sleeps with one.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// It is over.
    pub(super) fn is_over(&self) -> bool {
        let until = self.0.load(Ordering::Relaxed);
        // CAST: ticks wrap around; the sign of what is left tells.
        until != 0 && (until.wrapping_sub(jiffies()) as isize) <= 0
    }
}

/// Those who sleep.
pub(super) trait Sleepers: Send + Sync {
    /// Wakes those whose time-out is over. Returns whether anybody sleeps with one. With preemption
    /// off.
    fn wake_due(&self) -> bool;
}

/// The timer.
pub(super) struct Timeouts {
    timer: KBox<Retry>,
    on: AtomicBool,
    sleepers: Aim<dyn Sleepers>,
}

impl Timeouts {
    /// A timer that wakes nobody yet.
    pub(super) fn new() -> Result<Self, Error> {
        Ok(Self {
            timer: Retry::new().map_err(|_| Error::NoMemory)?,
            on: AtomicBool::new(false),
            sleepers: Aim::new(),
        })
    }

    /// From now on it wakes those who sleep in `table`, of which it is a part; once.
    /// [`Timeouts::shutdown`] silences it.
    pub(super) fn aim<T: Sleepers + 'static>(table: Stays<T>, this: fn(&T) -> &Self) {
        let this = table.seen_as(this);
        this.get().sleepers.set(table.seen_as(|table| table));
        this.get().timer.aim(this);
    }

    /// The caller, awake so far, is about to sleep for up to `ticks`. Whether the time-out is
    /// looked after here: then it says [`Timeout::end`] when it is awake again.
    #[inline]
    pub(super) fn begin(&self, timeout: &Timeout, ticks: c_long) -> bool {
        // The longest is for good.
        let Ok(ticks) = c_ulong::try_from(ticks) else {
            return false;
        };
        if ticks < SHORTEST || ticks == c_long::MAX.unsigned_abs() {
            return false;
        }
        // Never 0: a tick more or less is nothing here.
        let until = jiffies().wrapping_add(ticks) | 1;
        timeout.0.store(until, Ordering::Relaxed);
        // The hand-over with the timer, see above.
        fence(Ordering::SeqCst);
        self.watch();
        true
    }

    /// Somebody sleeps: the timer comes.
    #[inline]
    fn watch(&self) {
        if !self.on.load(Ordering::Relaxed) && !self.on.swap(true, Ordering::AcqRel) {
            self.timer.arm_in(INTERVAL);
        }
    }

    /// Whether it comes.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Never comes again; returns when it is over. Sleeps.
    pub(super) fn shutdown(&self) {
        self.timer.shutdown();
    }
}

impl Kicked for Timeouts {
    fn kicked(&self) {
        let Some(sleepers) = self.sleepers.get() else {
            return;
        };
        if sleepers.wake_due() {
            return self.timer.arm_in(INTERVAL);
        }
        self.on.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Who went to sleep meanwhile saw the timer on.
        if sleepers.wake_due() {
            self.watch();
        }
    }
}
