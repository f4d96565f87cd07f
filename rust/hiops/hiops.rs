// SPDX-License-Identifier: GPL-2.0
//! The module: which drivers and which RAM disks there are, and what their tools may ask.
//!
//! * `nvme`, `ahci`, `ram`: composition. `params`: module parameters.
//! * `nvme_passthru`, `nvme_io`; `ata_passthru` with `sg`, `scsi_ioctl` and `hdio`: the ioctls of
//!   tools. `user`: their arguments in user space.
//! * `inject`: where faults get in, on a kernel that is made for them; on others there is no way.
//! * `kunit`: tests that need a kernel, of the folder of that name.

use core::borrow::Borrow;
use hal::Error;
use kernel::prelude::*;
use kglue::blk::AllDisks;
use kglue::pci::driver::Bound;
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
mod nvme_io;
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
    params: {
        mode: u32 {
            default: 2,
            description: "how completions are noticed at first: 0 irq, 1 poll, 2 hybrid",
        },
        lazy: u32 {
            default: 0,
            description: "whether threads end the I/O that they sleep for: 0 or 1",
        },
        coop: u32 {
            default: 1,
            description: "whether whoever passes by takes completions: 0 or 1",
        },
        poll_interval_us: u32 {
            default: 32,
            description: "microseconds between two polls: 1 to 10000",
        },
        predict: u32 {
            default: 0,
            description: "whether threads wake shortly before their I/O is over: 0 or 1",
        },
        predict_window_us: u32 {
            default: 16,
            description: "microseconds that they then look for it at most: 1 to 100",
        },
        poll_queues: u32 {
            default: 0,
            description: "queues for polled I/O beside the others, of each controller: 0 to 64",
        },
        max_retries: u32 {
            default: 5,
            description: "how often a request is tried again: 0 to 255",
        },
        nvme_timeout_ms: u32 {
            default: 30000,
            description: "how long an NVMe command may take: 1000 to 3600000",
        },
        nvme_shared: u32 {
            default: 0,
            description: "whether namespaces that others may write, too, are disks: 0 or 1",
        },
        nvme_hmb_mb: u32 {
            default: 128,
            description: "MiB of memory that an NVMe controller may borrow: 0 to 4096",
        },
        ahci_timeout_ms: u32 {
            default: 30000,
            description: "how long a SATA command may take: 1000 to 3600000",
        },
        ahci_fua: u32 {
            default: 0,
            description: "whether SATA drives that have FUA are told to use it: 0 or 1",
        },
        ram_disks: u32 {
            default: 0,
            description: "RAM disks to make: 0 to 64",
        },
        ram_size_mb: u32 {
            default: 64,
            description: "MiB of each: 1 to 1048576",
        },
        ram_latency_us: u32 {
            default: 10,
            description: "microseconds for a command: 0 to 10000000",
        },
        ram_latency_max_us: u32 {
            default: 0,
            description: "if more than ram_latency_us: draw from between the two",
        },
        ram_write_latency_us: u32 {
            default: 0,
            description: "microseconds for a write, discard or zeroes, if not 0: 0 to 10000000",
        },
        ram_link_mb_s: u32 {
            default: 0,
            description: "MB/s of the link that all channels share, 0: no limit: 0 to 1000000",
        },
        ram_queues: u32 {
            default: 1,
            description: "queues of each: 1 to 64",
        },
        ram_tags: u32 {
            default: 64,
            description: "tags of each queue: 1 to 4096",
        },
        ram_channels: u32 {
            default: 64,
            description: "commands that a queue serves at once: 1 to 4096",
        },
        ram_block_size: u32 {
            default: 512,
            description: "bytes of a block: 512, 1024, 2048 or 4096",
        },
        ram_seed: u64 {
            default: 1,
            description: "for what is drawn at random",
        },
        ram_timeout_ms: u32 {
            default: 30000,
            description: "how long a command may take: 100 to 3600000",
        },
        ram_fail: u32 {
            default: 0,
            description: "for tests: fail one command in so many, which may be tried again",
        },
        ram_drop: u32 {
            default: 0,
            description: "for tests: lose one completion in so many",
        },
        ram_stick: u32 {
            default: 0,
            description: "for tests: finish one command in so many only when it is aborted",
        },
        ram_duplicate: u32 {
            default: 0,
            description: "for tests: report one in so many twice",
        },
        ram_lie: u32 {
            default: 0,
            description: "for tests: report one in so many that was not issued",
        },
        ram_reorder: u32 {
            default: 0,
            description: "for tests: have one in so many overtaken",
        },
    },
}

/// What goes when the module goes, in this order.
struct Hiops {
    _nvme: Registration<Bound<nvme::HiopsNvme>>,
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

/// What a module parameter is: lent by the kernel crate of Linux 7.2, given by that of 7.3.
fn plain<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

/// A module parameter, if it is in its range; else the operator reads which is not.
fn in_range(
    name: &str,
    value: impl Borrow<u32>,
    range: core::ops::RangeInclusive<u32>,
) -> Result<u32, Error> {
    let value = plain(value);
    if range.contains(&value) {
        return Ok(value);
    }
    pr_err!(
        "{}={} is out of range: {} to {}\n",
        name,
        value,
        range.start(),
        range.end()
    );
    Err(Error::Invalid)
}
