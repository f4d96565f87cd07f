// SPDX-License-Identifier: GPL-2.0
//! What KUnit suites have for a port: one with a drive of memory, or without.

use crate::blk::ioctl::AdminPath;
use crate::hotplug::{PortEvent, SlotPort};
use crate::platform::KernelPlatform;
use crate::ram::{RamBacking, RamController};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use hal::{Cause, Controller, Error, Limits, NewQueue, Platform, Refused, Shutdown, Unit};
use kernel::sync::Arc;
use lld_ram::{Latency, Ram};

/// The drives of a host's ports, and how they are: one bit a port.
#[derive(Default)]
pub(crate) struct Drives {
    /// A drive is there.
    pub(crate) there: AtomicU32,
    /// It can't be started.
    pub(crate) broken: AtomicU32,
    /// It hangs: it can't be stopped either, until the host is restarted.
    pub(crate) stuck: AtomicU32,
    /// It hangs even then.
    pub(crate) stays_stuck: AtomicU32,
    /// It is gone, and hangs at that.
    pub(crate) torn_out: AtomicU32,
    /// Its port runs: it may write to memory whose addresses it has.
    pub(crate) running: AtomicU32,
    /// What its port is asked takes a while: to handle events, or to start.
    pub(crate) slow: AtomicU32,
    /// It ran when it was cut off, and was neither stopped nor reset since.
    pub(crate) loose: AtomicU32,
    /// The host masters the bus no more.
    pub(crate) cut: AtomicBool,
    /// How often a loose port could have written to memory.
    pub(crate) strays: AtomicU32,
    /// Commands have a second.
    pub(crate) hurries: AtomicBool,
    /// How often the ports handled events, and were started, all in all.
    pub(crate) attended: AtomicU32,
    pub(crate) starts: AtomicU32,
    /// The host can't be restarted.
    pub(crate) host_broken: AtomicBool,
    /// How often the host was restarted.
    pub(crate) restarts: AtomicU32,
    /// Its port may interrupt.
    pub(crate) listening: AtomicU32,
    /// Ports that were made, and that are there.
    pub(crate) made: AtomicU32,
    pub(crate) ports: AtomicU32,
}

pub(crate) fn has(bits: &AtomicU32, number: u8) -> bool {
    bits.load(Ordering::SeqCst) & bit(number) != 0
}

fn bit(number: u8) -> u32 {
    1u32.wrapping_shl(number.into())
}

impl Drives {
    /// The bus is taken away, for port `number`.
    pub(crate) fn cut_off(&self, number: u8) {
        let running = self.running.load(Ordering::SeqCst) & bit(number);
        self.loose.fetch_or(running, Ordering::SeqCst);
        self.cut.store(true, Ordering::SeqCst);
    }

    /// The bus is given back.
    pub(crate) fn master(&self) {
        self.cut.store(false, Ordering::SeqCst);
        if self.loose.load(Ordering::SeqCst) != 0 {
            self.strays.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// `numbers` do nothing any more.
    pub(crate) fn rest(&self, numbers: u32) {
        self.running.fetch_and(!numbers, Ordering::SeqCst);
        self.loose.fetch_and(!numbers, Ordering::SeqCst);
    }
}

/// A port that serves a RAM drive, if it has one when it is started.
pub(crate) struct TestPort {
    ram: RamController,
    drives: Arc<Drives>,
    number: u8,
    served: AtomicBool,
}

impl TestPort {
    /// Port `number`.
    pub(crate) fn new(
        platform: &KernelPlatform,
        drives: &Arc<Drives>,
        number: u8,
    ) -> Result<Self, Error> {
        let backing = RamBacking::new(lld_ram::Config {
            queues: 1,
            tags: 8,
            interface: lld_ram::Interface::Queue,
            channels: 8,
            latency: Latency::Fixed(10_000),
            write_latency: None,
            link_mb_s: 0,
            holes: lld_ram::Holes::No,
            seed: 1,
            bytes: 1 << 20,
            block_shift: 9,
        })?;
        drives.made.fetch_add(1, Ordering::SeqCst);
        drives.ports.fetch_add(1, Ordering::SeqCst);
        Ok(Self {
            ram: Ram::new(platform.clone(), backing, 0),
            drives: drives.clone(),
            number,
            served: AtomicBool::new(false),
        })
    }

    fn is_there(&self) -> bool {
        has(&self.drives.there, self.number)
    }

    fn take_time(&self, us: u64) {
        if has(&self.drives.slow, self.number) {
            KernelPlatform::without_device().sleep_us(us);
        }
    }

    fn works(&self) -> Result<(), Error> {
        match has(&self.drives.stuck, self.number) {
            true => Err(Error::Timeout),
            false => Ok(()),
        }
    }
}

impl Drop for TestPort {
    fn drop(&mut self) {
        self.ram.backing().silence();
        // Its memory is freed.
        if has(&self.drives.running, self.number) && !self.drives.cut.load(Ordering::SeqCst) {
            self.drives.strays.fetch_add(1, Ordering::SeqCst);
        }
        self.drives.ports.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AdminPath for TestPort {}

impl SlotPort for TestPort {
    fn handle_events(&self) -> Result<PortEvent, Error> {
        let served = self.served.load(Ordering::SeqCst);
        self.drives.attended.fetch_add(1, Ordering::SeqCst);
        self.take_time(3_000_000);
        if served && has(&self.drives.torn_out, self.number) {
            return Ok(PortEvent::Gone);
        }
        self.works()?;
        Ok(match (served, self.is_there()) {
            (true, false) => PortEvent::Gone,
            (false, true) => PortEvent::Came,
            _ => PortEvent::Nothing,
        })
    }

    fn step(&self) -> &'static str {
        "starting (as the test wants it)"
    }
}

impl Controller for TestPort {
    type Queue = <RamController as Controller>::Queue;

    fn start(&self) -> Result<(), Error> {
        self.works()?;
        self.drives.starts.fetch_add(1, Ordering::SeqCst);
        self.take_time(500_000);
        if has(&self.drives.broken, self.number) {
            return Err(Error::Timeout);
        }
        self.served.store(self.is_there(), Ordering::SeqCst);
        (self.drives.running).fetch_or(bit(self.number), Ordering::SeqCst);
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
        self.drives.rest(bit(self.number));
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
        let bit = bit(self.number);
        match enabled {
            true => self.drives.listening.fetch_or(bit, Ordering::SeqCst),
            false => self.drives.listening.fetch_and(!bit, Ordering::SeqCst),
        };
    }
}
