// SPDX-License-Identifier: GPL-2.0
//! A disk's attributes: `/sys/block/<disk>/{serial,model,firmware_rev,wwid,nsid}` and `/sys/block/<disk>/hiops/`.

use crate::adapter_quirks::write_quirks;
use crate::blk::disk::{DiskShared, Owner};
use crate::blk::fops;
use crate::blk::lane::{COOP, LAZY};
use crate::compat::zeroed;
use crate::sysfs_device::{show_cache_type, show_link_power, store_cache_type, store_link_power};
use crate::sysfs_text::{write_stats, write_wwid};
use crate::text::{Padded, Text};
use crate::wait;
use core::fmt::{self, Write};
use core::ptr::null_mut;
use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::ffi::{c_char, c_int};
use kernel::str::{as_char_ptr_in_const_context, CStr};
use kernel::{c_str, page::PAGE_SIZE};
use strategy::Mode;

/// Shows one attribute.
type Show = fn(&DiskShared, &mut Text<'_>) -> fmt::Result;
/// Takes a value, without the blanks around it.
type Store = fn(&DiskShared, &[u8]) -> Result<(), Error>;

/// The shortest and the longest interval between two polls that are accepted, in microseconds.
pub const POLL_INTERVAL_US: core::ops::RangeInclusive<u32> = 1..=10_000;

/// One attribute, with the kernel's part first.
#[repr(C)]
struct Attribute {
    raw: bindings::device_attribute,
    show: Show,
    store: Option<Store>,
}

// SAFETY: nobody writes it.
unsafe impl Sync for Attribute {}

impl Attribute {
    const fn new(name: &'static CStr, show: Show, store: Option<Store>) -> Self {
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

    const fn entry(&'static self) -> *mut bindings::attribute {
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
    let (attribute, disk, page) =
        unsafe { (&*attr.cast::<Attribute>(), of_device(dev), buf_of(buf)) };
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
unsafe fn of_device<'a>(dev: *mut bindings::device) -> &'a DiskShared {
    // SAFETY: by the caller's promise; a disk's device is that of its part 0.
    unsafe {
        let part = kernel::container_of!(dev, bindings::block_device, bd_device);
        fops::shared((*part).bd_disk)
    }
}

/// # Safety
/// `buf` is sysfs' page, alive as long as the result.
unsafe fn buf_of<'a>(buf: *mut c_char) -> &'a mut [u8] {
    // SAFETY: by the caller's promise.
    unsafe { core::slice::from_raw_parts_mut(buf.cast::<u8>(), PAGE_SIZE) }
}

fn number(text: &[u8]) -> Result<u64, Error> {
    let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
    text.parse().map_err(|_| EINVAL)
}

/// Turns `which` on or off.
fn store_switch(disk: &DiskShared, text: &[u8], which: u8) -> Result<(), Error> {
    match number(text)? {
        on @ (0 | 1) => {
            disk.turn(which, on == 1);
            Ok(())
        }
        _ => Err(EINVAL),
    }
}

fn show_switch(disk: &DiskShared, to: &mut Text<'_>, which: u8) -> fmt::Result {
    writeln!(to, "{}", u8::from(disk.switch(which)))
}

fn show_lazy(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    match wait::is_hooked() {
        true => show_switch(disk, to, LAZY),
        false => to.write_str("unavailable\n"),
    }
}

fn store_lazy(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    if !wait::is_hooked() && number(text)? == 1 {
        return Err(EOPNOTSUPP);
    }
    store_switch(disk, text, LAZY)
}

/// The adapter of `disk`.
pub(crate) fn owner(disk: &DiskShared) -> &dyn Owner {
    // SAFETY: the attributes go before the adapter does.
    unsafe { disk.owner.get() }
}

fn show_mode(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    to.write_str(match owner(disk).mode() {
        Mode::Irq => "irq\n",
        Mode::Poll => "poll\n",
        Mode::Hybrid => "hybrid\n",
    })
}

fn store_mode(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    let mode = match text {
        b"irq" => Mode::Irq,
        b"poll" => Mode::Poll,
        b"hybrid" => Mode::Hybrid,
        _ => return Err(EINVAL),
    };
    owner(disk).set_mode(mode).map_err(crate::errno::to_errno)
}

fn store_poll_interval(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    let us = u32::try_from(number(text)?).map_err(|_| EINVAL)?;
    if !POLL_INTERVAL_US.contains(&us) {
        return Err(EINVAL);
    }
    owner(disk).set_poll_interval_us(us);
    Ok(())
}

/// Taken up in the background: this very disk may go.
fn store_rescan(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        1 => {
            owner(disk).rescan();
            Ok(())
        }
        _ => Err(EINVAL),
    }
}

fn store_reset(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        1 => owner(disk).reset().map_err(crate::errno::to_errno),
        _ => Err(EINVAL),
    }
}

fn show_stats(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    let counts = owner(disk).counts();
    write_stats(to, &disk.sums(), &counts)
}

fn store_stats(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    if text != b"reset" {
        return Err(EINVAL);
    }
    disk.lanes.iter().for_each(|lane| lane.stats.reset());
    owner(disk).reset_counts();
    Ok(())
}

fn show_quirks(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    match write_quirks(to, |named| owner(disk).quirks(named))? {
        true => to.write_str("\n"),
        false => to.write_str("none\n"),
    }
}

static SERIAL: Attribute = Attribute::new(
    c_str!("serial"),
    |d, to| writeln!(to, "{}", Padded(&d.unit.serial)),
    None,
);
static MODEL: Attribute = Attribute::new(
    c_str!("model"),
    |d, to| writeln!(to, "{}", Padded(&d.unit.model)),
    None,
);
static FIRMWARE: Attribute = Attribute::new(
    c_str!("firmware_rev"),
    |d, to| writeln!(to, "{}", Padded(&d.unit.firmware)),
    None,
);
static WWID: Attribute = Attribute::new(c_str!("wwid"), |d, to| write_wwid(to, &d.unit), None);
static NSID: Attribute =
    Attribute::new(c_str!("nsid"), |d, to| writeln!(to, "{}", d.unit.id), None);

static MODE: Attribute = Attribute::new(c_str!("mode"), show_mode, Some(store_mode));
static LAZY_SWITCH: Attribute = Attribute::new(c_str!("lazy"), show_lazy, Some(store_lazy));
static COOP_SWITCH: Attribute = Attribute::new(
    c_str!("coop"),
    |d, to| show_switch(d, to, COOP),
    Some(|d, text| store_switch(d, text, COOP)),
);
static POLL_INTERVAL: Attribute = Attribute::new(
    c_str!("poll_interval_us"),
    |d, to| writeln!(to, "{}", owner(d).poll_interval_us()),
    Some(store_poll_interval),
);
static RESCAN: Attribute = Attribute::new(
    c_str!("rescan_controller"),
    |_, to| to.write_str("0\n"),
    Some(store_rescan),
);
static RESET: Attribute = Attribute::new(
    c_str!("reset_controller"),
    |_, to| to.write_str("0\n"),
    Some(store_reset),
);
static LINK_POWER: Attribute = Attribute::new(
    c_str!("link_power_management_policy"),
    show_link_power,
    Some(store_link_power),
);
static CACHE_TYPE: Attribute = Attribute::new(
    c_str!("cache_type"),
    show_cache_type,
    Some(store_cache_type),
);
static STATS: Attribute = Attribute::new(c_str!("stats"), show_stats, Some(store_stats));
static QUIRKS: Attribute = Attribute::new(c_str!("quirks"), show_quirks, None);

/// A list of pointers to statics, ended by null.
#[repr(transparent)]
struct List<T, const N: usize>([*mut T; N]);

// SAFETY: the list and what it points to are never written.
unsafe impl<T, const N: usize> Sync for List<T, N> {}

static NAMES: List<bindings::attribute, 6> = List([
    SERIAL.entry(),
    MODEL.entry(),
    FIRMWARE.entry(),
    WWID.entry(),
    NSID.entry(),
    null_mut(),
]);
static SWITCHES: List<bindings::attribute, 11> = List([
    MODE.entry(),
    LAZY_SWITCH.entry(),
    COOP_SWITCH.entry(),
    POLL_INTERVAL.entry(),
    RESCAN.entry(),
    RESET.entry(),
    LINK_POWER.entry(),
    CACHE_TYPE.entry(),
    STATS.entry(),
    QUIRKS.entry(),
    null_mut(),
]);

#[repr(transparent)]
struct Group(bindings::attribute_group);

// SAFETY: nobody writes it.
unsafe impl Sync for Group {}

/// Whether a file is there, and who may do what with it.
type IsVisible = unsafe extern "C" fn(
    *mut bindings::kobject,
    *mut bindings::attribute,
    c_int,
) -> bindings::umode_t;

/// # Safety
/// Called by sysfs for an attribute of a disk of ours that is being shown, with the disk's object.
unsafe extern "C" fn is_switch_visible(
    object: *mut bindings::kobject,
    attr: *mut bindings::attribute,
    _: c_int,
) -> bindings::umode_t {
    // SAFETY: by the caller's promise; the object is a device's.
    let (disk, mode) = unsafe {
        let dev = kernel::container_of!(object, bindings::device, kobj);
        (of_device(dev), (*attr).mode)
    };
    let missing = (attr == LINK_POWER.entry() && owner(disk).link_power().is_none())
        || (attr == CACHE_TYPE.entry() && !owner(disk).turns_cache());
    if missing {
        0
    } else {
        mode
    }
}

const fn group<const N: usize>(
    name: *const c_char,
    attributes: &'static List<bindings::attribute, N>,
    is_visible: Option<IsVisible>,
) -> Group {
    Group(bindings::attribute_group {
        name,
        __bindgen_anon_1: bindings::attribute_group__bindgen_ty_1 { is_visible },
        is_bin_visible: None,
        bin_size: None,
        __bindgen_anon_2: bindings::attribute_group__bindgen_ty_2 {
            attrs: (&raw const attributes.0).cast_mut().cast(),
        },
        bin_attrs: core::ptr::null(),
    })
}

static NAME_GROUP: Group = group(core::ptr::null(), &NAMES, None);
static HIOPS_GROUP: Group = group(
    as_char_ptr_in_const_context(c_str!("hiops")),
    &SWITCHES,
    Some(is_switch_visible),
);
static GROUPS: List<bindings::attribute_group, 3> = List([
    (&raw const NAME_GROUP.0).cast_mut(),
    (&raw const HIOPS_GROUP.0).cast_mut(),
    null_mut(),
]);

/// The groups of every disk, as `device_add_disk` takes them.
pub(crate) fn groups() -> *mut *const bindings::attribute_group {
    (&raw const GROUPS.0).cast_mut().cast()
}
