// SPDX-License-Identifier: GPL-2.0
//! What KUnit suites have for a port: a bay, with a drive of memory or without.

use crate::blk::ioctl::AdminPath;
use crate::platform::KernelPlatform;
use crate::ram::{RamController, RamWorld};
use crate::slot::{Attended, SlotPort};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use hal::{Cause, Controller, Error, Limits, NewQueue, Refused, Shutdown, Unit};
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
    /// That of bay `number`.
    pub(crate) fn new(
        platform: &KernelPlatform,
        bays: &Arc<Bays>,
        number: u8,
    ) -> Result<Self, Error> {
        let world = RamWorld::new(lld_ram::Config {
            queues: 1,
            tags: 8,
            channels: 8,
            latency: Latency::Fixed(10_000),
            write_latency: None,
            link_mb_s: 0,
            seed: 1,
            bytes: 1 << 20,
            block_shift: 9,
        })?;
        bays.made.fetch_add(1, Ordering::SeqCst);
        bays.ports.fetch_add(1, Ordering::SeqCst);
        Ok(Self {
            ram: Ram::new(platform.clone(), world, 0),
            bays: bays.clone(),
            number,
            served: AtomicBool::new(false),
        })
    }

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
