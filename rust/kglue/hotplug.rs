// SPDX-License-Identifier: GPL-2.0
//! Slots for drives, each with a controller of its own: it is served while it has a drive, and
//! else waits for one. Drives come and go while the machine runs.
//!
//! ```text
//!             the port tells that one came
//!   Waiting --------------------------> hotplug_work --> Served
//!      ^                                                    |
//!      +--- hotplug_work <--- all its I/O has failed <------+ the drive is gone
//! ```
//! The hot-plug work detaches what was in the slot, makes a port anew, and serves the drive that it
//! has, or waits for one. While slots are locked ([`SlotsLocked`]), no occupant changes.
//!
//! # What changes what
//! * `PortEvents`, a work item of each slot, handles what the slot's port calls for. It ends the
//!   I/O of a drive that is gone, and changes no slot: what `hotplug_work` waits for may need it.
//! * `hotplug_work`, one work item of all slots, changes the occupant of a slot, under `lock`;
//!   beside it only [`Slots::open`] shows disks, under `lock` too, and [`Slots::remove`] takes
//!   them, when both work items are at rest.
//! * `host_reset`, and what suspends and resumes all, changes no slot, and ends both work items
//!   for as long (`host_reset.rs`).
//! * The interrupt handler reads the occupant of a slot. None is freed before
//!   [`Bus::synchronize`] has returned, and `PortEvents` was cancelled.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use hal::{Cause, Controller, Error};
use kernel::device::Device;
use kernel::prelude::*;
use kernel::sync::lock::mutex::MutexBackend;
use kernel::sync::lock::Guard;
use kernel::sync::Mutex;
use kernel::{c_str, static_lock_class};

use crate::adapter::{log_quirks, Adapter, Bus, Config, Label, Naming, Reason};
use crate::blk::ioctl::AdminPath;
use crate::caller::{Caller, HostReset, TakenOff};
use crate::errno::advice;
use crate::irq::Interrupt;
use crate::platform::{KernelPlatform, NoIo};
use crate::text::{log_err, log_info, log_warn};
use crate::work::{DisabledWork, Hotplug, Pinned, PortEvents, Run, Target, Work};

/// What a port found that had called.
pub enum PortEvent {
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
    /// Handles what the port has called for ([`Caller::call`]), with its queue, if it has one, at
    /// rest. An error: it has to be recovered from scratch. Sleeps.
    fn handle_events(&self) -> Result<PortEvent, Error>;

    /// What it was last doing, for the operator's log.
    fn step(&self) -> &'static str;
}

