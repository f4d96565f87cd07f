// SPDX-License-Identifier: GPL-2.0
//! Each command's bad input: the error names the thing and the way out.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, NOBODYS, OTHER, OURS, THEIRS};
use serde_json::json;

#[test]
fn a_disk_that_is_none_is_named_with_those_that_are() {
    let machine = Machine::new();
    let commands: [&[&str]; 6] = [
        &["get", "hiops9n1"],
        &["set", "hiops9n1", "mode", "irq"],
        &["stat", "hiops9n1"],
        &["status", "hiops9n1"],
        &["trace", "hiops9n1"],
        &["get", "hiops9n1", "mode"],
    ];
    let words = [
        "'hiops9n1' is no disk of hiops",
        "hiops0n1 hiops0n2 hiops_ram0",
    ];
    for command in commands {
        machine.refuses(command, 1, &words);
    }
    // Another driver's; no name at all; a way out of the folder.
    for name in ["nvme0n1", "", "/dev/", "..", "../block/hiops0n1"] {
        machine.refuses(&["get", name], 1, &["is no disk of hiops"]);
    }
    Machine::bare().refuses(
        &["get", "hiops0n1"],
        1,
        &["module is not loaded", "modprobe"],
    );
    Machine::bare().refuses(&["stat"], 1, &["hiops serves no disk", "hiopsctl bind"]);
    let ran = machine.run(&["--json", "get", "hiops9n1"]);
    let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.status, &*ran.out), (1, ""));
    assert_eq!(error["error"], "'hiops9n1' is no disk of hiops");
    assert_eq!(error["way_out"], "those are: hiops0n1 hiops0n2 hiops_ram0");
}

#[test]
fn a_setting_that_is_none_is_named_with_those_that_are() {
    let machine = Machine::new();
    let words = ["hiops0n1 has no 'speed'", "it has: coop", "strategy"];
    machine.refuses(&["get", "hiops0n1", "speed"], 1, &words);
    machine.refuses(&["set", "hiops0n1", "speed", "9"], 1, &words);
    machine.refuses(
        &["get", "hiops0n1", "../serial"],
        1,
        &["has no '../serial'"],
    );
    let words = ["learned of hiops0n1 can't be set", "only be read"];
    machine.refuses(&["set", "hiops0n1", "learned", "1"], 1, &words);
    let words = [
        "mode of hiops0n1 does not take ''",
        "irq, poll or hybrid (or 0, 1, 2)",
    ];
    machine.refuses(&["set", "hiops0n1", "mode", ""], 1, &words);
}

#[test]
fn usage_is_two() {
    let machine = Machine::new();
    let commands: [(&[&str], &str); 13] = [
        (&[], "Usage"),
        (&["lst"], "list"),
        (&["list", "x"], "'x'"),
        (&["set", "hiops0n1", "mode"], "<VALUE>"),
        (&["get"], "<DISK>"),
        (&["stat", "-i", "0"], "between 0.1 and 3600"),
        (&["stat", "-i", "fast"], "number of seconds"),
        (&["stat", "-n", "0"], "0 is not in 1.."),
        (&["bind"], "<ADDRESS|DISK>"),
        (&["unbind"], "<ADDRESS|DISK>"),
        (&["trace", "hiops0n1", "0"], "0 is not in 1.."),
        (&["completions", "csh"], "possible values: bash"),
        (&["metrics", "--output"], "<FILE>"),
    ];
    for (command, words) in commands {
        machine.refuses(command, 2, &[words]);
    }
    // Who reads JSON gets that.
    for command in [
        &["--json", "lst"][..],
        &["get", "--json"],
        &["stat", "-i", "0", "--json"],
    ] {
        let ran = machine.run(command);
        let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
        assert_eq!((ran.status, &*ran.out), (2, ""), "{command:?}");
        assert!(!error["error"].as_str().unwrap().is_empty(), "{error}");
        assert_eq!(error["way_out"], "hiopsctl --help tells the usage");
    }
    assert!(machine.says(&["--json", "--help"]).contains("Usage"));
}

#[test]
fn what_can_not_be_bound_is_said() {
    let machine = Machine::new();
    machine.tool("hiops-bind", "echo should not be called; exit 9");
    for command in ["bind", "unbind"] {
        let refuses = |device, words: &[&str]| machine.refuses(&[command, device], 1, words);
        refuses("drive", &["'drive' is neither", "0000:01:00.0"]);
        refuses("04:00.0", &["no PCI function 0000:04:00.0", "lspci -D"]);
        refuses(OTHER, &["is no NVMe or AHCI controller", "0x020000"]);
        refuses("hiops_ram0", &["RAM disk", "rmmod"]);
    }
    std::fs::remove_file(machine.path("usr/local/sbin/hiops-bind")).unwrap();
    machine.refuses(
        &["bind", THEIRS],
        1,
        &["hiops-bind is neither", "make install"],
    );
    machine.refuses(
        &["trace", "hiops0n1"],
        1,
        &["hiops-trace is neither", "make install"],
    );
}

