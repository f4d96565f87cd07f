// SPDX-License-Identifier: GPL-2.0
//! What of a disk's ioctls passes through to its controller.

use super::disk::DiskShared;
use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::sync::Mutex;

/// A controller's own ioctls, as far as it has some.
pub trait AdminPath: hal::Controller {
    /// Carries out `cmd` with the user-space argument `arg` on behalf of the disk [`hal::Unit::id`] `unit`. `privileged`: the
    /// caller may administer the machine. `control` is to be held across each call of the controller's control path, and not while user
    /// memory is touched, which may have to be read from this very disk. ENOTTY for a command that it does not know; ETIMEDOUT leads to a
    /// recovery. Sleeps.
    fn ioctl(
        &self,
        unit: u32,
        cmd: u32,
        arg: usize,
        privileged: bool,
        control: &Mutex<()>,
    ) -> Result<i32, Error> {
        let _ = (unit, cmd, arg, privileged, control);
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
