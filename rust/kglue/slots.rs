// SPDX-License-Identifier: GPL-2.0
//! Places for drives, each with a controller of its own: it is served while it has a drive, and else waits for one. Drives come and go while the machine
//! runs.
//!
//! ```text
//!             the port tells that one came
//!   Waiting ------------------------------> exchange --> Served
//!      ^                                                    |
//!      +--- exchange <--- all its I/O has failed <----------+ the drive is gone
//! ```
//! # Who changes what
//! * `attend`, a work item of each slot, sees to what the slot's port calls for. It ends the I/O of a drive that is gone, and changes no slot: what an exchange
//!   waits for may need it.
//! * `exchange`, one work item of all slots, changes who is in a slot, under `doors`; beside it only [`Slots::open`] shows disks, under `doors` too, and
//!   [`Slots::remove`] takes them, when both work items are at rest.
//! * `rescue`, and whoever suspends and resumes all, changes no slot, and ends both work items for
//!   as long ([`crate::slots_rest`]).
//! * The interrupt handler reads who is in a slot. Nobody who was there is freed before [`Bus::synchronize`] has returned, and `attend` was cancelled.

use core::ptr::{from_ref, null_mut, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use hal::{Cause, Controller, Error};
use kernel::c_str;
use kernel::device::Device;
use kernel::prelude::*;
use kernel::static_lock_class;
use kernel::sync::Mutex;

use crate::adapter::{Adapter, Bus, Label, Naming};
use crate::caller::Caller;
use crate::errno::advice;
use crate::log::{log_err, log_warn};
use crate::slot::{Home, Slot, SlotAdapter, SlotPort, Tenant};
use crate::work::{Exchange, Run, Work};

/// The slots of a home.
///
/// # Invariants
/// Once shared it is not moved: `attend` and `exchange` have its address.
pub(crate) struct Slots<H: Home> {
    pub(crate) exchange: Work<Exchange>,
    pub(crate) slots: KVec<Slot<H>>,
    doors: Pin<KBox<Mutex<()>>>,
    /// The slots whose drive is served, one bit each.
    served: AtomicU32,
    /// Between [`Slots::suspend`] and [`Slots::resume`].
    pub(crate) asleep: AtomicBool,
    pub(crate) bus: H::Bus,
    home: H,
}

impl<H: Home> Slots<H> {
    /// The slots in `mask`, one bit each, brought up as far as that goes without interrupts: what can't be served is told. Sleeps.
    pub(crate) fn new(home: H, mask: u32) -> Result<KBox<Self>, Error> {
        let mut slots = KVec::new();
        for number in (0u8..32).filter(|number| 1u32.wrapping_shl(u32::from(*number)) & mask != 0) {
            let slot = Slot {
                number,
                caller: Caller::new(home.number())?,
                tenant: AtomicPtr::new(null_mut()),
                wanted: AtomicBool::new(false),
                all: AtomicPtr::new(null_mut()),
            };
            slots.push(slot, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        }
        let doors = KBox::pin_init(
            Mutex::new((), c_str!("hiops_doors"), static_lock_class!()),
            GFP_KERNEL,
        )
        .map_err(|_| Error::NoMemory)?;
        let all = KBox::new(
            Self {
                exchange: Work::new(home.number())?,
                slots,
                doors,
                served: AtomicU32::new(0),
                asleep: AtomicBool::new(false),
                bus: home.bus(),
                home,
            },
            GFP_KERNEL,
        )
        .map_err(|_| Error::NoMemory)?;
        // SAFETY: the slots are not moved out of their box, and disable the work before they go.
        unsafe { all.exchange.aim(NonNull::from(&*all)) };
        for slot in &all.slots {
            // INVARIANT: the box is not moved out of.
            slot.all
                .store(from_ref(&*all).cast_mut(), Ordering::Release);
            all.settle(slot);
        }
        Ok(all)
    }

    /// What the slots share.
    #[inline]
    pub(crate) fn home(&self) -> &H {
        &self.home
    }

    /// The slots whose drive is served, one bit each.
    #[inline]
    pub(crate) fn served(&self) -> u32 {
        self.served.load(Ordering::Relaxed)
    }

    /// The port of slot `number` may have interrupted: whether it did. Hard interrupt context, as [`Bus::synchronize`] knows it.
    #[inline]
    pub(crate) fn interrupted(&self, number: u8) -> bool {
        let mut slots = self.slots.iter();
        let Some(slot) = slots.find(|slot| slot.number == number) else {
            return false;
        };
        // SAFETY: who takes what is there waits for the handlers.
        match unsafe { slot.tenant() } {
            Some(Tenant::Served(adapter)) => adapter.interrupt(0),
            Some(Tenant::Waiting(port)) => port.interrupt(0) != Cause::None,
            None => false,
        }
    }

    /// Lets the ports interrupt, and shows the disks; returns how many there are. Once, after the interrupt handler is there. Sleeps.
    pub(crate) fn open(&self) -> Result<usize, Error> {
        let _doors = self.doors.lock();
        // SAFETY: these are not moved, and silence it before they go.
        unsafe { self.home.rescue().aim(NonNull::from(self)) };
        for slot in &self.slots {
            // SAFETY: the slots are silenced before they go, and stay in their vector.
            unsafe { slot.caller.aim(NonNull::from(slot)) };
        }
        let mut shown = 0usize;
        let mut last = Error::Unsupported;
        for slot in &self.slots {
            match self.show(slot) {
                Ok(disks) => shown = shown.saturating_add(disks),
                Err(error) => last = error,
            }
        }
        match shown {
            0 => Err(last),
            _ => Ok(shown),
        }
    }

    /// All disks go, all I/O ends, and the ports rest; nobody is attended any more. The interrupt handler must still be there. Sleeps.
    pub(crate) fn remove(&self) {
        self.rest();
        (self.slots.iter()).for_each(|slot| Self::part(slot, Adapter::remove));
    }

    /// The machine goes down: likewise, but the disks stay. Sleeps.
    pub(crate) fn shutdown(&self) {
        self.rest();
        (self.slots.iter()).for_each(|slot| Self::part(slot, Adapter::shutdown));
    }

    /// No work item runs any more, nor will. The exchange before `attend`, which alone brings about
    /// what it may wait for.
    fn rest(&self) {
        self.home.rescue().silence();
        self.exchange.disable();
        self.slots.iter().for_each(|slot| slot.caller.silence());
    }

    /// Who is in `slot` is served no more, by `work`, and does not interrupt either. Under `doors`, or with the work at rest.
    pub(crate) fn part(slot: &Slot<H>, work: impl FnOnce(&SlotAdapter<H>)) {
        // SAFETY: only an exchange takes what is there, and there is no other.
        match unsafe { slot.tenant() } {
            None => {}
            Some(Tenant::Waiting(port)) => port.set_interrupt(0, false),
            Some(Tenant::Served(adapter)) => {
                work(adapter);
                adapter.controller().set_interrupt(0, false);
            }
        }
    }

    /// The slots that want it are changed, soon. Any context.
    pub(crate) fn begin_exchange(&self) {
        self.exchange.begin();
    }

    /// Who is in `slot` leaves. Under `doors`.
    fn vacate(&self, slot: &Slot<H>) {
        Self::part(slot, Adapter::remove);
        self.served.fetch_and(!slot.mask(), Ordering::Relaxed);
        let tenant = slot.take();
        self.bus.synchronize();
        slot.caller.cancel();
        drop(tenant);
    }

    /// Makes the port of `slot`, which is empty, anew: it serves the drive that it has, or waits for one. Under `doors`, or alone.
    fn settle(&self, slot: &Slot<H>) {
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
        let port = (self.home.port(slot.number, caller))
            .map_err(|error| self.tell(slot, "making the port", error))
            .ok()?;
        let config = match self.has_drive(slot, &port) {
            true => (self.home.config())
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
        let adapter = Adapter::new(self.home.platform(), port, self.home.bus(), config);
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

    /// Lets the port of `slot` interrupt, and shows its disk. Under `doors`.
    fn show(&self, slot: &Slot<H>) -> Result<usize, Error> {
        // SAFETY: only an exchange takes what is there, under `doors`.
        match unsafe { slot.tenant() } {
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

    /// Disks that are shown.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn disks(&self) -> usize {
        let _doors = self.doors.lock();
        let shown = |slot: &Slot<H>| {
            // SAFETY: only an exchange takes what is there, under `doors`.
            match unsafe { slot.tenant() } {
                Some(Tenant::Served(adapter)) => adapter.disks().lock().len(),
                _ => 0,
            }
        };
        self.slots.iter().map(shown).fold(0, usize::wrapping_add)
    }

    /// The slots whose disk was not given up, one bit each.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn live(&self) -> u32 {
        let _doors = self.doors.lock();
        let bit = |slot: &Slot<H>| {
            // SAFETY: only an exchange takes what is there, under `doors`.
            match unsafe { slot.tenant() } {
                Some(Tenant::Served(adapter)) if adapter.is_live() => slot.mask(),
                _ => 0,
            }
        };
        self.slots.iter().map(bit).fold(0, u32::wrapping_add)
    }

    /// Writes zeroes to the disk of slot `number`; `false`: in vain. Sleeps.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn zeroes(&self, number: u8) -> bool {
        // What wants to be shown or taken waits: the disk stays.
        let _doors = self.doors.lock();
        let slot = self.slots.iter().find(|slot| slot.number == number);
        // SAFETY: only an exchange takes what is there, under `doors`.
        let Some(Tenant::Served(adapter)) = slot.and_then(|slot| unsafe { slot.tenant() }) else {
            return false;
        };
        let disk = adapter.disks().lock().first().map(|disk| disk.as_raw());
        // SAFETY: an added disk, whose whole is its first part.
        disk.is_some_and(|disk| unsafe {
            use kernel::bindings::{blkdev_issue_zeroout, GFP_KERNEL};
            blkdev_issue_zeroout((*disk).part0, 0, 8, GFP_KERNEL, 0) == 0
        })
    }

    /// An exchange of slot `number` is called for.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn want(&self, number: u8) {
        let wanted = self.slots.iter().filter(|slot| slot.number == number);
        wanted.for_each(Slot::call_for_exchange);
    }

    /// The port of slot `number` calls for attention.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn call(&self, number: u8) {
        let called = self.slots.iter().filter(|slot| slot.number == number);
        called.for_each(|slot| {
            let _ = slot.caller.call();
        });
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

    pub(crate) fn device(&self) -> Option<&Device> {
        let device = self.bus.device();
        // SAFETY: alive, by the contract of `Bus`.
        (!device.is_null()).then(|| unsafe { Device::from_raw(device) })
    }

    pub(crate) fn label(&self) -> Label {
        Label(Naming::Port(self.home.number()), self.home.number())
    }
}

impl<H: Home> Run<Exchange> for Slots<H> {
    fn run(&self) {
        let _doors = self.doors.lock();
        for slot in &self.slots {
            // SAFETY: only an exchange takes what is there.
            let tenant = unsafe { slot.tenant() };
            // Called for by the one before it, perhaps: nobody who is served leaves for that.
            let stays = matches!(tenant, Some(Tenant::Served(adapter)) if !adapter.is_dead());
            if slot.wanted.swap(false, Ordering::AcqRel) && !stays {
                self.vacate(slot);
                self.settle(slot);
                // What is wrong with its disk is told there.
                let _ = self.show(slot);
            }
        }
    }
}

impl<H: Home> Drop for Slots<H> {
    fn drop(&mut self) {
        self.rest();
    }
}
