// SPDX-License-Identifier: GPL-2.0
//! What one sets, stays: `enable` and `disable`, `set --save`, `apply` and `forget`; and all the
//! ways to name a disk.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, NOBODYS, OTHER, OURS, THEIRS};
use serde_json::json;
use std::fs;

const LIST: &str = "etc/hiops/devices";
const SWITCHES: &str = "etc/hiops/switches";

/// With links of udev's, nodes of controllers, a partition of each drive; and what makes an
/// initramfs anew, which keeps count.
fn machine() -> Machine {
    let machine = Machine::new();
    let renew = "echo \"$@\" >>\"$HIOPS_ROOT/renewed\"";
    machine.script("usr/local/libexec/hiops/renew", renew);
    machine.partition("hiops0n1", "hiops0n1p1", "259:7");
    machine.partition("nvme0n1", "nvme0n1p2", "259:8");
    for (link, node) in [
        ("by-id/nvme-Their_model_THEIRS001", "nvme0n1"),
        ("by-id/nvme-Their_model_THEIRS001-part2", "nvme0n1p2"),
        ("by-id/nvme-Our_model_SERIAL-hiops0n1", "hiops0n1"),
        ("by-uuid/1234", "hiops0n1p1"),
    ] {
        machine.link(&format!("../../{node}"), &format!("dev/disk/{link}"));
    }
    machine.put(
        &format!("sys/devices/pci0000:00/{OURS}/misc/hiops0/dev"),
        "10:1\n",
    );
    machine
}

fn renewals(machine: &Machine) -> usize {
    let renewed = machine.path("renewed");
    fs::read_to_string(renewed).map_or(0, |text| text.lines().count())
}

#[test]
fn a_drive_is_named_in_any_way() {
    for name in [
        THEIRS,
        "02:00.0",
        "nvme0",
        "/dev/nvme0",
        "nvme0n1",
        "/dev/nvme0n1",
        "nvme0n1p2",
        "/dev/nvme0n1p2",
        "/dev/disk/by-id/nvme-Their_model_THEIRS001",
        "disk/by-id/nvme-Their_model_THEIRS001-part2",
    ] {
        let machine = machine();
        machine.says(&["enable", name]);
        let line = format!("{THEIRS} hiops_nvme serial=THEIRS001\n");
        assert_eq!(machine.read(LIST), line, "{name}");
        machine.tool("hiops-bind", "echo $@ >>\"$HIOPS_ROOT/called\"");
        machine.says(&["bind", name]);
        machine.says(&["unbind", name]);
        let called = format!("{THEIRS} hiops_nvme\n{THEIRS} nvme\n");
        assert_eq!(machine.read("called"), called, "{name}");
        machine.says(&["disable", name]);
        assert_eq!(machine.read(LIST), "\n", "{name}");
        machine.refuses(&["get", name], 1, &["is no disk of hiops"]);
    }
}

#[test]
fn a_disk_of_hiops_is_named_in_any_way() {
    let machine = machine();
    for name in [
        "hiops0n1",
        "/dev/hiops0n1",
        "hiops0n1p1",
        "/dev/hiops0n1p1",
        "/dev/disk/by-id/nvme-Our_model_SERIAL-hiops0n1",
        "/dev/disk/by-uuid/1234",
        "hiops_ram0",
    ] {
        machine.says(&["set", name, "poll_interval_us", "50"]);
        assert_eq!(machine.says(&["get", name, "poll_interval_us"]), "50\n");
        machine.says(&["stat", name, "-n", "1", "-i", "0.1"]);
    }
    assert_eq!(
        machine.read("sys/block/hiops0n1/hiops/poll_interval_us"),
        "50\n"
    );
    // Of a controller with two it can't be told which is meant.
    let words = ["has several disks: name one: hiops0n1 hiops0n2"];
    for name in ["hiops0", "/dev/hiops0", OURS] {
        machine.refuses(&["get", name], 1, &words);
    }
    fs::remove_file(machine.path("sys/block/hiops0n2")).unwrap();
    for name in ["hiops0", OURS, "01:00.0"] {
        assert_eq!(machine.says(&["get", name, "poll_interval_us"]), "50\n");
    }
    for name in [
        "hiops",
        "hiops0n",
        "hiops1",
        "/dev/disk/by-uuid/none",
        "/dev",
        ".",
    ] {
        machine.refuses(&["get", name], 1, &["is no disk of hiops"]);
        machine.refuses(&["enable", name], 1, &["is neither the address"]);
    }
}

