// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl check`: whether what is to be bound at boot can be.

use crate::attention::{Area, Finding};
use crate::devices::{parse, Entry, Wrong, FILE};
use crate::failure::Failure;
use crate::identity;
use crate::machine::{class_of, controllers, driver_of, Controller, Kind};
use crate::out::Out;
use crate::root::Root;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct Checked {
    file: String,
    devices: usize,
    wrong: Vec<Wrong>,
}

/// Checks `file`, or the machine's list.
pub(crate) fn run(root: &Root, out: &Out, file: Option<&Path>) -> Result<(), Failure> {
    let name = file.map_or_else(|| FILE.into(), |file| file.display().to_string());
    let bytes = match file {
        Some(file) => std::fs::read(file),
        None => std::fs::read(root.at(FILE)),
    };
    let bytes = bytes.map_err(|error| Failure::io(&name, &error))?;
    let text = identity::ascii(&bytes);
    let (entries, wrong) = look(root, &text);
    let checked = Checked {
        devices: entries.len(),
        wrong,
        file: name,
    };
    if checked.wrong.is_empty() {
        return out.show(&checked, |checked| {
            format!(
                "{}: {} to bind, nothing wrong\n",
                checked.file, checked.devices
            )
        });
    }
    if out.is_json() {
        out.show(&checked, |_| String::new())?;
    } else {
        for Wrong {
            line,
            what,
            way_out,
        } in &checked.wrong
        {
            eprintln_checked(&format!("{}:{line}: {what}: {way_out}", checked.file));
        }
    }
    Err(Failure::Told)
}

/// Says a line on stderr; where that is closed the status tells enough.
fn eprintln_checked(line: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// What a list names, and all that is wrong with it, in the order of its lines.
pub(crate) fn look(root: &Root, text: &str) -> (Vec<Entry>, Vec<Wrong>) {
    let (entries, mut wrongs) = parse(text);
    let machine = controllers(root);
    let there = entries
        .iter()
        .filter_map(|entry| against(root, &machine, entry));
    wrongs.extend(there);
    wrongs.sort_by_key(|wrong| wrong.line);
    (entries, wrongs)
}

/// Devices that were to be bound at boot and are not, and lines that are wrong; with the way out.
pub(crate) fn unbound(root: &Root) -> Vec<Finding> {
    let text = identity::ascii(&root.bytes(FILE).unwrap_or_default());
    let (entries, wrongs) = look(root, &text);
    let mut found = Vec::new();
    for entry in entries {
        let wrong = wrongs.iter().any(|wrong| wrong.line == entry.line);
        let driver = driver_of(root, &entry.address);
        if wrong || driver.as_ref() == Some(&entry.driver) {
            continue;
        }
        let with = driver.map_or_else(|| "nobody".into(), |driver| format!("'{driver}'"));
        let (file, line) = (FILE, entry.line);
        found.push(Finding::new(
            Area::Drive,
            format!(
                "{} is with {with}, not as {file}:{line} says",
                entry.address
            ),
            format!(
                "hiopsctl bind {} {}, or hiopsctl disable it",
                entry.address, entry.driver
            ),
        ));
    }
    found.extend(wrongs.into_iter().map(|wrong| {
        let what = format!("{FILE}:{}: {}", wrong.line, wrong.what);
        Finding::new(Area::Boot, what, wrong.way_out)
    }));
    found
}

/// What this machine has against `entry`.
fn against(root: &Root, machine: &[Controller], entry: &Entry) -> Option<Wrong> {
    let Entry {
        address, driver, ..
    } = entry;
    let wrong = |what, way_out: &str| Some(Wrong::new(entry.line, what, way_out));
    if !root.has(&format!("/sys/bus/pci/devices/{address}")) {
        let way_out = "hiopsctl list shows those that are; remove the line if the drive has gone";
        return wrong(format!("there is no PCI function {address}"), way_out);
    }
    let class = class_of(root, address).unwrap_or_default();
    let kind = Kind::of_class(&class);
    let fits = match driver.as_str() {
        "hiops_nvme" => kind == Kind::Nvme,
        "hiops_ahci" => kind == Kind::Ahci,
        ours if ours.starts_with("hiops") => {
            let what = format!("hiops has no driver '{ours}'");
            return wrong(what, "those are hiops_nvme and hiops_ahci");
        }
        _ => true,
    };
    if !fits {
        let what = format!("{address} is not for {driver}: its class is {class}");
        return match kind.driver() {
            Some(fit) => wrong(what, &format!("name {fit} instead")),
            None => wrong(
                what,
                "hiopsctl list shows the controllers that hiops serves",
            ),
        };
    }
    let wanted = entry.serial.as_ref()?;
    let serials = serials(root, machine, address);
    let is_there = |serial: &String| identity::is_meant(wanted, serial);
    if serials.is_empty() || serials.iter().any(is_there) {
        return None;
    }
    let what = format!(
        "{address} has the serial number {}, not {wanted}",
        serials.join(" and ")
    );
    wrong(
        what,
        "another drive is there: hiopsctl list shows where it has gone",
    )
}

/// The serial numbers of a function's drives, as far as a driver has read them.
pub(crate) fn serials(root: &Root, machine: &[Controller], address: &str) -> Vec<String> {
    let own = machine.iter().filter(|it| it.address == *address);
    let disks = own.flat_map(|it| &it.disks);
    let mut all: Vec<String> = disks.filter_map(|disk| disk.serial.clone()).collect();
    let folder = format!("/sys/bus/pci/devices/{address}/nvme");
    for name in root.names(&folder) {
        all.extend(root.identity(&format!("{folder}/{name}/serial")));
    }
    all.sort();
    all.dedup();
    all
}
