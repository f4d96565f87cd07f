// SPDX-License-Identifier: GPL-2.0
//! The list of devices that `hiops-bind-all` binds at boot, `/etc/hiops/devices`: a line each,
//! `ADDRESS [DRIVER] [serial=NUMBER]`; `#` begins a comment. Only its form is looked at here.

use crate::named::full_address;
use serde::Serialize;

/// Where it is.
pub(crate) const FILE: &str = "/etc/hiops/devices";

/// What a line looks like.
const FORM: &str = "a line is ADDRESS [DRIVER] [serial=NUMBER], and # begins a comment";

/// A device that is named.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Lines count from 1.
    pub(crate) line: usize,
    /// With its domain, in small letters.
    pub(crate) address: String,
    pub(crate) driver: String,
    pub(crate) serial: Option<String>,
}

/// What is wrong with a line, and the way out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Wrong {
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) way_out: String,
}

impl Wrong {
    pub(crate) fn new(line: usize, what: String, way_out: impl Into<String>) -> Self {
        Self {
            line,
            what,
            way_out: way_out.into(),
        }
    }
}

/// Reads the list: the lines that are well formed, and what is wrong with the others.
pub(crate) fn parse(text: &str) -> (Vec<Entry>, Vec<Wrong>) {
    let (mut entries, mut wrongs): (Vec<Entry>, Vec<Wrong>) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(text.split('\n')) {
        let entry = match self::line(line, text) {
            Ok(None) => continue,
            Ok(Some(entry)) => entry,
            Err(wrong) => {
                wrongs.push(wrong);
                continue;
            }
        };
        match entries.iter().find(|old| old.address == entry.address) {
            Some(old) => wrongs.push(Wrong::new(
                line,
                format!("{} is named on line {}, too", entry.address, old.line),
                "remove one of the two",
            )),
            None => entries.push(entry),
        }
    }
    (entries, wrongs)
}

/// A line's device; none: there is only a comment, or nothing.
pub(crate) fn line(line: usize, text: &str) -> Result<Option<Entry>, Wrong> {
    if text.ends_with('\r') {
        return Err(Wrong::new(
            line,
            "it ends with a carriage return".into(),
            "save the file with Unix line ends (sed -i 's/\\r$//' FILE)",
        ));
    }
    let text = text.split('#').next().unwrap_or_default();
    let mut words = text.split_whitespace();
    let Some(address) = words.next() else {
        return Ok(None);
    };
    let Some(full) = full_address(address) else {
        return Err(Wrong::new(
            line,
            format!("'{address}' is not the address of a PCI function"),
            "write it as hiopsctl list does, like 0000:01:00.0",
        ));
    };
    let (mut driver, mut serial) = (None, None);
    for word in words {
        match word.split_once('=') {
            Some(("serial", "")) => {
                let what = "serial= has no number".into();
                let way_out = "hiopsctl list shows serial numbers";
                return Err(Wrong::new(line, what, way_out));
            }
            Some(("serial", _)) if serial.is_some() => {
                let what = "serial= is there twice".into();
                return Err(Wrong::new(line, what, "leave one"));
            }
            Some(("serial", number)) => serial = Some(number.to_string()),
            None if driver.is_none() && serial.is_none() && is_driver(word) => {
                driver = Some(word.to_string());
            }
            _ => {
                let what = format!("'{word}' is not understood");
                let way_out = match serial {
                    Some(_) => "in a serial number write ? for each blank",
                    None => FORM,
                };
                return Err(Wrong::new(line, what, way_out));
            }
        }
    }
    Ok(Some(Entry {
        line,
        address: full,
        driver: driver.unwrap_or_else(|| "hiops_nvme".into()),
        serial,
    }))
}

/// A serial number, as it is shown, in the form in which a line may have it: `?` for what would end
/// the word or begin a comment.
pub(crate) fn written(serial: &str) -> String {
    let byte = |c: char| match c {
        '#' => '?',
        c if c.is_ascii_graphic() => c,
        _ => '?',
    };
    serial.chars().map(byte).collect()
}

/// As `hiops-bind` takes them.
fn is_driver(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_comments_and_blanks() {
        let text = "# all of them\n\n0000:01:00.0 hiops_nvme\n 02:00.0\t# the second\n\
                    0000:00:1F.2 hiops_ahci serial=S3Z# port 1";
        let (entries, wrongs) = parse(text);
        assert_eq!(wrongs, []);
        let short = entries.iter().map(|entry| {
            let serial = entry.serial.as_deref();
            (entry.line, &*entry.address, &*entry.driver, serial)
        });
        assert_eq!(
            short.collect::<Vec<_>>(),
            [
                (3, "0000:01:00.0", "hiops_nvme", None),
                (4, "0000:02:00.0", "hiops_nvme", None),
                (5, "0000:00:1f.2", "hiops_ahci", Some("S3Z")),
            ]
        );
        assert_eq!(parse(""), (vec![], vec![]));
    }

    #[test]
    fn a_serial_number_is_one_word() {
        assert_eq!(written("S1 #2?"), "S1??2?");
        let (entries, _) = parse(&format!("01:00.0 hiops_nvme serial={}", written("a b#c")));
        assert_eq!(entries[0].serial.as_deref(), Some("a?b?c"));
    }

    #[test]
    fn each_wrong_line_is_named() {
        for (text, what) in [
            ("nvme0 hiops_nvme", "'nvme0' is not the address"),
            ("01:00.9", "'01:00.9' is not the address"),
            ("01:00.0 hiops_nvme more", "'more' is not understood"),
            ("01:00.0 hiops/nvme", "'hiops/nvme' is not understood"),
            (
                "01:00.0 serial=A hiops_nvme",
                "'hiops_nvme' is not understood",
            ),
            ("01:00.0 hiops_nvme serial=", "serial= has no number"),
            ("01:00.0 serial=A serial=B", "serial= is there twice"),
            ("01:00.0 hiops_nvme model=x", "'model=x' is not understood"),
            ("01:00.0 hiops_nvme\r", "carriage return"),
        ] {
            let (entries, wrongs) = parse(&format!("\n{text}\n"));
            assert_eq!(entries, [], "{text}");
            let [wrong] = &wrongs[..] else {
                panic!("{text}: {wrongs:?}");
            };
            assert!(wrong.line == 2 && wrong.what.contains(what), "{wrong:?}");
            assert!(!wrong.way_out.is_empty());
        }
        let (entries, wrongs) = parse("01:00.0\n#\n0000:01:00.0 nvme\n");
        assert_eq!(entries.len(), 1);
        assert_eq!((wrongs[0].line, wrongs.len()), (3, 1));
        assert!(wrongs[0].what.contains("line 1, too"));
    }
}
