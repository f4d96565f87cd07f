// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl smartd`: the lines of smartd.conf for the disks of hiops, which smartd's own scan does
//! not find, as it knows the in-tree drivers' names.

use crate::failure::Failure;
use crate::identity::is_named;
use crate::machine::{controllers, Controller, Disk, Kind};
use crate::out::Out;
use crate::root::Root;
use serde::Serialize;

#[derive(Serialize)]
struct Lines {
    disks: Vec<Line>,
}

/// What smartd is told of a disk.
#[derive(Serialize)]
struct Line {
    disk: String,
    /// A name that it keeps from boot to boot, where it has one.
    device: String,
    /// smartctl's type of device.
    kind: &'static str,
}

/// Prints them.
pub(crate) fn run(root: &Root, out: &Out) -> Result<(), Failure> {
    let all = controllers(root);
    let lines = Lines {
        disks: all.iter().flat_map(|one| lines_of(root, one)).collect(),
    };
    out.show(&lines, text)
}

/// A SATA drive each; an NVMe drive once, as its health is the controller's and not a namespace's.
fn lines_of(root: &Root, controller: &Controller) -> Vec<Line> {
    let (kind, most) = match controller.kind {
        Kind::Nvme => ("nvme", 1),
        Kind::Ahci => ("sat", usize::MAX),
        Kind::Ram | Kind::Other => return Vec::new(),
    };
    let line = |disk: &Disk| Line {
        disk: disk.name.clone(),
        device: lasting(root, disk),
        kind,
    };
    controller.served().take(most).map(line).collect()
}

/// Its link in /dev/disk/by-id, of several the one that names its serial number; where udev has
/// made none, the name of now.
fn lasting(root: &Root, disk: &Disk) -> String {
    const FOLDER: &str = "/dev/disk/by-id";
    let leads_there = |link: &String| {
        let to = root.link_name(&format!("{FOLDER}/{link}"));
        to.as_deref() == Some(disk.name.as_str())
    };
    let links: Vec<String> = (root.names(FOLDER).into_iter())
        .filter(leads_there)
        .collect();
    let serial = disk.serial.as_deref().unwrap_or_default();
    let named = |link: &&String| is_named(link, serial);
    match links.iter().find(named).or(links.first()) {
        Some(link) => format!("{FOLDER}/{link}"),
        None => format!("/dev/{}", disk.name),
    }
}

/// The disks that smartd is to be told of, each with its line.
pub(crate) fn wanted(root: &Root, machine: &[Controller]) -> Vec<(String, String)> {
    let lines = machine.iter().flat_map(|one| lines_of(root, one));
    lines.map(|one| (one.disk.clone(), line(&one))).collect()
}

fn line(line: &Line) -> String {
    format!("{} -d {} -a", line.device, line.kind)
}

fn text(lines: &Lines) -> String {
    if lines.disks.is_empty() {
        return "# hiops serves no NVMe or SATA drive\n".into();
    }
    let all: Vec<String> = lines.disks.iter().map(line).collect();
    all.join("\n") + "\n"
}
