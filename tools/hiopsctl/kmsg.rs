// SPDX-License-Identifier: GPL-2.0
//! The kernel's log, /dev/kmsg: the lines that concern hiops.

use crate::root::Root;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// O_NONBLOCK on x86: the end of the log is an error then, and no wait.
const NONBLOCK: i32 = 0o4000;
/// A record is read at once, and is no longer.
const RECORD: usize = 8192;

/// What a line has that concerns hiops, or shows how the kernel fares as a whole.
const SIGNS: [&str; 7] = [
    "hiops",
    "BUG:",
    "WARNING:",
    "Oops",
    "blocked for more than",
    "rcu: INFO",
    "soft lockup",
];
/// The boot loader's line: it is in the report by itself, without its values.
const COMMAND_LINES: [&str; 2] = ["Command line:", "command line"];
/// What init is given of it: one parameter a line.
const PASSED_ON: &str = "]     ";

/// The log's lines as dmesg prints them.
///
/// # Errors
/// It can't be read: root may.
pub(crate) fn read(root: &Root) -> io::Result<Vec<String>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(NONBLOCK);
    let mut log = options.open(root.at("/dev/kmsg"))?;
    let mut text = Vec::new();
    let mut record = vec![0; RECORD];
    loop {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(len) => text.extend(record.iter().take(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // The oldest record was overwritten: the next one comes.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(line).collect())
}

/// A record's first line; its others, which begin with a blank, tell devices apart.
fn line(record: &str) -> Option<String> {
    let (prefix, text) = record.split_once(';')?;
    let us: u64 = prefix.split(',').nth(2)?.parse().ok()?;
    let (seconds, rest) = (us / 1_000_000, us % 1_000_000);
    Some(format!("[{seconds:5}.{rest:06}] {text}"))
}

/// Those that concern hiops or one of `addresses`, and each report of the kernel's about itself.
pub(crate) fn concerning(lines: Vec<String>, addresses: &[String]) -> Vec<String> {
    let mut within = false;
    let wanted = |line: &String| {
        if line.contains("------------[ cut here") {
            within = true;
        }
        let was_within = within;
        if line.contains("---[ end trace") {
            within = false;
        }
        let names = |sign: &str| line.contains(sign);
        let is_parameters = COMMAND_LINES.into_iter().any(names) || names(PASSED_ON) && names("=");
        let is_ours = SIGNS.into_iter().any(names) || addresses.iter().any(|it| names(it));
        !is_parameters && (was_within || is_ours)
    };
    lines.into_iter().filter(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_lines() {
        assert_eq!(
            line("6,1234,5001002,-;hiops: loaded; well").unwrap(),
            "[    5.001002] hiops: loaded; well"
        );
        assert_eq!(line(" SUBSYSTEM=pci"), None);
        assert_eq!(line("6,x"), None);
    }

    #[test]
    fn what_concerns_hiops_is_kept() {
        let lines = [
            "usb 1-1: new device",
            "Command line: hiops.mode=1 secret=x",
            "[    1.000000]     hiops_note=mine",
            "hiops: loaded",
            "nvme 0000:01:00.0: gone",
            "------------[ cut here ]------------",
            "RIP: 0010:somewhere",
            "---[ end trace 0 ]---",
            "usb 1-1: gone",
        ];
        let kept = concerning(lines.map(String::from).to_vec(), &["0000:01:00.0".into()]);
        assert_eq!(kept, lines.map(String::from)[3..8]);
    }
}
