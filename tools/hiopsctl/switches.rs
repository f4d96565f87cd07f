// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl get` and `hiopsctl set`: the files in `/sys/block/DISK/hiops`.
//!
//! The kernel decides what a file takes. The words for that are here only to help whoever was
//! refused; a file that a later version has works all the same.

use crate::counters::Counters;
use crate::failure::Failure;
use crate::learned::Learned;
use crate::machine::served_disk;
use crate::out::Out;
use crate::pairs::Pairs;
use crate::root::Root;
use crate::saved;
use crate::show;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;

/// EINVAL and EOPNOTSUPP: the value is none, or none for this machine or device. EBUSY: somebody
/// has the disk who keeps it from being set.
const EINVAL: i32 = 22;
const EOPNOTSUPP: i32 = 95;
const EBUSY: i32 = 16;

/// Files that are no settings: what they say is shown by other commands, or is nothing.
const NO_SETTINGS: [&str; 10] = [
    "stats",
    "learned",
    "forecast",
    "quirks",
    "latency_read",
    "latency_write",
    "latency_other",
    "rescan_controller",
    "reset_controller",
    "delete",
];

/// What a file takes.
fn values(name: &str) -> &'static str {
    match name {
        "strategy" => "plain or coop",
        "mode" => "irq, poll or hybrid (or 0, 1, 2)",
        "lazy" | "coop" | "bytes" | "predict" | "synchronous" | "latency" => "0 or 1",
        "poll_interval_us" => "microseconds, 1 to 10000",
        "predict_window_us" => "microseconds, 1 to 100",
        "rescan_controller" | "reset_controller" | "delete" => "1",
        "stats" | "latency_read" | "latency_write" | "latency_other" => "reset",
        "queue_depth" => "1 to what the drive takes",
        "cache_type" => "'write back' or 'write through'",
        "link_power_management_policy" => {
            "max_performance, medium_power, med_power_with_dipm, min_power_with_partial or \
             min_power"
        }
        _ => "what the operator's manual says of it",
    }
}

fn path(disk: &str, name: &str) -> String {
    format!("/sys/block/{disk}/hiops/{name}")
}

/// The path of a disk's file `name`.
///
/// # Errors
/// There is none.
fn file(root: &Root, disk: &str, name: &str) -> Result<String, Failure> {
    let names = root.names(&path(disk, ""));
    if names.iter().any(|known| known == name) {
        return Ok(path(disk, name));
    }
    Err(Failure::new(
        format!("{disk} has no '{name}'"),
        format!("it has: {}", names.join(" ")),
    ))
}

/// Prints a setting, or all.
pub(crate) fn get(root: &Root, out: &Out, disk: &str, name: Option<&str>) -> Result<(), Failure> {
    let disk = served_disk(root, disk)?;
    if let Some(name) = name {
        let path = file(root, &disk, name)?;
        let text = root
            .read(&path)
            .map_err(|error| Failure::io(&path, &error))?;
        let value = structure(name, &text)?;
        return out.show(&Pairs(vec![(name.to_string(), value)]), |_| text.clone());
    }
    let names = root.names(&path(&disk, ""));
    let settings = names
        .into_iter()
        .filter(|name| !NO_SETTINGS.contains(&name.as_str()));
    let read = settings.filter_map(|name| {
        let value = root.line(&path(&disk, &name))?;
        Some((name, value))
    });
    out.show(&Pairs(read.collect()), |pairs: &Pairs<String>| {
        let lines = pairs.0.iter();
        show::lines(lines.map(|(name, value)| format!("{name} {value}")))
    })
}

/// What a file says, for JSON.
fn structure(name: &str, text: &str) -> Result<serde_json::Value, Failure> {
    let made = match (name, Counters::parse(text)) {
        ("stats", Ok(counters)) => serde_json::to_value(counters),
        ("learned", _) => serde_json::to_value(Learned::parse(text)),
        _ => Ok(text.trim_end().into()),
    };
    made.map_err(|error| Failure::new(format!("no JSON can be made: {error}"), "this is a bug"))
}

/// What was changed.
#[derive(Serialize)]
struct Change<'a> {
    disk: &'a str,
    name: &'a str,
    before: Option<String>,
    /// What the file says now: the kernel may round.
    value: Option<String>,
    /// Whether it was kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    saved: bool,
    /// Why it makes no difference now.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_effect: Option<String>,
}

/// What `name` of `disk` is for, the plain strategy does not do.
pub(crate) fn without_effect(root: &Root, disk: &str, name: &str) -> Option<String> {
    let word = |name: &str| root.word(&path(disk, name));
    let idle = matches!(name, "lazy" | "predict")
        && word("strategy").as_deref() == Some("plain")
        && word(name).as_deref() == Some("1");
    idle.then(|| format!("{name} has no effect with the strategy plain"))
}

