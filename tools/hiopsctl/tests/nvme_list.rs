// SPDX-License-Identifier: GPL-2.0
//! `nvme-list`: the shape of `nvme list -o json`, of drives under either driver.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::Machine;
use serde_json::{json, Value};

/// With what the kernel says of each driver's disk.
fn machine() -> Machine {
    let machine = Machine::new();
    for (file, text) in [
        ("hiops0n1/nsid", "1\n"),
        ("hiops0n1/queue/logical_block_size", "4096\n"),
        ("hiops0n2/nsid", "7\n"),
        ("nvme0n1/nsid", "1\n"),
        ("nvme0n1/nuse", "1000\n"),
        ("nvme0n1/queue/logical_block_size", "512\n"),
    ] {
        machine.put(&format!("sys/block/{file}"), text);
    }
    machine
}

/// What it prints, with and without blanks.
fn list(machine: &Machine) -> Value {
    let pretty = machine.says(&["nvme-list", "-o", "json"]);
    let list: Value = serde_json::from_str(&pretty).unwrap();
    assert_eq!(list, machine.json(&["nvme-list"]));
    list
}

#[test]
fn a_namespace_has_nvme_clis_keys_in_its_order() {
    let machine = machine();
    // Keys, order and types of nvme-cli 2.13, as it prints an emulated drive.
    let real = json!({
        "NameSpace": 1, "DevicePath": "/dev/nvme0n1", "GenericPath": "/dev/ng0n1",
        "Firmware": "", "ModelNumber": "Their model", "SerialNumber": "THEIRS001",
        "UsedBytes": 512_000, "MaximumLBA": 1_000_215_216u64,
        "PhysicalSize": 512_110_190_592u64, "SectorSize": 512,
    });
    let list = list(&machine);
    let devices = list["Devices"].as_array().unwrap();
    assert_eq!(devices.len(), 3);
    assert_eq!(devices[2], real);
    let text = machine.says(&["nvme-list", "--output-format", "json"]);
    let order = ["NameSpace", "DevicePath", "GenericPath", "UsedBytes"];
    let places = order.map(|key| text.find(key).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn a_disk_of_hiops_takes_commands_itself_and_nvme_cli_asks_for_its_use() {
    let machine = machine();
    let ours = |machine: &Machine| list(machine)["Devices"][0].clone();
    let device = ours(&machine);
    let path = json!("/dev/hiops0n1");
    assert_eq!(
        (&device["DevicePath"], &device["GenericPath"]),
        (&path, &path)
    );
    assert_eq!(device["MaximumLBA"], json!(512_110_190_592u64 / 4096));
    // Without nvme-cli, and with one that fails: all of it.
    assert_eq!(device["UsedBytes"], device["PhysicalSize"]);
    machine.script("usr/sbin/nvme", "echo no; exit 1");
    assert_eq!(ours(&machine), device);
    machine.script(
        "usr/sbin/nvme",
        "[ \"$*\" = 'id-ns /dev/hiops0n1 -o json' ] && echo '{\"nsze\":9,\"nuse\":3}'",
    );
    assert_eq!(ours(&machine)["UsedBytes"], 3 * 4096);
    assert_eq!(list(&machine)["Devices"][1]["NameSpace"], 7);
}

#[test]
fn the_table_and_an_empty_machine() {
    let text = machine().says(&["nvme-list"]);
    for words in ["NODE", "/dev/hiops0n2", "/dev/ng0n1", "0x7", "4096 B"] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    let bare = Machine::bare();
    assert_eq!(list(&bare), json!({"Devices": []}));
    assert!(bare.says(&["nvme-list"]).contains("no NVMe drive"));
    bare.refuses(&["nvme-list", "-o", "xml"], 2, &["normal, json"]);
}
