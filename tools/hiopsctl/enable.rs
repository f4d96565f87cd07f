// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl enable` and `hiopsctl disable`: which drives are hiops' at every boot. They write the
//! list of devices, and have the initramfs made anew, once, if the list is another then.

use crate::check::serials;
use crate::devices::{self, written, Entry, FILE};
use crate::etc::Lines;
use crate::failure::Failure;
use crate::fstab::breaking;
use crate::identity;
use crate::machine::{class_of, controllers, driver_of, Controller, Kind};
use crate::named::{full_address, function, named};
use crate::out::Out;
use crate::root::Root;

use crate::tools;
use crate::under;
use serde::Serialize;
use std::io;
use std::process::Stdio;

/// How a device stands in the list.
#[derive(Serialize)]
struct Device {
    address: String,
    /// Whose it is at every boot; none: the in-tree driver's.
    at_boot: Option<String>,
    serial: Option<String>,
    /// Whose it is now.
    driver: Option<String>,
    changed: bool,
}

/// What is so now of all that were named.
#[derive(Serialize)]
struct Devices<'a> {
    devices: &'a [Device],
}

/// The devices that the list names.
fn entries(list: &Lines) -> Vec<Entry> {
    let texts = list.texts().into_iter();
    texts
        .filter_map(|text| devices::line(0, &text).ok().flatten())
        .collect()
}

/// Takes out the lines whose devices are `gone`; whether there were some.
fn remove(list: &mut Lines, gone: impl Fn(&Entry) -> bool) -> bool {
    list.remove(|text| devices::line(0, text).is_ok_and(|it| it.is_some_and(|it| gone(&it))))
}

/// Has `devices` be hiops' at every boot.
pub(crate) fn enable(root: &Root, out: &Out, devices: &[String]) -> Result<(), Failure> {
    let machine = controllers(root);
    let mut list = Lines::read(root, FILE)?;
    let mut done = Vec::new();
    for device in devices {
        done.push(add(root, &machine, &mut list, device)?);
    }
    finish(root, out, &list, &done)
}

/// Leaves `devices` to the in-tree drivers from the next boot on.
pub(crate) fn disable(root: &Root, out: &Out, devices: &[String]) -> Result<(), Failure> {
    let machine = controllers(root);
    let mut list = Lines::read(root, FILE)?;
    let mut done = Vec::new();
    for device in devices {
        done.push(take_out(root, &machine, &mut list, device)?);
    }
    finish(root, out, &list, &done)
}

/// One that is to be listed.
fn add(
    root: &Root,
    machine: &[Controller],
    list: &mut Lines,
    device: &str,
) -> Result<Device, Failure> {
    let address = function(root, device)?;
    let class = class_of(root, &address).unwrap_or_default();
    let kind = Kind::of_class(&class);
    let Some(driver) = kind.driver() else {
        return Err(Failure::new(
            format!("{address} is no NVMe or AHCI controller (its class is '{class}')"),
            "hiopsctl list shows those",
        ));
    };
    // It would be left out, or hold the boot up.
    if let Some(place) = under::places(root).get(&address) {
        let what = format!("{address} holds {place}, which is mounted before it could be hiops'");
        return Err(Failure::new(what, "it stays with the in-tree driver"));
    }
    if let Some(found) = breaking(root, machine, &[&address]).into_iter().next() {
        return Err(Failure::new(found.what, found.way_out));
    }
    let serials = serials(root, machine, &address);
    let serial = match &serials[..] {
        // Of several drives of an HBA any may go: it is known by its address.
        [only] => Some(written(only)),
        _ => None,
    };
    let is_it = |entry: &Entry| {
        let named = |wanted: &String| serials.iter().any(|it| identity::is_meant(wanted, it));
        entry.driver == driver && entry.serial.as_ref().is_none_or(named)
    };
    let entries = entries(list);
    let own: Vec<&Entry> = entries.iter().filter(|it| it.address == address).collect();
    let there = matches!(&own[..], [only] if is_it(only));
    let mut kept = serial.clone();
    if there {
        kept = own.first().and_then(|entry| entry.serial.clone());
    } else {
        remove(list, |old| {
            old.address == address || has_come(root, machine, old, &serials)
        });
        let serial = serial.map_or_else(String::new, |serial| format!(" serial={serial}"));
        list.push(format!("{address} {driver}{serial}"));
    }
    Ok(Device {
        driver: driver_of(root, &address),
        address,
        at_boot: Some(driver.to_string()),
        serial: kept,
        changed: !there,
    })
}

