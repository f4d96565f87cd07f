// SPDX-License-Identifier: GPL-2.0
//! `--json` is what docs/schemas says, of every command, and stays so: what a reader of a version
//! relies on is there as long as that version is.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;
#[path = "common/histograms.rs"]
mod histograms;
#[path = "common/lab.rs"]
mod lab;
#[path = "common/schema.rs"]
mod schema;

use common::{Machine, OURS, THEIRS};
use histograms::measure;
use lab::{Lab, SHORT};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// Commands that have no JSON of hiops' own.
const WITHOUT: [&str; 1] = ["help"];

/// A step, with the headline and the blanks that hiops-trace prints.
const TRACE: &str = "\
echo '        us CPU  context                       step'
echo '       812   1  interrupt on fio/812      hand-over to fio/813'
echo '       815   0               fio/813      woken'";

/// Commands that say each form which they have, with the schema's name.
const CASES: [(&str, &[&str]); 30] = [
    ("list", &["list"]),
    ("get", &["get", "hiops0n1"]),
    ("get", &["get", "hiops0n1", "mode"]),
    ("get", &["get", "hiops0n1", "stats"]),
    ("get", &["get", "hiops0n1", "learned"]),
    ("set", &["set", "hiops0n1", "coop", "0"]),
    ("set", &["set", "hiops0n1", "stats", "reset"]),
    ("set", &["set", "hiops0n2", "lazy", "1"]),
    ("bind", &["bind", OURS]),
    ("unbind", &["unbind", OURS]),
    ("status", &["status"]),
    ("check", &["check"]),
    ("enable", &["enable", THEIRS]),
    ("disable", &["disable", THEIRS]),
    ("set", &["set", "--save", "hiops0n1", "lazy", "1"]),
    ("set", &["set", "hiops0n1", "lazy", "0"]),
    ("apply", &["apply"]),
    ("forget", &["forget", "hiops0n1"]),
    ("doctor", &["doctor"]),
    ("nvme-list", &["nvme-list"]),
    ("trace", &["trace", "hiops0n1"]),
    ("report", &["report"]),
    ("report-file", &["report", "-"]),
    ("smartd", &["smartd"]),
    ("completions", &["completions", "bash"]),
    ("man", &["man"]),
    ("man", &["man", "man8"]),
    ("error", &["get", "none"]),
    ("error", &["get"]),
    ("error", &["get", "hiops0n1", "none"]),
];

/// The first line of stdout, and of stderr, of `args`.
fn told(machine: &Machine, args: &[&str]) -> [Option<Value>; 2] {
    let mut all = vec!["--json"];
    all.extend(args);
    let ran = machine.run(&all);
    [ran.out, ran.err].map(|text| Some(serde_json::from_str(text.lines().next()?).unwrap()))
}

