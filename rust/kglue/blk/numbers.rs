// SPDX-License-Identifier: GPL-2.0
//! Device numbers of SATA disks. Other disks have those that the block layer hands out (major 259),
//! as NVMe's have in tree; tools that speak SCSI take a disk of that major for one of NVMe, so a
//! SATA disk has a major of hiops' own, and sixteen minors, as a SCSI disk has. Partitions beyond
//! the fifteenth get the block layer's, as there.
//!
//! The major's name begins as the SCSI disks' does: LVM serves disks of majors that it knows by the
//! beginning of their names in /proc/devices, and by the name it knows the sixteen minors.
//!
//! `kernel::block` (Linux 7.2 and 7.3) has neither majors nor minors.

use crate::shims::HIOPS_DISK_MINORS;
use crate::shims_safe::{
    hiops_disk_number_get, hiops_disk_number_put, hiops_major_get, hiops_major_put,
};
use core::sync::atomic::{AtomicI32, Ordering};
use hal::{Error, Unit, UnitKind};

/// Minors of a disk: for itself and its first partitions.
// CAST: sixteen.
pub(super) const MINORS: i32 = HIOPS_DISK_MINORS as i32;

/// The major, as long as it is hiops'; 0: it is not.
static MAJOR: AtomicI32 = AtomicI32::new(0);

/// The major, which goes back with the drop.
pub(super) struct Major(i32);

impl Major {
    /// Before the first disk; once. Sleeps.
    pub(super) fn take() -> Result<Self, Error> {
        match hiops_major_get() {
            major @ 1.. => {
                MAJOR.store(major, Ordering::Release);
                Ok(Self(major))
            }
            _ => Err(Error::NoMemory),
        }
    }
}

impl Drop for Major {
    fn drop(&mut self) {
        MAJOR.store(0, Ordering::Release);
        hiops_major_put(self.0);
    }
}

/// A SATA disk's place among all of them, which goes back with the drop: when nobody has the disk
/// any more.
pub(crate) struct Number(i32);

impl Number {
    /// The lowest free one for `unit`; `None`: it is no SATA disk. Sleeps.
    pub(super) fn take(unit: &Unit) -> Result<Option<Self>, Error> {
        if unit.kind != UnitKind::Drive {
            return Ok(None);
        }
        match hiops_disk_number_get() {
            number @ 0.. => Ok(Some(Self(number))),
            _ => Err(Error::NoMemory),
        }
    }

    /// It.
    pub(crate) fn get(&self) -> u32 {
        self.0.unsigned_abs()
    }

    /// The disk's major and first minor.
    pub(super) fn device(&self) -> (i32, i32) {
        let major = MAJOR.load(Ordering::Acquire);
        (major, self.0.saturating_mul(MINORS))
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        hiops_disk_number_put(self.0);
    }
}
