// SPDX-License-Identifier: GPL-2.0
//! A disk's attributes: `/sys/block/<disk>/{serial,model,firmware_rev,wwid,nsid,port_no}` and
//! `/sys/block/<disk>/hiops/`: what each shows and stores, their tables, and how sysfs comes to
//! them.
//!
//! Some are settings of the device itself, of those that have them: how much its link may sleep,
//! how many commands it is given at once, and whether its write cache is on. They have the in-tree
//! drivers' words (Linux 7.3).
//!
//! The kernel crate has no sysfs attributes (Linux 7.3), so an attribute is a `device_attribute`
//! whose callbacks are the same for all and find their functions behind it.

use core::fmt;
use core::fmt::Write;
use core::ptr::null_mut;
use engine::{Mode, Switches, MOST_WINDOW_US};
use hal::{LinkPower, Unit, UnitIds, UnitKind};
use kernel::error::code::*;
use kernel::error::Error;
use kernel::ffi::{c_char, c_int};
use kernel::page::PAGE_SIZE;
use kernel::str::{as_char_ptr_in_const_context, CStr};
use kernel::{bindings, c_str};
use strategy::NAMES as STRATEGIES;

use crate::blk::gendisk::GenDisk;
use crate::blk::ioctl::{ControllerCounts, Owner};
use crate::blk::latency::{buckets, Kind, CONTEXTS};
use crate::blk::request::Sums;
use crate::bytes::trial::set_bytes;
use crate::compat::{eopnotsupp, zeroed};
use crate::errno::to_errno;
use crate::text::{number, write_quirks, Hex, Text};
use crate::wait::hook::is_hooked;

/// The shortest and the longest interval between two polls that are accepted, in microseconds.
pub const POLL_INTERVAL_US: core::ops::RangeInclusive<u32> = 1..=10_000;

/// Turns `which` on or off.
fn store_switch(disk: GenDisk<'_>, text: &[u8], which: u8) -> Result<(), Error> {
    match number(text)? {
        on @ (0 | 1) => {
            disk.shared().turn(which, on == 1);
            Ok(())
        }
        _ => Err(EINVAL),
    }
}

fn show_switch(disk: GenDisk<'_>, to: &mut Text<'_>, which: u8) -> fmt::Result {
    writeln!(to, "{}", u8::from(disk.shared().switch(which)))
}

fn show_lazy(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    match is_hooked() {
        true => show_switch(disk, to, Switches::LAZY),
        false => to.write_str("unavailable\n"),
    }
}

fn store_lazy(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    if !is_hooked() && number(text)? == 1 {
        return Err(eopnotsupp());
    }
    store_switch(disk, text, Switches::LAZY)
}

/// Whether it is measured how long requests take.
fn store_latency(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    let shared = disk.shared();
    match number(text)? {
        // What it was measured by stays: requests are under way.
        0 => shared.turn(Switches::LATENCY, false),
        1 if shared.switch(Switches::LATENCY) => {}
        1 => shared.turn(shared.stats.latency.begin().map_err(to_errno)?, true),
        _ => return Err(EINVAL),
    }
    Ok(())
}

fn store_histogram(disk: GenDisk<'_>, text: &[u8], kind: Kind) -> Result<(), Error> {
    match text {
        b"reset" => disk.shared().stats.latency.reset(kind),
        _ => return Err(EINVAL),
    }
    Ok(())
}

/// The lines of a histogram: the contexts; where a bucket ends, in nanoseconds, and how many
/// requests each has ended in it, if any; and the nanoseconds that they took, all together.
fn show_histogram(disk: GenDisk<'_>, to: &mut Text<'_>, kind: Kind) -> fmt::Result {
    let latency = &disk.shared().stats.latency;
    to.write_str("below_ns")?;
    (CONTEXTS.iter()).try_for_each(|(name, _)| write!(to, " {name}"))?;
    to.write_str("\n")?;
    let line = |to: &mut Text<'_>, counts: [u64; CONTEXTS.len()]| {
        (counts.iter()).try_for_each(|count| write!(to, " {count}"))?;
        to.write_str("\n")
    };
    for (bucket, end_ns) in buckets() {
        let counts = latency.counts(kind, bucket);
        if counts == [0; CONTEXTS.len()] {
            continue;
        }
        match end_ns {
            Some(end_ns) => write!(to, "{end_ns}")?,
            None => to.write_str("inf")?,
        }
        line(to, counts)?;
    }
    to.write_str("sum_ns")?;
    line(to, latency.sums_ns(kind))
}