/// What `stat --latency` says when nothing has ended, and when something has.
fn latencies() -> [Value; 2] {
    let machine = Machine::new();
    measure(&machine, 1000, 7);
    let mut command = machine.command(&["--json", "stat", "-l", "-w", "-i", "0.1"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let idle = told.next().unwrap();
    measure(&machine, 1098, 9);
    let busy = told.find(|it| it["latencies"][0]["count"] != 0).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    [idle, busy]
}

/// What `advise --ab` prints and keeps, on a kernel without io_uring.
fn comparison() -> [Value; 2] {
    let lab = Lab::new();
    lab.0.put("proc/sys/kernel/io_uring_disabled", "2\n");
    let ran = lab.run(&[&SHORT[..], &["--json"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.err);
    let kept = lab.0.read("hiops-advise-nvme0n1.json");
    [ran.out, kept].map(|text| serde_json::from_str(&text).unwrap())
}

/// All that is said, with its schema.
fn said() -> Vec<(&'static str, Value)> {
    let mut said = commands_say();
    said.extend(latencies().map(|it| ("stat-latency", it)));
    said.extend(comparison().map(|it| ("advise-ab", it)));
    said
}

/// What each command says in every case that has another form, with its schema.
fn commands_say() -> Vec<(&'static str, Value)> {
    let machine = Machine::new();
    machine.partition("hiops0n1", "hiops0n1p1", "259:7");
    let mount = "36 35 259:7 / /srv rw - ext4 /dev/hiops0n1p1 rw\n";
    machine.put("proc/100/mountinfo", mount);
    machine.put("sys/block/hiops0n2/hiops/strategy", "plain\n");
    machine.put("etc/hiops/devices", "rubbish\n");
    machine.tool("hiops-trace", TRACE);
    machine.tool("hiops-bind", "exit 0");
    machine.script("usr/local/libexec/hiops/renew", "exit 0");
    machine.put("lib/modules/7.3.4-test/vmlinuz", "");
    machine.put(
        "proc/stat",
        "cpu 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\nprocs_blocked 0\n",
    );
    std::fs::create_dir(machine.path("man8")).unwrap();
    let mut said = Vec::new();
    for (name, args) in CASES {
        let [out, err] = told(&machine, args);
        let both = if name == "error" { err } else { out };
        said.push((
            name,
            both.unwrap_or_else(|| panic!("{args:?} said nothing")),
        ));
    }
    machine.stats("hiops0n1", 100, 10);
    for (name, args) in [
        ("metrics", &["metrics"][..]),
        ("stat", &["stat", "-i", "0.1"]),
        ("advise", &["advise", "-i", "0.1"]),
    ] {
        let [out, _] = told(&machine, args);
        said.push((name, out.unwrap()));
    }
    let file = serde_json::from_str(&machine.read("hiops-report.json")).unwrap();
    said.push(("report-file", file));
    std::fs::remove_file(machine.path("usr/local/sbin/hiops-users")).unwrap();
    for (name, args) in [
        ("list", &["list"][..]),
        ("advise", &["advise", "-i", "0.1"]),
    ] {
        let [out, _] = told(&machine, args);
        said.push((name, out.unwrap()));
    }
    machine.tool(
        "hiops-bind",
        "echo 'hiops-bind: it is in use: umount it' >&2; exit 1",
    );
    machine.tool("hiops-trace", "exit 3");
    for args in [&["bind", OURS][..], &["trace", "hiops0n1"]] {
        let [out, err] = told(&machine, args);
        assert_eq!(out, None, "{args:?}");
        said.push(("error", err.unwrap()));
    }
    said
}

#[test]
fn each_command_says_what_its_schema_has() {
    let said = said();
    let mut wrongs = Vec::new();
    let mut places = BTreeSet::new();
    for (name, value) in &said {
        let schema = schema::schema(name);
        wrongs.extend(schema::wrongs(&schema, value, name));
        schema::met(&schema, value, name, &mut places);
    }
    assert!(
        wrongs.is_empty(),
        "docs/schemas has it otherwise: {wrongs:#?}"
    );
    // What no command says any more would stand in a schema for ever.
    let lines = shapes();
    let all = lines
        .iter()
        .map(|line| line.split(": ").next().unwrap().replace('?', ""));
    let unmet: Vec<String> = all.filter(|place| !places.contains(place)).collect();
    assert!(
        unmet.is_empty(),
        "a schema has what nothing said: {unmet:#?}"
    );
    let commands = commands();
    let missing: Vec<_> = commands.difference(&schema::names()).cloned().collect();
    assert!(
        missing.is_empty(),
        "without docs/schemas/NAME.json: {missing:?}"
    );
}

/// The commands of which `--help` tells.
fn commands() -> BTreeSet<String> {
    let help = Machine::bare().says(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_string());
    names
        .filter(|name| !WITHOUT.contains(&name.as_str()))
        .collect()
}

/// The shapes of all schemas.
fn shapes() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for name in schema::names() {
        schema::shape(&schema::schema(&name), &name, &mut lines);
    }
    lines
}

/// `docs/schemas/shapes.txt` is what readers of the version in its first line rely on. Only a new
/// version may take from it.
#[test]
fn what_readers_rely_on_goes_with_a_new_version_only() {
    let file = schema::folder().join("shapes.txt");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let [list, _] = told(&Machine::bare(), &["list"]);
    let version = list.unwrap()["schema_version"].clone();
    let head = format!("schema_version {version}");
    let lines: BTreeSet<String> = text.lines().skip(1).map(str::to_string).collect();
    let now = shapes();
    if text.lines().next() == Some(&head) {
        let gone: Vec<_> = lines.difference(&now).collect();
        assert!(
            gone.is_empty(),
            "readers of version {version} rely on {gone:#?}: keep it, or raise SCHEMA_VERSION \
             (out.rs) and the schemas' schema_version"
        );
    }
    let new = now.into_iter().collect::<Vec<_>>().join("\n");
    let new = format!("{head}\n{new}\n");
    let wanted = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shapes.txt");
    std::fs::write(&wanted, &new).unwrap();
    assert!(
        text == new,
        "the schemas have more than their list: cp {} docs/schemas/shapes.txt",
        wanted.display()
    );
}

#[test]
fn all_json_says_its_version_and_when() {
    let machine = Machine::new();
    let two: Vec<Value> = (machine
        .says(&["--json", "stat", "-i", "0.1", "-n", "2"])
        .lines())
    .map(|line| serde_json::from_str(line).unwrap())
    .collect();
    let times: Vec<&str> = two
        .iter()
        .map(|it| it["timestamp"].as_str().unwrap())
        .collect();
    // RFC 3339 in UTC is sorted as time is.
    assert!(times[0] <= times[1] && times[0].len() == "2026-02-28T23:59:59.999Z".len());
    for (name, value) in said() {
        assert_eq!(value["schema_version"], json!(1), "{name}");
        assert!(
            value["timestamp"]
                .as_str()
                .is_some_and(|at| at.ends_with('Z')),
            "{name}"
        );
    }
}
