// SPDX-License-Identifier: GPL-2.0
//! A place for a drive, and who is in it: a port that serves one, or a port that waits for one.
//! [`crate::slots`] says who changes it.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use hal::Error;
use kernel::prelude::*;

use crate::adapter::{Adapter, Bus, Config, Reason};
use crate::aim::Aim;
use crate::blk::ioctl::AdminPath;
use crate::caller::Caller;
use crate::context::NoIo;
use crate::log::{log_err, log_warn};
use crate::platform::KernelPlatform;
use crate::rescue::Rescue;
use crate::taken_off::TakenOff;
use crate::work::{Exchange, Run, Tend, Work};

/// What a port found that had called for attention.
pub enum Attended {
    /// Nothing that matters.
    Nothing,
    /// Errors; what failed has failed, everything else goes on.
    Recovered,
    /// Its drive is gone, or another is in its place.
    Gone,
    /// A drive came where none was served.
    Came,
}

/// The controller of a slot.
pub trait SlotPort: AdminPath {
    /// Sees to what the port has called for ([`Caller::call`]), with its queue, if it has one, at
    /// rest. An error: it has to be recovered from scratch. Sleeps.
    fn attend(&self) -> Result<Attended, Error>;

    /// What it was last doing, for the operator's log.
    fn step(&self) -> &'static str;
}

/// Where the slots are.
pub(crate) trait Home: Send + Sync + 'static {
    /// A slot's controller.
    type Port: SlotPort;
    /// Its bus.
    type Bus: Bus;

    /// The machine.
    fn platform(&self) -> &KernelPlatform;

    /// The number in the disks' names.
    fn number(&self) -> i32;

    /// The controller of slot `number`, not touched yet, which calls for attention through
    /// `caller`. Sleeps.
    fn port(&self, number: u8, caller: Caller) -> Result<Self::Port, Error>;

    /// The bus of slot `number`, which is attended by `caller`. Sleeps.
    fn bus(&self, number: u8, caller: Caller) -> Self::Bus;

    /// How it is to be served.
    fn config(&self) -> Result<Config, Error>;

    /// Tells the names of its own quirks to `named`: all its slots have them.
    fn quirks(&self, named: &mut dyn FnMut(&'static str));

    /// Whom an operator has taken off.
    fn taken_off(&self) -> &TakenOff;

    /// What the buses' [`Bus::reset_all`] calls for.
    fn rescue(&self) -> &Rescue;

    /// Resets it, with all its ports at rest; it is as it was before there were any, and masters
    /// the bus. Sleeps.
    fn restart(&self) -> Result<(), Error>;

    /// Nothing of it gets to memory any more. Sleeps.
    fn sever(&self);
}

pub(crate) type SlotAdapter<H> = Adapter<<H as Home>::Port, <H as Home>::Bus>;

/// Who is in a slot.
pub(crate) enum Tenant<H: Home> {
    /// A port without a drive, or with one that is left alone: it tells when one comes.
    Waiting(H::Port),
    Served(KBox<SlotAdapter<H>>),
}

/// # Invariants
/// `tenant` is null, or a box that only the slot's drop and its exchange (`Slots::vacate`) take.
pub(crate) struct Slot<H: Home> {
    /// Its port's.
    pub(crate) number: u8,
    /// By whom its port calls for attention.
    pub(crate) caller: Caller,
    tenant: AtomicPtr<Tenant<H>>,
    /// An exchange is called for.
    pub(crate) wanted: AtomicBool,
    /// Its port can't be stopped, whatever is reset: who is there stays until the slots go.
    pub(crate) given_up: AtomicBool,
    /// What exchanges who is in it, and belongs to the slots that this is one of. They rest their
    /// work before they go.
    pub(crate) exchange: Aim<Work<Exchange>>,
    /// Its home's.
    pub(crate) taken_off: TakenOff,
}

impl<H: Home> Slot<H> {
    /// An empty slot of nobody's yet.
    pub(crate) fn new(number: u8, caller: Caller, taken_off: TakenOff) -> Self {
        Self {
            number,
            caller,
            tenant: AtomicPtr::new(null_mut()),
            wanted: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            exchange: Aim::new(),
            taken_off,
        }
    }

    /// Who is in it: null, or a box that is valid until it is taken.
    #[inline]
    pub(crate) fn tenant(&self) -> *const Tenant<H> {
        self.tenant.load(Ordering::Acquire)
    }

    pub(crate) fn mask(&self) -> u32 {
        1u32.wrapping_shl(u32::from(self.number))
    }

    pub(crate) fn place(&self, tenant: KBox<Tenant<H>>) {
        self.tenant.store(KBox::into_raw(tenant), Ordering::Release);
    }

    pub(crate) fn take(&self) -> Option<KBox<Tenant<H>>> {
        let tenant = self.tenant.swap(null_mut(), Ordering::AcqRel);
        // SAFETY: a box, which nobody takes twice.
        (!tenant.is_null()).then(|| unsafe { KBox::from_raw(tenant) })
    }

    pub(crate) fn call_for_exchange(&self) {
        self.wanted.store(true, Ordering::Release);
        if let Some(exchange) = self.exchange.get() {
            exchange.begin();
        }
    }
}

impl<H: Home> Drop for Slot<H> {
    fn drop(&mut self) {
        self.caller.silence();
        drop(self.take());
    }
}

impl<H: Home> Run<Tend> for Slot<H> {
    fn run(&self) {
        let _no_io = NoIo::new();
        // SAFETY: who takes what is there cancels this work before it goes.
        match unsafe { self.tenant().as_ref() } {
            None => {}
            Some(Tenant::Waiting(port)) => {
                if let Ok(Attended::Came) = port.attend() {
                    // Whoever was taken off has left by now.
                    self.taken_off.forget(self.mask());
                    self.call_for_exchange();
                }
            }
            Some(Tenant::Served(adapter)) if adapter.is_live() => {
                if self.taken_off.is_exchange_due(self.mask()) {
                    self.call_for_exchange();
                }
                attend_served(self, adapter);
            }
            Some(Tenant::Served(_)) => {}
        }
    }
}

fn attend_served<H: Home>(slot: &Slot<H>, adapter: &SlotAdapter<H>) {
    // One that is suspended is started anew, and says then what it has to say.
    let Some(attended) = adapter.at_rest_if_awake(|port| port.attend()) else {
        return;
    };
    match attended {
        Ok(Attended::Nothing | Attended::Came) => {}
        Ok(Attended::Recovered) => {
            log_warn!(
                adapter,
                "port {}: recovered from errors of the drive or its link\n",
                slot.number
            );
            // For what it has to say of that.
            adapter.call();
        }
        Ok(Attended::Gone) => {
            log_err!(
                adapter,
                "port {}: its drive is gone, and so is the disk; the port waits for another\n",
                slot.number
            );
            adapter.lose();
            slot.call_for_exchange();
        }
        // What was wrong is told there.
        Err(_) => adapter.recover_from(Reason::Unanswered),
    }
}
