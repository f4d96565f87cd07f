// SPDX-License-Identifier: GPL-2.0
//! The module: which drivers and which RAM disks there are, and what their tools may ask.
//!
//! * `nvme`, `ahci`, `ram`: composition. `params`: module parameters.
//! * `nvme_passthru`; `ata_passthru` with `sg`, `scsi_ioctl` and `hdio`: the ioctls of tools.
//!   `user`: their arguments in user space.
//! * `inject`: where faults get in, on a kernel that is made for them; on others there is no way.
//! * `kunit`: tests that need a kernel, of the folder of that name.

use kernel::prelude::*;
use kglue::blk::AllDisks;
use kglue::pci::driver::BoundFunction;
use kglue::pci::hba::BoundHba;
use kglue::pci::registration::Registration;
use kglue::ram::RamDisk;
use kglue::wait::Threads;

mod ahci;
mod ata_passthru;
mod hdio;
#[cfg_attr(CONFIG_FAULT_INJECTION_DEBUG_FS = "y", path = "inject_on.rs")]
#[cfg_attr(not(CONFIG_FAULT_INJECTION_DEBUG_FS = "y"), path = "inject_off.rs")]
mod inject;
#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit"]
mod kunit {
    mod hdio;
    mod sg;
}
mod nvme;
mod nvme_passthru;
mod params;
mod ram;
mod scsi_ioctl;
mod sg;
mod user;

module! {
    type: Hiops,
    name: "hiops",
    authors: ["The hiops project"],
    description: "HIOPS: NVMe, SATA and RAM disks without a bottom half",
    license: "GPL v2",
}

/// What goes when the module goes, in this order.
struct Hiops {
    _nvme: Registration<BoundFunction<nvme::HiopsNvme>>,
    _ahci: Registration<BoundHba<ahci::HiopsAhci>>,
    _ram: KVec<RamDisk>,
    _inject: inject::Root,
    _disks: AllDisks,
    _threads: Threads,
}

impl kernel::Module for Hiops {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let failed = |error| kglue::errno::to_errno(error);
        let begin = params::begin().map_err(failed)?;
        params::nvme_timeout_ms().map_err(failed)?;
        params::nvme_shared().map_err(failed)?;
        params::nvme_hmb_bytes().map_err(failed)?;
        params::ahci_timeout_ms().map_err(failed)?;
        params::ahci_fua().map_err(failed)?;
        params::poll_queues().map_err(failed)?;
        let threads = Threads::new().map_err(failed)?;
        let disks = AllDisks::begin().map_err(failed)?;
        let ram = ram::disks(begin).map_err(|error| {
            pr_err!(
                "the RAM disks could not be made: {}\n",
                kglue::errno::advice(error)
            );
            kglue::errno::to_errno(error)
        })?;
        let root = inject::Root::new().map_err(failed)?;
        Ok(Self {
            _nvme: Registration::new(module)?,
            _ahci: Registration::new(module)?,
            _ram: ram,
            _inject: root,
            _disks: disks,
            _threads: threads,
        })
    }
}
