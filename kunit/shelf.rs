// SPDX-License-Identifier: GPL-2.0
//! What KUnit suites have for a home of slots: a shelf whose bays hold drives of memory.

use crate::adapter::{Begin, Bus, Config, Naming, Number};
use crate::blk::ioctl::AdminPath;
use crate::blk::DirectMap;
use crate::caller::Caller;
use crate::device::BoundDevice;
use crate::platform::KernelPlatform;
use crate::ram::{RamController, RamWorld};
use crate::rescue::{Rescue, RescueCall};
use crate::slot::{Attended, Home, Slot, SlotPort, Tenant};
use crate::slots::Slots;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use engine::Mode;
use hal::{Cause, Controller, Error, Limits, NewQueue, Refused, Shutdown, Unit};
use kernel::prelude::*;
use kernel::sync::Arc;
use lld_ram::{Latency, Ram};

/// What is in the bays, one bit each.
#[derive(Default)]
pub(crate) struct Bays {
    /// A drive is there.
    pub(crate) there: AtomicU32,
    /// It can't be started.
    pub(crate) broken: AtomicU32,
    /// It hangs: it can't be stopped either, until the shelf is restarted.
    pub(crate) stuck: AtomicU32,
    /// It hangs even then.
    pub(crate) stays_stuck: AtomicU32,
    /// How often the shelf was restarted.
    pub(crate) restarts: AtomicU32,
    /// Its port may interrupt.
    pub(crate) listening: AtomicU32,
    /// Ports that were made, and that are there.
    pub(crate) made: AtomicU32,
    pub(crate) ports: AtomicU32,
}

pub(crate) fn has(bits: &AtomicU32, number: u8) -> bool {
    bits.load(Ordering::SeqCst) & 1u32.wrapping_shl(number.into()) != 0
}

/// A port that serves a RAM drive, if one is in its bay when it is started.
pub(crate) struct Port {
    ram: RamController,
    bays: Arc<Bays>,
    number: u8,
    served: AtomicBool,
}

impl Port {
    fn is_there(&self) -> bool {
        has(&self.bays.there, self.number)
    }

    fn works(&self) -> Result<(), Error> {
        match has(&self.bays.stuck, self.number) {
            true => Err(Error::Timeout),
            false => Ok(()),
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.ram.world().silence();
        self.bays.ports.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AdminPath for Port {}

impl SlotPort for Port {
    fn attend(&self) -> Result<Attended, Error> {
        let served = self.served.load(Ordering::SeqCst);
        self.works()?;
        Ok(match (served, self.is_there()) {
            (true, false) => Attended::Gone,
            (false, true) => Attended::Came,
            _ => Attended::Nothing,
        })
    }

    fn step(&self) -> &'static str {
        "starting (as the test wants it)"
    }
}

impl Controller for Port {
    type Queue = <RamController as Controller>::Queue;

    fn start(&self) -> Result<(), Error> {
        self.works()?;
        if has(&self.bays.broken, self.number) {
            return Err(Error::Timeout);
        }
        self.served.store(self.is_there(), Ordering::SeqCst);
        self.ram.start()
    }

    fn limits(&self) -> Limits {
        self.ram.limits()
    }

    fn create_queue(
        &self,
        index: u16,
        vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        self.ram.create_queue(index, vector)
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        if !self.served.load(Ordering::SeqCst) {
            return Ok(());
        }
        let id = u32::from(self.number);
        self.ram
            .units(&mut |unit| found(unit.map(|unit| Unit { id, ..unit })))
    }

    fn stop(&self) -> Result<(), Error> {
        self.works()?;
        self.ram.stop()
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        self.ram.shutdown(how)
    }

    fn alive(&self) -> Result<(), Error> {
        match self.served.load(Ordering::SeqCst) && !self.is_there() {
            true => Err(Error::Gone),
            false => Ok(()),
        }
    }

    fn interrupt(&self, _vector: u16) -> Cause {
        Cause::None
    }

    fn set_interrupt(&self, _vector: u16, enabled: bool) {
        let bit = 1u32.wrapping_shl(self.number.into());
        match enabled {
            true => self.bays.listening.fetch_or(bit, Ordering::SeqCst),
            false => self.bays.listening.fetch_and(!bit, Ordering::SeqCst),
        };
    }
}

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
        let world = RamWorld::new(lld_ram::Config {
            queues: 1,
            tags: 8,
            channels: 8,
            latency: Latency::Fixed(10_000),
            seed: 1,
            bytes: 1 << 20,
            block_shift: 9,
        })?;
        self.bays.made.fetch_add(1, Ordering::SeqCst);
        self.bays.ports.fetch_add(1, Ordering::SeqCst);
        Ok(Port {
            ram: Ram::new(self.platform.clone(), world, 0),
            bays: self.bays.clone(),
            number,
            served: AtomicBool::new(false),
        })
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
