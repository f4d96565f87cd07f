// SPDX-License-Identifier: GPL-2.0
//! What of a disk's ioctls passes through to its controller.

use super::disk::DiskShared;
use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;

/// A controller's own ioctls, as far as it has some. Control path: one call at a time, may sleep.
pub trait AdminPath: hal::Controller {
    /// Carries out `cmd` with the user-space argument `arg` on behalf of the disk [`hal::Unit::id`] `unit`. `privileged`: the
    /// caller may administer the machine. ENOTTY for a command that it does not know.
    fn ioctl(&self, unit: u32, cmd: u32, arg: usize, privileged: bool) -> Result<i32, Error> {
        let _ = (unit, cmd, arg, privileged);
        Err(ENOTTY)
    }
}

/// Hands an ioctl to the disk's controller, if that is still there.
pub(crate) fn dispatch(
    disk: &DiskShared,
    partition: bool,
    _mode: bindings::blk_mode_t,
    cmd: u32,
    arg: usize,
) -> Result<i32, Error> {
    if partition {
        return Err(ENOTTY);
    }
    // CAST: CAP_SYS_ADMIN is 21.
    // SAFETY: asks about the calling task.
    let privileged = unsafe { bindings::capable(bindings::CAP_SYS_ADMIN as i32) };
    disk.gate
        .with(|owner| owner.ioctl(disk.unit.id, cmd, arg, privileged))
        .unwrap_or(Err(ENODEV))
}
