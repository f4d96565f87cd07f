// SPDX-License-Identifier: GPL-2.0
//! What KUnit suites have for a host of slots: a shelf whose bays hold drives of memory.

use super::bay::{Bays, Port};
use crate::adapter::{Begin, Bus, Config, Naming, Number};
use crate::blk::disk::Disk;
use crate::blk::DirectMap;
use crate::caller::Caller;
use crate::caller::{HostReset, HostResetCall};
use crate::caller::{TakeOff, TakenOff};
use crate::device::BoundDevice;
use crate::hotplug::Slots;
use crate::hotplug::{Host, Occupant, Slot, SlotAdapter};
use crate::pci::bus::Mastering;
use crate::platform::KernelPlatform;
use core::sync::atomic::Ordering;
use engine::Mode;
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The bus of memory, whose completions are polled for.
pub(crate) struct ShelfBus {
    bays: Arc<Bays>,
    call: HostResetCall,
    mastering: Arc<Mastering>,
    take_off: TakeOff,
    number: u8,
}

impl Bus for ShelfBus {
    type Map = DirectMap;

    fn map(&self) -> DirectMap {
        DirectMap
    }

    fn device(&self) -> Option<&BoundDevice> {
        None
    }

    fn queues(&self) -> u16 {
        1
    }

    fn vector(&self, _queue: u16) -> u16 {
        0
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn set_interrupt(&self, _vector: u16, _on: bool) {}

    fn cut_off(&self) {
        let (bays, number) = (&self.bays, self.number);
        self.mastering.cut_off(number, || bays.cut_off(number));
    }

    fn reset_all(&self) -> bool {
        match self.mastering.is_loose(self.number) {
            true => self.call.make(),
            false => self.call.wait(),
        }
    }

    fn restore(&self) -> Result<(), Error> {
        let master = || {
            self.bays.master();
            Ok(())
        };
        self.mastering.restore(self.number, master)
    }

    fn give_up(&self) {
        let master = || {
            self.bays.master();
            Ok(())
        };
        let _ = self.mastering.give_up(self.number, master);
    }

    fn take_off(&self) -> Option<&TakeOff> {
        Some(&self.take_off)
    }

    fn synchronize(&self) {}
}

pub(crate) struct Shelf {
    bays: Arc<Bays>,
    platform: KernelPlatform,
    number: Number,
    host_reset: HostReset,
    mastering: Arc<Mastering>,
    taken_off: TakenOff,
}

impl Host for Shelf {
    type Port = Port;
    type Bus = ShelfBus;

    fn platform(&self) -> &KernelPlatform {
        &self.platform
    }

    fn number(&self) -> i32 {
        self.number.get()
    }

    fn port(&self, number: u8, _caller: Caller) -> Result<Port, Error> {
        Port::new(&self.platform, &self.bays, number)
    }

    fn bus(&self, number: u8, caller: Caller) -> ShelfBus {
        ShelfBus {
            bays: self.bays.clone(),
            call: HostResetCall::new(self.host_reset.clone()),
            mastering: self.mastering.clone(),
            take_off: TakeOff::new(self.taken_off.clone(), caller, number),
            number,
        }
    }

