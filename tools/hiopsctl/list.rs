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
    /// Why it can't be told who uses the disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_users: Option<String>,
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
    /// None: it can't be told.
    in_use: Option<Vec<Use>>,
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
                in_use: usage.as_ref().ok().map(|usage| usage.of(root, &disk.name)),
                disk,
            })
            .collect(),
    };
    let list = List {
        controllers: controllers(root).into_iter().map(entry).collect(),
        unknown_users: usage.as_ref().err().map(ToString::to_string),
    };
    out.show(&list, |list| text(list, out))
}

fn text(list: &List, out: &Out) -> String {
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
    ])
    .for_terminal(&[0, 2], &[4, 6]);
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
            let users = in_use.as_ref().map_or_else(
                || "?".into(),
                |users| users.iter().map(user).collect::<Vec<_>>().join(", "),
            );
            table.row([
                entry.address.clone(),
                driver.clone(),
                disk.name.replace('!', "/"),
                bytes(disk.bytes),
                disk.model.clone().unwrap_or_default(),
                disk.serial.clone().unwrap_or_default(),
                users,
            ]);
        }
    }
    let mut text = out.table(&table);
    if let Some(why) = &list.unknown_users {
        text.push_str(&format!("\nWho uses them can't be told: {why}\n"));
    }
    text
}

/// A user in a few words.
fn user(who: &Use) -> String {
    let Use {
        device,
        how,
        by,
        fs,
    } = who;
    match (how.as_str(), fs) {
        ("mount", Some(fs)) => format!("{by} ({fs} on {device})"),
        ("swap", _) => format!("swap on {device}"),
        _ => format!("{by} ({how}, {device})"),
    }
}
