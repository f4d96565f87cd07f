// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl doctor`: all that may keep a drive of hiops from being as it was set, now and after
//! the next boot, of whichever kernel. It changes nothing.

use crate::attention::{ended, Area, Finding};
use crate::check;
use crate::devices;
use crate::failure::Failure;
use crate::fstab;
use crate::identity;
use crate::initramfs;
use crate::kernels;
use crate::machine::{controllers, Controller};
use crate::named::kernel_name;
use crate::out::Out;
use crate::root::Root;
use crate::saved;
use crate::show;
use crate::smartd;
use crate::under;
use serde::Serialize;

const SMARTD: &str = "/etc/smartd.conf";
const UNIT: &str = "hiops-bind.service";
/// Where udev and systemd look, the first one that has a file first.
const UDEV: [&str; 4] = ["/etc", "/run", "/usr/local/lib", "/usr/lib"];
const RULES: [&str; 2] = ["60-hiops.rules", "61-hiops-bind.rules"];

#[derive(Serialize)]
struct Diagnosis {
    kernel: Option<String>,
    installed: Vec<String>,
    findings: Vec<Finding>,
}

/// Looks, and tells.
pub(crate) fn run(root: &Root, out: &Out) -> Result<(), Failure> {
    let kernels = kernels::installed(root);
    let diagnosis = Diagnosis {
        findings: findings(root, &kernels),
        kernel: kernels::running(root),
        installed: kernels.into_iter().map(|it| it.release).collect(),
    };
    out.show(&diagnosis, text)?;
    ended(&diagnosis.findings)
}

fn text(diagnosis: &Diagnosis) -> String {
    if diagnosis.findings.is_empty() {
        return "Nothing is wrong.\n".into();
    }
    let line = |found: &Finding| format!("{}: {}", found.what, found.way_out);
    show::lines(diagnosis.findings.iter().map(line))
}

fn findings(root: &Root, kernels: &[kernels::Kernel]) -> Vec<Finding> {
    let machine = controllers(root);
    let bytes = root.bytes(devices::FILE).unwrap_or_default();
    let (entries, _) = devices::parse(&identity::ascii(&bytes));
    let listed = !entries.is_empty();
    // Those that are hiops', or shall be.
    let serves = machine
        .iter()
        .filter(|it| it.is_hiops())
        .map(|it| &it.address);
    let ours: Vec<&String> = serves.chain(entries.iter().map(|it| &it.address)).collect();
    let mut found = kernels::findings(root, kernels, listed);
    let moved = moved(root, &machine, &entries);
    // Said once: where it is now helps most.
    let line = |it: &Finding| it.what.split(": ").next().map(str::to_string);
    let lines: Vec<_> = moved.iter().map(line).collect();
    let unbound = check::unbound(root).into_iter();
    found.extend(unbound.filter(|it| !lines.contains(&line(it))));
    found.extend(moved);
    found.extend(system_drives(root, &entries));
    found.extend(initramfs::findings(root, kernels, listed));
    if listed {
        found.extend(unit(root));
        found.extend(disabled(root));
    }
    found.extend(fstab::breaking(root, &machine, &ours));
    found.extend(rules(root));
    found.extend(watched(root, &machine));
    let drive = |(what, way_out)| Finding::new(Area::Drive, what, way_out);
    found.extend(saved::differing(root).into_iter().map(drive));
    found
}

/// Drives that are at another address than listed.
fn moved(root: &Root, machine: &[Controller], entries: &[devices::Entry]) -> Vec<Finding> {
    let mut found = Vec::new();
    for entry in entries {
        let Some(wanted) = &entry.serial else {
            continue;
        };
        let is_there = |it: &&Controller| {
            let serials = check::serials(root, machine, &it.address);
            serials
                .iter()
                .any(|serial| identity::is_meant(wanted, serial))
        };
        let there: Vec<&Controller> = machine.iter().filter(is_there).collect();
        if there.iter().any(|it| it.address == entry.address) {
            continue;
        }
        if let Some(now) = there.first() {
            let (file, line, address) = (devices::FILE, entry.line, &now.address);
            found.push(Finding::new(
                Area::Boot,
                format!("{file}:{line}: the drive {wanted} is at {address} now"),
                format!("hiopsctl enable {address} writes the line anew"),
            ));
        }
    }
    found
}

