// SPDX-License-Identifier: GPL-2.0
//! What differs between kernel versions and configurations, and nowhere else.

use kernel::bindings;
use kernel::device::Device;

/// A structure of the kernel's with nothing in it, for tables that name only the fields they set:
/// which others there are depends on the configuration.
pub(crate) use pin_init::zeroed;

/// The ioctl of 32-bit programs on a 64-bit kernel, where there are any.
type CompatIoctl = Option<
    unsafe extern "C" fn(
        *mut bindings::block_device,
        bindings::blk_mode_t,
        kernel::ffi::c_uint,
        kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_int,
>;

#[cfg(CONFIG_COMPAT)]
pub(crate) const COMPAT_IOCTL: CompatIoctl = Some(compat_ioctl);
#[cfg(not(CONFIG_COMPAT))]
pub(crate) const COMPAT_IOCTL: CompatIoctl = None;

/// # Safety
/// Called by the block layer for a disk of ours that is open.
#[cfg(CONFIG_COMPAT)]
unsafe extern "C" fn compat_ioctl(
    bdev: *mut bindings::block_device,
    mode: bindings::blk_mode_t,
    cmd: kernel::ffi::c_uint,
    arg: kernel::ffi::c_ulong,
) -> kernel::ffi::c_int {
    // The arguments of all others are the same for 32-bit programs.
    if cmd == crate::blk::ioctl::SG_IO {
        return kernel::error::code::ENOIOCTLCMD.to_errno();
    }
    // SAFETY: by the caller's promise.
    unsafe { bindings::blkdev_compat_ptr_ioctl(bdev, mode, cmd, arg) }
}

/// The memory node that `device` is near to.
#[cfg(CONFIG_NUMA)]
pub(crate) fn numa_node(device: &Device) -> i32 {
    // SAFETY: alive; a word, and any value is a valid one.
    unsafe { (*crate::device::raw(device)).numa_node }
}

/// All memory is alike.
#[cfg(not(CONFIG_NUMA))]
pub(crate) fn numa_node(_device: &Device) -> i32 {
    bindings::NUMA_NO_NODE
}
