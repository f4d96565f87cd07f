// SPDX-License-Identifier: GPL-2.0
//! What time it is, as programs write it (RFC 3339, UTC).

use std::time::{SystemTime, UNIX_EPOCH};

/// Days of 400 years: after so many the calendar repeats itself.
const ERA_DAYS: u64 = 146_097;
/// From 1 March of the year 0, where an era begins, to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;

/// Now, to the millisecond: `2026-02-28T23:59:59.999Z`.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    at(since.as_secs(), since.subsec_millis())
}

/// So many seconds and milliseconds after the beginning of 1970.
fn at(seconds: u64, millis: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days.saturating_add(EPOCH_DAYS);
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    // Years begin with March here, so that a leap day is their last.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + next;
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_is_right_where_it_is_odd() {
        for (seconds, is) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (951_868_800, "2000-03-01T00:00:00.007Z"),
            (1_772_323_199, "2026-02-28T23:59:59.007Z"),
            (1_772_323_200, "2026-03-01T00:00:00.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
            (253_402_300_799, "9999-12-31T23:59:59.007Z"),
        ] {
            assert_eq!(at(seconds, 7), is);
        }
    }
}
