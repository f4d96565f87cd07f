// SPDX-License-Identifier: GPL-2.0
//! One attribute of a disk in sysfs: a name, and two functions over the disk.
//!
//! The kernel crate has no sysfs attributes (Linux 7.3), so this is a `device_attribute` whose
//! callbacks are the same for all and find their functions behind it.

use crate::blk::gendisk::GenDisk;
use crate::blk::shared::DiskShared;
use crate::compat::zeroed;
use crate::text::Text;
use core::fmt;
use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::ffi::c_char;
use kernel::page::PAGE_SIZE;
use kernel::str::{as_char_ptr_in_const_context, CStr};

/// Shows one attribute.
pub(crate) type Show = fn(&DiskShared, &mut Text<'_>) -> fmt::Result;
/// Takes a value, without the blanks around it.
pub(crate) type Store = fn(&DiskShared, &[u8]) -> Result<(), Error>;

/// One attribute, with the kernel's part first.
#[repr(C)]
pub(crate) struct Attribute {
    raw: bindings::device_attribute,
    show: Show,
    store: Option<Store>,
}

// SAFETY: nobody writes it.
unsafe impl Sync for Attribute {}

impl Attribute {
    pub(crate) const fn new(name: &'static CStr, show: Show, store: Option<Store>) -> Self {
        let mode = if store.is_some() { 0o644 } else { 0o444 };
        let mut attr: bindings::attribute = zeroed();
        attr.name = as_char_ptr_in_const_context(name);
        attr.mode = mode;
        Self {
            raw: bindings::device_attribute {
                attr,
                __bindgen_anon_1: bindings::device_attribute__bindgen_ty_1 { show: Some(shown) },
                __bindgen_anon_2: bindings::device_attribute__bindgen_ty_2 {
                    store: Some(stored),
                },
            },
            show,
            store,
        }
    }

    pub(crate) const fn entry(&'static self) -> *mut bindings::attribute {
        (&raw const self.raw.attr).cast_mut()
    }
}

/// # Safety
/// Called by sysfs for an [`Attribute`] of a disk of ours, with a page.
unsafe extern "C" fn shown(
    dev: *mut bindings::device,
    attr: *mut bindings::device_attribute,
    buf: *mut c_char,
) -> isize {
    // SAFETY: sysfs passes an attribute of ours, a disk that is alive, and a page.
    let (attribute, disk, page) = unsafe {
        let page = core::slice::from_raw_parts_mut(buf.cast::<u8>(), PAGE_SIZE);
        (&*attr.cast::<Attribute>(), of_device(dev), page)
    };
    let mut text = Text::new(page);
    match (attribute.show)(disk, &mut text) {
        // CAST: at most a page.
        Ok(()) => text.len() as isize,
        Err(fmt::Error) => EIO.to_errno() as isize,
    }
}

/// # Safety
/// Called by sysfs for an [`Attribute`] of a disk of ours, with `count` bytes.
unsafe extern "C" fn stored(
    dev: *mut bindings::device,
    attr: *mut bindings::device_attribute,
    buf: *const c_char,
    count: usize,
) -> isize {
    // SAFETY: as in `shown`; `count` bytes are there to read.
    let (attribute, disk, bytes) = unsafe {
        let bytes = core::slice::from_raw_parts(buf.cast::<u8>(), count);
        (&*attr.cast::<Attribute>(), of_device(dev), bytes)
    };
    let taken = match attribute.store {
        Some(store) => store(disk, bytes.trim_ascii()),
        None => Err(EIO),
    };
    // CAST: at most a page.
    taken.map_or_else(|error| error.to_errno() as isize, |()| count as isize)
}

/// # Safety
/// `dev` is the device of a disk of ours, alive as long as the result.
pub(crate) unsafe fn of_device<'a>(dev: *mut bindings::device) -> &'a DiskShared {
    // SAFETY: by the caller's promise; a disk's device is that of its part 0.
    unsafe {
        let part = kernel::container_of!(dev, bindings::block_device, bd_device);
        GenDisk::from_raw((*part).bd_disk).shared()
    }
}
