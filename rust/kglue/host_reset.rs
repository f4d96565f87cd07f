// SPDX-License-Identifier: GPL-2.0
//! All slots at rest for a while: the machine sleeps, or their host is reset, by others or for a
//! port that can't be stopped.
//!
//! `host_reset`, a work item of all slots, is what a port calls for then
//! ([`crate::caller::HostReset`]).

use core::sync::atomic::Ordering;
use hal::{Controller, Error};

use crate::adapter::{Bus, Suspend};
use crate::errno::advice;
use crate::hotplug::{Host, Occupant, Slots};
use crate::platform::NoIo;
use crate::text::{log_err, log_warn};
use crate::work::{ResetAll, Run};

impl<H: Host> Slots<H> {
    /// The machine sleeps, or the host is about to be reset: the ports rest, and the occupant of a
    /// slot stays there until [`Slots::resume`]. `false`: something is under way that does not end,
    /// which was told; the machine must not sleep, and all go on. Sleeps.
    pub(crate) fn suspend(&self, why: Suspend) -> bool {
        if self.asleep.swap(true, Ordering::AcqRel) {
            return true;
        }
        // No disk comes that is not frozen. What ends I/O may need the port's events handled, and
        // the reset.
        self.hotplug_work.disable();
        let rests = why != Suspend::Sleep || self.freeze();
        if rests {
            self.host().host_reset().silence();
            self.lay_to_rest(why);
        } else {
            self.asleep.store(false, Ordering::Release);
        }
        self.hotplug_work.enable();
        if !rests {
            self.queue_hotplug_if_wanted();
        }
        rests
    }

    /// All disks are frozen ([`Adapter::freeze`]), or none.
    ///
    /// [`Adapter::freeze`]: crate::adapter::Adapter::freeze
    fn freeze(&self) -> bool {
        let locked = self.lock_disabled();
        let served = |slot| match locked.occupant(slot) {
            Some(Occupant::Served(adapter)) => Some(adapter),
            _ => None,
        };
        let all = || self.slots.iter().filter_map(served);
        let frozen = all().all(|adapter| adapter.freeze());
        if !frozen {
            all().for_each(|adapter| adapter.thaw());
        }
        frozen
    }

    /// Begins the hot-plug work that was called for while it was disabled.
    fn queue_hotplug_if_wanted(&self) {
        if (self.slots.iter()).any(|slot| slot.wanted.load(Ordering::Acquire)) {
            self.queue_hotplug_work();
        }
    }

    /// The host is brought back, and the ports go on, after [`Slots::suspend`]; those that don't
    /// have dead disks. Sleeps.
    pub(crate) fn resume(&self) -> Result<(), Error> {
        // The PCI core may have the function reset for another's sake, with nobody told before.
        if !self.asleep.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let host = self.host().restart();
        self.go_on(host);
        self.host().host_reset().hear();
        host
    }

    /// The host is not brought back after [`Slots::suspend`], nor by anybody else. Sleeps.
    pub(crate) fn give_up(&self) {
        if self.asleep.swap(false, Ordering::AcqRel) {
            self.go_on(Err(Error::Gone));
            self.host().host_reset().hear();
            return;
        }
        let locked = self.lock_slots();
        for slot in &self.slots {
            if let Some(Occupant::Served(adapter)) = locked.occupant(slot) {
                adapter.give_up();
            }
        }
    }

    fn lay_to_rest(&self, why: Suspend) {
        // What it waits for may need the port's events handled.
        self.hotplug_work.disable();
        let locked = self.lock_disabled();
        for slot in &self.slots {
            Self::part(&locked, slot, |adapter| adapter.suspend(why));
            slot.caller.cancel();
        }
    }

    /// The ports go on, after `lay_to_rest`, with a host that was brought back; else their disks
    /// are dead. A drive that came or went meanwhile is looked after soon. Sleeps.
    fn go_on(&self, host: Result<(), Error>) {
        let locked = self.lock_disabled();
        for slot in &self.slots {
            match locked.occupant(slot) {
                None => {}
                Some(Occupant::Waiting(port)) => {
                    let is_taken_off = self.host().taken_off().has(slot.mask());
                    if host.is_ok() && !is_taken_off && self.has_drive(slot, port) {
                        slot.request_hotplug();
                    } else if host.is_ok() {
                        port.set_interrupt(0, true);
                    }
                }
                Some(Occupant::Served(adapter)) => match host.and_then(|()| adapter.resume()) {
                    Ok(()) => adapter.controller().set_interrupt(0, true),
                    Err(_) => {
                        adapter.lose();
                        if host.is_ok() && adapter.is_loose() {
                            // It has had no request since the reset, and its own memory stays: so
                            // the others need not be cut off with it.
                            slot.given_up.store(true, Ordering::Release);
                            adapter.bus().give_up();
                        }
                        slot.request_hotplug();
                    }
                },
            }
        }
        drop(locked);
        self.hotplug_work.enable();
        if host.is_ok() {
            self.queue_hotplug_if_wanted();
        }
    }
}

impl<H: Host> Run<ResetAll> for Slots<H> {
    fn run(&self) {
        let _no_io = NoIo::new();
        // Nothing gets through to a port that is cut off.
        self.lay_to_rest(Suspend::Frozen);
        self.host().host_reset().came();
        let host = self.host().restart();
        match host {
            Ok(()) => log_warn!(self, "reset, with all its ports, for one that hung\n"),
            Err(error) => log_err!(
                self,
                "it can't be reset: its disks are dead ({})\n",
                advice(error)
            ),
        }
        self.go_on(host);
    }
}
