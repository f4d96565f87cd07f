// SPDX-License-Identifier: GPL-2.0
//! Numbers as people read them.

/// Nanoseconds with the unit that leaves few digits.
pub(crate) fn nanoseconds(ns: u64) -> String {
    // CAST: no time is so long that a rounded digit shows.
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.1} s", value / 1e9),
    }
}

/// Bytes, by the thousand, as drives are sold.
pub(crate) fn bytes(bytes: u64) -> String {
    // CAST: as above.
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        1_000_000_000..1_000_000_000_000 => format!("{:.1} GB", value / 1e9),
        _ => format!("{:.2} TB", value / 1e12),
    }
}

/// Each of `parts` on a line of its own.
pub(crate) fn lines(parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut text = String::new();
    for part in parts {
        text.push_str(part.as_ref());
        text.push('\n');
    }
    text
}

/// Something for each of something else; `-` where there was none of that.
pub(crate) fn each(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"))
}

/// A share, in per cent; `-` of nothing.
pub(crate) fn share(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{:.0}%", ratio * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_they_should() {
        let of = [0, 999, 1_000, 999_949, 1_000_000, 2_500_000_000].map(nanoseconds);
        assert_eq!(
            of,
            ["0 ns", "999 ns", "1.0 us", "999.9 us", "1.0 ms", "2.5 s"]
        );
        let of = [512, 1_000, 33_554_432, 512_110_190_592, 4_000_787_030_016].map(bytes);
        assert_eq!(of, ["512 B", "1.0 kB", "33.6 MB", "512.1 GB", "4.00 TB"]);
        assert_eq!(
            (each(None), each(Some(0.0312))),
            ("-".into(), "0.031".into())
        );
        assert_eq!(
            (share(None), share(Some(0.914))),
            ("-".into(), "91%".into())
        );
    }
}
