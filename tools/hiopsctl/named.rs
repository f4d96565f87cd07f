// SPDX-License-Identifier: GPL-2.0
//! What an operator calls a disk or a controller: by its address, its node (`nvme0`, `nvme0n1`,
//! `/dev/nvme0n1`, `hiops0`, `hiops0n1`), a partition of it, or a link of `/dev/disk` to one.

use crate::failure::Failure;
use crate::machine::{controllers, Controller, Kind};
use crate::root::Root;
use std::path::{Component, Path};

/// Links of links that are followed; /dev/disk has one upon another at most.
const MOST_LINKS: usize = 8;

/// What a name leads to.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) controller: Controller,
    /// The disk in /sys/block, where a disk was named or a partition of it.
    pub(crate) disk: Option<String>,
}

/// What `text` names among the controllers of this machine; none: nothing that is there.
pub(crate) fn named(root: &Root, text: &str) -> Option<Named> {
    let name = kernel_name(root, text);
    let plain = !name.is_empty() && !name.starts_with('.');
    let mut all = controllers(root).into_iter();
    if let Some(disk) = plain.then(|| disk_of(root, &name)).flatten() {
        let controller = all.find(|it| it.disks.iter().any(|one| one.name == disk))?;
        let disk = Some(disk);
        return Some(Named { controller, disk });
    }
    let address = full_address(text);
    let is_it = |it: &Controller| match &address {
        Some(address) => it.address == *address,
        None => plain && has_node(root, it, &name),
    };
    let controller = all.find(is_it)?;
    Some(Named {
        controller,
        disk: None,
    })
}

/// The address of a PCI function that there is, from how an operator names it.
///
/// # Errors
/// There is none, or it is none that a driver can be given.
pub(crate) fn function(root: &Root, device: &str) -> Result<String, Failure> {
    if let Some(Named { controller, disk }) = named(root, device) {
        if controller.kind != Kind::Ram {
            return Ok(controller.address);
        }
        let name = disk.unwrap_or(controller.address);
        let what = format!("{name} is a RAM disk, which no driver can be given");
        return Err(Failure::new(what, "rmmod hiops takes it away"));
    }
    let Some(address) = full_address(device) else {
        return Err(Failure::new(
            format!("'{device}' is neither the address of a PCI function nor a disk"),
            "name one of hiopsctl list, like 0000:01:00.0",
        ));
    };
    if !root.has(&format!("/sys/bus/pci/devices/{address}")) {
        return Err(Failure::new(
            format!("there is no PCI function {address}"),
            "hiopsctl list shows the controllers, lspci -D all functions",
        ));
    }
    Ok(address)
}

/// `text` as sysfs writes it: in small letters and with a domain. None: it is no address.
pub(crate) fn full_address(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (slot, function) = text.rsplit_once('.')?;
    let parts: Vec<&str> = slot.split(':').collect();
    let (domain, bus, device) = match parts[..] {
        [domain, bus, device] => (domain, bus, device),
        [bus, device] => ("0000", bus, device),
        _ => return None,
    };
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shaped = domain.len() >= 4
        && (bus.len(), device.len()) == (2, 2)
        && [domain, bus, device].into_iter().all(hex)
        && matches!(function.as_bytes(), [b'0'..=b'7']);
    shaped.then(|| format!("{domain}:{bus}:{device}.{function}"))
}

/// What the kernel calls the node that `text` leads to: links are followed by what they say, as the
/// node itself may have gone.
pub(crate) fn kernel_name(root: &Root, text: &str) -> String {
    let mut path = match text.starts_with('/') {
        true => text.to_string(),
        false => format!("/dev/{text}"),
    };
    for _ in 0..MOST_LINKS {
        let Some(to) = root.link(&path) else { break };
        let folder = Path::new(&path).parent().unwrap_or(Path::new("/"));
        path = straight(&folder.join(to));
    }
    path.strip_prefix("/dev/")
        .unwrap_or(&path)
        .replace('/', "!")
}

/// `path` without its `..`.
fn straight(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            Component::ParentDir => drop(parts.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    format!("/{}", parts.join("/"))
}

/// The disk in /sys/block that is called `name`, or has a partition of that name.
pub(crate) fn disk_of(root: &Root, name: &str) -> Option<String> {
    if root.has(&format!("/sys/block/{name}/dev")) {
        return Some(name.to_string());
    }
    let part = |disk: &String| root.has(&format!("/sys/block/{disk}/{name}/partition"));
    root.names("/sys/block").into_iter().find(part)
}

/// Whether the controller's own node is called `name`; one of hiops' without a node has its
/// number in the names of its disks.
fn has_node(root: &Root, controller: &Controller, name: &str) -> bool {
    let at = |class: &str| {
        let address = &controller.address;
        root.has(&format!("/sys/bus/pci/devices/{address}/{class}/{name}"))
    };
    let numbered = |disk: &str| {
        let rest = disk.strip_prefix(name);
        name.starts_with("hiops") && rest.is_some_and(|rest| rest.starts_with(['n', 'd']))
    };
    at("nvme") || at("misc") || controller.served().any(|disk| numbered(&disk.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        for (text, is) in [
            ("0000:01:00.0", Some("0000:01:00.0")),
            ("01:00.7", Some("0000:01:00.7")),
            ("10000:E1:00.0", Some("10000:e1:00.0")),
            ("01:00.8", None),
            ("01:00", None),
            ("1:0.0", None),
            ("0g:00.0", None),
            ("000:01:00.0", None),
            ("0000:01:00.00", None),
            ("a:b:c:d.0", None),
            ("", None),
        ] {
            assert_eq!(full_address(text).as_deref(), is, "{text}");
        }
    }

    #[test]
    fn paths_are_made_straight() {
        for (path, is) in [
            ("/dev/disk/by-id/../../nvme0n1", "/dev/nvme0n1"),
            ("/dev/./x", "/dev/x"),
            ("/../..", "/"),
        ] {
            assert_eq!(straight(Path::new(path)), is);
        }
    }
}
