// SPDX-License-Identifier: GPL-2.0
//! A disk's attributes: `/sys/block/<disk>/{serial,model,firmware_rev,wwid,nsid,port_no}` and
//! `/sys/block/<disk>/hiops/`.

use crate::attribute::{Attribute, Group, List};
use crate::blk::owner::Owner;
use crate::blk::shared::DiskShared;
use crate::compat::eopnotsupp;
use crate::sysfs_device::{
    show_cache_type, show_depth, show_link_power, store_cache_type, store_depth, store_link_power,
};
use crate::sysfs_predict::{show_forecast, show_predict, show_window, store_predict, store_window};
use crate::sysfs_text::{mode_of, write_stats, write_wwid};
use crate::text::{number, write_quirks, Text};
use crate::wait::hook::is_hooked;
use core::fmt::{self, Write};
use core::ptr::null_mut;
use engine::{Mode, Switches};
use hal::UnitKind;
use kernel::bindings;
use kernel::c_str;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::str::as_char_ptr_in_const_context;
use strategy::NAMES as STRATEGIES;

/// The shortest and the longest interval between two polls that are accepted, in microseconds.
pub const POLL_INTERVAL_US: core::ops::RangeInclusive<u32> = 1..=10_000;

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
    match is_hooked() {
        true => show_switch(disk, to, Switches::LAZY),
        false => to.write_str("unavailable\n"),
    }
}

fn store_lazy(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    if !is_hooked() && number(text)? == 1 {
        return Err(eopnotsupp());
    }
    store_switch(disk, text, Switches::LAZY)
}

/// The adapter of `disk`.
fn owner(disk: &DiskShared) -> &dyn Owner {
    disk.owner.get()
}

fn show_mode(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    to.write_str(match owner(disk).mode() {
        Mode::Irq => "irq\n",
        Mode::Poll => "poll\n",
        Mode::Hybrid => "hybrid\n",
    })
}

fn store_mode(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    let mode = mode_of(text).ok_or(EINVAL)?;
    owner(disk).set_mode(mode).map_err(crate::errno::to_errno)
}

fn show_strategy(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    let chosen = STRATEGIES.get(owner(disk).strategy());
    writeln!(to, "{}", chosen.unwrap_or(&"?"))
}

fn store_strategy(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    let which = STRATEGIES.iter().position(|name| name.as_bytes() == text);
    owner(disk).choose(which.ok_or(EINVAL)?);
    Ok(())
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

/// In the background, too.
fn store_delete(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        1 => {
            owner(disk).take_off().ok_or_else(eopnotsupp)?.leave();
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

static SERIAL: Attribute =
    Attribute::new(c_str!("serial"), |d, to| to.identity(&d.unit.serial), None);
static MODEL: Attribute = Attribute::new(c_str!("model"), |d, to| to.identity(&d.unit.model), None);
static FIRMWARE: Attribute = Attribute::new(
    c_str!("firmware_rev"),
    |d, to| to.identity(&d.unit.firmware),
    None,
);
static WWID: Attribute = Attribute::new(
    c_str!("wwid"),
    |d, to| write_wwid(to, &d.unit, d.names.ids()),
    None,
);
static NSID: Attribute =
    Attribute::new(c_str!("nsid"), |d, to| writeln!(to, "{}", d.unit.id), None)
        .where_there_is(|d| matches!(d.unit.kind, UnitKind::Namespace { .. }));
/// As libata counts ports.
static PORT_NO: Attribute = Attribute::new(
    c_str!("port_no"),
    |d, to| writeln!(to, "{}", d.unit.id.saturating_add(1)),
    None,
)
.where_there_is(|d| d.unit.kind == UnitKind::Drive);

static MODE: Attribute = Attribute::new(c_str!("mode"), show_mode, Some(store_mode));
static STRATEGY: Attribute =
    Attribute::new(c_str!("strategy"), show_strategy, Some(store_strategy));
static LAZY_SWITCH: Attribute = Attribute::new(c_str!("lazy"), show_lazy, Some(store_lazy));
static COOP_SWITCH: Attribute = Attribute::new(
    c_str!("coop"),
    |d, to| show_switch(d, to, Switches::COOP),
    Some(|d, text| store_switch(d, text, Switches::COOP)),
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
static SWITCHES: List<bindings::attribute, 18> = List([
    STRATEGY.entry(),
    MODE.entry(),
    LAZY_SWITCH.entry(),
    COOP_SWITCH.entry(),
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
