// SPDX-License-Identifier: GPL-2.0
//! What KUnit suites have for a host of slots: ports whose drives are of memory.

use super::test_port::{Drives, TestPort};
use crate::adapter::{Begin, Bus, Config, Naming, Number};
use crate::blk::disk::Disk;
use crate::blk::DirectMap;
use crate::caller::Caller;
use crate::caller::{HostReset, HostResetCall};
use crate::caller::{TakeOff, TakenOff};
use crate::hotplug::Slots;
use crate::hotplug::{Host, Occupant, PortSlot, SlotAdapter};
use crate::pci::bus::Mastering;
use crate::platform::BoundDevice;
use crate::platform::KernelPlatform;
use core::sync::atomic::Ordering;
use engine::Mode;
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The bus of memory, whose completions are polled for.
pub(crate) struct TestBus {
    drives: Arc<Drives>,
    call: HostResetCall,
    mastering: Arc<Mastering>,
    take_off: TakeOff,
    number: u8,
}

impl Bus for TestBus {
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
        let (drives, number) = (&self.drives, self.number);
        self.mastering.cut_off(number, || drives.cut_off(number));
    }

    fn reset_all(&self) -> bool {
        match self.mastering.is_loose(self.number) {
            true => self.call.make(),
            false => self.call.wait(),
        }
    }

    fn restore(&self) -> Result<(), Error> {
        let master = || {
            self.drives.master();
            Ok(())
        };
        self.mastering.restore(self.number, master)
    }

    fn give_up(&self) {
        let master = || {
            self.drives.master();
            Ok(())
        };
        let _ = self.mastering.give_up(self.number, master);
    }

    fn take_off(&self) -> Option<&TakeOff> {
        Some(&self.take_off)
    }

    fn synchronize(&self) {}
}

pub(crate) struct TestHost {
    drives: Arc<Drives>,
    platform: KernelPlatform,
    number: Number,
    host_reset: HostReset,
    mastering: Arc<Mastering>,
    taken_off: TakenOff,
}

impl Host for TestHost {
    type Port = TestPort;
    type Bus = TestBus;

    fn platform(&self) -> &KernelPlatform {
        &self.platform
    }

    fn number(&self) -> i32 {
        self.number.get()
    }

    fn port(&self, number: u8, _caller: Caller) -> Result<TestPort, Error> {
        TestPort::new(&self.platform, &self.drives, number)
    }

    fn bus(&self, number: u8, caller: Caller) -> TestBus {
        TestBus {
            drives: self.drives.clone(),
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
        self.drives.restarts.fetch_add(1, Ordering::SeqCst);
        if self.drives.host_broken.load(Ordering::SeqCst) {
            return Err(Error::Timeout);
        }
        let stuck = self.drives.stays_stuck.load(Ordering::SeqCst);
        self.drives.stuck.store(stuck, Ordering::SeqCst);
        self.drives.rest(u32::MAX);
        self.mastering.renew(|| {
            self.drives.master();
            Ok(())
        })
    }

    fn sever(&self) {
        self.drives.cut.store(true, Ordering::SeqCst);
    }

    fn config(&self) -> Result<Config, Error> {
        Ok(Config {
            naming: Naming::Port(self.number.get()),
            timeout_ms: match self.drives.hurries.load(Ordering::SeqCst) {
                true => 1_000,
                false => 30_000,
            },
            queue_depth: None,
            poll_queues: 0,
            begin: Begin {
                bytes: false,
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

/// Ports 0 and 1, with a drive where `there` has a bit.
pub(crate) fn test_host(there: u32) -> Result<(Arc<Drives>, KBox<Slots<TestHost>>), Error> {
    test_host_of(Drives {
        there: there.into(),
        ..Default::default()
    })
}

/// Ports 0 and 1, whose drives are as `drives` says.
pub(crate) fn test_host_of(drives: Drives) -> Result<(Arc<Drives>, KBox<Slots<TestHost>>), Error> {
    let drives = Arc::new(drives, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
    let number = Number::new()?;
    let test_host = TestHost {
        drives: drives.clone(),
        platform: KernelPlatform::without_device(),
        host_reset: HostReset::new(number.get())?,
        mastering: Mastering::new()?,
        taken_off: TakenOff::new()?,
        number,
    };
    Ok((drives, Slots::new(test_host, 0b11)?))
}

impl<H: Host> Slots<H> {
    /// Disks that are shown.
    pub(crate) fn disks(&self) -> usize {
        let locked = self.lock_slots();
        let shown = |slot: &PortSlot<H>| match locked.occupant(slot) {
            Some(Occupant::Served(adapter)) => adapter.disks().lock().len(),
            _ => 0,
        };
        self.slots.iter().map(shown).fold(0, usize::wrapping_add)
    }

    /// The slots whose disk was not given up, one bit each.
    pub(crate) fn live(&self) -> u32 {
        let locked = self.lock_slots();
        let bit = |slot: &PortSlot<H>| match locked.occupant(slot) {
            Some(Occupant::Served(adapter)) if adapter.is_live() => slot.mask(),
            _ => 0,
        };
        self.slots.iter().map(bit).fold(0, u32::wrapping_add)
    }

    /// Writes zeroes to the disk of slot `number`; `false`: in vain. Sleeps.
    pub(crate) fn zeroes(&self, number: u8) -> bool {
        // What wants to be shown or taken waits: the disk stays.
        let locked = self.lock_slots();
        let slot = self.slots.iter().find(|slot| slot.number == number);
        let Some(Occupant::Served(adapter)) = slot.and_then(|slot| locked.occupant(slot)) else {
            return false;
        };
        let disk = adapter.disks().lock().first().cloned();
        // SAFETY: an added disk, whose whole is its first part.
        disk.is_some_and(|disk| unsafe {
            use kernel::bindings::{blkdev_issue_zeroout, GFP_KERNEL};
            blkdev_issue_zeroout((*disk.gendisk().as_raw()).part0, 0, 8, GFP_KERNEL, 0) == 0
        })
    }

    /// What `f` finds of who is served in slot `number`. None comes or goes meanwhile. Sleeps.
    pub(crate) fn of<R>(&self, number: u8, f: impl FnOnce(&SlotAdapter<H>) -> R) -> Option<R> {
        let locked = self.lock_slots();
        let slot = self.slots.iter().find(|slot| slot.number == number)?;
        match locked.occupant(slot) {
            Some(Occupant::Served(adapter)) => Some(f(adapter)),
            _ => None,
        }
    }

    /// How often the disks' queues were quiesced, all in all.
    pub(crate) fn quiesced(&self) -> i32 {
        let depth = |adapter: &SlotAdapter<H>| {
            let disks = adapter.disks().lock();
            // SAFETY: the queue of a disk that is there.
            let depth = |disk: &Disk| unsafe { (*(*disk.gendisk().as_raw()).queue).quiesce_depth };
            (disks.iter().map(|disk| depth(disk))).fold(0, i32::wrapping_add)
        };
        (0..2)
            .filter_map(|number| self.of(number, depth))
            .fold(0, i32::wrapping_add)
    }

    /// Hot-plug work is called for in slot `number`.
    pub(crate) fn want(&self, number: u8) {
        let wanted = self.slots.iter().filter(|slot| slot.number == number);
        wanted.for_each(PortSlot::request_hotplug);
    }

    /// The port of slot `number` calls for attention.
    pub(crate) fn call(&self, number: u8) {
        let called = self.slots.iter().filter(|slot| slot.number == number);
        called.for_each(|slot| {
            let _ = slot.caller.call();
        });
    }
}
