// SPDX-License-Identifier: GPL-2.0
//! The driver `hiops_nvme`: lld_nvme on the PCI bus, with its tools' ioctls.

use core::fmt;
use hal::{
    Cause, Controller, Error, Heat, Limits, Messages, NewQueue, Notice, PciIds, Queues, Refused,
    Reservations, Shutdown, Unit, Wish,
};
use kernel::prelude::*;
use kglue::adapter::{Config, Naming};
use kglue::blk::ioctl::{AdminPath, OfDisk, Way};
use kglue::mmio::Window;
use kglue::pci::driver::PciDriver;
use kglue::platform::KernelPlatform;
use lld_nvme::{NvmeController, NvmeQueue, Quirks};

use crate::inject::{self, Handle, NvmeRegisters};
use crate::{nvme_passthru, params};

/// Requests outstanding on a queue: as many as in tree (`io_queue_depth`, Linux 7.3).
const QUEUE_DEPTH: u16 = 1023;

/// The driver.
pub(crate) struct HiopsNvme;

impl PciDriver for HiopsNvme {
    const NAME: &'static CStr = c"hiops_nvme";
    // Mass storage, non-volatile memory, NVM Express (PCIe Transport, "Class Code").
    const CLASS: u32 = 0x01_08_02;
    const BAR: u8 = 0;
    const PAGE_MASK: u32 = 0xfff;
    type Controller = Nvme;

    fn dma_bits(ids: &PciIds) -> u8 {
        Quirks::of_function(ids).dma_bits()
    }

    fn controller(platform: &KernelPlatform, window: Window, ids: &PciIds) -> Result<Nvme, Error> {
        let handle = Handle::new(platform)?;
        let registers = handle.nvme(window);
        let controller = NvmeController::new(platform.clone(), registers, ids)?;
        controller.serve_shared(params::nvme_shared()?);
        controller.lend_at_most(params::nvme_hmb_bytes()?);
        Ok(Nvme {
            controller,
            platform: platform.clone(),
            handle,
        })
    }

    fn messages(nvme: &Nvme) -> Messages {
        nvme.controller.quirk_set().messages()
    }

    fn use_pin(nvme: &Nvme, pin: bool) {
        nvme.controller.use_pin(pin);
    }

    fn step(nvme: &Nvme) -> &'static str {
        nvme.controller.step()
    }

    fn config() -> Result<Config, Error> {
        Ok(Config {
            naming: Naming::Namespace,
            timeout_ms: params::nvme_timeout_ms()?,
            queue_depth: Some(QUEUE_DEPTH),
            poll_queues: params::poll_queues()?,
            begin: params::begin()?,
        })
    }
}

/// lld_nvme's controller, with memory for commands that are passed through.
pub(crate) struct Nvme {
    pub(crate) controller: NvmeController<KernelPlatform, NvmeRegisters>,
    pub(crate) platform: KernelPlatform,
    handle: Handle,
}

impl AdminPath for Nvme {
    fn ioctl(disk: Option<OfDisk>, cmd: u32, arg: usize, way: &impl Way<Self>) -> Result<i32> {
        nvme_passthru::ioctl(way, disk, cmd, arg)
    }

    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    fn wake_by(queue: &Self::Queue, alarm: kglue::alarm::Alarm) {
        inject::wake_by(queue, alarm);
    }
}

impl Controller for Nvme {
    type Queue = inject::Queue<NvmeQueue<KernelPlatform, NvmeRegisters>>;

    fn start(&self) -> Result<(), Error> {
        self.controller.start()
    }

    fn limits(&self) -> Limits {
        self.controller.limits()
    }

    fn create_queue(
        &self,
        index: u16,
        vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        let new = self.controller.create_queue(index, vector)?;
        self.handle.queue(&self.platform, new)
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        self.controller.units(found)
    }

    fn stop(&self) -> Result<(), Error> {
        self.controller.stop()
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        self.controller.shutdown(how)
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.controller.quirks(named);
    }

    fn silence(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        self.controller.silence(to)
    }

    fn attend(&self, queues: Queues, tell: &mut dyn FnMut(Notice<'_>)) -> Result<Wish, Error> {
        self.controller.attend(queues, tell)
    }

    fn heat(&self) -> Result<Option<Heat>, Error> {
        self.controller.heat()
    }

    fn reservations(&self) -> Option<&dyn Reservations> {
        self.controller.reservations()
    }

    const ABORTS: bool = lld_nvme::NvmeController::<KernelPlatform, NvmeRegisters>::ABORTS;

    fn abort(&self, queue: &Self::Queue, tag: usize, limit_us: u64) -> Result<bool, Error> {
        self.controller.abort(inject::inner(queue), tag, limit_us)
    }

    #[inline]
    fn alive(&self) -> Result<(), Error> {
        self.controller.alive()
    }

    #[inline]
    fn interrupt(&self, vector: u16) -> Cause {
        self.controller.interrupt(vector)
    }

    #[inline]
    fn set_interrupt(&self, vector: u16, enabled: bool) {
        self.controller.set_interrupt(vector, enabled);
    }
}
