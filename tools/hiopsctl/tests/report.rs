// SPDX-License-Identifier: GPL-2.0
//! `report`: what has to be in it, and what must not.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, OURS};
use std::os::unix::fs::PermissionsExt;

/// What was planted, in places that a report reads. None of it may be found there, in any case.
const SECRETS: [&str; 26] = [
    "S4EWNX0R123456",
    "THEIRS001",
    "dbserver7",
    "corp.example.net",
    "nas-4",
    "hunter2",
    "Geheim!",
    "a b c d",
    "192.168.17.23",
    "2001:db8::17:1",
    "52:54:00:12:34:56",
    "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
    "0025385b71b0f1a2",
    "5000c500a1b2c3d4",
    "nqn.2014-08",
    "my-subsystem",
    "0123456789abcdef0123456789abcdef",
    "BOARD-77-XY",
    "/srv/customers",
    "alice",
    "luks-key-file",
    "s3cr3t-psk",
    "R0OTPW",
    "53345345574e5830",
    "WD-SATA77",
    "two.example",
];

fn planted() -> Machine {
    let machine = Machine::new();
    machine.put("sys/block/hiops0n1/serial", "S4EWNX0R123456\n");
    machine.put("sys/block/hiops0n1/wwid", "eui.0025385b71b0f1a2\n");
    machine.put(
        "sys/block/hiops0n2/wwid",
        "hiops.53345345574e5830-4d4f-00000001\n",
    );
    machine.put("proc/sys/kernel/hostname", "dbserver7\n");
    machine.put(
        "etc/hosts",
        "192.168.17.23 nas-4.corp.example.net nas-4 # the store\n",
    );
    machine.put("etc/resolv.conf", "search two.example.org hiops\n");
    machine.put("sys/block/sda/device/vpd_pg80", "\0x\0\tWD-SATA77 ");
    machine.put("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    machine.put("sys/class/dmi/id/board_serial", "BOARD-77-XY\n");
    machine.put("sys/class/dmi/id/sys_vendor", "Vendor of BOARD-77-XY\n");
    machine.put(
        "sys/class/nvme/nvme0/subsysnqn",
        "nqn.2014-08.org.nvme:my-subsystem\n",
    );
    machine.put("sys/class/nvme/nvme0/serial", "THEIRS001\n");
    machine.put(
        "proc/cmdline",
        "BOOT_IMAGE=/vmlinuz root=UUID=1b4e28ba-2fa1-11d2-883f-0016d3cca427 quiet \
         hiops.mode=2 rd.luks.key=/luks-key-file wifi_psk=s3cr3t-psk ip=192.168.17.23 \
         note=\"a b c d\" R0OTPW -- pass=hunter2\n",
    );
    machine.put(
        "etc/modprobe.d/local.conf",
        "options hiops mode=2 # ask alice@corp.example.net, password: Geheim!\n\
         options other key=hunter2\n",
    );
    machine.put(
        "etc/hiops/devices",
        &format!("# dbserver7's drive\n{OURS} hiops_nvme serial=S4EWNX0R123456\n"),
    );
    machine.put(
        "proc/100/mountinfo",
        "36 35 259:1 / /srv/customers rw - ext4 /dev/hiops0n1 rw\n",
    );
    machine.put(
        "dev/kmsg",
        "6,1,1000000,-;Command line: hiops.mode=2 pass=hunter2\n\
         6,2,2000000,-;hiops_nvme 0000:01:00.0: S4EWNX0R123456 is known on dbserver7\n\
         6,3,3000000,-;hiops: eui.0025385b71b0f1a2 naa.5000c500a1b2c3d4 52:54:00:12:34:56\n\
         4,4,4000000,-;hiops: 192.168.17.23 1b4e28ba-2fa1-11d2-883f-0016d3cca427\n\
         4,4,4000000,-;hiops: 0123456789abcdef0123456789abcdef, BOARD-77-XY nas-4\n\
         4,4,4000000,-;hiops: nvmet 2001:db8::17:1 nqn.2014-08.org.nvme:my-subsystem\n\
         \x20SUBSYSTEM=pci\n\
         4,4,4000000,-;hiops: two WD-SATA77 and two.example.org on hiops\n\
         6,5,5000000,-;alice has logged in\n\
         4,6,6000000,-;WARNING: at kglue::adapter::recover dbserver7.corp.example.net\n",
    );
    machine
}

fn assert_clean(text: &str) {
    let small = text.to_lowercase();
    for secret in SECRETS {
        assert!(
            !small.contains(&secret.to_lowercase()),
            "{secret} is in:\n{text}"
        );
    }
}

#[test]
fn no_planted_secret_is_left() {
    let machine = planted();
    let said = machine.says(&["report"]);
    assert!(
        said.starts_with("hiops-report.txt: look it through"),
        "{said}"
    );
    let text = machine.read("hiops-report.txt");
    assert_clean(&text);
    let mode = machine
        .path("hiops-report.txt")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    machine.says(&["--json", "report"]);
    let json = machine.read("hiops-report.json");
    assert_clean(&json);
    let sections: serde_json::Value = serde_json::from_str(&json).unwrap();
    let sections = sections["sections"].as_array().unwrap();
    assert!(sections.len() > 8, "{sections:?}");
}

#[test]
fn the_same_secret_is_the_same_word_everywhere() {
    let machine = planted();
    let text = machine.says(&["report", "-"]);
    let serial = text
        .lines()
        .find(|line| line.starts_with("serial <serial-"))
        .unwrap();
    let word = serial.strip_prefix("serial ").unwrap();
    let log = text
        .lines()
        .find(|line| line.contains(" is known on "))
        .unwrap();
    assert!(
        log.contains(&format!("0000:01:00.0: {word} is known on <host-")),
        "{log}"
    );
    assert!(
        text.contains(&format!("{OURS} hiops_nvme serial={word}\n")),
        "{text}"
    );
    // A machine may have the driver's name; its report is readable all the same.
    assert!(text.contains(" on hiops\n"), "{text}");
}

#[test]
fn what_a_bug_report_needs_is_there() {
    let machine = planted();
    let text = machine.says(&["report", "-"]);
    for words in [
        "osrelease 7.3.4-test",
        "== 0000:01:00.0",
        "vendor 0x1b36",
        "driver hiops_nvme",
        "completed_coop 100",
        "mode hybrid",
        "queue 0 interrupt_ns 1900 polled 1 polling 50000 napping -",
        "scheduler [none]",
        "in use hiops0n1 mount ext4",
        "hiops.mode=2",
        "local.conf: options hiops mode=2",
        "[    2.000000] hiops_nvme 0000:01:00.0:",
        "WARNING: at kglue::adapter::recover",
        "size 1000215216",
    ] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    assert!(!text.contains("has logged in") && !text.contains("options other"));
}

#[test]
fn a_machine_without_hiops_has_a_report_too() {
    let text = Machine::bare().says(&["report", "-"]);
    assert!(text.contains("== module\n\nit is not loaded"), "{text}");
    assert!(text.contains("it can't be read"), "{text}");
}
