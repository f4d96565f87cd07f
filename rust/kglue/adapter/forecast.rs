// SPDX-License-Identifier: GPL-2.0
//! When an adapter's commands are over, as text.

use crate::adapter::queue::Strategy;
use core::fmt::{self, Write};
use strategy::Known;

/// Writes a line for each class of which a command was measured by any of `strategies`: what it is
/// expected to take, how far commands are from that on average, and how many were measured. What
/// several have measured goes in as often as each has.
pub(super) fn write<'a>(
    to: &mut dyn Write,
    strategies: impl Iterator<Item = &'a Strategy> + Clone,
) -> fmt::Result {
    let known = || strategies.clone().flat_map(Strategy::known);
    for class in strategy::Class::all() {
        let alike = || known().filter(|known| known.class == class);
        let seen: u64 = alike().map(|Known { seen, .. }| u64::from(seen)).sum();
        let mean = |of: fn(&Known) -> u64| {
            let sum = alike().fold(0u64, |sum, known| {
                sum.saturating_add(of(&known).saturating_mul(u64::from(known.seen)))
            });
            sum.checked_div(seen)
        };
        if let (Some(expected), Some(spread)) = (
            mean(|known| known.expected_ns),
            mean(|known| known.spread_ns),
        ) {
            writeln!(
                to,
                "{class} expected_ns {expected} spread_ns {spread} seen {seen}"
            )?;
        }
    }
    Ok(())
}