/// Where the slots are.
pub(crate) trait Host: Send + Sync + 'static {
    /// A slot's controller.
    type Port: SlotPort;
    /// Its bus.
    type Bus: Bus;

    /// The machine.
    fn platform(&self) -> &KernelPlatform;

    /// The number in the disks' names.
    fn number(&self) -> i32;

    /// The controller of slot `number`, not touched yet, which calls through `caller` when
    /// it has events. Sleeps.
    fn port(&self, number: u8, caller: Caller) -> Result<Self::Port, Error>;

    /// The bus of slot `number`, whose port calls through `caller`. Sleeps.
    fn bus(&self, number: u8, caller: Caller) -> Self::Bus;

    /// How it is to be served.
    fn config(&self) -> Result<Config, Error>;

    /// Tells the names of its own quirks to `named`: all its slots have them.
    fn quirks(&self, named: &mut dyn FnMut(&'static str));

    /// Whom an operator has taken off.
    fn taken_off(&self) -> &TakenOff;

    /// What the buses' [`Bus::reset_all`] calls for.
    fn host_reset(&self) -> &HostReset;

    /// Resets it, with all its ports at rest; it is as it was before there were any, and masters
    /// the bus. Sleeps.
    fn restart(&self) -> Result<(), Error>;

    /// Nothing of it gets to memory any more. Sleeps.
    fn sever(&self);
}

pub(crate) type SlotAdapter<H> = Adapter<<H as Host>::Port, <H as Host>::Bus>;

/// What is in a slot.
pub(crate) enum Occupant<H: Host> {
    /// A port without a drive, or with one that is left alone: it tells when one comes.
    Waiting(H::Port),
    Served(KBox<SlotAdapter<H>>),
}

/// # Invariants
/// `occupant` is null, or a box that only the slot's drop and `Slots::detach` take. The box is not
/// freed while a reader has it: `detach` borrows the [`SlotsLocked`] for itself alone, and between
/// the taking and the freeing it waits for the interrupt handlers and cancels the work of
/// `caller`; these three are all the readers there are ([`PortSlot::occupant`]).
pub(crate) struct PortSlot<H: Host> {
    /// Its port's.
    pub(crate) number: u8,
    /// Through which its port calls.
    pub(crate) caller: Caller,
    occupant: AtomicPtr<Occupant<H>>,
    /// Hot-plug work is called for.
    pub(crate) wanted: AtomicBool,
    /// Its port can't be stopped, whatever is reset: its occupant stays until the slots go.
    pub(crate) given_up: AtomicBool,
    /// What changes its occupant, and belongs to the slots that this is one of. They disable their
    /// work before they go.
    pub(crate) hotplug_work: Target<Work<Hotplug>>,
    /// Its host's.
    pub(crate) taken_off: TakenOff,
}

impl<H: Host> PortSlot<H> {
    /// An empty slot, which has had no occupant yet.
    pub(crate) fn new(number: u8, caller: Caller, taken_off: TakenOff) -> Self {
        Self {
            number,
            caller,
            occupant: AtomicPtr::new(null_mut()),
            wanted: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            hotplug_work: Target::new(),
            taken_off,
        }
    }

    /// Its occupant. Called by an interrupt handler that [`Bus::synchronize`] waits for, by the
    /// work of `caller`, and by the holder of a [`SlotsLocked`].
    #[inline]
    fn occupant(&self) -> Option<&Occupant<H>> {
        // SAFETY: null, or a box that stays while these readers have it, by the invariant.
        unsafe { self.occupant.load(Ordering::Acquire).as_ref() }
    }

    pub(crate) fn mask(&self) -> u32 {
        1u32.wrapping_shl(u32::from(self.number))
    }

    pub(crate) fn place(&self, occupant: KBox<Occupant<H>>) {
        self.occupant
            .store(KBox::into_raw(occupant), Ordering::Release);
    }

    /// By `Slots::detach` and the drop.
    fn take(&self) -> Option<KBox<Occupant<H>>> {
        let occupant = self.occupant.swap(null_mut(), Ordering::AcqRel);
        // SAFETY: a box, which is taken once.
        (!occupant.is_null()).then(|| unsafe { KBox::from_raw(occupant) })
    }

    pub(crate) fn request_hotplug(&self) {
        self.wanted.store(true, Ordering::Release);
        if let Some(hotplug_work) = self.hotplug_work.get() {
            hotplug_work.begin();
        }
    }
}

impl<H: Host> Drop for PortSlot<H> {
    fn drop(&mut self) {
        self.caller.silence();
        drop(self.take());
    }
}

impl<H: Host> Run<PortEvents> for PortSlot<H> {
    fn run(&self) {
        let _no_io = NoIo::new();
        match self.occupant() {
            None => {}
            Some(Occupant::Waiting(port)) => {
                if let Ok(PortEvent::Came) = SlotPort::handle_events(port) {
                    // A drive that was taken off has left by now.
                    self.taken_off.forget(self.mask());
                    self.request_hotplug();
                }
            }
            Some(Occupant::Served(adapter)) if adapter.is_live() => {
                if self.taken_off.is_hotplug_due(self.mask()) {
                    self.request_hotplug();
                }
                handle_served_events(self, adapter);
            }
            Some(Occupant::Served(_)) => {}
        }
    }
}

fn handle_served_events<H: Host>(slot: &PortSlot<H>, adapter: &SlotAdapter<H>) {
    // One that is suspended is started anew, and says then what it has to say.
    let Some(attended) = adapter.at_rest_if_awake(SlotPort::handle_events) else {
        return;
    };
    match attended {
        Ok(PortEvent::Nothing | PortEvent::Came) => {}
        Ok(PortEvent::Recovered) => {
            log_warn!(
                adapter,
                "port {}: recovered from errors of the drive or its link\n",
                slot.number
            );
            // For what it has to say of that.
            adapter.call();
        }
        Ok(PortEvent::Gone) => {
            log_err!(
                adapter,
                "port {}: its drive is gone, and so is the disk; the port waits for another\n",
                slot.number
            );
            adapter.lose();
            slot.request_hotplug();
        }
        // What was wrong is told there.
        Err(_) => adapter.recover_from(Reason::Unanswered),
    }
}

/// No occupant leaves a slot while it lives, save by what borrows it for itself alone
/// (`Slots::detach`).
///
/// # Invariants
/// `_why` is of the slots that `hotplug_work` is of.
pub(crate) struct SlotsLocked<'a> {
    hotplug_work: &'a Work<Hotplug>,
    _why: LockedBy<'a>,
}

