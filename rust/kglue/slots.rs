// SPDX-License-Identifier: GPL-2.0
//! Places for drives, each with a controller of its own: it is served while it has a drive, and
//! else waits for one. Drives come and go while the machine runs.
//!
//! ```text
//!             the port tells that one came
//!   Waiting ------------------------------> exchange --> Served
//!      ^                                                    |
//!      +--- exchange <--- all its I/O has failed <----------+ the drive is gone
//! ```
//! # Who changes what
//! * `attend`, a work item of each slot, sees to what the slot's port calls for. It ends the I/O of
//!   a drive that is gone, and changes no slot: what an exchange waits for may need it.
//! * `exchange`, one work item of all slots, changes who is in a slot, under `doors`
//!   ([`crate::exchange`]); beside it only [`Slots::open`] shows disks, under `doors` too, and
//!   [`Slots::remove`] takes them, when both work items are at rest.
//! * `rescue`, and whoever suspends and resumes all, changes no slot, and ends both work items for
//!   as long ([`crate::slots_rest`]).
//! * The interrupt handler reads who is in a slot. Nobody who was there is freed before
//!   [`Bus::synchronize`] has returned, and `attend` was cancelled.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use hal::{Cause, Controller, Error};
use kernel::c_str;
use kernel::device::Device;
use kernel::prelude::*;
use kernel::static_lock_class;
use kernel::sync::Mutex;

use crate::adapter::{log_quirks, Adapter, Bus, Label, Naming};
use crate::aim::Stays;
use crate::caller::Caller;
use crate::log::log_info;
use crate::slot::{Home, Slot, SlotAdapter, Tenant};
use crate::still::{Reason, Still};
use crate::work::{Exchange, Work};

/// The slots of a home.
///
/// # Invariants
/// Once shared it is not moved: `attend` and `exchange` have its address.
pub(crate) struct Slots<H: Home> {
    /// What changes who is in them.
    pub(crate) exchange: Work<Exchange>,
    /// All of them, in the order of their numbers.
    pub(crate) slots: KVec<Slot<H>>,
    /// Held while somebody comes or goes.
    doors: Pin<KBox<Mutex<()>>>,
    /// The slots whose drive is served, one bit each.
    pub(crate) served: AtomicU32,
    /// Between [`Slots::suspend`] and [`Slots::resume`].
    pub(crate) asleep: AtomicBool,
    /// The home's, for what is done to all at once.
    pub(crate) bus: H::Bus,
    home: H,
}

impl<H: Home> Slots<H> {
    /// The slots in `mask`, one bit each, brought up as far as that goes without interrupts: what
    /// can't be served is told. Sleeps.
    pub(crate) fn new(home: H, mask: u32) -> Result<KBox<Self>, Error> {
        let mut slots = KVec::new();
        for number in (0u8..32).filter(|number| 1u32.wrapping_shl(u32::from(*number)) & mask != 0) {
            let caller = Caller::new(home.number())?;
            let slot = Slot::new(number, caller, home.taken_off().clone());
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
                bus: home.bus(0, Caller::new(home.number())?),
                home,
            },
            GFP_KERNEL,
        )
        .map_err(|_| Error::NoMemory)?;
        let stays = all.stays();
        all.exchange.aim(stays);
        for slot in &all.slots {
            slot.exchange.set(stays.seen_as(|all| &all.exchange));
            all.settle(slot);
        }
        Ok(all)
    }

    fn stays(&self) -> Stays<Self> {
        // SAFETY: they are not moved out of their box, and what they have a part in is silenced
        // before they go (`rest`).
        unsafe { Stays::new(self) }
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

    /// The port of slot `number` may have interrupted: whether it did. Hard interrupt context, as
    /// [`Bus::synchronize`] knows it.
    #[inline]
    pub(crate) fn interrupted(&self, number: u8) -> bool {
        let mut slots = self.slots.iter();
        let Some(slot) = slots.find(|slot| slot.number == number) else {
            return false;
        };
        // SAFETY: who takes what is there waits for the handlers.
        match unsafe { slot.tenant().as_ref() } {
            Some(Tenant::Served(adapter)) => adapter.interrupt(0),
            Some(Tenant::Waiting(port)) => port.interrupt(0) != Cause::None,
            None => false,
        }
    }

    /// Lets the ports interrupt, and shows the disks; returns how many there are. Once, after the
    /// interrupt handler is there. Sleeps.
    pub(crate) fn open(&self) -> Result<usize, Error> {
        let still = self.still();
        self.home.rescue().aim(self.stays());
        for (at, slot) in self.slots.iter().enumerate() {
            if let Some(place) = self.stays().part(|all| all.slots.get(at)) {
                slot.caller.aim(place);
            }
        }
        log_quirks(
            |named| self.home.quirks(named),
            |text| log_info!(self, "{}", text),
        );
        let mut shown = 0usize;
        let mut last = Error::Unsupported;
        for slot in &self.slots {
            match self.show(&still, slot) {
                Ok(disks) => shown = shown.saturating_add(disks),
                Err(error) => last = error,
            }
        }
        match shown {
            0 => Err(last),
            _ => Ok(shown),
        }
    }

    /// All disks go, all I/O ends, and the ports rest; nobody is attended any more. The interrupt
    /// handler must still be there. Sleeps.
    pub(crate) fn remove(&self) {
        self.rest();
        let still = self.still_at_rest();
        (self.slots.iter()).for_each(|slot| Self::part(&still, slot, Adapter::remove));
    }

    /// The machine goes down: likewise, but the disks stay. Sleeps.
    pub(crate) fn shutdown(&self) {
        self.rest();
        let still = self.still_at_rest();
        (self.slots.iter()).for_each(|slot| Self::part(&still, slot, Adapter::shutdown));
    }

    /// No work item runs any more, nor will. The exchange before `attend`, which alone brings about
    /// what it may wait for.
    fn rest(&self) {
        self.home.rescue().silence();
        self.exchange.disable();
        self.slots.iter().for_each(|slot| slot.caller.silence());
    }

    /// Nobody comes or goes while the result lives. Not by who has one. Sleeps.
    pub(crate) fn still(&self) -> Still<'_> {
        Still::new(
            &self.exchange,
            Reason::Doors {
                _held: self.doors.lock(),
            },
        )
    }

    /// Likewise for those that an exchange may wait for, and who have kept it off before. Sleeps.
    pub(crate) fn still_at_rest(&self) -> Still<'_> {
        Still::new(
            &self.exchange,
            Reason::Rest {
                _kept: self.exchange.keep_off(),
            },
        )
    }

    /// Who is in `slot` is served no more, by `work`, and does not interrupt either.
    pub(crate) fn part(still: &Still<'_>, slot: &Slot<H>, work: impl FnOnce(&SlotAdapter<H>)) {
        match still.tenant(slot) {
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

    pub(crate) fn device(&self) -> Option<&Device> {
        self.bus.device().map(|device| &***device)
    }

    pub(crate) fn label(&self) -> Label {
        Label(Naming::Port(self.home.number()), self.home.number())
    }
}

impl<H: Home> Drop for Slots<H> {
    fn drop(&mut self) {
        self.rest();
        let mut slots = self.slots.iter();
        if slots.any(|slot| slot.given_up.load(Ordering::Acquire)) {
            // Its memory is freed next.
            self.home.sever();
        }
    }
}