/// Whether the drive of `old` is one of those with `serials`, and is no more where it is listed:
/// its card was moved.
fn has_come(root: &Root, machine: &[Controller], old: &Entry, serials: &[String]) -> bool {
    let Some(wanted) = &old.serial else {
        return false;
    };
    let is_meant = |all: &[String]| all.iter().any(|it| identity::is_meant(wanted, it));
    is_meant(serials) && !is_meant(&self::serials(root, machine, &old.address))
}

/// One that is to be listed no more; it may have gone itself.
fn take_out(
    root: &Root,
    machine: &[Controller],
    list: &mut Lines,
    device: &str,
) -> Result<Device, Failure> {
    let there = named(root, device).map(|it| it.controller.address);
    let Some(address) = there.or_else(|| full_address(device)) else {
        return Err(Failure::new(
            format!("'{device}' is neither the address of a PCI function nor a disk"),
            format!("name one of {FILE}, like 0000:01:00.0"),
        ));
    };
    let serials = serials(root, machine, &address);
    let gone = |old: &Entry| old.address == address || has_come(root, machine, old, &serials);
    let changed = remove(list, gone);
    if !changed && !root.has(&format!("/sys/bus/pci/devices/{address}")) {
        return Err(Failure::new(
            format!("{address} is not listed, and there is no such PCI function"),
            format!("{FILE} has the list, hiopsctl list what there is"),
        ));
    }
    Ok(Device {
        driver: driver_of(root, &address),
        address,
        at_boot: None,
        serial: None,
        changed,
    })
}

/// Writes the list and renews the initramfs if there is something new; tells what is so now.
fn finish(root: &Root, out: &Out, list: &Lines, done: &[Device]) -> Result<(), Failure> {
    if done.iter().any(|device| device.changed) {
        list.write(root, FILE)?;
        renew(root)?;
    }
    let done = Devices { devices: done };
    out.show(&done, |done| {
        crate::show::lines(done.devices.iter().map(line))
    })
}

/// Has the initramfs of all kernels made anew, by whatever makes them here.
fn renew(root: &Root) -> Result<(), Failure> {
    let way_out = "update-initramfs -u -k all (with dracut: dracut --force --regenerate-all)";
    let mut command = tools::helper(root, "renew")?;
    // What it says is no result of ours.
    command.arg("all").stdin(Stdio::null()).stdout(io::stderr());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::new(
            format!("{FILE} is written, but the initramfs is not made anew"),
            way_out,
        )),
        Err(error) => Err(Failure::io("the initramfs can't be made anew", &error)),
    }
}

fn line(device: &Device) -> String {
    let Device {
        address, changed, ..
    } = device;
    let Some(at_boot) = &device.at_boot else {
        let hiops = device
            .driver
            .as_deref()
            .is_some_and(|it| it.starts_with("hiops"));
        return match (changed, hiops) {
            (false, _) => format!("{address} is not listed; nothing is changed"),
            (true, false) => format!("{address} is left to the in-tree driver at every boot"),
            (true, true) => format!(
                "{address} is left to the in-tree driver from the next boot on; hiopsctl unbind \
                 {address} gives it back now"
            ),
        };
    };
    let serial = device.serial.as_ref();
    let serial = serial.map_or_else(String::new, |serial| format!(" (serial number {serial})"));
    let mut said = match changed {
        true => format!("{address}{serial} goes to {at_boot} at every boot"),
        false => format!("{address}{serial} is listed already; nothing is changed"),
    };
    if device.driver.as_ref() != Some(at_boot) {
        said.push_str(&format!("; hiopsctl bind {address} hands it over now"));
    }
    said
}
