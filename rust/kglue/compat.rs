// SPDX-License-Identifier: GPL-2.0
//! What differs between kernel versions and configurations, and nowhere else.

use core::mem::MaybeUninit;
use kernel::prelude::Zeroable;

/// A structure of the kernel's with nothing in it, for tables that name only the fields they set: which others there are depends on the configuration.
pub(crate) const fn zeroed<T: Zeroable>() -> T {
    // SAFETY: `Zeroable` says that all zeroes is a valid value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}
