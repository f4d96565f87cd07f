// SPDX-License-Identifier: GPL-2.0
//! The driver `hiops_nvme`: lld_nvme on the PCI bus. Its tools' ioctls are in `nvme_passthru`.

use hal::{Error, Messages, NewQueue, PciIds, Wrapper};
use kernel::prelude::*;
use kglue::adapter::{Config, Naming};
use kglue::pci::driver::PciDriver;
use kglue::platform::{KernelPlatform, Window};

use lld_nvme::{NvmeController, NvmeQueue, Quirks};

use crate::inject::{self, Handle, NvmeRegisters};
use crate::params;

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
        controller.set_hmb_limit(params::nvme_hmb_bytes()?);
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

impl Wrapper for Nvme {
    type Inner = NvmeController<KernelPlatform, NvmeRegisters>;
    type Outer = inject::Queue<NvmeQueue<KernelPlatform, NvmeRegisters>>;

    #[inline(always)]
    fn inner(&self) -> &Self::Inner {
        &self.controller
    }

    fn wrap(
        &self,
        new: NewQueue<NvmeQueue<KernelPlatform, NvmeRegisters>>,
    ) -> Result<NewQueue<Self::Outer>, Error> {
        self.handle.queue(&self.platform, new)
    }

    fn inner_queue(queue: &Self::Outer) -> &NvmeQueue<KernelPlatform, NvmeRegisters> {
        inject::inner(queue)
    }
}
