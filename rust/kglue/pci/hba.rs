// SPDX-License-Identifier: GPL-2.0
//! A PCI driver made of an HBA whose ports are hal controllers: they share the function, its interrupt and the number in their disks' names, and nothing else.

use core::ptr::from_ref;
use hal::{Controller, Error};
use kernel::ffi::c_void;
use kernel::prelude::*;
use kernel::sync::Arc;

use super::port::{Caller, PortBus};
use super::registration::{Binding, Failed};
use super::{Claim, Function};
use crate::adapter::{Adapter, Bus, Config, Number};
use crate::adapter_recover::NoIo;
use crate::blk::ioctl::AdminPath;
use crate::errno::advice;
use crate::irq::{Handlers, Interrupt, Vectors};
use crate::mmio::Window;
use crate::platform::KernelPlatform;

/// What a port found that had called for attention.
pub enum Attended {
    /// Nothing that matters.
    Nothing,
    /// Errors; what failed has failed, everything else goes on.
    Recovered,
    /// Its drive is gone, or another is in its place.
    Gone,
    /// A drive came where none was served.
    Came,
}

/// A port of an HBA.
pub trait HbaPort: AdminPath {
    /// Sees to what the port has called for ([`Caller::call`]), with its queue at rest. An error: it has to be recovered from scratch. Sleeps.
    fn attend(&self) -> Result<Attended, Error>;

    /// What it was last doing, for the operator's log.
    fn step(&self) -> &'static str;
}

/// What makes an HBA a PCI driver.
pub trait HbaDriver: Sized + 'static {
    /// The driver's name, as in `driver_override`.
    const NAME: &'static CStr;
    /// The class code that a function must have to be touched at all.
    const CLASS: u32;
    /// The BAR with the registers.
    const BAR: u8;
    /// What the ports share.
    type Hba: Send + Sync + 'static;
    /// A port.
    type Port: HbaPort;

    /// The HBA on the registers in `window`; the device is not touched yet. Sleeps.
    fn hba(window: Window) -> Result<Self::Hba, Error>;

    /// Whether it reaches memory above 4 GiB.
    fn has_64_bits(hba: &Self::Hba) -> bool;

    /// Brings it up, with all ports idle and all interrupts off. Sleeps.
    fn start(hba: &mut Self::Hba, platform: &KernelPlatform) -> Result<(), Error>;

    /// Its ports, one bit each.
    fn ports(hba: &Self::Hba) -> u32;

    /// Port `number`, not touched yet, which calls for attention through `caller`. Sleeps.
    fn port(
        hba: &Self::Hba,
        platform: &KernelPlatform,
        window: Window,
        number: u8,
        caller: Caller,
    ) -> Result<Self::Port, Error>;

    /// Lets it interrupt.
    fn listen(hba: &Self::Hba);

    /// Serves an interrupt, whose line may be `shared` with other devices: calls `serve` for each port of `listening` that may have caused it, to answer
    /// whether it did; returns whether it was the HBA's. Hard interrupt context.
    fn interrupt(
        hba: &Self::Hba,
        shared: bool,
        listening: u32,
        serve: impl FnMut(u8) -> bool,
    ) -> bool;

    /// How the ports of HBA `number` are to be served.
    fn config(number: i32) -> Result<Config, Error>;
}

type PortAdapter<T> = Adapter<<T as HbaDriver>::Port, PortBus>;

/// A port that is served. Dropping it silences it first.
struct Served<T: HbaDriver> {
    number: u8,
    caller: Caller,
    adapter: KBox<PortAdapter<T>>,
}

impl<T: HbaDriver> Drop for Served<T> {
    fn drop(&mut self) {
        self.caller.silence();
    }
}

/// All ports that are served, and what they share.
struct Ports<T: HbaDriver> {
    served: KVec<Served<T>>,
    hba: T::Hba,
    listening: u32,
    /// The line is the INTx pin.
    shared: bool,
    _number: Number,
}

impl<T: HbaDriver> Interrupt for Ports<T> {
    #[inline]
    fn interrupt(&self, _vector: u16) -> bool {
        T::interrupt(&self.hba, self.shared, self.listening, |number| {
            let mut served = self.served.iter();
            served
                .find(|port| port.number == number)
                .is_some_and(|port| port.adapter.interrupt(0))
        })
    }
}

/// # Safety
/// `adapter` is a `PortAdapter<T>`, alive for the call.
unsafe fn attend<T: HbaDriver>(adapter: *const c_void) {
    // SAFETY: by the caller's promise.
    let adapter = unsafe { &*adapter.cast::<PortAdapter<T>>() };
    let _no_io = NoIo::new();
    if !adapter.is_live() {
        return;
    }
    match adapter.at_rest(|port| port.attend()) {
        Ok(Attended::Nothing) => {}
        Ok(Attended::Recovered) => crate::log::log_warn!(
            adapter,
            "{}: recovered from errors of the drive or its link\n",
            adapter.label()
        ),
        Ok(Attended::Gone) => {
            crate::log::log_err!(
                adapter,
                "{}: its drive is gone, and so is the disk; to serve another, bind the function again\n",
                adapter.label()
            );
            adapter.lose();
        }
        Ok(Attended::Came) => {}
        // What was wrong is told there.
        Err(_) => adapter.recover(),
    }
}

/// A function whose ports are served.
pub struct BoundHba<T: HbaDriver> {
    // Dropped in this order: handlers, ports (with queues, DMA memory, vectors), claim.
    ports: Handlers<Ports<T>>,
    _claim: Claim,
}

