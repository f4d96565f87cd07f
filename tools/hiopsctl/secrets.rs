// SPDX-License-Identifier: GPL-2.0
//! What this machine is known by: a report tells none of it.

use crate::identity::forms;
use crate::machine::{page_serial, Controller};
use crate::redact::Known;
use crate::root::Root;

/// What this machine has that nobody else is to know.
pub(crate) fn secrets(root: &Root, all: &[Controller]) -> Vec<Known> {
    let mut known: Vec<Known> = Vec::new();
    let mut add = |kind, text: Option<String>| {
        known.extend(text.map(|text| (kind, text)));
    };
    for disk in root.names("/sys/block") {
        let files = ["serial", "device/serial"].map(|file| format!("/sys/block/{disk}/{file}"));
        let serials = files.iter().filter_map(|file| root.bytes(file));
        for serial in serials.chain(page_serial(root, &disk)) {
            forms(&serial)
                .into_iter()
                .for_each(|form| add("serial", Some(form)));
        }
        for file in ["wwid", "device/wwid", "nguid", "uuid", "eui"] {
            add("wwid", root.word(&format!("/sys/block/{disk}/{file}")));
        }
    }
    for disk in all.iter().flat_map(|it| &it.disks) {
        add("serial", disk.serial.clone());
    }
    for name in root.names("/sys/class/nvme") {
        let serial = root.bytes(&format!("/sys/class/nvme/{name}/serial"));
        (serial.iter().flat_map(|serial| forms(serial))).for_each(|form| add("serial", Some(form)));
        add(
            "nqn",
            root.word(&format!("/sys/class/nvme/{name}/subsysnqn")),
        );
        add("nqn", root.word(&format!("/sys/class/nvme/{name}/hostnqn")));
    }
    for file in [
        "product_serial",
        "board_serial",
        "chassis_serial",
        "product_uuid",
    ] {
        add("serial", root.word(&format!("/sys/class/dmi/id/{file}")));
    }
    add("id", root.word("/etc/machine-id"));
    add("id", root.word("/proc/sys/kernel/random/boot_id"));
    for name in hosts(root) {
        add("host", Some(name));
    }
    // What says nothing.
    let empty = [
        "(none)",
        "none",
        "0",
        "not specified",
        "default string",
        "to be filled by o.e.m.",
    ];
    known.retain(|(_, text)| !empty.contains(&text.trim().to_lowercase().as_str()));
    known
}

/// Names that say nothing of a machine that has them, and that a report is full of.
const COMMON: [&str; 8] = [
    "ahci", "debian", "hiops", "kernel", "linux", "nvme", "ubuntu", "virtual",
];

/// The names of this machine, and of those that its hosts file knows.
fn hosts(root: &Root) -> Vec<String> {
    let files = [
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/domainname",
        "/etc/hostname",
    ];
    let mut names: Vec<String> = files.iter().filter_map(|file| root.word(file)).collect();
    let hosts = root.text("/etc/hosts").unwrap_or_default();
    for line in hosts.lines() {
        let line = line.split('#').next().unwrap_or_default();
        names.extend(line.split_whitespace().skip(1).map(str::to_string));
    }
    let resolv = root.text("/etc/resolv.conf").unwrap_or_default();
    let searched = resolv.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("search ")
            .or_else(|| line.strip_prefix("domain "))
    });
    names.extend(searched.flat_map(str::split_whitespace).map(str::to_string));
    let parts = names.iter().filter_map(|name| name.split_once('.'));
    // A top-level domain is nobody's.
    let parts =
        parts.flat_map(|(host, domain)| [Some(host), Some(domain).filter(|it| it.contains('.'))]);
    let parts: Vec<String> = parts.flatten().map(str::to_string).collect();
    names.extend(parts);
    names.retain(|name| !COMMON.contains(&name.to_lowercase().as_str()));
    names.retain(|name| !name.starts_with("localhost") && !name.starts_with("ip6-"));
    names
}