/// The disk's bytes: the node is there, or not.
fn store_bytes(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        on @ (0 | 1) => set_bytes(disk.shared(), on == 1),
        _ => Err(EINVAL),
    }
}

/// Whether to swap there is to wait for each page: what `swapon` makes of a disk.
fn store_synchronous(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        on @ (0 | 1) => disk.set_synchronous(on == 1),
        _ => Err(EINVAL),
    }
}

/// The adapter of `disk`.
fn owner(disk: GenDisk<'_>) -> &dyn Owner {
    disk.shared().owner.get()
}

fn show_mode(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    to.write_str(match owner(disk).mode() {
        Mode::Irq => "irq\n",
        Mode::Poll => "poll\n",
        Mode::Hybrid => "hybrid\n",
    })
}

fn store_mode(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    let mode = mode_of(text).ok_or(EINVAL)?;
    owner(disk).set_mode(mode).map_err(crate::errno::to_errno)
}

fn show_strategy(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    let chosen = STRATEGIES.get(owner(disk).strategy());
    writeln!(to, "{}", chosen.unwrap_or(&"?"))
}

fn store_strategy(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    let which = STRATEGIES.iter().position(|name| name.as_bytes() == text);
    owner(disk).choose(which.ok_or(EINVAL)?);
    Ok(())
}

fn store_poll_interval(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    let us = u32::try_from(number(text)?).map_err(|_| EINVAL)?;
    if !POLL_INTERVAL_US.contains(&us) {
        return Err(EINVAL);
    }
    owner(disk).set_poll_interval_us(us);
    Ok(())
}

/// Taken up in the background: this very disk may go.
fn store_rescan(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        1 => {
            owner(disk).rescan();
            Ok(())
        }
        _ => Err(EINVAL),
    }
}

/// In the background, too.
fn store_delete(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        1 => {
            owner(disk).take_off().ok_or_else(eopnotsupp)?.leave();
            Ok(())
        }
        _ => Err(EINVAL),
    }
}

fn store_reset(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        1 => owner(disk).reset().map_err(crate::errno::to_errno),
        _ => Err(EINVAL),
    }
}

fn show_stats(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    let counts = owner(disk).counts();
    write_stats(to, &disk.shared().stats.sums(), &counts)
}

fn store_stats(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    if text != b"reset" {
        return Err(EINVAL);
    }
    disk.shared().stats.reset();
    owner(disk).reset_counts();
    Ok(())
}

fn show_quirks(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    match write_quirks(to, |named| owner(disk).quirks(named))? {
        true => to.write_str("\n"),
        false => to.write_str("none\n"),
    }
}

fn show_link_power(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    let policy = owner(disk).link_power().unwrap_or_default();
    writeln!(to, "{}", policy.name())
}

fn store_link_power(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    let policy = LinkPower::from_name(text).ok_or(EINVAL)?;
    let set = owner(disk).set_link_power(policy);
    set.map_err(to_errno)
}

fn show_depth(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    writeln!(to, "{}", owner(disk).depth().unwrap_or_default())
}

fn store_depth(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    let depth = u16::try_from(number(text)?).map_err(|_| EINVAL)?;
    owner(disk).set_depth(depth).map_err(to_errno)
}

fn show_cache_type(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    to.write_str(match owner(disk).has_cache(disk.shared().unit.id) {
        Ok(true) => "write back\n",
        Ok(false) => "write through\n",
        Err(_) => return Err(fmt::Error),
    })
}

fn store_cache_type(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    let on = match text {
        b"write back" => true,
        b"write through" => false,
        _ => return Err(EINVAL),
    };
    let set = owner(disk).set_write_cache(on);
    set.map_err(to_errno)
}

/// For how many microseconds a thread may look after a nap.
pub const WINDOW_US: core::ops::RangeInclusive<u32> = 1..=MOST_WINDOW_US;

