// SPDX-License-Identifier: GPL-2.0
//! What KUnit suites have for a home of slots: a shelf whose bays hold drives of memory.

use super::bay::{Bays, Port};
use crate::adapter::{Begin, Bus, Config, Naming, Number};
use crate::blk::DirectMap;
use crate::caller::Caller;
use crate::device::BoundDevice;
use crate::platform::KernelPlatform;
use crate::rescue::{Rescue, RescueCall};
use crate::slot::{Home, Slot, Tenant};
use crate::slots::Slots;
use core::sync::atomic::Ordering;
use engine::Mode;
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The bus of memory, whose completions are polled for.
pub(crate) struct ShelfBus(RescueCall);

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

    fn cut_off(&self) {}

    fn reset_all(&self) -> bool {
        self.0.make()
    }

    fn restore(&self) -> Result<(), Error> {
        Ok(())
    }

    fn synchronize(&self) {}
}

pub(crate) struct Shelf {
    bays: Arc<Bays>,
    platform: KernelPlatform,
    number: Number,
    rescue: Rescue,
}

impl Home for Shelf {
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

    fn bus(&self) -> ShelfBus {
        ShelfBus(RescueCall::new(self.rescue.clone()))
    }

    fn rescue(&self) -> &Rescue {
        &self.rescue
    }

    fn restart(&self) -> Result<(), Error> {
        self.bays.restarts.fetch_add(1, Ordering::SeqCst);
        let stuck = self.bays.stays_stuck.load(Ordering::SeqCst);
        self.bays.stuck.store(stuck, Ordering::SeqCst);
        Ok(())
    }

    fn config(&self) -> Result<Config, Error> {
        Ok(Config {
            naming: Naming::Port(self.number.get()),
            timeout_ms: 30_000,
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
    let bays = Arc::new(Bays::default(), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
    bays.there.store(there, Ordering::SeqCst);
    let number = Number::new()?;
    let shelf = Shelf {
        bays: bays.clone(),
        platform: KernelPlatform::without_device(),
        rescue: Rescue::new(number.get())?,
        number,
    };
    Ok((bays, Slots::new(shelf, 0b11)?))
}

impl<H: Home> Slots<H> {
    /// Disks that are shown.
    pub(crate) fn disks(&self) -> usize {
        let still = self.still();
        let shown = |slot: &Slot<H>| match still.tenant(slot) {
            Some(Tenant::Served(adapter)) => adapter.disks().lock().len(),
            _ => 0,
        };
        self.slots.iter().map(shown).fold(0, usize::wrapping_add)
    }

    /// The slots whose disk was not given up, one bit each.
    pub(crate) fn live(&self) -> u32 {
        let still = self.still();
        let bit = |slot: &Slot<H>| match still.tenant(slot) {
            Some(Tenant::Served(adapter)) if adapter.is_live() => slot.mask(),
            _ => 0,
        };
        self.slots.iter().map(bit).fold(0, u32::wrapping_add)
    }

    /// Writes zeroes to the disk of slot `number`; `false`: in vain. Sleeps.
    pub(crate) fn zeroes(&self, number: u8) -> bool {
        // What wants to be shown or taken waits: the disk stays.
        let still = self.still();
        let slot = self.slots.iter().find(|slot| slot.number == number);
        let Some(Tenant::Served(adapter)) = slot.and_then(|slot| still.tenant(slot)) else {
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
