// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of slots: drives that come and go, with real disks in the block layer.

use crate::adapter::{Begin, Bus, Config, Naming, Number};
use crate::blk::ioctl::AdminPath;
use crate::blk::DirectMap;
use crate::caller::Caller;
use crate::platform::KernelPlatform;
use crate::ram::{RamController, RamWorld};
use crate::slot::{Attended, Home, SlotPort};
use crate::slots::Slots;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use hal::{Cause, Controller, Error, Limits, NewQueue, Platform, Refused, Shutdown, Unit};
use kernel::bindings;
use kernel::prelude::*;
use kernel::sync::Arc;
use lld_ram::{Latency, Ram};
use strategy::Mode;

/// What is in the bays, one bit each.
#[derive(Default)]
struct Bays {
    /// A drive is there.
    there: AtomicU32,
    /// It can't be started.
    broken: AtomicU32,
    /// Its port may interrupt.
    listening: AtomicU32,
    /// Ports that were made, and that are there.
    made: AtomicU32,
    ports: AtomicU32,
}

fn has(bits: &AtomicU32, number: u8) -> bool {
    bits.load(Ordering::SeqCst) & 1u32.wrapping_shl(number.into()) != 0
}

/// A port that serves a RAM drive, if one is in its bay when it is started.
struct Port {
    ram: RamController,
    bays: Arc<Bays>,
    number: u8,
    served: AtomicBool,
}

impl Port {
    fn is_there(&self) -> bool {
        has(&self.bays.there, self.number)
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
struct NoBus;

impl Bus for NoBus {
    type Map = DirectMap;

    fn map(&self) -> DirectMap {
        DirectMap
    }

    fn device(&self) -> *mut bindings::device {
        null_mut()
    }

    fn queues(&self) -> u16 {
        1
    }

    fn vector(&self, _queue: u16) -> u16 {
        0
    }

    fn map_queues(&self, map: &mut bindings::blk_mq_queue_map) {
        // SAFETY: blk-mq's own map, in its callback.
        unsafe { bindings::blk_mq_map_queues(map) };
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn set_interrupt(&self, _vector: u16, _on: bool) {}

    fn cut_off(&self) {}

    fn restore(&self) -> Result<(), Error> {
        Ok(())
    }

    fn synchronize(&self) {}
}

struct Shelf {
    bays: Arc<Bays>,
    platform: KernelPlatform,
    number: Number,
}

impl Home for Shelf {
    type Port = Port;
    type Bus = NoBus;

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

    fn bus(&self) -> NoBus {
        NoBus
    }

    fn config(&self) -> Result<Config, Error> {
        Ok(Config {
            naming: Naming::Port(self.number.get()),
            timeout_ms: 30_000,
            queue_depth: None,
            poll_queues: 0,
            begin: Begin {
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
fn shelf(there: u32) -> Result<(Arc<Bays>, KBox<Slots<Shelf>>), Error> {
    let bays = Arc::new(Bays::default(), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
    bays.there.store(there, Ordering::SeqCst);
    let shelf = Shelf {
        bays: bays.clone(),
        platform: KernelPlatform::without_device(),
        number: Number::new()?,
    };
    Ok((bays, Slots::new(shelf, 0b11)?))
}

/// Waits until `what` is so, for half a minute at most.
fn becomes(what: impl Fn() -> bool) -> bool {
    let platform = KernelPlatform::without_device();
    for _ in 0..30_000 {
        if what() {
            return true;
        }
        platform.sleep_us(1_000);
    }
    false
}

#[kunit_tests(hiops_slots)]
mod slots_suite {
    use super::*;

    #[test]
    fn a_drive_that_comes_is_served_beside_the_others() -> Result<(), Error> {
        let (bays, slots) = shelf(0b01)?;
        assert_eq!(slots.served(), 0b01);
        assert_eq!(slots.open()?, 1);
        assert_eq!(bays.listening.load(Ordering::SeqCst), 0b10);
        bays.there.store(0b11, Ordering::SeqCst);
        // The other bay's drive stays, whatever was called for.
        slots.want(0);
        slots.call(1);
        assert!(becomes(|| slots.disks() == 2));
        assert_eq!(slots.served(), 0b11);
        assert_eq!(bays.made.load(Ordering::SeqCst), 3);
        slots.remove();
        assert_eq!(bays.listening.load(Ordering::SeqCst), 0);
        drop(slots);
        assert_eq!(bays.ports.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn a_drive_that_goes_makes_room_for_another() -> Result<(), Error> {
        let (bays, slots) = shelf(0b11)?;
        assert_eq!(slots.open()?, 2);
        for _ in 0..3 {
            bays.there.store(0b10, Ordering::SeqCst);
            slots.call(0);
            assert!(becomes(|| slots.disks() == 1));
            assert!(becomes(|| has(&bays.listening, 0)));
            assert_eq!(slots.served(), 0b10);
            bays.there.store(0b11, Ordering::SeqCst);
            slots.call(0);
            assert!(becomes(|| slots.disks() == 2));
            assert_eq!(slots.served(), 0b11);
        }
        assert_eq!(bays.ports.load(Ordering::SeqCst), 2);
        slots.remove();
        drop(slots);
        assert_eq!(bays.ports.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn a_bay_whose_drive_does_not_start_waits_for_another() -> Result<(), Error> {
        let (bays, slots) = shelf(0b01)?;
        slots.open()?;
        bays.broken.store(0b10, Ordering::SeqCst);
        bays.there.store(0b11, Ordering::SeqCst);
        slots.call(1);
        assert!(becomes(|| bays.made.load(Ordering::SeqCst) == 3));
        assert!(becomes(|| has(&bays.listening, 1)));
        assert_eq!(slots.served(), 0b01);
        bays.broken.store(0, Ordering::SeqCst);
        slots.call(1);
        assert!(becomes(|| slots.disks() == 2));
        Ok(())
    }

    #[test]
    fn what_comes_and_goes_while_all_goes_is_not_left_behind() -> Result<(), Error> {
        for round in 0..8u32 {
            let (bays, slots) = shelf(0b01)?;
            slots.open()?;
            bays.there.store(0b10, Ordering::SeqCst);
            slots.call(0);
            slots.call(1);
            // At one point or another of the exchange.
            KernelPlatform::without_device().sleep_us(u64::from(round.wrapping_mul(500)));
            slots.remove();
            assert_eq!(bays.listening.load(Ordering::SeqCst), 0);
            drop(slots);
            assert_eq!(bays.ports.load(Ordering::SeqCst), 0);
        }
        Ok(())
    }
}
