// SPDX-License-Identifier: GPL-2.0
//! A PCI driver made of a hal controller.

use hal::{Controller, Error, Messages, PciIds};
use kernel::prelude::*;

use super::{Claim, Function, PciBus};
use crate::adapter::{Adapter, Config, Suspend};
use crate::errno::advice;
use crate::hwmon::Thermometer;
use crate::irq::{Handlers, Vectors};
use crate::node::Node;
use crate::pci::registration::{Binding, Failed};
use crate::platform::{KernelPlatform, Window};

/// What makes a hal controller a PCI driver.
pub trait PciDriver: 'static {
    /// The driver's name, as in `driver_override`.
    const NAME: &'static CStr;
    /// The class code (class, subclass, interface) that a function must have to be touched at all:
    /// an operator's slip of the finger must not have a network card written to.
    const CLASS: u32;
    /// The BAR with the controller's registers.
    const BAR: u8;
    /// The device's memory pages in bytes, less one.
    const PAGE_MASK: u32;
    /// The controller.
    type Controller: crate::blk::ioctl::AdminPath;

    /// How many bits of an address a function made by `ids` gets right.
    fn dma_bits(ids: &PciIds) -> u8;

    /// A controller made by `ids`, on the registers in `window`; the device is not touched yet.
    /// Sleeps.
    fn controller(
        platform: &KernelPlatform,
        window: Window,
        ids: &PciIds,
    ) -> Result<Self::Controller, Error>;

    /// How it may interrupt, known once it has started.
    fn messages(controller: &Self::Controller) -> Messages;

    /// Called once before the first interrupt: whether that comes as the level of the INTx pin.
    fn use_pin(controller: &Self::Controller, pin: bool);

    /// What the controller was last doing, for the operator's log.
    fn step(controller: &Self::Controller) -> &'static str;

    /// How it is to be served.
    fn config() -> Result<Config, Error>;
}

type PciAdapter<T> = Adapter<<T as PciDriver>::Controller, PciBus>;

/// A function that is bound to driver `T`; what probe leaves behind for remove.
pub struct BoundFunction<T: PciDriver> {
    // Dropped in this order: temperatures, node, handlers, adapter (with queues, DMA memory,
    // vectors), claim.
    thermometer: Option<Thermometer>,
    node: Option<Node>,
    adapter: Handlers<PciAdapter<T>>,
    _claim: Claim,
}

/// Starts `controller`, whose function is `claim`ed, and gets its vectors. On an error the
/// controller may have to be stopped. Sleeps.
fn start<T: PciDriver>(
    function: &Function,
    claim: &Claim,
    controller: &T::Controller,
    config: &Config,
) -> Result<Vectors, Failed> {
    let started = || {
        controller.stop()?;
        claim.set_master();
        controller.start()
    };
    started().map_err(|error| Failed(T::step(controller), error))?;
    // Some are kept for polled I/O; one at least interrupts.
    let queues = controller.limits().queues;
    let interrupting = queues.saturating_sub(config.poll_queues).max(1);
    Vectors::new(function, interrupting, T::messages(controller))
        .map_err(|error| Failed("interrupt vectors", error))
}

impl<T: PciDriver> BoundFunction<T> {
    /// Makes the controller's node, and shows its temperatures: without these it serves as well.
    /// Sleeps.
    fn show(&mut self, function: &Function) {
        match self.adapter.node(&function.device()) {
            Ok(node) => self.node = Some(node),
            Err(error) => dev_warn!(
                function.device(),
                "it has no node of its own ({}): tools use its disks'\n",
                advice(error)
            ),
        }
        match self.adapter.thermometer(&function.device()) {
            Ok(thermometer) => self.thermometer = thermometer,
            Err(error) => dev_warn!(
                function.device(),
                "its temperatures are not shown ({})\n",
                advice(error)
            ),
        }
    }
}

// SAFETY: what is made of the function is a part of the result, dropped in an order in which nobody
// comes any more for what goes.
unsafe impl<T: PciDriver> Binding for BoundFunction<T> {
    const NAME: &'static CStr = T::NAME;

    fn new(function: &Function) -> Result<KBox<Self>, Failed> {
        let step = |what| move |error| Failed(what, error);
        (function.class() == T::CLASS).then_some(()).ok_or(Failed(
            "recognizing the class of the function",
            Error::Unsupported,
        ))?;
        let config = T::config().map_err(step("reading the parameters"))?;
        let claim = Claim::new(function, T::BAR, T::NAME, T::PAGE_MASK)
            .map_err(step("claiming the PCI function"))?;
        let ids = function.ids();
        claim
            .limit_dma(T::dma_bits(&ids))
            .map_err(step("limiting its addresses"))?;
        let window = claim.window().map_err(step("mapping the registers"))?;
        let platform = KernelPlatform::new(function.device());
        let controller =
            T::controller(&platform, window, &ids).map_err(step("making the controller"))?;

        // From here on the device may use memory: it is stopped before the controller, which
        // owns that, is dropped.
        let vectors = match start::<T>(function, &claim, &controller, &config) {
            Ok(vectors) => {
                T::use_pin(&controller, vectors.pin());
                vectors
            }
            Err(failed) => {
                if controller.stop().is_err() {
                    // Its memory must not be freed under a device that still masters the bus.
                    drop(claim);
                }
                return Err(failed);
            }
        };
        let (io_vectors, all) = (vectors.io_vectors(), vectors.all());
        let bus = PciBus::new(function, vectors);
        let adapter =
            Adapter::new(&platform, controller, bus, config).map_err(step("making the queues"))?;
        let adapter = Handlers::request(function, all, T::NAME, adapter)
            .map_err(step("interrupt handlers"))?;
        for vector in io_vectors {
            adapter.controller().set_interrupt(vector, true);
        }
        let mut bound = KBox::new(
            Self {
                thermometer: None,
                node: None,
                adapter,
                _claim: claim,
            },
            GFP_KERNEL,
        )
        .map_err(|_| Failed("making the controller", Error::NoMemory))?;
        bound.adapter.log_quirks();
        if let Err(error) = bound.adapter.add_disks() {
            bound.adapter.remove();
            return Err(Failed("adding the disks", error));
        }
        bound.show(function);
        Ok(bound)
    }

    fn remove(&self) {
        self.adapter.remove();
    }

    fn shutdown(&self) {
        self.adapter.shutdown();
    }

    fn suspend(&self, why: Suspend) -> bool {
        let rests = why != Suspend::Sleep || self.adapter.freeze();
        if rests {
            self.adapter.suspend(why);
        }
        rests
    }

    fn resume(&self) -> Result<(), Error> {
        self.adapter.resume()
    }

    fn give_up(&self) {
        self.adapter.give_up();
    }
}
