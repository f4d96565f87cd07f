// SPDX-License-Identifier: GPL-2.0
//! A disk's attributes of when commands are over: `/sys/block/<disk>/hiops/{predict,
//! predict_window_us,forecast}`.

use crate::blk::shared::DiskShared;
use crate::compat::eopnotsupp;
use crate::text::{number, Text};
use crate::wait::hook::is_hooked;
use core::fmt::{self, Write};
use engine::MOST_WINDOW_US;
use kernel::error::code::*;
use kernel::error::Error;

/// For how many microseconds a thread may look after a nap.
pub const WINDOW_US: core::ops::RangeInclusive<u32> = 1..=MOST_WINDOW_US;

pub(crate) fn show_predict(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    match is_hooked() {
        true => writeln!(to, "{}", u8::from(disk.owner.get().predicts())),
        false => to.write_str("unavailable\n"),
    }
}

pub(crate) fn store_predict(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    match number(text)? {
        1 if !is_hooked() => Err(eopnotsupp()),
        on @ (0 | 1) => {
            disk.owner.get().set_predict(on == 1);
            Ok(())
        }
        _ => Err(EINVAL),
    }
}

pub(crate) fn show_window(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    writeln!(to, "{}", disk.owner.get().window_us())
}

pub(crate) fn store_window(disk: &DiskShared, text: &[u8]) -> Result<(), Error> {
    let us = u32::try_from(number(text)?).map_err(|_| EINVAL)?;
    if !WINDOW_US.contains(&us) {
        return Err(EINVAL);
    }
    disk.owner.get().set_window_us(us);
    Ok(())
}

pub(crate) fn show_forecast(disk: &DiskShared, to: &mut Text<'_>) -> fmt::Result {
    disk.owner.get().forecast(to)
}