/// Drives that the system stands on: they stay with the in-tree drivers, listed or not.
fn system_drives(root: &Root, entries: &[devices::Entry]) -> Vec<Finding> {
    if entries.is_empty() {
        return Vec::new();
    }
    let places = under::places(root);
    let holds = entries.iter().filter_map(|entry| {
        let place = places.get(&entry.address)?;
        let (file, line, address) = (devices::FILE, entry.line, &entry.address);
        Some(Finding::new(
            Area::Boot,
            format!("{file}:{line}: {address} holds {place}, and stays with the in-tree driver"),
            format!("hiopsctl disable {address}"),
        ))
    });
    holds.collect()
}

/// The unit that binds what the initramfs did not.
fn unit(root: &Root) -> Option<Finding> {
    if !root.has("/run/systemd/system") {
        return None;
    }
    let wants = ["/etc", "/usr/lib", "/run"]
        .map(|at| format!("{at}/systemd/system/sysinit.target.wants/{UNIT}"));
    let masked = root.link(&format!("/etc/systemd/system/{UNIT}")).as_deref() == Some("/dev/null");
    if !masked
        && wants
            .iter()
            .any(|link| root.link(link).is_some() || root.has(link))
    {
        return None;
    }
    let way_out = match masked {
        true => format!("systemctl unmask {UNIT}; systemctl enable {UNIT}"),
        false => format!("systemctl enable {UNIT}"),
    };
    let what =
        format!("{UNIT} is not started at boot: what the initramfs leaves is bound by nobody");
    Some(Finding::new(Area::Boot, what, way_out))
}

/// What was said on the kernel's command line.
fn disabled(root: &Root) -> Option<Finding> {
    let text = root.text("/proc/cmdline").unwrap_or_default();
    let said = text
        .split_whitespace()
        .any(|word| word == "hiops.disable=1");
    said.then(|| {
        Finding::new(
            Area::Boot,
            "the kernel's command line has hiops.disable=1: nothing was bound at this boot",
            "boot without it; where it comes at every boot, GRUB_CMDLINE_LINUX has it",
        )
    })
}

/// udev's rules: without them disks have no lasting names, and what comes later is not bound.
fn rules(root: &Root) -> Vec<Finding> {
    if !root.has("/run/udev") {
        return Vec::new();
    }
    let missing = RULES.iter().filter_map(|rules| {
        let mut places = UDEV.iter().map(|at| format!("{at}/udev/rules.d/{rules}"));
        let first = places.find(|file| root.has(file) || root.link(file).is_some());
        let (what, way_out) = match first {
            None => (
                format!("udev has no {rules}"),
                "install hiops-tools again, or make install",
            ),
            // One that is empty, as /dev/null, takes away those behind it.
            Some(file) if root.text(&file).is_none_or(|text| text.trim().is_empty()) => (
                format!("{file} is empty, and hides the rules of that name"),
                "remove it, then udevadm control --reload",
            ),
            Some(_) => return None,
        };
        Some(Finding::new(Area::Watching, what, way_out))
    });
    missing.collect()
}

/// smartd: the drives of hiops are not found by its own scan, and it does not start where a drive
/// that it is told of is not there.
fn watched(root: &Root, machine: &[Controller]) -> Vec<Finding> {
    let Some(text) = root.text(SMARTD) else {
        return Vec::new();
    };
    let mut named = Vec::new();
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let Some(device) = text.split_whitespace().next() else {
            continue;
        };
        if !device.starts_with("/dev/") {
            continue;
        }
        let name = kernel_name(root, device);
        if !root.has(&format!("/dev/{name}")) && !text.contains("removable") {
            found.push(Finding::new(
                Area::Watching,
                format!("{SMARTD}:{line} names {device}, which is not there: smartd won't start"),
                "hiopsctl smartd prints the lines of the drives that hiops has",
            ));
        }
        named.push(name);
    }
    for (disk, line) in smartd::wanted(root, machine) {
        if !named.contains(&disk) {
            found.push(Finding::new(
                Area::Watching,
                format!("smartd does not watch {disk}: no line of {SMARTD} names it"),
                format!("put this above DEVICESCAN: {line}"),
            ));
        }
    }
    found
}
