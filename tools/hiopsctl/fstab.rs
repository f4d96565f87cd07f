// SPDX-License-Identifier: GPL-2.0
//! Where a machine names disks: `fstab`, `crypttab`, the kernel's command line. Names like
//! `/dev/nvme0n1` are others once a drive has another driver; UUIDs and links of `/dev/disk` stay.

use crate::attention::{Area, Finding};
use crate::machine::{Controller, Kind};
use crate::named::{disk_of, kernel_name};
use crate::root::Root;

const CMDLINE: &str = "/proc/cmdline";

/// A name of a disk, and where it stands.
struct Spot {
    at: String,
    name: String,
}

/// All names of nodes that are kernels' own.
fn spots(root: &Root) -> Vec<Spot> {
    let mut spots = Vec::new();
    for (file, field) in [("/etc/fstab", 0), ("/etc/crypttab", 1)] {
        let text = root.text(file).unwrap_or_default();
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split_whitespace();
            let comment = text.trim_start().starts_with('#');
            let name = words.nth(field).filter(|_| !comment);
            spots.extend(name.map(|name| Spot {
                at: format!("{file}:{line}"),
                name: name.trim_matches('"').to_string(),
            }));
        }
    }
    let text = root.text(CMDLINE).unwrap_or_default();
    for word in text.split_whitespace() {
        if let Some(("root" | "resume", name)) = word.split_once('=') {
            spots.push(Spot {
                at: CMDLINE.into(),
                name: name.into(),
            });
        }
    }
    spots.retain(|spot| kind_of(&spot.name).is_some());
    spots
}

/// Of which controllers a node is by its name; none: its name says nothing of a driver.
fn kind_of(name: &str) -> Option<Whose> {
    let name = name.strip_prefix("/dev/")?;
    let numbered = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?;
        rest.starts_with(|c: char| c.is_ascii_alphanumeric())
            .then_some(rest)
    };
    if let Some(rest) = numbered("nvme") {
        return rest
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some(Whose::Nvme);
    }
    if numbered("hiops").is_some() {
        return Some(Whose::Hiops);
    }
    numbered("sd").map(|_| Whose::Sata)
}

/// Whose names these are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Whose {
    Nvme,
    Sata,
    Hiops,
}

/// Names that are another disk's, or nobody's, where the functions at `addresses` are with hiops.
/// (The in-tree driver's other drives move up.)
pub(crate) fn breaking(root: &Root, machine: &[Controller], addresses: &[&String]) -> Vec<Finding> {
    let moved = |kind: Kind| {
        let mut those = machine.iter().filter(|it| addresses.contains(&&it.address));
        those.any(|it| it.kind == kind)
    };
    let (nvme, sata) = (moved(Kind::Nvme), moved(Kind::Ahci));
    let mut found = Vec::new();
    for Spot { at, name } in spots(root) {
        let breaks = match kind_of(&name) {
            Some(Whose::Nvme) => nvme,
            Some(Whose::Sata) => sata,
            Some(Whose::Hiops) => true,
            None => false,
        };
        if breaks {
            found.push(Finding::new(
                Area::Names,
                format!("{at} names {name}, which may be another disk, or none, at the next boot"),
                format!(
                    "{} instead: it is the same under either driver",
                    lasting(root, &name)
                ),
            ));
        }
    }
    found
}

/// A name that lasts, for the node that is called `name` now.
fn lasting(root: &Root, name: &str) -> String {
    let node = kernel_name(root, name);
    for (folder, tag) in [
        ("by-uuid", "UUID="),
        ("by-partuuid", "PARTUUID="),
        ("by-id", "/dev/disk/by-id/"),
    ] {
        let folder = format!("/dev/disk/{folder}");
        for link in root.names(&folder) {
            if kernel_name(root, &format!("{folder}/{link}")) == node {
                return format!("write {tag}{link}");
            }
        }
    }
    match disk_of(root, &node) {
        Some(_) => format!("write its UUID= (blkid {name})"),
        None => "write the UUID= of the one that is meant (blkid)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_whose_they_are() {
        for (name, is) in [
            ("/dev/nvme0n1p2", Some(Whose::Nvme)),
            ("/dev/sda1", Some(Whose::Sata)),
            ("/dev/hiops0n1", Some(Whose::Hiops)),
            ("/dev/nvme-fabrics", None),
            ("/dev/sd", None),
            ("/dev/mapper/sda", None),
            ("/dev/disk/by-id/nvme-x", None),
            ("UUID=1", None),
            ("/dev/vda", None),
            ("sda", None),
        ] {
            assert_eq!(kind_of(name), is, "{name}");
        }
    }
}
