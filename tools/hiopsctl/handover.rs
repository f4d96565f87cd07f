// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl bind` and `hiopsctl unbind`: which function goes to which driver. `hiops-bind` does
//! it, and refuses what is in use.

use crate::failure::Failure;
use crate::machine::{class_of, controllers, driver_of, Kind};
use crate::out::Out;
use crate::root::Root;
use crate::tools;
use serde::Serialize;

/// How it was left.
#[derive(Serialize)]
struct HandOver {
    address: String,
    driver: Option<String>,
    disks: Vec<String>,
}

/// Hands `device` to `driver`, or to that of hiops.
pub(crate) fn bind(
    root: &Root,
    out: &Out,
    device: &str,
    driver: Option<String>,
) -> Result<(), Failure> {
    hand_over(root, out, device, driver, Kind::driver, "hiops_nvme")
}

/// Gives `device` back to `driver`, or to the in-tree one.
pub(crate) fn unbind(
    root: &Root,
    out: &Out,
    device: &str,
    driver: Option<String>,
) -> Result<(), Failure> {
    hand_over(root, out, device, driver, Kind::in_tree, "none")
}

fn hand_over(
    root: &Root,
    out: &Out,
    device: &str,
    driver: Option<String>,
    usual: fn(Kind) -> Option<&'static str>,
    example: &str,
) -> Result<(), Failure> {
    let address = address_of(root, device)?;
    let class = class_of(root, &address).unwrap_or_default();
    let usual = || usual(Kind::of_class(&class)).map(str::to_string);
    let Some(driver) = driver.or_else(usual) else {
        return Err(Failure::new(
            format!("{address} is no NVMe or AHCI controller (its class is '{class}')"),
            format!("hiopsctl list shows those; or name the driver, like {example}"),
        ));
    };
    let mut command = tools::command(root, "hiops-bind")?;
    command.args([&address, &driver]);
    let failed = |error| Failure::io("hiops-bind can't be run", &error);
    if out.is_json() {
        let ended = command.output().map_err(failed)?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let said = said.trim().trim_start_matches("hiops-bind: ");
            return Err(match said.rsplit_once(": ") {
                Some((what, way_out)) => Failure::new(what, way_out),
                None => Failure::new(said, "the kernel's log may say more (dmesg)"),
            });
        }
    } else if !command.status().map_err(failed)?.success() {
        return Err(Failure::Told);
    }
    let found = controllers(root)
        .into_iter()
        .find(|it| it.address == address);
    let disks = found.map(|it| it.disks).unwrap_or_default();
    let left = HandOver {
        driver: driver_of(root, &address),
        disks: disks.into_iter().map(|disk| disk.name).collect(),
        address,
    };
    out.show(&left, |left| {
        let address = &left.address;
        match &left.driver {
            None => format!("{address} has no driver now\n"),
            Some(driver) if left.disks.is_empty() => {
                format!("{address} is with {driver} now; it has no disk\n")
            }
            Some(driver) => {
                format!("{address} is with {driver} now: {}\n", left.disks.join(" "))
            }
        }
    })
}

/// The address of a PCI function that there is, from how an operator names it.
fn address_of(root: &Root, device: &str) -> Result<String, Failure> {
    let name = device.strip_prefix("/dev/").unwrap_or(device);
    for controller in controllers(root) {
        if controller.disks.iter().any(|disk| disk.name == name) {
            return if controller.kind == Kind::Ram {
                Err(Failure::new(
                    format!("{name} is a RAM disk, which no driver can be given"),
                    "rmmod hiops takes it away",
                ))
            } else {
                Ok(controller.address)
            };
        }
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
}
