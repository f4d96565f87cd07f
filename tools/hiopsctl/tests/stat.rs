// SPDX-License-Identifier: GPL-2.0
//! `stat`: what it tells of two looks, and how it ends.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, Ran, OURS};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// `stat --watch --json`, with what `between` does after each of the first looks' lines.
fn watch(machine: &Machine, count: usize, mut between: impl FnMut(usize)) -> Vec<Value> {
    let count_text = count.to_string();
    let mut command = machine.command(&["stat", "--json", "-i", "0.3", "-n", &count_text]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    for (at, line) in lines.enumerate() {
        told.push(serde_json::from_str(&line.unwrap()).unwrap());
        between(at);
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(told.len(), count);
    told
}

#[test]
fn deltas_are_what_the_files_have_grown_by() {
    let machine = Machine::new();
    let told = watch(&machine, 3, |at| match at {
        // Between the second and the third look: 40 of each kind, and 30 interrupts.
        0 => {
            machine.stats("hiops0n1", 140, 40);
            machine.stats("hiops0n2", 100, 40);
        }
        // Then it was zeroed, and has 5 of each since.
        1 => {
            machine.stats("hiops0n1", 5, 1);
            machine.stats("hiops0n2", 5, 1);
        }
        _ => {}
    });
    let [idle, grown, zeroed] = &told[..] else {
        panic!("three: {told:?}");
    };
    assert_eq!(idle["disks"][0]["delta"]["completed"], 0);
    assert_eq!(idle["disks"][0]["share"]["irq"], Value::Null);
    let disk = &grown["disks"][0];
    assert_eq!(
        (&disk["disk"], &disk["controller"]),
        (&"hiops0n1".into(), &OURS.into())
    );
    assert_eq!(disk["delta"]["completed"], 160);
    assert_eq!(disk["delta"]["completed_poll"], 40);
    assert_eq!(disk["delta"]["interrupts"], 30);
    assert_eq!(disk["delta"]["max_irq_ns"], 12345);
    assert_eq!(disk["counters"]["completed"], 560);
    assert_eq!(
        (&disk["share"]["coop"], &disk["reset"]),
        (&0.25.into(), &false.into())
    );
    let seconds = grown["seconds"].as_f64().unwrap();
    assert!((disk["iops"].as_f64().unwrap() * seconds - 160.0).abs() < 1e-6);
    assert_eq!(grown["controllers"][0]["interrupts_per_io"], 30.0 / 160.0);
    assert_eq!(
        grown["controllers"][0]["learned"]["queues"][0]["credit_ns"]["polling"],
        50_000
    );
    assert_eq!(zeroed["disks"][0]["reset"], true);
    assert_eq!(zeroed["disks"][0]["delta"]["completed"], 20);
    // The controller's two disks and a RAM disk.
    assert_eq!(grown["disks"].as_array().unwrap().len(), 3);
    assert_eq!(grown["controllers"].as_array().unwrap().len(), 2);
}

#[test]
fn text_has_all_that_was_asked_for() {
    let machine = Machine::new();
    let text = machine.says(&["stat", "-i", "0.1", "hiops0n2"]);
    for words in [
        "IOPS",
        "FIFO",
        "DEPTH",
        "IRQS/IO",
        "12.3 us",
        "has learnt: sleep 4.1 us",
    ] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    assert!(
        !text.contains("hiops0n1") && !text.contains("hiops_ram0"),
        "{text}"
    );
    // One screen: it fits into a window of moderate width.
    assert!(text.lines().all(|line| line.len() <= 110), "{text}");
    assert!(!text.contains('\x1b'));
    let twice = machine.says(&["stat", "-i", "0.1", "-n", "2", "hiops0n2"]);
    assert_eq!(twice.matches("IOPS").count(), 2);
    assert!(!twice.contains('\x1b'));
}

#[test]
fn a_reader_that_goes_is_no_error() {
    let machine = Machine::new();
    let mut command = machine.command(&["stat", "--watch", "-i", "0.1"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.status, &*ran.err), (0, ""));
    assert!(first.starts_with("DISK"));
}

#[test]
fn a_disk_that_goes_ends_nothing() {
    let machine = Machine::new();
    let told = watch(&machine, 3, |at| {
        if at == 0 {
            std::fs::remove_file(machine.path("sys/block/hiops0n2")).unwrap();
        }
    });
    let disks = |at: usize| told[at]["disks"].as_array().unwrap().len();
    assert_eq!((disks(0), disks(2)), (3, 2));
}

#[test]
fn counters_of_another_version_are_named() {
    let machine = Machine::new();
    machine.put("sys/block/hiops0n1/hiops/stats", "submitted: 5\n");
    let words = [
        "/sys/block/hiops0n1/hiops/stats",
        "submitted: 5",
        "came with",
    ];
    machine.refuses(&["stat", "-i", "0.1"], 1, &words);
}