    fn quirks(&self, _named: &mut dyn FnMut(&'static str)) {}

    fn taken_off(&self) -> &TakenOff {
        &self.taken_off
    }

    fn host_reset(&self) -> &HostReset {
        &self.host_reset
    }

    fn restart(&self) -> Result<(), Error> {
        self.bays.restarts.fetch_add(1, Ordering::SeqCst);
        if self.bays.shelf_broken.load(Ordering::SeqCst) {
            return Err(Error::Timeout);
        }
        let stuck = self.bays.stays_stuck.load(Ordering::SeqCst);
        self.bays.stuck.store(stuck, Ordering::SeqCst);
        self.bays.rest(u32::MAX);
        self.mastering.renew(|| {
            self.bays.master();
            Ok(())
        })
    }

    fn sever(&self) {
        self.bays.cut.store(true, Ordering::SeqCst);
    }

    fn config(&self) -> Result<Config, Error> {
        Ok(Config {
            naming: Naming::Port(self.number.get()),
            timeout_ms: match self.bays.hurries.load(Ordering::SeqCst) {
                true => 1_000,
                false => 30_000,
            },
            queue_depth: None,
            poll_queues: 0,
            begin: Begin {
                strategy: 1,
                mode: Mode::Poll,
                lazy: false,
                coop: true,
                max_retries: 5,
                poll_interval_us: 100,
                predict: false,
                predict_window_us: 16,
            },
        })
    }
}

/// Bays 0 and 1, with a drive where `there` has a bit.
pub(crate) fn shelf(there: u32) -> Result<(Arc<Bays>, KBox<Slots<Shelf>>), Error> {
    shelf_of(Bays {
        there: there.into(),
        ..Default::default()
    })
}

/// Likewise those that are like `bays`.
pub(crate) fn shelf_of(bays: Bays) -> Result<(Arc<Bays>, KBox<Slots<Shelf>>), Error> {
    let bays = Arc::new(bays, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
    let number = Number::new()?;
    let shelf = Shelf {
        bays: bays.clone(),
        platform: KernelPlatform::without_device(),
        host_reset: HostReset::new(number.get())?,
        mastering: Mastering::new()?,
        taken_off: TakenOff::new()?,
        number,
    };
    Ok((bays, Slots::new(shelf, 0b11)?))
}

impl<H: Host> Slots<H> {
    /// Disks that are shown.
    pub(crate) fn disks(&self) -> usize {
        let still = self.still();
        let shown = |slot: &Slot<H>| match still.occupant(slot) {
            Some(Occupant::Served(adapter)) => adapter.disks().lock().len(),
            _ => 0,
        };
        self.slots.iter().map(shown).fold(0, usize::wrapping_add)
    }

    /// The slots whose disk was not given up, one bit each.
    pub(crate) fn live(&self) -> u32 {
        let still = self.still();
        let bit = |slot: &Slot<H>| match still.occupant(slot) {
            Some(Occupant::Served(adapter)) if adapter.is_live() => slot.mask(),
            _ => 0,
        };
        self.slots.iter().map(bit).fold(0, u32::wrapping_add)
    }

    /// Writes zeroes to the disk of slot `number`; `false`: in vain. Sleeps.
    pub(crate) fn zeroes(&self, number: u8) -> bool {
        // What wants to be shown or taken waits: the disk stays.
        let still = self.still();
        let slot = self.slots.iter().find(|slot| slot.number == number);
        let Some(Occupant::Served(adapter)) = slot.and_then(|slot| still.occupant(slot)) else {
            return false;
        };
        let disk = adapter.disks().lock().first().map(|disk| disk.as_raw());
        // SAFETY: an added disk, whose whole is its first part.
        disk.is_some_and(|disk| unsafe {
            use kernel::bindings::{blkdev_issue_zeroout, GFP_KERNEL};
            blkdev_issue_zeroout((*disk).part0, 0, 8, GFP_KERNEL, 0) == 0
        })
    }

    /// What `f` finds of who is served in slot `number`. None comes or goes meanwhile. Sleeps.
    pub(crate) fn of<R>(&self, number: u8, f: impl FnOnce(&SlotAdapter<H>) -> R) -> Option<R> {
        let still = self.still();
        let slot = self.slots.iter().find(|slot| slot.number == number)?;
        match still.occupant(slot) {
            Some(Occupant::Served(adapter)) => Some(f(adapter)),
            _ => None,
        }
    }

    /// How often the disks' queues were quiesced, all in all.
    pub(crate) fn quiesced(&self) -> i32 {
        let depth = |adapter: &SlotAdapter<H>| {
            let disks = adapter.disks().lock();
            // SAFETY: the queue of a disk that is there.
            let depth = |disk: &Disk| unsafe { (*disk.queue()).quiesce_depth };
            disks.iter().map(depth).fold(0, i32::wrapping_add)
        };
        (0..2)
            .filter_map(|number| self.of(number, depth))
            .fold(0, i32::wrapping_add)
    }

    /// An exchange of slot `number` is called for.
    pub(crate) fn want(&self, number: u8) {
        let wanted = self.slots.iter().filter(|slot| slot.number == number);
        wanted.for_each(Slot::call_for_exchange);
    }

    /// The port of slot `number` calls for attention.
    pub(crate) fn call(&self, number: u8) {
        let called = self.slots.iter().filter(|slot| slot.number == number);
        called.for_each(|slot| {
            let _ = slot.caller.call();
        });
    }
}
