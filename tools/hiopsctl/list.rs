// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl list`: controllers, their disks, and who uses them.

use crate::failure::Failure;
use crate::machine::{controllers, Controller, Disk, Kind};
use crate::out::Out;
use crate::root::Root;
use crate::show::bytes;
use crate::table::Table;
use crate::usage::{Usage, Use};
use serde::Serialize;

#[derive(Serialize)]
struct List {
    controllers: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    address: String,
    kind: Kind,
    driver: Option<String>,
    disks: Vec<DiskEntry>,
}

#[derive(Serialize)]
struct DiskEntry {
    #[serde(flatten)]
    disk: Disk,
    in_use: Vec<Use>,
}

/// Prints them.
pub(crate) fn run(root: &Root, out: &Out) -> Result<(), Failure> {
    let usage = Usage::look(root);
    let entry = |controller: Controller| Entry {
        address: controller.address,
        kind: controller.kind,
        driver: controller.driver,
        disks: (controller.disks.into_iter())
            .map(|disk| DiskEntry {
                in_use: usage.of(root, &disk.name),
                disk,
            })
            .collect(),
    };
    let list = List {
        controllers: controllers(root).into_iter().map(entry).collect(),
    };
    out.show(&list, text)
}

fn text(list: &List) -> String {
    if list.controllers.is_empty() {
        return "There is no NVMe or AHCI controller here, and no RAM disk of hiops.\n".into();
    }
    let mut table = Table::new(&[
        "CONTROLLER",
        "DRIVER",
        "DISK",
        ">SIZE",
        "MODEL",
        "SERIAL",
        "IN USE BY",
    ]);
    for entry in &list.controllers {
        let driver = entry.driver.clone().unwrap_or_default();
        if entry.disks.is_empty() {
            let none = String::new;
            table.row([
                entry.address.clone(),
                driver,
                none(),
                none(),
                none(),
                none(),
                none(),
            ]);
            continue;
        }
        for DiskEntry { disk, in_use } in &entry.disks {
            let users: Vec<String> = in_use.iter().map(user).collect();
            table.row([
                entry.address.clone(),
                driver.clone(),
                disk.name.replace('!', "/"),
                bytes(disk.bytes),
                disk.model.clone().unwrap_or_default(),
                disk.serial.clone().unwrap_or_default(),
                users.join(", "),
            ]);
        }
    }
    table.text()
}

/// A user in a few words.
fn user(who: &Use) -> String {
    let Use {
        device,
        how,
        by,
        fs,
    } = who;
    match (*how, fs) {
        ("mount", Some(fs)) => format!("{by} ({fs} on {device})"),
        ("swap", _) => format!("swap on {device}"),
        _ => format!("{by} ({how}, {device})"),
    }
}
