// SPDX-License-Identifier: GPL-2.0
//! All slots at rest for a while: the machine sleeps, or their home is reset, by others or for a
//! port that can't be stopped.
//!
//! `rescue`, a work item of all slots, is what a port calls for then.

use core::sync::atomic::Ordering;
use hal::{Controller, Error};
use kernel::ffi::c_void;

use crate::adapter::Suspend;
use crate::adapter::{Bus, Number};
use crate::context::NoIo;
use crate::errno::advice;
use crate::log::{log_err, log_warn};
use crate::rescue::Rescue;
use crate::slot::{Home, Tenant};
use crate::slots::Slots;

impl<H: Home> Slots<H> {
    /// The machine sleeps, or the home is about to be reset: the ports rest, and who is in a slot
    /// stays there until [`Slots::resume`]. Sleeps.
    pub(crate) fn suspend(&self, why: Suspend) {
        if !self.asleep.swap(true, Ordering::AcqRel) {
            self.home().rescue().silence();
            self.lay_to_rest(why);
        }
    }

    /// The home is brought back, and the ports go on, after [`Slots::suspend`]; those that don't
    /// have dead disks. Sleeps.
    pub(crate) fn resume(&self) -> Result<(), Error> {
        // The PCI core may have the function reset for another's sake, with nobody told before.
        if !self.asleep.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let home = self.home().restart();
        self.go_on(home);
        self.home().rescue().hear();
        home
    }

    /// The rescue of a home with this number. Sleeps.
    pub(crate) fn rescue_of(number: &Number) -> Result<Rescue, Error> {
        Rescue::new(number.get(), Self::run_rescue)
    }

    /// # Safety
    /// `slots` are `Slots<H>`, alive for the call.
    unsafe fn run_rescue(slots: *const c_void) {
        // SAFETY: by the caller's promise.
        let slots = unsafe { &*slots.cast::<Self>() };
        let _no_io = NoIo::new();
        // Nothing gets through to a port that is cut off.
        slots.lay_to_rest(Suspend::Frozen);
        slots.home().rescue().came();
        let home = slots.home().restart();
        match home {
            Ok(()) => log_warn!(slots, "reset, with all its ports, for one that hung\n"),
            Err(error) => log_err!(
                slots,
                "it can't be reset: its disks are dead ({})\n",
                advice(error)
            ),
        }
        slots.go_on(home);
    }

    fn lay_to_rest(&self, why: Suspend) {
        // What it waits for may need `attend`.
        self.exchange.disable();
        for slot in &self.slots {
            Self::part(slot, |adapter| adapter.suspend(why));
            slot.caller.cancel();
        }
    }

    /// The ports go on, after `lay_to_rest`, with a home that was brought back; else their disks
    /// are dead. A drive that came or went meanwhile is looked after soon. Sleeps.
    fn go_on(&self, home: Result<(), Error>) {
        for slot in &self.slots {
            // SAFETY: only an exchange takes what is there, and none runs.
            match unsafe { slot.tenant() } {
                None => {}
                Some(Tenant::Waiting(port)) => {
                    if home.is_ok() && self.has_drive(slot, port) {
                        slot.call_for_exchange();
                    } else if home.is_ok() {
                        port.set_interrupt(0, true);
                    }
                }
                Some(Tenant::Served(adapter)) => match home.and_then(|()| adapter.resume()) {
                    Ok(()) => adapter.controller().set_interrupt(0, true),
                    Err(_) => {
                        adapter.lose();
                        slot.call_for_exchange();
                        // Cut off, perhaps, and with it the others, which were told more than it.
                        let _ = home.and_then(|()| self.bus.restore());
                    }
                },
            }
        }
        self.exchange.enable();
        // What was called for meanwhile, or before.
        if home.is_ok() && (self.slots.iter()).any(|slot| slot.wanted.load(Ordering::Acquire)) {
            self.begin_exchange();
        }
    }
}