/// Why no occupant changes: of the slots' own.
pub(crate) enum LockedBy<'a> {
    /// Their lock is held.
    Lock { _held: Guard<'a, (), MutexBackend> },
    /// There is no hot-plug work.
    Disabled { _kept: DisabledWork<'a, Hotplug> },
}

impl<'a> SlotsLocked<'a> {
    /// By the slots themselves, with their hot-plug work and a reason that is theirs.
    pub(crate) fn new(hotplug_work: &'a Work<Hotplug>, why: LockedBy<'a>) -> Self {
        // INVARIANT: by the caller's promise.
        let _why = why;
        Self { hotplug_work, _why }
    }

    /// The occupant of `slot`, which is one of them.
    pub(crate) fn occupant<'s, H: Host>(
        &'s self,
        slot: &'s PortSlot<H>,
    ) -> Option<&'s Occupant<H>> {
        let hotplug_work = slot.hotplug_work.get()?;
        if !core::ptr::eq(hotplug_work, self.hotplug_work) {
            return None;
        }
        slot.occupant()
    }
}

/// The slots of a host.
///
/// # Invariants
/// Once shared it is not moved: the work items have its address.
pub(crate) struct Slots<H: Host> {
    /// What changes their occupants.
    pub(crate) hotplug_work: Work<Hotplug>,
    /// All of them, in the order of their numbers.
    pub(crate) slots: KVec<PortSlot<H>>,
    /// Held while an occupant comes or goes.
    lock: Pin<KBox<Mutex<()>>>,
    /// The slots whose drive is served, one bit each.
    pub(crate) served: AtomicU32,
    /// Between [`Slots::suspend`] and [`Slots::resume`].
    pub(crate) asleep: AtomicBool,
    /// The host's, for what is done to all at once.
    pub(crate) bus: H::Bus,
    host: H,
}

