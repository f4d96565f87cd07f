// SPDX-License-Identifier: GPL-2.0
//! How long requests take: `stat --latency`, `metrics`, `report` and `get`.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;
#[path = "common/histograms.rs"]
mod histograms;

use common::Machine;
use histograms::measure;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn ran(machine: &Machine, args: &[&str]) -> (Option<i32>, String, String) {
    let output = machine.command(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn a_disk_that_does_not_measure_says_how_it_would() {
    let machine = Machine::new();
    let (status, _, error) = ran(&machine, &["stat", "-l", "-i", "0.1", "hiops0n1"]);
    assert_eq!(status, Some(1));
    assert!(error.contains("hiopsctl set hiops0n1 latency 1"), "{error}");
}

#[test]
fn stat_tells_percentiles_of_what_came_between_two_looks() {
    let machine = Machine::new();
    measure(&machine, 1000, 7);
    let mut command = machine.command(&["stat", "-l", "--json", "-i", "0.5", "-n", "2"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let idle: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(idle["latencies"][0]["count"], 0);
    measure(&machine, 1098, 9);
    let told: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
    let [read, write, other] = [0, 1, 2].map(|at| &told["latencies"][at]);
    assert_eq!(
        (&read["operation"], &read["disk"]),
        (&"read".into(), &"hiops0n1".into())
    );
    assert_eq!(
        (&read["count"], &read["reset"]),
        (&100.into(), &false.into())
    );
    assert_eq!(
        (&read["p50_ns"], &read["p99_ns"]),
        (&96_000.into(), &256_000.into())
    );
    assert_eq!(read["mean_ns"], (98 * 90_000 + 2 * 200_000) / 100);
    assert_eq!(
        (&read["contexts"]["coop"], &read["contexts"]["irq"]),
        (&98.into(), &2.into())
    );
    assert_eq!(
        (&write["count"], &write["p99_ns"]),
        (&0.into(), &Value::Null)
    );
    assert_eq!(other["count"], 0);
}

#[test]
fn metrics_are_histograms() {
    let machine = Machine::new();
    measure(&machine, 1000, 7);
    let (_, text, _) = ran(&machine, &["metrics"]);
    let wanted = |labels: &str| {
        let all = "disk=\"hiops0n1\",controller=\"0000:01:00.0\",operation=\"read\"";
        format!("{all},{labels}")
    };
    for line in [
        format!(
            "_bucket{{{}}} 0",
            wanted("context=\"coop\",le=\"0.000064\"")
        ),
        format!(
            "_bucket{{{}}} 1000",
            wanted("context=\"coop\",le=\"0.000096\"")
        ),
        format!("_bucket{{{}}} 1000", wanted("context=\"coop\",le=\"+Inf\"")),
        format!("_count{{{}}} 7", wanted("context=\"irq\"")),
    ] {
        assert!(
            text.contains(&format!("hiops_latency_seconds{line}\n")),
            "{line}"
        );
    }
    assert!(text.contains("# TYPE hiops_latency_seconds histogram\n"));
    // One that took longer than the last bucket's end is in none but that of all.
    let other = "operation=\"other\",context=\"lazy\",le=";
    assert!(
        text.contains(&format!("{other}\"16.777216\"}} 0\n")),
        "{text}"
    );
    assert!(text.contains(&format!("{other}\"+Inf\"}} 1\n")));
    // Nothing was written, and the other disks don't measure.
    assert!(!text.contains("latency_seconds_count{disk=\"hiops0n2\""));
    assert!(!text.contains("operation=\"write\",context"));
}

#[test]
fn a_report_has_them_and_settings_do_not() {
    let machine = Machine::new();
    measure(&machine, 1000, 7);
    let (_, report, _) = ran(&machine, &["report", "-"]);
    assert!(report.contains("latency_read:\n  below_ns irq lazy coop poll nap\n  96000 0 0 1000"));
    let (_, settings, _) = ran(&machine, &["get", "hiops0n1"]);
    assert!(
        settings.contains("latency 1\n") && !settings.contains("latency_"),
        "{settings}"
    );
}
