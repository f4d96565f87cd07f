// SPDX-License-Identifier: GPL-2.0
//! When an adapter's commands are over, as text.

use crate::adapter::queue::Strategy;
use core::fmt::{self, Write};
use strategy::Class;

/// Writes a line for each class of which a command was measured: what it is expected to take, how
/// far commands are from that on average, and how many were measured. What several queues'
/// strategies know goes in as often as each has measured.
pub(super) fn write<'a>(
    to: &mut dyn Write,
    strategies: impl Iterator<Item = &'a Strategy> + Clone,
) -> fmt::Result {
    // In loops: the names of iterators that do all of it are longer than objtool takes.
    for class in Class::all() {
        let (mut seen, mut expected, mut spread) = (0u64, 0u64, 0u64);
        for strategy in strategies.clone() {
            if let Some(known) = strategy.coop().foresight().known(class) {
                let often = u64::from(known.seen);
                seen = seen.saturating_add(often);
                expected = expected.saturating_add(known.expected_ns.saturating_mul(often));
                spread = spread.saturating_add(known.spread_ns.saturating_mul(often));
            }
        }
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