impl<H: Host> Slots<H> {
    /// The slots in `mask`, one bit each, brought up as far as that goes without interrupts: what
    /// can't be served is told. Sleeps.
    pub(crate) fn new(host: H, mask: u32) -> Result<KBox<Self>, Error> {
        let mut slots = KVec::new();
        for number in (0u8..32).filter(|number| 1u32.wrapping_shl(u32::from(*number)) & mask != 0) {
            let caller = Caller::new(host.number())?;
            let slot = PortSlot::new(number, caller, host.taken_off().clone());
            slots.push(slot, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        }
        let lock = KBox::pin_init(
            Mutex::new((), c_str!("hiops_doors"), static_lock_class!()),
            GFP_KERNEL,
        )
        .map_err(|_| Error::NoMemory)?;
        let all = KBox::new(
            Self {
                hotplug_work: Work::new(host.number())?,
                slots,
                lock,
                served: AtomicU32::new(0),
                asleep: AtomicBool::new(false),
                bus: host.bus(0, Caller::new(host.number())?),
                host,
            },
            GFP_KERNEL,
        )
        .map_err(|_| Error::NoMemory)?;
        let stays = all.pinned();
        all.hotplug_work.set_target(stays);
        for slot in &all.slots {
            slot.hotplug_work.set(stays.map(|all| &all.hotplug_work));
            all.attach(slot);
        }
        Ok(all)
    }

    fn pinned(&self) -> Pinned<Self> {
        // SAFETY: they are not moved out of their box, and what they have a part in is silenced
        // before they go (`rest`).
        unsafe { Pinned::new(self) }
    }

    /// What the slots share.
    #[inline]
    pub(crate) fn host(&self) -> &H {
        &self.host
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
        match slot.occupant() {
            Some(Occupant::Served(adapter)) => adapter.interrupt(0),
            Some(Occupant::Waiting(port)) => port.interrupt(0) != Cause::None,
            None => false,
        }
    }

    /// Lets the ports interrupt, and shows the disks; returns how many there are. Once, after the
    /// interrupt handler is there. Sleeps.
    pub(crate) fn open(&self) -> Result<usize, Error> {
        let locked = self.lock_slots();
        self.host.host_reset().set_target(self.pinned());
        for (at, slot) in self.slots.iter().enumerate() {
            if let Some(place) = self.pinned().part(|all| all.slots.get(at)) {
                slot.caller.set_target(place);
            }
        }
        log_quirks(
            |named| self.host.quirks(named),
            |text| log_info!(self, "{}", text),
        );
        let mut shown = 0usize;
        let mut last = Error::Unsupported;
        for slot in &self.slots {
            match self.show(&locked, slot) {
                Ok(disks) => shown = shown.saturating_add(disks),
                Err(error) => last = error,
            }
        }
        match shown {
            0 => Err(last),
            _ => Ok(shown),
        }
    }

    /// All disks go, all I/O ends, and the ports rest; no events are handled any more. The
    /// interrupt handler must still be there. Sleeps.
    pub(crate) fn remove(&self) {
        self.rest();
        let locked = self.lock_disabled();
        (self.slots.iter()).for_each(|slot| Self::part(&locked, slot, Adapter::remove));
    }

    /// The machine goes down: all I/O ends, and the ports rest, but the disks stay. Sleeps.
    pub(crate) fn shutdown(&self) {
        self.rest();
        let locked = self.lock_disabled();
        (self.slots.iter()).for_each(|slot| Self::part(&locked, slot, Adapter::shutdown));
    }

    /// No work item runs any more, nor will. The hot-plug work before the ports' events, which
    /// alone bring about what it may wait for.
    fn rest(&self) {
        self.host.host_reset().silence();
        self.hotplug_work.disable();
        self.slots.iter().for_each(|slot| slot.caller.silence());
    }

    /// No occupant changes while the result lives. Not for a caller that has one. Sleeps.
    pub(crate) fn lock_slots(&self) -> SlotsLocked<'_> {
        SlotsLocked::new(
            &self.hotplug_work,
            LockedBy::Lock {
                _held: self.lock.lock(),
            },
        )
    }

    /// The same for callers that the hot-plug work may wait for, which have disabled it before.
    /// Sleeps.
    pub(crate) fn lock_disabled(&self) -> SlotsLocked<'_> {
        SlotsLocked::new(
            &self.hotplug_work,
            LockedBy::Disabled {
                _kept: self.hotplug_work.disable_scoped(),
            },
        )
    }

    /// The occupant of `slot` is served no more, by `work`, and does not interrupt either.
    pub(crate) fn part(
        locked: &SlotsLocked<'_>,
        slot: &PortSlot<H>,
        work: impl FnOnce(&SlotAdapter<H>),
    ) {
        match locked.occupant(slot) {
            None => {}
            Some(Occupant::Waiting(port)) => port.set_interrupt(0, false),
            Some(Occupant::Served(adapter)) => {
                work(adapter);
                adapter.controller().set_interrupt(0, false);
            }
        }
    }

    /// The slots that want it are changed, soon. Any context.
    pub(crate) fn queue_hotplug_work(&self) {
        self.hotplug_work.begin();
    }

    pub(crate) fn device(&self) -> Option<&Device> {
        self.bus.device().map(|device| &***device)
    }

    pub(crate) fn label(&self) -> Label {
        Label(Naming::Port(self.host.number()), self.host.number())
    }
}

impl<H: Host> Drop for Slots<H> {
    fn drop(&mut self) {
        self.rest();
        let mut slots = self.slots.iter();
        if slots.any(|slot| slot.given_up.load(Ordering::Acquire)) {
            // Its memory is freed next.
            self.host.sever();
        }
    }
}

