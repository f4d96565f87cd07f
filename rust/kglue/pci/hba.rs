// SPDX-License-Identifier: GPL-2.0
//! A PCI driver made of an HBA whose ports are hal controllers: they share the function, its
//! interrupt and the number in their disks' names, and nothing else.

use hal::{Error, Messages, PciIds};
use kernel::prelude::*;
use kernel::sync::Arc;

use super::{Claim, Function};
use crate::adapter::{Config, Number, Suspend};
use crate::caller::{Caller, HostReset, HostResetCall, TakeOff, TakenOff};
use crate::hotplug::{Host, SlotPort, Slots};
use crate::irq::{Handlers, Interrupt, Vectors};
use crate::pci::bus::{Mastering, PortBus};
use crate::pci::registration::{Binding, Failed};
use crate::platform::{KernelPlatform, Window};

/// What makes an HBA a PCI driver.
pub trait HbaDriver: Sized + 'static {
    /// The driver's name, as in `driver_override`.
    const NAME: &'static CStr;
    /// The class code that a function must have to be touched at all.
    const CLASS: u32;
    /// What the ports share.
    type Hba: Send + Sync + 'static;
    /// A port.
    type Port: SlotPort;
    /// Its registers. Clones are the same.
    type Registers: Clone + Send + Sync + 'static;

    /// Why a function made by `ids` is not served.
    fn refusal(ids: &PciIds) -> Option<&'static str>;

    /// The BAR with its registers.
    fn bar(ids: &PciIds) -> u8;

    /// The registers in `window`, of the device of `platform`. Sleeps.
    fn registers(platform: &KernelPlatform, window: Window) -> Result<Self::Registers, Error>;

    /// The HBA made by `ids`, on its registers; the device is not touched yet. Sleeps.
    fn hba(registers: Self::Registers, ids: &PciIds) -> Result<Self::Hba, Error>;

    /// How many bits of an address it takes, and gets right.
    fn dma_bits(hba: &Self::Hba) -> u8;

    /// How it may interrupt.
    fn messages(hba: &Self::Hba) -> Messages;

    /// The ports that are to be turned on in configuration space after a reset, if it has such a
    /// register (`Function::turn_on_ports`).
    fn switched_ports(hba: &Self::Hba) -> Option<u32>;

    /// Tells the names of its own quirks to `named`, which are all its ports'.
    fn quirks(hba: &Self::Hba, named: &mut dyn FnMut(&'static str));

    /// Brings it up, with all ports idle and all interrupts off. Sleeps.
    fn start(hba: &mut Self::Hba, platform: &KernelPlatform) -> Result<(), Error>;

    /// Brings it back after it lost what [`HbaDriver::start`] had set up, with all ports idle and
    /// all interrupts off. Sleeps.
    fn restart(hba: &Self::Hba, platform: &KernelPlatform) -> Result<(), Error>;

    /// Its ports, one bit each.
    fn ports(hba: &Self::Hba) -> u32;

    /// Port `number`, not touched yet, which calls for attention through `caller`. Sleeps.
    fn port(
        hba: &Self::Hba,
        platform: &KernelPlatform,
        registers: Self::Registers,
        number: u8,
        caller: Caller,
    ) -> Result<Self::Port, Error>;

    /// Lets it interrupt.
    fn listen(hba: &Self::Hba);

    /// Serves an interrupt, whose line may be `shared` with other devices: calls `serve` for each
    /// port that may have caused it, to answer whether it did; those whose drive is `served` do so
    /// often. Returns whether it was the HBA's. Hard interrupt context.
    fn interrupt(hba: &Self::Hba, shared: bool, served: u32, serve: impl FnMut(u8) -> bool)
        -> bool;

    /// Whether it sends the first message for all ports, although there is one for each.
    fn shares_message(hba: &Self::Hba) -> bool;

    /// How the ports of HBA `number` are to be served.
    fn config(number: i32) -> Result<Config, Error>;
}

/// What the ports of an HBA share.
struct Shared<T: HbaDriver> {
    hba: T::Hba,
    function: Function,
    platform: KernelPlatform,
    registers: T::Registers,
    vectors: Arc<Vectors>,
    /// The line is the INTx pin.
    pin: bool,
    number: Number,
    host_reset: HostReset,
    mastering: Arc<Mastering>,
    taken_off: TakenOff,
}

impl<T: HbaDriver> Shared<T> {
    /// That of the ports of `hba`, which was started, with its interrupt vectors. Sleeps.
    fn new(
        function: &Function,
        platform: KernelPlatform,
        registers: T::Registers,
        hba: T::Hba,
    ) -> Result<Self, Failed> {
        let step = |what| move |error| Failed(what, error);
        let no_memory = |_| Failed("making the controller", Error::NoMemory);
        // CAST: 32 at most.
        let numbers = u32::BITS.saturating_sub(T::ports(&hba).leading_zeros()) as u16;
        let vectors = Vectors::for_ports(function, numbers, T::messages(&hba), || {
            !T::shares_message(&hba)
        })
        .map_err(step("interrupt vectors"))?;
        let pin = vectors.pin();
        let number = Number::new().map_err(step("taking a number"))?;
        let host_reset = HostReset::new(number.get()).map_err(step("making the ports"))?;
        Ok(Self {
            hba,
            function: function.clone(),
            platform,
            registers,
            vectors: Arc::new(vectors, GFP_KERNEL).map_err(no_memory)?,
            pin,
            number,
            host_reset,
            mastering: Mastering::new().map_err(step("making the ports"))?,
            taken_off: TakenOff::new().map_err(step("making the ports"))?,
        })
    }

    /// Brings its ports on, and lets it interrupt, after it was started.
    fn listen(&self) {
        if let Some(ports) = T::switched_ports(&self.hba) {
            self.function.turn_on_ports(ports);
        }
        T::listen(&self.hba);
    }
}

impl<T: HbaDriver> Host for Shared<T> {
    type Port = T::Port;
    type Bus = PortBus;

    fn platform(&self) -> &KernelPlatform {
        &self.platform
    }

    fn number(&self) -> i32 {
        self.number.get()
    }

    fn port(&self, number: u8, caller: Caller) -> Result<T::Port, Error> {
        T::port(
            &self.hba,
            &self.platform,
            self.registers.clone(),
            number,
            caller,
        )
    }

    fn bus(&self, number: u8, caller: Caller) -> PortBus {
        PortBus {
            function: self.function.clone(),
            device: self.function.device(),
            vectors: self.vectors.clone(),
            call: HostResetCall::new(self.host_reset.clone()),
            mastering: self.mastering.clone(),
            take_off: TakeOff::new(self.taken_off.clone(), caller, number),
            number,
        }
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        T::quirks(&self.hba, named);
    }

    fn taken_off(&self) -> &TakenOff {
        &self.taken_off
    }

    fn host_reset(&self) -> &HostReset {
        &self.host_reset
    }

    fn restart(&self) -> Result<(), Error> {
        // By its registers alone: a port that was cut off writes to memory until it is reset.
        T::restart(&self.hba, &self.platform)?;
        self.mastering.renew(|| self.function.master_again())?;
        self.listen();
        Ok(())
    }

    fn sever(&self) {
        self.function.cut_off();
    }

    fn config(&self) -> Result<Config, Error> {
        T::config(self.number.get())
    }
}

impl<T: HbaDriver> Interrupt for Slots<Shared<T>> {
    #[inline]
    fn interrupt(&self, vector: u16) -> bool {
        let shared = self.host();
        if shared.vectors.queues() > 1 {
            // A message for each port. CAST: at most 32 ports.
            return self.interrupted(vector as u8);
        }
        T::interrupt(&shared.hba, shared.pin, self.served(), |number| {
            self.interrupted(number)
        })
    }
}

/// A function whose ports are served.
pub struct BoundHba<T: HbaDriver> {
    // Dropped in this order: handlers, ports (with queues, DMA memory, vectors), claim.
    ports: Handlers<Slots<Shared<T>>>,
    _claim: Claim,
}

// SAFETY: what is made of the function is a part of the result, dropped in an order in which nobody
// comes any more for what goes.
unsafe impl<T: HbaDriver> Binding for BoundHba<T> {
    const NAME: &'static CStr = T::NAME;

    fn new(function: &Function) -> Result<KBox<Self>, Failed> {
        let step = |what| move |error| Failed(what, error);
        let no_memory = |_| Failed("making the controller", Error::NoMemory);
        if function.class() != T::CLASS {
            return Err(Failed(
                "recognizing the class of the function",
                Error::Unsupported,
            ));
        }
        let ids = function.ids();
        if let Some(why) = T::refusal(&ids) {
            return Err(Failed(why, Error::Unsupported));
        }
        let claim = Claim::new(function, T::bar(&ids), T::NAME, 0)
            .map_err(step("claiming the PCI function"))?;
        let window = claim.window().map_err(step("mapping the registers"))?;
        let platform = KernelPlatform::new(function.device());
        let registers = T::registers(&platform, window).map_err(step("making the controller"))?;
        let mut hba = T::hba(registers.clone(), &ids).map_err(step("reading the capabilities"))?;
        claim
            .limit_dma(T::dma_bits(&hba))
            .map_err(step("limiting its addresses"))?;
        T::start(&mut hba, &platform).map_err(step("resetting the HBA"))?;
        claim.set_master();
        if let Some(ports) = T::switched_ports(&hba) {
            function.turn_on_ports(ports);
        }
        let mask = T::ports(&hba);
        let shared = Shared::<T>::new(function, platform, registers, hba)?;
        let io_vectors = shared.vectors.io_vectors();
        let ports = Slots::new(shared, mask).map_err(step("making the ports"))?;
        if ports.served() == 0 {
            return Err(Failed("finding a drive to serve", Error::Unsupported));
        }
        let ports = Handlers::request(function, io_vectors, T::NAME, ports)
            .map_err(step("interrupt handlers"))?;
        T::listen(&ports.host().hba);
        let bound = KBox::new(
            Self {
                ports,
                _claim: claim,
            },
            GFP_KERNEL,
        )
        .map_err(no_memory)?;
        if let Err(error) = bound.ports.open() {
            bound.remove();
            return Err(Failed("adding the disks", error));
        }
        Ok(bound)
    }

    fn remove(&self) {
        self.ports.remove();
    }

    fn shutdown(&self) {
        self.ports.shutdown();
    }

    fn suspend(&self, why: Suspend) -> bool {
        self.ports.suspend(why)
    }

    fn resume(&self) -> Result<(), Error> {
        self.ports.resume()
    }

    fn give_up(&self) {
        self.ports.give_up();
    }
}