/// What a setting of a disk is now; none: there is no such setting.
pub(crate) fn value(root: &Root, disk: &str, name: &str) -> Option<String> {
    let setting = !NO_SETTINGS.contains(&name) && !name.contains('/');
    setting.then(|| root.line(&path(disk, name))).flatten()
}

/// Writes `value` to the file `name` of a disk.
pub(crate) fn write(root: &Root, disk: &str, name: &str, value: &str) -> Result<(), Failure> {
    let path = file(root, disk, name)?;
    let at = root.at(&path);
    let mode = at.metadata().map(|data| data.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o222 == 0) {
        return Err(Failure::new(
            format!("{name} of {disk} can't be set"),
            "it can only be read (hiopsctl get)",
        ));
    }
    if value.is_empty() {
        // Nothing would be written, and the kernel would have nothing to refuse.
        let what = format!("{name} of {disk} does not take ''");
        return Err(Failure::new(what, format!("it takes {}", values(name))));
    }
    let mut to = OpenOptions::new();
    let written = to.write(true).open(at).and_then(|mut to| {
        // In one piece: sysfs takes each write for a value.
        to.write_all(value.as_bytes())
    });
    written.map_err(|error| refusal(disk, name, value, &error))
}

/// Writes `to` to a file of a disk; `save`: and whenever the disk comes, from now on.
pub(crate) fn set(
    root: &Root,
    out: &Out,
    disk: &str,
    (name, to): (&str, &str),
    save: bool,
) -> Result<(), Failure> {
    let disk = &served_disk(root, disk)?;
    if save && NO_SETTINGS.contains(&name) {
        let what = format!("{name} of {disk} is no setting that can be kept");
        return Err(Failure::new(what, "leave --save out"));
    }
    let before = value(root, disk, name);
    write(root, disk, name, to)?;
    let now = value(root, disk, name);
    if save {
        // As the kernel calls it, by which it is compared later.
        saved::keep(root, disk, name, Some(now.as_deref().unwrap_or(to)))?;
    }
    let change = Change {
        disk,
        name,
        before,
        value: now,
        saved: save,
        without_effect: without_effect(root, disk, name),
    };
    out.show(&change, |change| {
        let mut said = match (&change.before, &change.value) {
            (Some(before), Some(value)) => format!("{disk}: {name} is {value} (was {before})\n"),
            _ => format!("{disk}: {name} took {to}\n"),
        };
        if change.saved {
            said.push_str(&format!("{} keeps it\n", saved::FILE));
        }
        if let Some(why) = &change.without_effect {
            said.push_str(&format!("{why}: hiopsctl set {disk} strategy coop\n"));
        }
        said
    })
}

/// What is to be done first where the disk is in use.
fn in_use(name: &str) -> &'static str {
    match name {
        "synchronous" => {
            "swap that is on would not notice, nor would md or device mapper: swapoff, set it, \
             swapon (hiops-users tells who has the disk)"
        }
        _ => "a program has it (hiops-users tells which)",
    }
}

/// Why the kernel has not taken it.
fn refusal(disk: &str, name: &str, value: &str, error: &io::Error) -> Failure {
    let what = format!("{name} of {disk} does not take '{value}'");
    match error.raw_os_error() {
        Some(EINVAL) => Failure::new(what, format!("it takes {}", values(name))),
        Some(EOPNOTSUPP) => Failure::new(
            format!("{what} on this machine or with this device"),
            "the kernel's log says why (dmesg)",
        ),
        Some(EBUSY) => Failure::new(what, in_use(name)),
        _ => Failure::io(format!("{name} of {disk} can't be set to '{value}'"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_would_be_taken() {
        let said = |code, name| {
            let error = io::Error::from_raw_os_error(code);
            refusal("hiops0n1", name, "fast", &error).to_string()
        };
        assert_eq!(
            said(EINVAL, "mode"),
            "mode of hiops0n1 does not take 'fast': it takes irq, poll or hybrid (or 0, 1, 2)"
        );
        assert!(said(EINVAL, "new").ends_with("manual says of it"));
        assert!(said(EOPNOTSUPP, "mode").contains("with this device: the kernel's log"));
        assert!(said(16, "synchronous")
            .ends_with("swapoff, set it, swapon (hiops-users tells who has the disk)"));
        assert!(said(16, "bytes").contains("a program has it"));
        assert!(said(13, "mode").contains("as root"), "{}", said(13, "mode"));
        assert!(said(5, "mode").contains("dmesg"));
    }
}