#[test]
fn hiops_bind_is_called_and_its_refusal_passed_on() {
    let machine = Machine::new();
    machine.tool("hiops-bind", "echo $@ >>\"$HIOPS_ROOT/called\"");
    let said = machine.says(&["bind", "02:00.0"]);
    // Nothing has moved: the tool is a stand-in.
    assert_eq!(said, format!("{THEIRS} is with nvme now: nvme0n1\n"));
    machine.says(&["bind", NOBODYS]);
    machine.says(&["unbind", "/dev/hiops0n2"]);
    machine.says(&["unbind", OURS, "none"]);
    machine.says(&["bind", OTHER, "vfio-pci"]);
    let left = machine.json(&["bind", THEIRS]);
    assert_eq!(
        left,
        json!({ "address": THEIRS, "driver": "nvme", "disks": ["nvme0n1"] })
    );
    assert_eq!(
        machine.read("called"),
        format!(
            "{THEIRS} hiops_nvme\n{NOBODYS} hiops_ahci\n{OURS} nvme\n{OURS} none\n\
             {OTHER} vfio-pci\n{THEIRS} hiops_nvme\n"
        )
    );
    let refusal = "hiops-bind: 0000:01:00.0 is not touched: /dev/x is mounted on /y: umount it";
    machine.tool("hiops-bind", &format!("echo '{refusal}' >&2; exit 1"));
    let ran = machine.run(&["unbind", OURS]);
    assert_eq!(
        (ran.status, ran.err.trim_end(), &*ran.out),
        (1, refusal, "")
    );
    let ran = machine.run(&["unbind", OURS, "--json"]);
    let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(ran.status, 1);
    assert_eq!(
        error["error"],
        "0000:01:00.0 is not touched: /dev/x is mounted on /y"
    );
    assert_eq!(error["way_out"], "umount it");
}

#[test]
fn hiops_trace_gets_its_arguments_and_its_lines_become_json() {
    let machine = Machine::new();
    let line = "       812   1  interrupt on fio/812      hand-over to fio/813";
    machine.tool(
        "hiops-trace",
        &format!("echo \"$@\"; echo '{line}'; exit 3"),
    );
    let ran = machine.run(&["trace", "/dev/hiops0n1", "4"]);
    assert_eq!(
        (ran.status, &*ran.out),
        (3, &*format!("hiops0n1 4\n{line}\n"))
    );
    let ran = machine.run(&["trace", "hiops0n1", "--json"]);
    let step: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.status, &step["step"], &step["tid"]),
        (1, &json!("hand-over"), &json!(812))
    );
}

#[test]
fn files_that_can_not_be_written_are_named() {
    let machine = Machine::new();
    machine.put("there.txt", "keep");
    machine.refuses(
        &["report", "there.txt"],
        1,
        &["there.txt: File exists", "another file"],
    );
    assert_eq!(machine.read("there.txt"), "keep");
    machine.refuses(
        &["report", "none/x"],
        1,
        &["none/x: No such file", "check the name"],
    );
    machine.refuses(
        &["metrics", "-o", "none/x"],
        1,
        &[
            "none/x: its folder is not there",
            "node_exporter",
            "make none",
        ],
    );
    machine.refuses(&["man", "there.txt"], 1, &["there.txt is no folder"]);
    machine.refuses(&["man", "none"], 1, &["none is no folder", "make it"]);
    let full = machine.command(&["list"]).stdout(full()).output().unwrap();
    let said = String::from_utf8(full.stderr).unwrap();
    assert_eq!(full.status.code(), Some(1));
    assert!(
        said.contains("stdout can't be written: No space left"),
        "{said}"
    );
}

/// A device that is always full.
fn full() -> std::fs::File {
    std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap()
}

#[test]
fn each_wrong_line_of_the_list_is_named() {
    let machine = Machine::new();
    machine.refuses(
        &["check"],
        1,
        &["/etc/hiops/devices: No such file", "check the name"],
    );
    let good = format!("# ours\n{OURS} hiops_nvme serial=SERIAL-hiops0n1\n{THEIRS} # soon\n\n");
    machine.put("etc/hiops/devices", &good);
    assert_eq!(
        machine.says(&["check"]),
        "/etc/hiops/devices: 2 to bind, nothing wrong\n"
    );
    machine.put("last-line", &format!("{NOBODYS} hiops_ahci"));
    assert_eq!(machine.json(&["check", "last-line"])["devices"], 1);

    let bad = format!(
        "{OURS} hiops_nvme\ndrive hiops_nvme\n09:00.0 hiops_nvme\n{THEIRS} hiops_nvme serial=ELSE\n\
         {NOBODYS}\n{OURS} nvme\n{OTHER} hiops_scsi\n{OTHER} hiops_ahci now\n"
    );
    machine.put("etc/hiops/devices", &bad);
    let ran = machine.run(&["check"]);
    assert_eq!((ran.status, &*ran.out), (1, ""));
    let wanted = [
        (
            2,
            "'drive' is not the address of a PCI function: write it as hiopsctl list",
        ),
        (3, "there is no PCI function 0000:09:00.0: hiopsctl list"),
        (
            4,
            "0000:02:00.0 has the serial number THEIRS001, not ELSE: another drive",
        ),
        (
            5,
            "0000:00:17.0 is not for hiops_nvme: its class is 0x010601: name hiops_ahci",
        ),
        (6, "0000:01:00.0 is named on line 1, too: remove one"),
        (7, "hiops has no driver 'hiops_scsi': those are"),
        (8, "'now' is not understood: a line is ADDRESS [DRIVER]"),
    ];
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines.len(), wanted.len(), "{lines:#?}");
    for (line, (number, words)) in lines.iter().zip(wanted) {
        let begins = format!("/etc/hiops/devices:{number}: {words}");
        assert!(line.starts_with(&begins), "{line}\nnot: {begins}");
    }
    let ran = machine.run(&["check", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.status, told["wrong"].as_array().unwrap().len()),
        (1, 7)
    );
    assert_eq!(told["wrong"][0]["line"], 2);
}
