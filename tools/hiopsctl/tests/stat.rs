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

/// What a terminal of that size shows after each write of `text`, and what has gone up out of it.
struct Terminal {
    rows: Vec<String>,
    at: usize,
    column: usize,
    gone: Vec<String>,
}

impl Terminal {
    fn play(&mut self, text: &str, columns: usize) {
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.column = 0,
                '\n' if self.at + 1 < self.rows.len() => self.at += 1,
                '\n' => {
                    self.gone.push(self.rows.remove(0));
                    self.rows.push(String::new());
                }
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['));
                    let mut number = String::new();
                    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                        number.push(digit);
                    }
                    match rest.next().unwrap() {
                        'A' => self.at -= number.parse::<usize>().unwrap(),
                        'K' => self.rows[self.at].truncate(self.column),
                        'J' => {
                            self.rows[self.at].truncate(self.column);
                            (self.rows.iter_mut().skip(self.at + 1)).for_each(String::clear);
                        }
                        other => panic!("not known: {other}"),
                    }
                }
                c => {
                    let row = &mut self.rows[self.at];
                    row.truncate(self.column);
                    row.push(c);
                    self.column += 1;
                    assert!(self.column < columns, "over the edge: {row}");
                }
            }
        }
    }
}

#[test]
fn a_small_terminal_loses_nothing_and_is_not_flooded() {
    let machine = Machine::new();
    for number in 0..40 {
        machine.ram_disk(
            &format!("hiops_ram{}", number + 1),
            &format!("259:{}", number + 50),
        );
    }
    // script(1) gives the program a terminal.
    let program = env!("CARGO_BIN_EXE_hiopsctl");
    let mut command = std::process::Command::new("script");
    let line = format!("stty rows 24 cols 80; {program} stat -i 0.1 -n 30");
    command.args(["-qec", &line, "/dev/null"]);
    command
        .env("HIOPS_ROOT", machine.root())
        .stdin(Stdio::null());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.status, 0, "{}", ran.err);
    let mut terminal = Terminal {
        rows: vec![String::new(); 24],
        at: 23,
        column: 0,
        gone: Vec::new(),
    };
    // A frame ends where all below it is erased.
    let mut seen = String::new();
    for frame in ran.out.split_inclusive("\x1b[J") {
        terminal.play(frame, 80);
        seen.push_str(&terminal.rows.join("\n"));
    }
    assert!(
        terminal.gone.iter().all(String::is_empty),
        "it went up: {:?}",
        terminal.gone
    );
    for word in [
        "IOPS",
        "FIFO",
        "DEPTH",
        "ERRORS",
        "IRQS/IO",
        "MAX TICK",
        "has learnt",
    ] {
        assert!(seen.contains(word), "no {word}");
    }
    for number in 0..41 {
        assert!(
            seen.contains(&format!("hiops_ram{number} ")),
            "no disk {number}"
        );
    }
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
