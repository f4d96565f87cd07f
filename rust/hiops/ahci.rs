// SPDX-License-Identifier: GPL-2.0
//! The driver `hiops_ahci`: lld_ahci on the PCI bus. Its tools' ioctls are in `ata_passthru`.

use hal::{Error, Messages, NewQueue, PciIds, Wrapper};
use kernel::prelude::*;
use kernel::sync::Arc;
use kglue::adapter::{Config, Naming};
use kglue::caller::Caller;
use kglue::hotplug::{PortEvent, SlotPort};
use kglue::pci::hba::HbaDriver;
use kglue::platform::{KernelPlatform, Window};

use lld_ahci::{AhciController, AhciQueue, EhOutcome, Hba, HbaQuirks, Port, Site};

use crate::inject::{self, AhciRegisters, Handle};
use crate::params;
use crate::scsi_ioctl::Timeout;

/// The driver.
pub(crate) struct HiopsAhci;

impl HbaDriver for HiopsAhci {
    const NAME: &'static CStr = c"hiops_ahci";
    // Mass storage, serial ATA, AHCI (AHCI 1.3.1 section 2.1.5).
    const CLASS: u32 = 0x01_06_01;
    type Hba = Hba<AhciRegisters>;
    type Port = Ahci;
    type Registers = AhciRegisters;

    fn refusal(ids: &PciIds) -> Option<&'static str> {
        HbaQuirks::of(ids).refusal()
    }

    fn bar(ids: &PciIds) -> u8 {
        HbaQuirks::bar(ids)
    }

    fn registers(platform: &KernelPlatform, window: Window) -> Result<AhciRegisters, Error> {
        Ok(Handle::new(platform)?.ahci(window))
    }

    fn hba(registers: AhciRegisters, ids: &PciIds) -> Result<Self::Hba, Error> {
        Hba::new(registers, ids)
    }

    fn dma_bits(hba: &Self::Hba) -> u8 {
        hba.dma_bits()
    }

    fn messages(hba: &Self::Hba) -> Messages {
        hba.messages()
    }

    fn switched_ports(hba: &Self::Hba) -> Option<u32> {
        hba.pcs_ports()
    }

    fn quirks(hba: &Self::Hba, named: &mut dyn FnMut(&'static str)) {
        hba.quirks(named);
    }

    fn start(hba: &mut Self::Hba, platform: &KernelPlatform) -> Result<(), Error> {
        hba.start(platform)
    }

    fn restart(hba: &Self::Hba, platform: &KernelPlatform) -> Result<(), Error> {
        hba.restart(platform)
    }

    fn ports(hba: &Self::Hba) -> u32 {
        hba.ports()
    }

    fn port(
        hba: &Self::Hba,
        platform: &KernelPlatform,
        registers: AhciRegisters,
        number: u8,
        caller: Caller,
    ) -> Result<Ahci, Error> {
        let plan = hba.port(number).ok_or(Error::Invalid)?;
        let plan = plan.with_fua(params::ahci_fua()?);
        let handle = inject::handle(&registers);
        let port = Port::new(platform.clone(), registers, plan)?;
        let place = Arc::new(Placed { port, caller }, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Ahci {
            controller: AhciController::new(Place(place)),
            platform: platform.clone(),
            sg_timeout: Timeout::new()?,
            handle,
        })
    }

    fn listen(hba: &Self::Hba) {
        hba.set_interrupt(true);
    }

    #[inline]
    fn interrupt(
        hba: &Self::Hba,
        shared: bool,
        served: u32,
        serve: impl FnMut(u8) -> bool,
    ) -> bool {
        hba.interrupt(shared, served, serve)
    }

    fn shares_message(hba: &Self::Hba) -> bool {
        hba.shares_message()
    }

    fn config(number: i32) -> Result<Config, Error> {
        Ok(Config {
            naming: Naming::Port(number),
            timeout_ms: params::ahci_timeout_ms()?,
            queue_depth: None,
            poll_queues: 0,
            begin: params::begin()?,
        })
    }
}

struct Placed {
    port: Port<KernelPlatform, AhciRegisters>,
    caller: Caller,
}

/// Where a port's state lives.
#[derive(Clone)]
pub(crate) struct Place(Arc<Placed>);

impl Site for Place {
    type Platform = KernelPlatform;
    type Mmio = AhciRegisters;

    #[inline]
    fn port(&self) -> &Port<KernelPlatform, AhciRegisters> {
        &self.0.port
    }

    fn schedule_eh(&self) {
        let _ = self.0.caller.call();
    }
}

/// A port, with memory for commands that are passed through.
pub(crate) struct Ahci {
    pub(crate) controller: AhciController<Place>,
    pub(crate) platform: KernelPlatform,
    pub(crate) sg_timeout: Timeout,
    handle: Handle,
}

impl SlotPort for Ahci {
    fn handle_events(&self) -> Result<PortEvent, Error> {
        Ok(match self.controller.run_eh()? {
            EhOutcome::Nothing => PortEvent::Nothing,
            EhOutcome::Recovered => PortEvent::Recovered,
            EhOutcome::Detached | EhOutcome::Replaced => PortEvent::Gone,
            EhOutcome::Attached => PortEvent::Came,
        })
    }

    fn step(&self) -> &'static str {
        self.controller.step()
    }
}

impl Wrapper for Ahci {
    type Inner = AhciController<Place>;
    type Outer = inject::Queue<AhciQueue<Place>>;

    #[inline(always)]
    fn inner(&self) -> &Self::Inner {
        &self.controller
    }

    fn wrap(&self, new: NewQueue<AhciQueue<Place>>) -> Result<NewQueue<Self::Outer>, Error> {
        self.handle.queue(&self.platform, new)
    }

    fn inner_queue(queue: &Self::Outer) -> &AhciQueue<Place> {
        inject::inner(queue)
    }
}
