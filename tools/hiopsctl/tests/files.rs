// SPDX-License-Identifier: GPL-2.0
//! `metrics -o`: what is written where, and what is left alone.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, Ran};
use std::fs;
use std::os::unix::fs::{symlink, FileTypeExt, MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

/// What a shell says of `line`, in which $CTL is the program.
fn shell(machine: &Machine, line: &str) -> Ran {
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(machine.root());
    command
        .env("HIOPS_ROOT", machine.root())
        .stdin(Stdio::null());
    command.env("CTL", env!("CARGO_BIN_EXE_hiopsctl"));
    Ran::of(command.output().unwrap())
}

fn names(machine: &Machine) -> Vec<String> {
    let entries = fs::read_dir(machine.path("out")).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A machine with a folder `out`, and what is to be written.
fn machine() -> (Machine, String) {
    let machine = Machine::new();
    fs::create_dir(machine.path("out")).unwrap();
    let text = machine.says(&["metrics"]);
    (machine, text)
}

#[test]
fn stdout_by_any_name_is_written_and_stays_what_it_is() {
    let (machine, text) = machine();
    for line in [
        "$CTL metrics -o -",
        "$CTL metrics -o /dev/stdout",
        "$CTL metrics -o /dev/stdout | cat",
        "$CTL metrics -o /proc/self/fd/1 | cat",
        "$CTL metrics -o /dev/fd/3 3>&1 | cat",
        "ln -s /dev/stdout out/link; $CTL metrics -o out/link | cat; rm out/link",
        "mkfifo out/pipe; cat out/pipe & $CTL metrics -o out/pipe; wait; [ -p out/pipe ]",
    ] {
        let ran = shell(&machine, line);
        assert_eq!((ran.status, &*ran.err), (0, ""), "{line}");
        assert!(ran.out == text, "{line}: {}", ran.out);
    }
    let ran = shell(
        &machine,
        "echo first >out/log; $CTL metrics -o /dev/stdout >>out/log; $CTL metrics -o /dev/null",
    );
    assert_eq!((ran.status, &*ran.err), (0, ""));
    assert!(machine.read("out/log") == format!("first\n{text}"));
    assert!(fs::metadata("/dev/null")
        .unwrap()
        .file_type()
        .is_char_device());
    assert!(!machine.path("-").exists());
    let ran = shell(&machine, "$CTL metrics -o /dev/full");
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("/dev/full: No space left"), "{}", ran.err);
    assert_eq!(names(&machine), ["log", "pipe"]);
}

#[test]
fn a_new_file_can_be_read_by_all_and_an_old_one_stays_as_it_was() {
    let (machine, text) = machine();
    let ran = shell(&machine, "umask 077; $CTL metrics -o out/hiops.prom");
    assert_eq!((ran.status, &*ran.err), (0, ""));
    let file = machine.path("out/hiops.prom");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o644);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    // What another had open before is whole: it is a new file.
    let old = fs::metadata(&file).unwrap().ino();
    machine.says(&["metrics", "-o", "out/hiops.prom"]);
    let now = fs::metadata(&file).unwrap();
    assert_eq!((now.mode() & 0o7777, now.ino() != old), (0o640, true));
    assert!(machine.read("out/hiops.prom") == text);
    assert_eq!(names(&machine), ["hiops.prom"]);
}

#[test]
fn no_link_beside_it_is_followed_and_its_own_stays() {
    let (machine, text) = machine();
    machine.put("victim", "keep");
    symlink(machine.path("victim"), machine.path("out/hiops.prom.new")).unwrap();
    machine.says(&["metrics", "-o", "out/hiops.prom"]);
    assert_eq!(machine.read("victim"), "keep");
    assert_eq!(names(&machine), ["hiops.prom", "hiops.prom.new"]);
    fs::create_dir(machine.path("elsewhere")).unwrap();
    // One link after the other, and nothing at their end yet.
    symlink("second", machine.path("out/first")).unwrap();
    symlink("../elsewhere/file", machine.path("out/second")).unwrap();
    for _ in 0..2 {
        machine.says(&["metrics", "-o", "out/first"]);
        assert!(machine.read("elsewhere/file") == text);
        assert!(machine.path("out/first").is_symlink() && machine.path("out/second").is_symlink());
    }
    symlink("round", machine.path("out/round")).unwrap();
    machine.refuses(&["metrics", "-o", "out/round"], 1, &["out/round: Too many"]);
}

#[test]
fn what_fails_leaves_nothing() {
    let (machine, _) = machine();
    fs::create_dir(machine.path("out/folder")).unwrap();
    machine.refuses(
        &["metrics", "-o", "out/folder"],
        1,
        &["out/folder: Is a directory"],
    );
    machine.refuses(
        &["metrics", "-o", "none/x"],
        1,
        &["none/x: its folder is not there"],
    );
    assert_eq!(names(&machine), ["folder"]);
}
