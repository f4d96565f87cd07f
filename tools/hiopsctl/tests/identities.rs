// SPDX-License-Identifier: GPL-2.0
//! A drive calls itself what it likes: blanks, control characters, bytes that are no UTF-8. What is
//! printed is of one line and sound, what is compared is the drive's own, what is secret is kept.
#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

mod common;

use common::{Machine, OURS, THEIRS};
use std::fs;

/// With blanks around it, as it stands in sysfs; and as it is shown.
const SERIAL: &[u8] = b"  \"o\xe9\td \x1b[2J$x?      \n";
const SHOWN: &str = "\"o??d ?[2J$x?";
const MODEL: &[u8] = b" M\xc3\xa9\\ \"x\r          \n";
const MODEL_SHOWN: &str = "M??\\ \"x?";

fn odd() -> Machine {
    let machine = Machine::new();
    for (file, bytes) in [("serial", SERIAL), ("model", MODEL)] {
        fs::write(machine.path(&format!("sys/block/hiops0n1/{file}")), bytes).unwrap();
    }
    machine
}

#[test]
fn lists_are_of_one_line_each() {
    let machine = odd();
    let list = machine.says(&["list"]);
    let line = list.lines().find(|line| line.contains(SHOWN)).unwrap();
    assert!(line.contains(MODEL_SHOWN) && line.contains(OURS), "{line}");
    assert!(list.chars().all(|c| c == '\n' || !c.is_control()), "{list}");
    let all = machine.json(&["list"]);
    let disk = &all["controllers"][1]["disks"][0];
    assert_eq!(disk["serial"], SHOWN, "{all}");
    assert_eq!(disk["model"], MODEL_SHOWN);
}

#[test]
fn metrics_escape_it() {
    let metrics = odd().says(&["metrics"]);
    let escaped = "model=\"M??\\\\ \\\"x?\"";
    assert!(metrics.contains(escaped), "{metrics}");
}

/// `?` stands for any byte, and blanks around don't count.
#[test]
fn a_list_can_name_it() {
    let machine = odd();
    for (written, is_it) in [
        ("\"o??d??[2J$x?", true),
        ("?????????????", true),
        ("\"o??d??[2J$x", false),
        ("??o??d??[2J$x?", false),
        ("\"o??d??[2J$x??", false),
        ("*", false),
    ] {
        machine.put("list", &format!("{OURS} serial={written}\n"));
        let ran = machine.run(&["check", "list"]);
        assert_eq!(ran.status == 0, is_it, "{written}: {}{}", ran.out, ran.err);
        assert!(is_it || ran.err.contains(SHOWN), "{}", ran.err);
    }
    // Bytes that are no character, as they are.
    let mut list = format!("# caf\u{e9}\n{THEIRS}\n{OURS} serial=\"o").into_bytes();
    list.extend_from_slice(b"\xe9?d??[2J$x?\n");
    fs::write(machine.path("list"), list).unwrap();
    machine.says(&["check", "list"]);
}

#[test]
fn reports_do_not_tell_it() {
    let machine = odd();
    machine.put(
        "dev/kmsg",
        "6,1,1,-;hiops_nvme 0000:01:00.0: it says \"o\\xe9\\x09d \\x1b[2J$x?\n",
    );
    machine.put(
        "proc/cmdline",
        "root=/dev/disk/by-id/nvme-M__o_d_2J_x_ ro\n",
    );
    let report = machine.says(&["report", "-"]);
    assert!(report.contains("serial <serial-"), "{report}");
    assert!(
        report.contains(&format!("model {MODEL_SHOWN}\n")),
        "{report}"
    );
    assert!(!report.contains("2J"), "{report}");
    let told = |c: char| c == '\n' || c == '\t' || !c.is_control();
    assert!(report.chars().all(told), "{report}");
    machine.json(&["report", "-"]);
}

/// Of a drive's links that one which names it.
#[test]
fn smartd_finds_its_link() {
    let machine = odd();
    for link in ["nvme-A_model_1", "nvme-M____x___o_d__2J$x__1"] {
        machine.link("../../hiops0n1", &format!("dev/disk/by-id/{link}"));
    }
    let lines = machine.says(&["smartd"]);
    assert!(
        lines.contains("by-id/nvme-M____x___o_d__2J$x__1 -d nvme"),
        "{lines}"
    );
}
