// SPDX-License-Identifier: GPL-2.0
//! A disk's counters, `/sys/block/DISK/hiops/stats`, and what they have grown by.
//!
//! Some count what the controller did and read alike on all its disks (`interrupts`,
//! `doorbell_writes`, `resets`, `ticks` and so on): whoever adds disks up takes these once. Those
//! in [`LONGEST`] do not count: they are the longest of something since they were zeroed.

use crate::pairs::Pairs;
use serde::Serialize;

/// What is the longest of something, and no count.
pub(crate) const LONGEST: [&str; 2] = ["max_irq_ns", "max_tick_ns"];

/// The contexts that end requests, as `completed_*` names them.
pub(crate) const CONTEXTS: [&str; 4] = ["irq", "lazy", "coop", "poll"];

/// One look at the counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Counters(pub(crate) Pairs<u64>);

/// What lies between two looks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Growth {
    /// By name, how much it has grown; the longest times as they are.
    pub(crate) by: Counters,
    /// Somebody has zeroed the counters meanwhile: only what came after that is known.
    pub(crate) was_reset: bool,
}

impl Counters {
    /// Reads lines "NAME VALUE". Fails with the first line that is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let line = |line: &str| {
            let (name, value) = line.split_once(' ').ok_or_else(|| line.to_string())?;
            let value = value.parse().map_err(|_| line.to_string())?;
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            match !name.is_empty() && name.bytes().all(plain) {
                true => Ok((name.to_string(), value)),
                false => Err(line.to_string()),
            }
        };
        let lines: Result<Vec<_>, String> = text.lines().map(line).collect();
        lines.map(|lines| Self(Pairs(lines)))
    }

    /// A counter; 0 if this version of hiops has none of that name.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0.get(name).unwrap_or(0)
    }

    /// What has come since `before`.
    pub(crate) fn since(&self, before: &Self) -> Growth {
        let counts = |name: &str| !LONGEST.contains(&name);
        let was_reset =
            (self.0 .0.iter()).any(|(name, value)| counts(name) && *value < before.get(name));
        let grown = |(name, value): &(String, u64)| {
            let by = if was_reset || !counts(name) {
                *value
            } else {
                value.saturating_sub(before.get(name))
            };
            (name.clone(), by)
        };
        Growth {
            by: Self(Pairs(self.0 .0.iter().map(grown).collect())),
            was_reset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Counters {
        Counters::parse(text).unwrap()
    }

    #[test]
    fn lines_are_names_and_numbers() {
        let counters = of("submitted 7\ncompleted 18446744073709551615\n");
        assert_eq!(counters.get("submitted"), 7);
        assert_eq!(counters.get("completed"), u64::MAX);
        assert_eq!(counters.get("later_version"), 0);
        assert_eq!(Counters::parse("submitted"), Err("submitted".into()));
        assert_eq!(Counters::parse("a 1\nb x\n"), Err("b x".into()));
        assert_eq!(Counters::parse("a -1"), Err("a -1".into()));
        assert_eq!(Counters::parse("a: 1"), Err("a: 1".into()));
        assert_eq!(Counters::parse(" 1"), Err(" 1".into()));
        assert_eq!(of(""), Counters::default());
    }

    #[test]
    fn growth_is_the_difference_of_counts_and_the_longest_time() {
        let before = of("completed 10\nmax_irq_ns 900\n");
        let grown = of("completed 15\nmax_irq_ns 700\nnew 3\n").since(&before);
        assert!(!grown.was_reset);
        assert_eq!(grown.by, of("completed 5\nmax_irq_ns 700\nnew 3\n"));
        assert_eq!(
            before.since(&before).by,
            of("completed 0\nmax_irq_ns 900\n")
        );
    }

    #[test]
    fn what_was_zeroed_counts_from_zero() {
        let before = of("completed 100\nerrors 2\n");
        let grown = of("completed 40\nerrors 2\n").since(&before);
        assert!(grown.was_reset);
        assert_eq!(grown.by, of("completed 40\nerrors 2\n"));
    }
}
