// SPDX-License-Identifier: GPL-2.0
//! Attributes that are settings of the device itself, of those that have them: how much its link
//! may sleep, how many commands it is given at once, and whether its write cache is on. The in-tree
//! drivers' words (Linux 7.3).

use crate::blk::shared::DiskShared;
use crate::errno::to_errno;
use crate::text::{number, Text};
use core::fmt::{self, Write};
use hal::LinkPower;
use kernel::error::code::*;
use kernel::error::Error;

pub(crate) fn show_link_power(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    let policy = disk.owner.get().link_power().unwrap_or_default();
    writeln!(to, "{}", policy.name())
}

pub(crate) fn store_link_power(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    let policy = LinkPower::of_name(text).ok_or(EINVAL)?;
    let set = disk.owner.get().set_link_power(policy);
    set.map_err(to_errno)
}

pub(crate) fn show_depth(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    writeln!(to, "{}", disk.owner.get().depth().unwrap_or_default())
}

pub(crate) fn store_depth(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    let depth = u16::try_from(number(text)?).map_err(|_| EINVAL)?;
    disk.owner.get().set_depth(depth).map_err(to_errno)
}

pub(crate) fn show_cache_type(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    to.write_str(match disk.owner.get().has_cache(disk.unit.id) {
        Ok(true) => "write back\n",
        Ok(false) => "write through\n",
        Err(_) => return Err(fmt::Error),
    })
}

pub(crate) fn store_cache_type(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    let on = match text {
        b"write back" => true,
        b"write through" => false,
        _ => return Err(EINVAL),
    };
    let set = disk.owner.get().set_write_cache(on);
    set.map_err(to_errno)
}
