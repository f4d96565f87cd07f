// SPDX-License-Identifier: GPL-2.0
//! A disk made of files that measures how long its requests take.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

use crate::common::Machine;

/// The contexts that end requests.
const HEAD: &str = "below_ns irq lazy coop poll nap\n";

/// What hiops0n1 measures: of its reads so many in each of two buckets.
pub fn measure(machine: &Machine, fast: u64, slow: u64) {
    // In one step: whoever reads a file finds the old or the new one.
    let put = |name: &str, text: &str| {
        machine.put("new", text);
        let file = machine.path(&format!("sys/block/hiops0n1/hiops/{name}"));
        std::fs::rename(machine.path("new"), file).unwrap();
    };
    let sum = fast * 90_000 + slow * 200_000;
    put("latency", "1\n");
    let lines = format!("96000 0 0 {fast} 0 0\n256000 {slow} 0 0 0 0\n");
    put(
        "latency_read",
        &format!("{HEAD}{lines}sum_ns {sum} 0 0 0 0\n"),
    );
    put("latency_write", &format!("{HEAD}sum_ns 0 0 0 0 0\n"));
    put(
        "latency_other",
        &format!("{HEAD}inf 0 1 0 0 0\nsum_ns 0 17000000000 0 0 0\n"),
    );
}
