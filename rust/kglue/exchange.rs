// SPDX-License-Identifier: GPL-2.0
//! Who is in a slot is exchanged: who was there leaves, a port is made anew, and serves the drive
//! that it has, or waits for one.

use core::sync::atomic::Ordering;
use hal::{Controller, Error};
use kernel::prelude::*;

use crate::adapter::{Adapter, Bus};
use crate::errno::advice;
use crate::log::{log_err, log_warn};
use crate::slot::{Home, Slot, SlotPort, Tenant};
use crate::slots::Slots;
use crate::still::Still;
use crate::work::{Exchange, Run};

impl<H: Home> Run<Exchange> for Slots<H> {
    fn run(&self) {
        let mut still = self.still();
        for slot in &self.slots {
            let tenant = still.tenant(slot);
            // Called for by the one before it, perhaps: nobody who is served leaves for that.
            let stays = matches!(tenant, Some(Tenant::Served(adapter)) if !adapter.is_dead());
            if slot.wanted.swap(false, Ordering::AcqRel) && !stays {
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
        let config = match self.has_drive(slot, &port) {
            true => (self.home().config())
                .map_err(|error| self.tell(slot, "reading the parameters", error))
                .ok(),
            false => None,
        };
        let Some(config) = config else {
            // Its memory is not freed, now or later, under a device that may write to it.
            if port.stop().is_err() {
                self.bus.cut_off();
                return None;
            }
            return Some(Tenant::Waiting(port));
        };
        let adapter = Adapter::new(self.home().platform(), port, self.home().bus(), config);
        adapter
            .map_err(|error| self.tell(slot, "making the queue", error))
            .ok()
            .map(Tenant::Served)
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
                adapter.add_disks()
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
