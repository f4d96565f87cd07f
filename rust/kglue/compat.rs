// SPDX-License-Identifier: GPL-2.0
//! What differs between kernel versions and configurations, and nowhere else.

use kernel::alloc::{AllocError, Allocator, Vec};
use kernel::bindings;
use kernel::device::Device;
use kernel::dma::Coherent;
use kernel::error::Error;
use kernel::prelude::GFP_KERNEL;

/// A structure of the kernel's with nothing in it, for tables that name only the fields they set:
/// which others there are depends on the configuration.
pub(crate) use pin_init::zeroed;

/// EOPNOTSUPP, which the kernel crate names from Linux 7.3 on.
pub(crate) fn eopnotsupp() -> Error {
    // CAST: a small constant.
    Error::from_errno(-(bindings::EOPNOTSUPP as kernel::ffi::c_int))
}

#[cfg(linux_7_2)]
pub(crate) use crate::shims_safe::synchronize_rcu;
#[cfg(not(linux_7_2))]
pub(crate) use kernel::sync::rcu::synchronize_rcu;

/// A timer's handler is over, and the timer as well unless it was started anew.
#[cfg(not(linux_7_2))]
pub(crate) const NORESTART: bindings::hrtimer_restart =
    bindings::hrtimer_restart::HRTIMER_NORESTART;
#[cfg(linux_7_2)]
pub(crate) const NORESTART: bindings::hrtimer_restart = bindings::hrtimer_restart_HRTIMER_NORESTART;

/// An interrupt was this device's.
#[cfg(not(linux_7_2))]
pub(crate) const HANDLED: bindings::irqreturn_t = bindings::irqreturn::IRQ_HANDLED;
#[cfg(linux_7_2)]
pub(crate) const HANDLED: bindings::irqreturn_t = bindings::irqreturn_IRQ_HANDLED;

/// It was not.
#[cfg(not(linux_7_2))]
pub(crate) const NOT_OURS: bindings::irqreturn_t = bindings::irqreturn::IRQ_NONE;
#[cfg(linux_7_2)]
pub(crate) const NOT_OURS: bindings::irqreturn_t = bindings::irqreturn_IRQ_NONE;

/// The address by which the device reaches `memory`.
pub(crate) fn dma_address(memory: &Coherent<[u64]>) -> u64 {
    #[cfg(not(linux_7_2))]
    return memory.dma_address();
    #[cfg(linux_7_2)]
    return memory.dma_handle();
}

/// `len` bytes of zeroes. Sleeps.
pub fn zeroes<A: Allocator>(len: usize) -> Result<Vec<u8, A>, AllocError> {
    #[cfg(not(linux_7_2))]
    return Vec::zeroed(len, GFP_KERNEL);
    #[cfg(linux_7_2)]
    return Vec::from_elem(0, len, GFP_KERNEL);
}

/// What takes an ioctl of a 32-bit program for one of a 64-bit program.
type PassCompatIoctl = Option<
    unsafe extern "C" fn(
        *mut bindings::block_device,
        bindings::blk_mode_t,
        kernel::ffi::c_uint,
        kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_int,
>;

/// That of the block layer, where there are 32-bit programs.
#[cfg(CONFIG_COMPAT)]
pub(crate) const PASS_COMPAT_IOCTL: PassCompatIoctl = Some(bindings::blkdev_compat_ptr_ioctl);
#[cfg(not(CONFIG_COMPAT))]
pub(crate) const PASS_COMPAT_IOCTL: PassCompatIoctl = None;

/// The memory node that `device` is near to.
#[cfg(CONFIG_NUMA)]
pub(crate) fn numa_node(device: &Device) -> i32 {
    // SAFETY: alive; a word, and any value is a valid one.
    unsafe { (*core::ptr::from_ref(device).cast::<bindings::device>()).numa_node }
}

/// All memory is alike.
#[cfg(not(CONFIG_NUMA))]
pub(crate) fn numa_node(_device: &Device) -> i32 {
    bindings::NUMA_NO_NODE
}