fn show_predict(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    match is_hooked() {
        true => writeln!(to, "{}", u8::from(owner(disk).predicts())),
        false => to.write_str("unavailable\n"),
    }
}

fn store_predict(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        1 if !is_hooked() => Err(eopnotsupp()),
        on @ (0 | 1) => {
            owner(disk).set_predict(on == 1);
            Ok(())
        }
        _ => Err(EINVAL),
    }
}

fn show_window(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    writeln!(to, "{}", owner(disk).window_us())
}

fn store_window(disk: GenDisk<'_>, text: &[u8]) -> Result<(), Error> {
    let us = u32::try_from(number(text)?).map_err(|_| EINVAL)?;
    if !WINDOW_US.contains(&us) {
        return Err(EINVAL);
    }
    owner(disk).set_window_us(us);
    Ok(())
}

fn show_forecast(disk: GenDisk<'_>, to: &mut Text<'_>) -> fmt::Result {
    owner(disk).forecast(to)
}

static SERIAL: Attribute = Attribute::new(
    c_str!("serial"),
    |d, to| to.identity(&d.shared().unit.serial),
    None,
);
static MODEL: Attribute = Attribute::new(
    c_str!("model"),
    |d, to| to.identity(&d.shared().unit.model),
    None,
);
static FIRMWARE: Attribute = Attribute::new(
    c_str!("firmware_rev"),
    |d, to| to.identity(&d.shared().unit.firmware),
    None,
);
static WWID: Attribute = Attribute::new(
    c_str!("wwid"),
    |d, to| write_wwid(to, &d.shared().unit, d.shared().names.ids()),
    None,
);
static NSID: Attribute = Attribute::new(
    c_str!("nsid"),
    |d, to| writeln!(to, "{}", d.shared().unit.id),
    None,
)
.where_there_is(|d| matches!(d.shared().unit.kind, UnitKind::Namespace { .. }));
/// As libata counts ports.
static PORT_NO: Attribute = Attribute::new(
    c_str!("port_no"),
    |d, to| writeln!(to, "{}", d.shared().unit.id.saturating_add(1)),
    None,
)
.where_there_is(|d| d.shared().unit.kind == UnitKind::Drive);

static MODE: Attribute = Attribute::new(c_str!("mode"), show_mode, Some(store_mode));
static STRATEGY: Attribute =
    Attribute::new(c_str!("strategy"), show_strategy, Some(store_strategy));
static LAZY_SWITCH: Attribute = Attribute::new(c_str!("lazy"), show_lazy, Some(store_lazy));
static COOP_SWITCH: Attribute = Attribute::new(
    c_str!("coop"),
    |d, to| show_switch(d, to, Switches::COOP),
    Some(|d, text| store_switch(d, text, Switches::COOP)),
);
static LATENCY: Attribute = Attribute::new(
    c_str!("latency"),
    |d, to| show_switch(d, to, Switches::LATENCY),
    Some(store_latency),
);
static LATENCY_READ: Attribute = Attribute::new(
    c_str!("latency_read"),
    |d, to| show_histogram(d, to, Kind::READ),
    Some(|d, text| store_histogram(d, text, Kind::READ)),
);
static LATENCY_WRITE: Attribute = Attribute::new(
    c_str!("latency_write"),
    |d, to| show_histogram(d, to, Kind::WRITE),
    Some(|d, text| store_histogram(d, text, Kind::WRITE)),
);
static LATENCY_OTHER: Attribute = Attribute::new(
    c_str!("latency_other"),
    |d, to| show_histogram(d, to, Kind::OTHER),
    Some(|d, text| store_histogram(d, text, Kind::OTHER)),
);
static BYTES: Attribute = Attribute::new(
    c_str!("bytes"),
    |d, to| writeln!(to, "{}", u8::from(d.shared().bytes.is_on())),
    Some(store_bytes),
);
static SYNCHRONOUS: Attribute = Attribute::new(
    c_str!("synchronous"),
    |d, to| writeln!(to, "{}", u8::from(d.is_synchronous())),
    Some(store_synchronous),
);
static POLL_INTERVAL: Attribute = Attribute::new(
    c_str!("poll_interval_us"),
    |d, to| writeln!(to, "{}", owner(d).poll_interval_us()),
    Some(store_poll_interval),
);
static PREDICT: Attribute = Attribute::new(c_str!("predict"), show_predict, Some(store_predict));
static PREDICT_WINDOW: Attribute =
    Attribute::new(c_str!("predict_window_us"), show_window, Some(store_window));
