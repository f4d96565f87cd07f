// SPDX-License-Identifier: GPL-2.0
//! The module's parameters, but for those of the RAM disks.

use core::ops::RangeInclusive;
use engine::Mode;
use hal::Error;
use kernel::prelude::*;
use kglue::adapter::Begin;
use kglue::params::numbers;
use kglue::{POLL_INTERVAL_US, WINDOW_US};
use strategy::NAMES as STRATEGIES;

/// How queues and disks begin.
///
/// # Errors
/// [`Error::Invalid`]: the operator has read which parameter is out of range.
pub(crate) fn begin() -> Result<Begin, Error> {
    let switch = |name, value| in_range(name, value, 0..=1).map(|on| on == 1);
    let mode = match in_range("mode", numbers().mode, 0..=2)? {
        0 => Mode::Irq,
        1 => Mode::Poll,
        _ => Mode::Hybrid,
    };
    let name = kglue::params::strategy();
    let Some(strategy) = STRATEGIES.iter().position(|known| *known == name) else {
        pr_err!("strategy={} is not known: {:?} are\n", name, STRATEGIES);
        return Err(Error::Invalid);
    };
    let interval = numbers().poll_interval_us;
    let window = numbers().predict_window_us;
    let retries = in_range("max_retries", numbers().max_retries, 0..=255)?;
    Ok(Begin {
        strategy,
        mode,
        lazy: switch("lazy", numbers().lazy)?,
        coop: switch("coop", numbers().coop)?,
        bytes: switch("bytes", numbers().bytes)?,
        poll_interval_us: in_range("poll_interval_us", interval, POLL_INTERVAL_US)?,
        predict: switch("predict", numbers().predict)?,
        predict_window_us: in_range("predict_window_us", window, WINDOW_US)?,
        // CAST: at most 255.
        max_retries: retries as u8,
    })
}

/// How long an NVMe command may be with the drive, in milliseconds.
///
/// # Errors
/// As [`begin`].
pub(crate) fn nvme_timeout_ms() -> Result<u32, Error> {
    let ms = numbers().nvme_timeout_ms;
    in_range("nvme_timeout_ms", ms, 1000..=3_600_000)
}

/// Whether NVMe namespaces that other controllers or ports may write, too, become disks.
///
/// # Errors
/// As [`begin`].
pub(crate) fn nvme_shared() -> Result<bool, Error> {
    in_range("nvme_shared", numbers().nvme_shared, 0..=1).map(|on| on == 1)
}

/// How many bytes of memory an NVMe controller may borrow (host memory buffer): by default as in
/// tree (`max_host_mem_size_mb`).
///
/// # Errors
/// As [`begin`].
pub(crate) fn nvme_hmb_bytes() -> Result<u64, Error> {
    let mib = in_range("nvme_hmb_mb", numbers().nvme_hmb_mb, 0..=4096)?;
    Ok(u64::from(mib).wrapping_shl(20))
}

/// How long a SATA command may be with the drive, in milliseconds.
///
/// # Errors
/// As [`begin`].
pub(crate) fn ahci_timeout_ms() -> Result<u32, Error> {
    let ms = numbers().ahci_timeout_ms;
    in_range("ahci_timeout_ms", ms, 1000..=3_600_000)
}

/// Whether SATA drives are told to force unit access: off as in libata, as many drives say that
/// they can and lose data by it.
///
/// # Errors
/// As [`begin`].
pub(crate) fn ahci_fua() -> Result<bool, Error> {
    in_range("ahci_fua", numbers().ahci_fua, 0..=1).map(|on| on == 1)
}

/// Queues for polled I/O of the block layer, beside those that interrupt.
///
/// # Errors
/// As [`begin`].
pub(crate) fn poll_queues() -> Result<u16, Error> {
    let queues = in_range("poll_queues", numbers().poll_queues, 0..=64)?;
    // CAST: at most 64.
    Ok(queues as u16)
}

/// A module parameter, if it is in its range; else the operator reads which is not.
pub(crate) fn in_range(name: &str, value: u32, range: RangeInclusive<u32>) -> Result<u32, Error> {
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