impl<H: Host> Run<Hotplug> for Slots<H> {
    fn run(&self) {
        let mut locked = self.lock_slots();
        let taken_off = self.host().taken_off();
        let scan = taken_off.take_scan();
        for slot in &self.slots {
            let occupant = locked.occupant(slot);
            let is_served =
                matches!(occupant, Some(Occupant::Served(adapter)) if !adapter.is_dead());
            if scan && taken_off.has(slot.mask()) {
                taken_off.forget(slot.mask());
                slot.wanted.store(true, Ordering::Release);
            }
            // Called for by the one before it, perhaps: no drive that is served leaves for that.
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
                    Self::part(&locked, slot, Adapter::remove);
                    self.served.fetch_and(!slot.mask(), Ordering::Relaxed);
                    continue;
                }
                self.detach(&mut locked, slot);
                self.attach(slot);
                // What is wrong with its disk is told there.
                let _ = self.show(&locked, slot);
            }
        }
    }
}

impl<H: Host> Slots<H> {
    /// The occupant of `slot` leaves.
    fn detach(&self, locked: &mut SlotsLocked<'_>, slot: &PortSlot<H>) {
        Self::part(locked, slot, Adapter::remove);
        self.served.fetch_and(!slot.mask(), Ordering::Relaxed);
        let occupant = slot.take();
        self.bus.synchronize();
        slot.caller.cancel();
        if let Some(Occupant::Waiting(port)) = occupant.as_deref() {
            self.stop_or_cut_off(slot, port);
        }
        drop(occupant);
    }

    /// Makes the port of `slot`, which is empty, anew: it serves the drive that it has, or waits
    /// for one. Under `lock`, or alone.
    pub(crate) fn attach(&self, slot: &PortSlot<H>) {
        let Some(occupant) = self.occupant_of(slot) else {
            return;
        };
        let is_served = matches!(occupant, Occupant::Served(_));
        match KBox::new(occupant, GFP_KERNEL) {
            Ok(occupant) => slot.place(occupant),
            Err(_) => return self.tell(slot, "making the port", Error::NoMemory),
        }
        if is_served {
            self.served.fetch_or(slot.mask(), Ordering::Relaxed);
        }
    }

    fn occupant_of(&self, slot: &PortSlot<H>) -> Option<Occupant<H>> {
        let caller = slot.caller.clone();
        let port = (self.host().port(slot.number, caller))
            .map_err(|error| self.tell(slot, "making the port", error))
            .ok()?;
        let is_taken_off = self.host().taken_off().has(slot.mask());
        let config = match !is_taken_off && self.has_drive(slot, &port) {
            true => (self.host().config())
                .map_err(|error| self.tell(slot, "reading the parameters", error))
                .ok(),
            false => None,
        };
        let Some(config) = config else {
            let stopped = self.stop_or_cut_off(slot, &port);
            return stopped.then_some(Occupant::Waiting(port));
        };
        let bus = self.host().bus(slot.number, slot.caller.clone());
        let adapter = Adapter::new(self.host().platform(), port, bus, config);
        adapter
            .map_err(|error| self.tell(slot, "making the queue", error))
            .ok()
            .map(Occupant::Served)
    }

    /// Stops the `port` of `slot`, before its memory is freed, now or later; `false`: in vain, so
    /// nothing of it gets there.
    fn stop_or_cut_off(&self, slot: &PortSlot<H>, port: &H::Port) -> bool {
        let stopped = port.stop().is_ok();
        if !stopped {
            (self.host().bus(slot.number, slot.caller.clone())).cut_off();
        }
        stopped
    }

    /// Whether `port` has a drive that can be served; why not is told.
    pub(crate) fn has_drive(&self, slot: &PortSlot<H>, port: &H::Port) -> bool {
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
    pub(crate) fn show(
        &self,
        locked: &SlotsLocked<'_>,
        slot: &PortSlot<H>,
    ) -> Result<usize, Error> {
        match locked.occupant(slot) {
            None => Ok(0),
            Some(Occupant::Waiting(port)) => {
                port.set_interrupt(0, true);
                Ok(0)
            }
            Some(Occupant::Served(adapter)) => {
                adapter.controller().set_interrupt(0, true);
                let shown = adapter.add_disks();
                adapter.log_disk_quirks(|named| self.host().quirks(named));
                shown
            }
        }
    }

    fn tell(&self, slot: &PortSlot<H>, what: &str, error: Error) {
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