#[test]
fn enabled_twice_is_enabled_once() {
    let machine = machine();
    machine.put(LIST, "# caf\u{e9}, by hand\n");
    let said = machine.says(&["enable", "nvme0n1"]);
    assert_eq!(
        said,
        "0000:02:00.0 (serial number THEIRS001) goes to hiops_nvme at every boot; hiopsctl bind \
         0000:02:00.0 hands it over now\n"
    );
    assert_eq!(machine.read("renewed"), "all\n");
    let said = machine.says(&["enable", THEIRS, "nvme0"]);
    assert_eq!(
        said.matches("is listed already; nothing is changed")
            .count(),
        2,
        "{said}"
    );
    // What was written by hand stays, and several are one renewal.
    machine.says(&["enable", NOBODYS, OURS, "nvme0"]);
    assert_eq!(renewals(&machine), 2);
    let all = format!(
        "# caf\u{e9}, by hand\n{THEIRS} hiops_nvme serial=THEIRS001\n{NOBODYS} hiops_ahci\n\
         {OURS} hiops_nvme\n"
    );
    assert_eq!(machine.read(LIST), all);
    machine.says(&["check"]);
    let told = machine.json(&["disable", OURS, "nvme0"]);
    assert_eq!(
        told["devices"][0],
        json!({"address": OURS, "at_boot": null, "serial": null, "driver": "hiops_nvme",
            "changed": true})
    );
    let rest = format!("# caf\u{e9}, by hand\n{NOBODYS} hiops_ahci\n");
    assert_eq!((machine.read(LIST), renewals(&machine)), (rest, 3));
}

/// An address and a driver are enough for who wrote a line by hand; another drive than the listed
/// one is a change.
#[test]
fn a_line_that_says_it_already_stays() {
    let machine = machine();
    for line in ["02:00.0", "02:00.0 hiops_nvme", "02:00.0 serial=THEIRS??1"] {
        machine.put(LIST, line);
        machine.says(&["enable", THEIRS]);
        assert_eq!(machine.read(LIST), line);
    }
    assert_eq!(renewals(&machine), 0);
    let enabled = format!("{THEIRS} hiops_nvme serial=THEIRS001\n");
    for line in [
        "02:00.0 serial=OTHER",
        "02:00.0 nvme",
        "02:00.0\n0000:02:00.0",
    ] {
        machine.put(LIST, line);
        machine.says(&["enable", THEIRS]);
        assert_eq!(machine.read(LIST), enabled, "{line}");
    }
    // Its card was moved.
    machine.put(LIST, "0000:09:00.0 hiops_nvme serial=THEIRS001\n");
    machine.says(&["enable", THEIRS]);
    assert_eq!(machine.read(LIST), enabled);
}

#[test]
fn what_is_not_listed_can_be_disabled() {
    let machine = machine();
    let said = machine.says(&["disable", THEIRS]);
    assert_eq!(said, "0000:02:00.0 is not listed; nothing is changed\n");
    // A drive that has gone is listed by its address.
    machine.put(LIST, "0000:09:00.0 hiops_nvme serial=GONE\n");
    let words = ["0000:08:00.0 is not listed, and there is no such PCI function"];
    machine.refuses(&["disable", "08:00.0"], 1, &words);
    machine.refuses(
        &["disable", "nvme9n1"],
        1,
        &["'nvme9n1' is neither the address"],
    );
    assert_eq!(renewals(&machine), 0);
    machine.says(&["disable", "09:00.0"]);
    assert_eq!((&*machine.read(LIST), renewals(&machine)), ("\n", 1));
}

#[test]
fn what_can_not_be_enabled_is_said() {
    let machine = machine();
    let refuses = |device, words: &[&str]| machine.refuses(&["enable", device], 1, words);
    refuses(OTHER, &["is no NVMe or AHCI controller", "0x020000"]);
    refuses("hiops_ram0", &["is a RAM disk"]);
    refuses("09:00.0", &["there is no PCI function 0000:09:00.0"]);
    machine.refuses(&["enable"], 2, &["<ADDRESS|DISK>"]);
    machine.put("etc/fstab", "/dev/nvme0n1p2 /data ext4 defaults 0 2\n");
    refuses(
        "nvme0n1",
        &[
            "/etc/fstab:1 names /dev/nvme0n1p2",
            "by-id/nvme-Their_model_THEIRS001-part2 instead",
        ],
    );
    fs::remove_file(machine.path("etc/fstab")).unwrap();
    // Of several none is, if one can't be.
    machine.refuses(&["enable", OURS, "drive"], 1, &["'drive'"]);
    machine.tool("hiops-users", &format!("echo {THEIRS} /boot"));
    refuses(
        "nvme0",
        &["0000:02:00.0 holds /boot", "stays with the in-tree driver"],
    );
    assert!(!machine.path(LIST).exists());
    machine.script("usr/local/libexec/hiops/renew", "echo broken; exit 1");
    let words = [
        "is written, but the initramfs is not",
        "update-initramfs -u -k all",
    ];
    refuses(OURS, &words);
}

