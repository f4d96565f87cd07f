// SPDX-License-Identifier: GPL-2.0
//! When an adapter's commands are over, as text.

use crate::adapter::queue::Strategy;
use core::fmt::{self, Write};
use strategy::{Class, Known};

/// Tells what the strategy of each queue knows of a class.
pub(super) type Ask<'a> = &'a dyn Fn(Class, &mut dyn FnMut(Known));

/// Tells `to` what `strategy` knows of `class`, if anything.
pub(super) fn ask(strategy: &Strategy, class: Class, to: &mut dyn FnMut(Known)) {
    if let Some(known) = strategy.known(class) {
        to(known);
    }
}

/// Writes a line for each class of which a command was measured: what it is expected to take, how
/// far commands are from that on average, and how many were measured. What several queues know goes
/// in as often as each has measured.
pub(super) fn write(to: &mut dyn Write, ask: Ask<'_>) -> fmt::Result {
    for class in Class::all() {
        let (mut seen, mut expected, mut spread) = (0u64, 0u64, 0u64);
        ask(class, &mut |known| {
            let often = u64::from(known.seen);
            seen = seen.saturating_add(often);
            expected = expected.saturating_add(known.expected_ns.saturating_mul(often));
            spread = spread.saturating_add(known.spread_ns.saturating_mul(often));
        });
        if let (Some(expected), Some(spread)) =
            (expected.checked_div(seen), spread.checked_div(seen))
        {
            writeln!(
                to,
                "{class} expected_ns {expected} spread_ns {spread} seen {seen}"
            )?;
        }
    }
    Ok(())
}
