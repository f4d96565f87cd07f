// SPDX-License-Identifier: GPL-2.0
//! One attribute of a disk in sysfs: a name, and functions over the disk; and groups of them.
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
use kernel::ffi::{c_char, c_int};
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
    is_there: fn(&DiskShared) -> bool,
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
            is_there: |_| true,
        }
    }

    /// Disks of which `is_there` does not hold don't have it.
    pub(crate) const fn where_there_is(self, is_there: fn(&DiskShared) -> bool) -> Self {
        Self { is_there, ..self }
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

/// A list of pointers to statics, ended by null.
#[repr(transparent)]
pub(crate) struct List<T, const N: usize>(pub(crate) [*mut T; N]);

// SAFETY: the list and what it points to are never written.
unsafe impl<T, const N: usize> Sync for List<T, N> {}

impl<T, const N: usize> List<T, N> {
    /// Its first place.
    pub(crate) const fn first(&'static self) -> *mut *mut T {
        (&raw const self.0).cast_mut().cast()
    }
}

/// A group of attributes: a folder, if it has a name.
#[repr(transparent)]
pub(crate) struct Group(bindings::attribute_group);

// SAFETY: nobody writes it.
unsafe impl Sync for Group {}

impl Group {
    /// That of `attributes`, each an [`Attribute::entry`], which ends with a null.
    pub(crate) const fn new<const N: usize>(
        name: *const c_char,
        attributes: &'static List<bindings::attribute, N>,
    ) -> Self {
        Self(bindings::attribute_group {
            name,
            __bindgen_anon_1: bindings::attribute_group__bindgen_ty_1 {
                is_visible: Some(is_visible),
            },
            is_bin_visible: None,
            bin_size: None,
            __bindgen_anon_2: bindings::attribute_group__bindgen_ty_2 {
                attrs: attributes.first(),
            },
            bin_attrs: core::ptr::null(),
        })
    }

    pub(crate) const fn entry(&'static self) -> *mut bindings::attribute_group {
        (&raw const self.0).cast_mut()
    }
}

/// # Safety
/// Called by sysfs for an [`Attribute`] of a disk of ours that is being shown, with the disk's
/// object.
unsafe extern "C" fn is_visible(
    object: *mut bindings::kobject,
    attr: *mut bindings::attribute,
    _: c_int,
) -> bindings::umode_t {
    // SAFETY: by the caller's promise; the object is a device's, and the kernel's part of an
    // attribute is its first.
    let (disk, attribute) = unsafe {
        let dev = kernel::container_of!(object, bindings::device, kobj);
        (of_device(dev), &*attr.cast::<Attribute>())
    };
    match (attribute.is_there)(disk) {
        true => attribute.raw.attr.mode,
        false => 0,
    }
}

/// # Safety
/// `dev` is the device of a disk of ours, alive as long as the result.
unsafe fn of_device<'a>(dev: *mut bindings::device) -> &'a DiskShared {
    // SAFETY: by the caller's promise; a disk's device is that of its part 0.
    unsafe {
        let part = kernel::container_of!(dev, bindings::block_device, bd_device);
        GenDisk::from_raw((*part).bd_disk).shared()
    }
}
