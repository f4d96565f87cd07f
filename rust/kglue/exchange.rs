// SPDX-License-Identifier: GPL-2.0
//! Who is in a slot is exchanged: who was there leaves, a port is made anew, and serves the drive
//! that it has, or waits for one.

use core::sync::atomic::Ordering;
use hal::{Controller, Error};
use kernel::prelude::*;

use crate::adapter::{Adapter, Bus};
use crate::errno::advice;
use crate::log::{log_err, log_info, log_warn};
use crate::slot::{Home, Slot, SlotPort, Tenant};
use crate::slots::Slots;
use crate::still::Still;
use crate::work::{Exchange, Run};

impl<H: Home> Run<Exchange> for Slots<H> {
    fn run(&self) {
        let mut still = self.still();
        let taken_off = self.home().taken_off();
        let scan = taken_off.take_scan();
        for slot in &self.slots {
            let tenant = still.tenant(slot);
            let is_served = matches!(tenant, Some(Tenant::Served(adapter)) if !adapter.is_dead());
            if scan && taken_off.has(slot.mask()) {
                taken_off.forget(slot.mask());
                slot.wanted.store(true, Ordering::Release);
            }
            // Called for by the one before it, perhaps: nobody who is served leaves for that.
            let stays = is_served && !taken_off.has(slot.mask());
            if slot.wanted.swap(false, Ordering::AcqRel) && !stays {
                if is_served {
                    log_info!(
                        self,
                        "port {}: its drive is taken off, as was asked for\n",
                        slot.number
                    );
                }
                if slot.given_up.load(Ordering::Acquire) {
                    // The disk goes, and no other comes: the port's memory has to stay.
                    Self::part(&still, slot, Adapter::remove);
                    self.served.fetch_and(!slot.mask(), Ordering::Relaxed);
                    continue;
                }
                self.vacate(&mut still, slot);
                self.settle(slot);
                // What is wrong with its disk is told there.
                let _ = self.show(&still, slot);
            }
        }
    }
}

impl<H: Home> Slots<H> {
    /// Who is in `slot` leaves.
    fn vacate(&self, still: &mut Still<'_>, slot: &Slot<H>) {
        Self::part(still, slot, Adapter::remove);
        self.served.fetch_and(!slot.mask(), Ordering::Relaxed);
        let tenant = slot.take();
        self.bus.synchronize();
        slot.caller.cancel();
        if let Some(Tenant::Waiting(port)) = tenant.as_deref() {
            self.stop_or_cut_off(slot, port);
        }
        drop(tenant);
    }

    /// Makes the port of `slot`, which is empty, anew: it serves the drive that it has, or waits
    /// for one. Under `doors`, or alone.
    pub(crate) fn settle(&self, slot: &Slot<H>) {
        let Some(tenant) = self.tenant_of(slot) else {
            return;
        };
        let is_served = matches!(tenant, Tenant::Served(_));
        match KBox::new(tenant, GFP_KERNEL) {
            Ok(tenant) => slot.place(tenant),
            Err(_) => return self.tell(slot, "making the port", Error::NoMemory),
        }
        if is_served {
            self.served.fetch_or(slot.mask(), Ordering::Relaxed);
        }
    }

    fn tenant_of(&self, slot: &Slot<H>) -> Option<Tenant<H>> {
        let caller = slot.caller.clone();
        let port = (self.home().port(slot.number, caller))
            .map_err(|error| self.tell(slot, "making the port", error))
            .ok()?;
        let is_taken_off = self.home().taken_off().has(slot.mask());
        let config = match !is_taken_off && self.has_drive(slot, &port) {
            true => (self.home().config())
                .map_err(|error| self.tell(slot, "reading the parameters", error))
                .ok(),
            false => None,
        };
        let Some(config) = config else {
            let stopped = self.stop_or_cut_off(slot, &port);
            return stopped.then_some(Tenant::Waiting(port));
        };
        let bus = self.home().bus(slot.number, slot.caller.clone());
        let adapter = Adapter::new(self.home().platform(), port, bus, config);
        adapter
            .map_err(|error| self.tell(slot, "making the queue", error))
            .ok()
            .map(Tenant::Served)
    }

    /// Stops the `port` of `slot`, before its memory is freed, now or later; `false`: in vain, so
    /// nothing of it gets there.
    fn stop_or_cut_off(&self, slot: &Slot<H>, port: &H::Port) -> bool {
        let stopped = port.stop().is_ok();
        if !stopped {
            (self.home().bus(slot.number, slot.caller.clone())).cut_off();
        }
        stopped
    }

    /// Whether `port` has a drive that can be served; why not is told.
    pub(crate) fn has_drive(&self, slot: &Slot<H>, port: &H::Port) -> bool {
        if let Err(error) = port.start() {
            self.tell(slot, port.step(), error);
            return false;
        }
        let mut drive = false;
        let told = port.units(&mut |found| match found {
            Ok(_) => drive = true,
            Err(refused) => {
                log_warn!(
                    self,
                    "port {} is not served: {}\n",
                    slot.number,
                    refused.why
                );
            }
        });
        told.is_ok() && drive
    }

    /// Lets the port of `slot` interrupt, and shows its disk.
    pub(crate) fn show(&self, still: &Still<'_>, slot: &Slot<H>) -> Result<usize, Error> {
        match still.tenant(slot) {
            None => Ok(0),
            Some(Tenant::Waiting(port)) => {
                port.set_interrupt(0, true);
                Ok(0)
            }
            Some(Tenant::Served(adapter)) => {
                adapter.controller().set_interrupt(0, true);
                let shown = adapter.add_disks();
                adapter.log_disk_quirks(|named| self.home().quirks(named));
                shown
            }
        }
    }

    fn tell(&self, slot: &Slot<H>, what: &str, error: Error) {
        log_err!(
            self,
            "port {}: {} failed ({:?}): {}; the other ports are not concerned\n",
            slot.number,
            what,
            error,
            advice(error)
        );
    }
}