static FORECAST: Attribute = Attribute::new(c_str!("forecast"), show_forecast, None);
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
static DELETE: Attribute = Attribute::new(
    c_str!("delete"),
    |_, to| to.write_str("0\n"),
    Some(store_delete),
)
.where_there_is(|d| owner(d).take_off().is_some());
static LINK_POWER: Attribute = Attribute::new(
    c_str!("link_power_management_policy"),
    show_link_power,
    Some(store_link_power),
)
.where_there_is(|d| owner(d).link_power().is_some());
static QUEUE_DEPTH: Attribute =
    Attribute::new(c_str!("queue_depth"), show_depth, Some(store_depth))
        .where_there_is(|d| owner(d).depth().is_some());
static CACHE_TYPE: Attribute = Attribute::new(
    c_str!("cache_type"),
    show_cache_type,
    Some(store_cache_type),
)
.where_there_is(|d| owner(d).turns_cache());
static LEARNED: Attribute = Attribute::new(c_str!("learned"), |d, to| owner(d).learned(to), None);
static STATS: Attribute = Attribute::new(c_str!("stats"), show_stats, Some(store_stats));
static QUIRKS: Attribute = Attribute::new(c_str!("quirks"), show_quirks, None);

static NAMES: List<bindings::attribute, 7> = List([
    SERIAL.entry(),
    MODEL.entry(),
    FIRMWARE.entry(),
    WWID.entry(),
    NSID.entry(),
    PORT_NO.entry(),
    null_mut(),
]);
static SWITCHES: List<bindings::attribute, 24> = List([
    STRATEGY.entry(),
    MODE.entry(),
    LAZY_SWITCH.entry(),
    COOP_SWITCH.entry(),
    LATENCY.entry(),
    LATENCY_READ.entry(),
    LATENCY_WRITE.entry(),
    LATENCY_OTHER.entry(),
    BYTES.entry(),
    SYNCHRONOUS.entry(),
    POLL_INTERVAL.entry(),
    PREDICT.entry(),
    PREDICT_WINDOW.entry(),
    FORECAST.entry(),
    RESCAN.entry(),
    RESET.entry(),
    DELETE.entry(),
    LINK_POWER.entry(),
    QUEUE_DEPTH.entry(),
    CACHE_TYPE.entry(),
    LEARNED.entry(),
    STATS.entry(),
    QUIRKS.entry(),
    null_mut(),
]);

static NAME_GROUP: Group = Group::new(core::ptr::null(), &NAMES);
static HIOPS_GROUP: Group = Group::new(as_char_ptr_in_const_context(c_str!("hiops")), &SWITCHES);
static GROUPS: List<bindings::attribute_group, 3> =
    List([NAME_GROUP.entry(), HIOPS_GROUP.entry(), null_mut()]);

/// The groups of every disk, as `device_add_disk` takes them.
pub(crate) fn groups() -> *mut *const bindings::attribute_group {
    GROUPS.first().cast()
}

/// The mode of that word, or of the number that it has as the module's parameter.
pub(crate) fn mode_of(text: &[u8]) -> Option<Mode> {
    match text {
        b"irq" | b"0" => Some(Mode::Irq),
        b"poll" | b"1" => Some(Mode::Poll),
        b"hybrid" | b"2" => Some(Mode::Hybrid),
        _ => None,
    }
}

