// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl bind` and `hiopsctl unbind`: which function goes to which driver. `hiops-bind` does
//! it, and refuses what is in use.

use crate::failure::Failure;
use crate::machine::{class_of, controllers, driver_of, Kind};
use crate::named;
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
    let address = named::function(root, device)?;
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
            return Err(refusal(&ended.stderr));
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

/// What `hiops-bind` said as it refused.
pub(crate) fn refusal(stderr: &[u8]) -> Failure {
    let said = String::from_utf8_lossy(stderr);
    let said = said.trim().trim_start_matches("hiops-bind: ");
    match said.rsplit_once(": ") {
        Some((what, way_out)) => Failure::new(what, way_out),
        None => Failure::new(said, "the kernel's log may say more (dmesg)"),
    }
}