impl<T: HbaDriver> BoundHba<T> {
    /// Port `number`, if it has a drive that can be served. An error is told, and concerns this port only.
    fn serve(
        hba: &T::Hba,
        platform: &KernelPlatform,
        window: &Window,
        bus: PortBus,
        number: u8,
        index: i32,
    ) -> Option<Served<T>> {
        let function = bus.function.clone();
        let tell = |what: &str, error: Error| {
            dev_err!(
                function.log(),
                "port {}: {} failed ({:?}): {}; the other ports are not concerned\n",
                number,
                what,
                error,
                advice(error)
            );
        };
        let caller = Caller::new(index, attend::<T>)
            .map_err(|error| tell("making the port", error))
            .ok()?;
        let port = T::port(hba, platform, window.clone(), number, caller.clone())
            .map_err(|error| tell("making the port", error))
            .ok()?;
        if let Err(error) = port.start() {
            tell(port.step(), error);
            Self::put_out(&port, &bus);
            return None;
        }
        let mut drive = false;
        let told = port.units(&mut |found| match found {
            Ok(_) => drive = true,
            Err(refused) => {
                dev_warn!(
                    function.log(),
                    "port {} is not served: {}\n",
                    number,
                    refused.why
                );
            }
        });
        if told.is_err() || !drive {
            Self::put_out(&port, &bus);
            return None;
        }
        let config = match T::config(index) {
            Ok(config) => config,
            Err(error) => {
                tell("reading the parameters", error);
                Self::put_out(&port, &bus);
                return None;
            }
        };
        let adapter = Adapter::new(platform, port, bus, config)
            .map_err(|error| tell("making the queue", error))
            .ok()?;
        Some(Served {
            number,
            caller,
            adapter,
        })
    }

    /// A port that is not served: its memory is not freed under an HBA that may write to it.
    fn put_out(port: &T::Port, bus: &PortBus) {
        if port.stop().is_err() {
            bus.cut_off();
        }
    }
}

impl<T: HbaDriver> Binding for BoundHba<T> {
    const NAME: &'static CStr = T::NAME;

    unsafe fn new(function: &Function) -> Result<KBox<Self>, Failed> {
        let step = |what| move |error| Failed(what, error);
        let no_memory = |_| Failed("making the controller", Error::NoMemory);
        if function.class() != T::CLASS {
            return Err(Failed(
                "recognizing the class of the function",
                Error::Unsupported,
            ));
        }
        // SAFETY: by the caller's promise.
        let claim = unsafe { Claim::new(function, T::BAR, T::NAME, 0) }
            .map_err(step("claiming the PCI function"))?;
        let window = claim.map().map_err(step("mapping the registers"))?;
        let mut hba = T::hba(window.clone()).map_err(step("reading the capabilities"))?;
        if !T::has_64_bits(&hba) {
            claim
                .limit_to_32_bits()
                .map_err(step("limiting addresses to 32 bits"))?;
        }
        // SAFETY: the device is alive and bound until all that is made here is dropped again.
        let platform = unsafe { KernelPlatform::new(function.device()) };
        T::start(&mut hba, &platform).map_err(step("resetting the HBA"))?;
        let vectors = Vectors::new(function, 1).map_err(step("interrupt vectors"))?;
        let (io_vectors, shared) = (vectors.io_vectors(), vectors.pin());
        let vectors = Arc::new(vectors, GFP_KERNEL).map_err(no_memory)?;
        let number = Number::new().map_err(step("taking a number"))?;

        let mut served = KVec::new();
        let mut listening = 0u32;
        for port in (0..u32::BITS).filter(|port| T::ports(&hba) & 1u32.wrapping_shl(*port) != 0) {
            let bus = PortBus {
                function: function.clone(),
                vectors: vectors.clone(),
            };
            // CAST: below 32.
            let one = Self::serve(&hba, &platform, &window, bus, port as u8, number.get());
            if let Some(one) = one {
                listening |= 1u32.wrapping_shl(port);
                served.push(one, GFP_KERNEL).map_err(no_memory)?;
            }
        }
        drop(vectors);
        if served.is_empty() {
            return Err(Failed("finding a drive to serve", Error::Unsupported));
        }
        let ports = KBox::new(
            Ports {
                served,
                hba,
                listening,
                shared,
                _number: number,
            },
            GFP_KERNEL,
        )
        .map_err(no_memory)?;
        let ports = Handlers::request(function, io_vectors, T::NAME, ports)
            .map_err(step("interrupt handlers"))?;
        T::listen(&ports.hba);
        for port in &ports.served {
            // SAFETY: the adapter stays in its box, and the port is silenced before that goes.
            unsafe { port.caller.aim(from_ref(&*port.adapter).cast()) };
            port.adapter.controller().set_interrupt(0, true);
        }
        let bound = KBox::new(
            Self {
                ports,
                _claim: claim,
            },
            GFP_KERNEL,
        )
        .map_err(no_memory)?;
        let mut added = 0usize;
        let mut last = Error::Unsupported;
        for port in &bound.ports.served {
            match port.adapter.add_disks() {
                Ok(disks) => added = added.saturating_add(disks),
                Err(error) => last = error,
            }
        }
        if added == 0 {
            bound.remove();
            return Err(Failed("adding the disks", last));
        }
        Ok(bound)
    }

    fn remove(&self) {
        for port in &self.ports.served {
            port.caller.silence();
            port.adapter.remove();
        }
    }

    fn shutdown(&self) {
        for port in &self.ports.served {
            port.caller.silence();
            port.adapter.shutdown();
        }
    }
}