/// The lines of `stats`: name, blank, value.
pub(crate) fn write_stats(
    to: &mut impl Write,
    sums: &Sums,
    counts: &ControllerCounts,
) -> fmt::Result {
    let [irq, lazy, coop, poll, swept] = sums.completed;
    // What no thread came for would have been the interrupt's, or is for want of an answer.
    let irq = irq.wrapping_add(swept);
    let completed = irq.wrapping_add(lazy).wrapping_add(coop).wrapping_add(poll);
    let [hit, late, vain, woken] = counts.naps;
    let naps = hit
        .wrapping_add(late)
        .wrapping_add(vain)
        .wrapping_add(woken);
    let lines: [(&str, u64); 31] = [
        ("submitted", sums.submitted),
        ("completed", completed),
        ("completed_irq", irq),
        ("completed_lazy", lazy),
        ("completed_coop", coop),
        ("completed_poll", poll),
        ("fifo_deferred", sums.deferred),
        ("interrupts", counts.interrupts),
        ("doorbell_writes", counts.doorbell_writes),
        ("errors", sums.errors),
        ("retried", sums.retried),
        ("timeouts", sums.timeouts),
        ("resets", counts.resets),
        ("max_irq_ns", counts.max_irq_ns),
        ("max_tick_ns", counts.max_tick_ns),
        ("ticks", counts.ticks),
        ("turns", counts.turns),
        ("missed_interrupts", counts.missed),
        ("aborts", counts.aborts),
        ("swept", swept),
        ("naps", naps),
        ("naps_hit", hit),
        ("naps_late", late),
        ("naps_vain", vain),
        ("naps_woken", woken),
        ("resets_asked", counts.asked),
        ("bytes_reads", sums.bytes.reads),
        ("bytes_writes", sums.bytes.writes),
        ("bytes_merged", sums.bytes.merged),
        ("bytes_wanted", sums.bytes.wanted),
        ("bytes_moved", sums.bytes.moved),
    ];
    (lines.iter()).try_for_each(|(name, value)| writeln!(to, "{name} {value}"))
}

/// What is left of a name that blanks and zeroes pad.
fn trimmed(mut name: &[u8]) -> &[u8] {
    while let Some((b' ' | 0, before)) = name.split_last() {
        name = before;
    }
    name
}

/// The name of a disk that no other has, as the in-tree NVMe driver writes it: the strongest of its
/// `ids`, or what it is called and numbered.
pub(crate) fn write_wwid(to: &mut impl Write, unit: &Unit, ids: &UnitIds) -> fmt::Result {
    if let Some(uuid) = &ids.uuid {
        let part = |from: usize, to: usize| Hex(uuid.get(from..to).unwrap_or_default());
        let (a, b, c, d, e) = (
            part(0, 4),
            part(4, 6),
            part(6, 8),
            part(8, 10),
            part(10, 16),
        );
        writeln!(to, "uuid.{a}-{b}-{c}-{d}-{e}")
    } else if let Some(nguid) = &ids.nguid {
        writeln!(to, "eui.{}", Hex(nguid))
    } else if let Some(eui64) = &ids.eui64 {
        writeln!(to, "eui.{}", Hex(eui64))
    } else if let Some(wwn) = ids.wwn {
        writeln!(to, "naa.{wwn:016x}")
    } else {
        match unit.kind {
            UnitKind::Namespace { vendor } => write!(to, "nvme.{vendor:04x}-")?,
            UnitKind::Drive | UnitKind::Ram => to.write_str("hiops.")?,
        }
        let (serial, model) = (Hex(trimmed(&unit.serial)), Hex(trimmed(&unit.model)));
        writeln!(to, "{serial}-{model}-{:08x}", unit.id)
    }
}

/// Shows one attribute.
type Show = fn(GenDisk<'_>, &mut Text<'_>) -> fmt::Result;
/// Takes a value, without the blanks around it.
type Store = fn(GenDisk<'_>, &[u8]) -> Result<(), Error>;

/// One attribute, with the kernel's part first.
#[repr(C)]
struct Attribute {
    raw: bindings::device_attribute,
    show: Show,
    store: Option<Store>,
    is_there: fn(GenDisk<'_>) -> bool,
}

// SAFETY: it is never written.
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
    const fn where_there_is(self, is_there: fn(GenDisk<'_>) -> bool) -> Self {
        Self { is_there, ..self }
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
struct Group(bindings::attribute_group);

// SAFETY: it is never written.
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

    const fn entry(&'static self) -> *mut bindings::attribute_group {
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
unsafe fn of_device<'a>(dev: *mut bindings::device) -> GenDisk<'a> {
    // SAFETY: by the caller's promise; a disk's device is that of its part 0.
    unsafe {
        let part = kernel::container_of!(dev, bindings::block_device, bd_device);
        GenDisk::from_raw((*part).bd_disk)
    }
}
