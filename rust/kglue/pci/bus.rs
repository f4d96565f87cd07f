// SPDX-License-Identifier: GPL-2.0
//! The bus as an adapter sees it: that of a function of its own ([`PciBus`]), and that of a port
//! ([`PortBus`]), whose function several ports have in common ([`Mastering`]).
//!
//! A port that can't be stopped is *loose*: the function masters the bus no more, as the port may
//! write to memory that was given back. It gets the bus back when no port is loose: each was
//! stopped after all, or all of them were reset together. A port that is loose even after that
//! holds nothing but memory of its own; it is *given up*: the owner of that memory lets the others
//! go on.

use hal::Error;
use kernel::bindings;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

use crate::adapter::{spread, Bus};
use crate::blk::DmaMap;
use crate::caller::{HostResetCall, TakeOff};
use crate::irq::Vectors;
use crate::pci::Function;
use crate::platform::BoundDevice;

/// The bus side of a function, for its adapter.
pub struct PciBus {
    function: Function,
    device: BoundDevice,
    vectors: Vectors,
}

impl PciBus {
    /// The bus side of `function`, with `vectors` of its own.
    pub fn new(function: &Function, vectors: Vectors) -> Self {
        Self {
            function: function.clone(),
            device: function.device(),
            vectors,
        }
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Its vectors.
    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }
}

impl Bus for PciBus {
    type Map = DmaMap;

    /// As in tree (`nvme_pci_alloc_dev`, Linux 7.3): what is mapped well, which never is more than
    /// what can be.
    fn reach(&self) -> u64 {
        crate::platform::mapping(&self.device, crate::platform::Mapping::Well)
    }

    fn can_poll(&self) -> bool {
        // Others may be on the pin's line.
        !self.vectors.pin()
    }

    fn set_interrupt(&self, vector: u16, on: bool) {
        self.vectors.set(vector, on);
    }

    fn map(&self) -> DmaMap {
        dma_map(&self.device)
    }

    fn device(&self) -> Option<&BoundDevice> {
        Some(&self.device)
    }

    fn queues(&self) -> u16 {
        self.vectors.queues()
    }

    fn vector(&self, queue: u16) -> u16 {
        self.vectors.of_queue(queue)
    }

    fn map_queues(&self, map: &mut bindings::blk_mq_queue_map) {
        let first = self.vectors.spread_from();
        spread(map, first.map(|first| (&**self.device, first)));
    }

    fn is_present(&self) -> bool {
        self.function.is_present()
    }

    fn cut_off(&self) {
        self.function.cut_off();
    }

    fn restore(&self) -> Result<(), Error> {
        self.function.master_again()
    }

    fn synchronize(&self) {
        self.vectors.synchronize();
    }
}

/// How data reaches `device`, for an adapter of its driver's.
fn dma_map(device: &BoundDevice) -> DmaMap {
    // SAFETY: the requests are the adapter's, whose tag set has the room that its bus's map wants.
    unsafe { DmaMap::new(device.clone()) }
}

/// The bus side of a port.
pub(crate) struct PortBus {
    pub(super) function: Function,
    pub(super) device: BoundDevice,
    pub(super) vectors: Arc<Vectors>,
    pub(super) call: HostResetCall,
    /// The function's, of which this is one port.
    pub(super) mastering: Arc<Mastering>,
    pub(super) take_off: TakeOff,
    pub(super) number: u8,
}

impl Bus for PortBus {
    type Map = DmaMap;

    fn map(&self) -> DmaMap {
        dma_map(&self.device)
    }

    fn device(&self) -> Option<&BoundDevice> {
        Some(&self.device)
    }

    fn queues(&self) -> u16 {
        1
    }

    fn vector(&self, _queue: u16) -> u16 {
        0
    }

    /// As in tree (`scsi_add_host_with_dma`, Linux 7.3): what can be mapped at all.
    fn reach(&self) -> u64 {
        crate::platform::mapping(&self.device, crate::platform::Mapping::AtAll)
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn set_interrupt(&self, _vector: u16, _on: bool) {
        // The others need the line: a port's own mask is enough.
    }

    fn is_present(&self) -> bool {
        self.function.is_present()
    }

    fn cut_off(&self) {
        // The other ports' commands wait for the HBA's reset, or time out, and call for it then:
        // better than memory that is written to after it was freed.
        (self.mastering).cut_off(self.number, || self.function.cut_off());
    }

    fn reset_all(&self) -> bool {
        match self.mastering.is_loose(self.number) {
            true => self.call.make(),
            false => self.call.wait(),
        }
    }

    fn restore(&self) -> Result<(), Error> {
        (self.mastering).restore(self.number, || self.function.master_again())
    }

    fn give_up(&self) {
        // One that is not there needs no bus; where another is loose, its reset follows.
        let _ = (self.mastering).give_up(self.number, || self.function.master_again());
    }

    fn take_off(&self) -> Option<&TakeOff> {
        Some(&self.take_off)
    }

    fn synchronize(&self) {
        self.vectors.synchronize();
    }
}

/// The mastering of a bus by a function that ports have in common: which of them are loose, or
/// given up.
#[pin_data]
pub(crate) struct Mastering {
    #[pin]
    ports: Mutex<Ports>,
}

/// One bit each.
struct Ports {
    loose: u32,
    given_up: u32,
}

fn bit(port: u8) -> u32 {
    1u32.wrapping_shl(port.into())
}

impl Mastering {
    /// That of a function that masters the bus, or is about to. Sleeps.
    pub(crate) fn new() -> Result<Arc<Self>, Error> {
        let none = Ports {
            loose: 0,
            given_up: 0,
        };
        let ports = new_mutex!(none, "hiops_mastering");
        Arc::pin_init(pin_init!(Self { ports <- ports }), GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// `port` can't be stopped: the bus is taken away by `cut`, unless the port was given up.
    /// Sleeps.
    pub(crate) fn cut_off(&self, port: u8, cut: impl FnOnce()) {
        let mut ports = self.ports.lock();
        if ports.given_up & bit(port) == 0 {
            ports.loose |= bit(port);
            cut();
        }
    }

    /// `port` is stopped: the bus is given back by `master`. [`Error::Timeout`]: another port is
    /// loose. Sleeps.
    pub(crate) fn restore(
        &self,
        port: u8,
        master: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut ports = self.ports.lock();
        ports.loose &= !bit(port);
        Self::give_back(&ports, master)
    }

    /// All ports were reset: the bus is given back by `master`. Sleeps.
    pub(crate) fn renew(&self, master: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let mut ports = self.ports.lock();
        ports.loose = 0;
        Self::give_back(&ports, master)
    }

    /// `port` can't be stopped, although all were reset since it had its last request: the others
    /// get the bus back by `master`. By the owner of the port's memory, who keeps it until the
    /// function was cut off for good. Sleeps.
    pub(crate) fn give_up(
        &self,
        port: u8,
        master: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut ports = self.ports.lock();
        ports.given_up |= bit(port);
        ports.loose &= !bit(port);
        Self::give_back(&ports, master)
    }

    /// Under the lock: no port becomes loose meanwhile.
    fn give_back(ports: &Ports, master: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        match ports.loose {
            0 => master(),
            _ => Err(Error::Timeout),
        }
    }

    /// Whether it is for `port` that the bus was taken away. Sleeps.
    pub(crate) fn is_loose(&self, port: u8) -> bool {
        self.ports.lock().loose & bit(port) != 0
    }
}