#[test]
fn a_saved_switch_is_set_when_the_disk_comes() {
    let machine = machine();
    machine.put("sys/block/hiops0n1/nsid", "1\n");
    let said = machine.says(&["set", "hiops0n1", "poll_interval_us", "64", "--save"]);
    assert_eq!(
        said,
        "hiops0n1: poll_interval_us is 64 (was 32)\n/etc/hiops/switches keeps it\n"
    );
    machine.says(&["set", "--save", "hiops0n2", "lazy", "1"]);
    machine.says(&["set", "--save", "hiops_ram0", "poll_interval_us", "99"]);
    let head = machine.read(SWITCHES).lines().next().unwrap().to_string();
    assert!(head.starts_with("# "));
    let kept = |lines: &str| assert_eq!(machine.read(SWITCHES), format!("{head}\n{lines}"));
    let others = "serial=SERIAL-hiops0n2 lazy 1\ndisk=hiops_ram0 poll_interval_us 99\n";
    kept(&format!(
        "serial=SERIAL-hiops0n1 nsid=1 poll_interval_us 64\n{others}"
    ));
    // In place of what was kept, and once.
    for _ in 0..2 {
        machine.says(&["set", "--save", "hiops0n1", "poll_interval_us", "99"]);
        kept(&format!(
            "{others}serial=SERIAL-hiops0n1 nsid=1 poll_interval_us 99\n"
        ));
    }
    // The disks come anew, with what they begin with.
    for disk in ["hiops0n1", "hiops0n2", "hiops_ram0"] {
        machine.put(&format!("sys/block/{disk}/hiops/poll_interval_us"), "32\n");
        machine.put(&format!("sys/block/{disk}/hiops/lazy"), "0\n");
    }
    let said = machine.says(&["apply", "hiops0n1"]);
    assert_eq!(said, "hiops0n1: poll_interval_us is 99 (was 32)\n");
    machine.says(&["apply"]);
    assert_eq!(machine.says(&["apply"]), "");
    assert_eq!(machine.read("sys/block/hiops0n2/hiops/lazy"), "1\n");
    assert_eq!(
        machine.read("sys/block/hiops_ram0/hiops/poll_interval_us"),
        "99\n"
    );
    // Another drive at that place.
    machine.put("sys/block/hiops0n1/hiops/poll_interval_us", "32\n");
    machine.put("sys/block/hiops0n1/serial", "ANOTHER\n");
    machine.says(&["apply"]);
    assert_eq!(
        machine.read("sys/block/hiops0n1/hiops/poll_interval_us"),
        "32\n"
    );
}

#[test]
fn what_is_kept_can_be_forgotten() {
    let machine = machine();
    machine.says(&["set", "--save", "hiops0n1", "poll_interval_us", "99"]);
    machine.says(&["set", "--save", "hiops0n1", "lazy", "1"]);
    machine.says(&["set", "--save", "hiops0n2", "lazy", "1"]);
    assert!(machine
        .says(&["forget", "hiops0n1", "coop"])
        .contains("nothing of that"));
    assert!(machine
        .says(&["forget", "hiops0n1", "lazy"])
        .contains("lazy kept no more"));
    machine.says(&["forget", "hiops0n2"]);
    let kept = machine.read(SWITCHES);
    assert_eq!(
        kept.lines().skip(1).collect::<Vec<_>>(),
        ["serial=SERIAL-hiops0n1 poll_interval_us 99"]
    );
}

#[test]
fn what_can_not_be_kept_is_not_done_either() {
    let machine = machine();
    let words = [
        "stats of hiops0n1 is no setting that can be kept",
        "leave --save out",
    ];
    machine.refuses(&["set", "--save", "hiops0n1", "stats", "reset"], 1, &words);
    machine.refuses(
        &["set", "--save", "hiops0n1", "speed", "9"],
        1,
        &["has no 'speed'"],
    );
    assert!(!machine.path(SWITCHES).exists());
    // One that a disk does not take does not keep the others back.
    machine.put(
        SWITCHES,
        "serial=SERIAL-hiops0n1 speed 9\nserial=SERIAL-hiops0n1 lazy 1\n",
    );
    let ran = machine.run(&["apply", "hiops0n1"]);
    assert_eq!(
        (ran.status, &*ran.out),
        (1, "hiops0n1: lazy is 1 (was 0)\n")
    );
    assert!(ran.err.contains("hiops0n1 has no 'speed'"), "{}", ran.err);
}
