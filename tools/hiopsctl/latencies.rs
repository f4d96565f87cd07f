// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl stat --latency`, and what `metrics` tells of how long requests take.

use crate::cli::StatOptions;
use crate::exposition::Family;
use crate::failure::Failure;
use crate::latency::{ends_ns, sparkline, Histogram, Summary, OPERATIONS};
use crate::machine::controllers;
use crate::out::{json, Out};
use crate::root::Root;
use crate::show::nanoseconds;
use crate::stat::next_look;
use crate::table::Table;
use serde::Serialize;
use std::time::{Duration, Instant};

/// A disk's histograms, by what requests ask for, as [`OPERATIONS`] says.
struct Histograms {
    disk: String,
    controller: String,
    of: Vec<(&'static str, Histogram)>,
}

/// What came between two looks.
#[derive(Serialize)]
struct Latencies {
    seconds: f64,
    latencies: Vec<Latency>,
}

/// Requests of a kind.
#[derive(Serialize)]
struct Latency {
    disk: String,
    controller: String,
    operation: &'static str,
    /// It was zeroed meanwhile: what came before that is not in it.
    reset: bool,
    #[serde(flatten)]
    summary: Summary,
}

fn file(disk: &str, name: &str) -> String {
    format!("/sys/block/{disk}/hiops/{name}")
}

/// Those of the disks that are in `wanted`, or all, and that are measured.
fn take(root: &Root, wanted: &[String]) -> Vec<Histograms> {
    let mut all = Vec::new();
    for controller in controllers(root) {
        for disk in controller.served() {
            let shown = wanted.is_empty() || wanted.contains(&disk.name);
            if !shown || root.word(&file(&disk.name, "latency")).as_deref() != Some("1") {
                continue;
            }
            let of = OPERATIONS.iter().filter_map(|operation| {
                let text = root.text(&file(&disk.name, &format!("latency_{operation}")))?;
                Some((*operation, Histogram::parse(&text)?))
            });
            all.push(Histograms {
                of: of.collect(),
                disk: disk.name.clone(),
                controller: controller.address.clone(),
            });
        }
    }
    all
}

/// Runs `stat --latency` for `disks`, or all.
///
/// # Errors
/// None of them is measured.
pub(crate) fn stat(
    root: &Root,
    out: &Out,
    options: &StatOptions,
    disks: &[String],
) -> Result<(), Failure> {
    let endless = options.watch && options.count.is_none();
    let mut left = options.count.unwrap_or(1);
    let interval = Duration::from_secs_f64(options.interval);
    let (mut before, mut at) = (take(root, disks), Instant::now());
    if before.is_empty() {
        let named = disks.first().map_or("DISK", String::as_str);
        return Err(Failure::new(
            "how long requests take is not measured",
            format!("hiopsctl set {named} latency 1 begins with that"),
        ));
    }
    let mut due = at;
    while endless || left > 0 {
        due = next_look(due, interval);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let (now, then) = (take(root, disks), Instant::now());
        let told = Latencies {
            seconds: then.saturating_duration_since(at).as_secs_f64(),
            latencies: between(&before, &now),
        };
        out.print(&match out.is_json() {
            true => format!("{}\n", json(&told)?),
            false if endless || options.count.is_some() => format!("{}\n", text(&told)),
            false => text(&told),
        })?;
        (before, at) = (now, then);
        left = left.saturating_sub(1);
    }
    Ok(())
}

fn between(before: &[Histograms], now: &[Histograms]) -> Vec<Latency> {
    let mut all = Vec::new();
    for disk in now {
        let Some(old) = before.iter().find(|old| old.disk == disk.disk) else {
            continue;
        };
        for (operation, histogram) in &disk.of {
            let Some((_, old)) = old.of.iter().find(|(name, _)| name == operation) else {
                continue;
            };
            let (grown, reset) = histogram.since(old);
            all.push(Latency {
                disk: disk.disk.clone(),
                controller: disk.controller.clone(),
                operation,
                reset,
                summary: grown.summary(),
            });
        }
    }
    all
}

/// A row for all of a disk's requests of a kind, if there were any.
fn text(told: &Latencies) -> String {
    let mut table = Table::new(&[
        "DISK",
        "OPERATION",
        ">COUNT",
        ">MEAN",
        ">P50",
        ">P99",
        ">P99.9",
        "BUCKETS",
    ]);
    let below = |ns: Option<u64>| ns.map_or_else(|| "longer".into(), nanoseconds);
    for latency in told.latencies.iter().filter(|it| it.summary.count != 0) {
        let summary = &latency.summary;
        table.row([
            latency.disk.clone(),
            latency.operation.into(),
            summary.count.to_string(),
            summary.mean_ns.map(nanoseconds).unwrap_or_default(),
            below(summary.p50_ns),
            below(summary.p99_ns),
            below(summary.p999_ns),
            range(&summary.buckets),
        ]);
    }
    table.text()
}

/// The sparkline of buckets, and where it begins and ends.
fn range(buckets: &[(Option<u64>, u64)]) -> String {
    let first = buckets.first().and_then(|(end_ns, _)| *end_ns);
    let begin = first.and_then(|first| ends_ns().take_while(|end_ns| *end_ns < first).last());
    let last = buckets.last().and_then(|(end_ns, _)| *end_ns);
    let begin = nanoseconds(begin.unwrap_or(0));
    let end = last.map_or_else(|| "longer".into(), nanoseconds);
    format!("{begin} {} {end}", sparkline(buckets))
}

/// The histograms of all disks that are measured, for Prometheus: those of an operation and a
/// context that there were any of.
pub(crate) fn family(root: &Root) -> Family {
    let help = "How long requests took, from the block layer to hiops and back";
    let mut family = Family::histogram("hiops_latency_seconds", help);
    for disk in take(root, &[]) {
        for (operation, histogram) in &disk.of {
            for (context, buckets, sum_ns) in histogram.by_context() {
                let labels = [
                    ("disk", disk.disk.as_str()),
                    ("controller", &disk.controller),
                    ("operation", operation),
                    ("context", context),
                ];
                add(&mut family, &labels, &buckets, sum_ns);
            }
        }
    }
    family
}

/// One histogram: how many took no longer than each bucket's end, all of them, and their sum.
fn add(family: &mut Family, labels: &[(&str, &str)], buckets: &[(Option<u64>, u64)], sum_ns: u64) {
    // CAST: Prometheus' numbers are doubles.
    let (number, seconds) = (|value: u64| value as f64, |ns: u64| ns as f64 / 1e9);
    let up_to = |most: u64| {
        let within = |end_ns: &Option<u64>| end_ns.unwrap_or(u64::MAX) <= most;
        let counts = buckets.iter().filter(|(end_ns, _)| within(end_ns));
        counts.fold(0u64, |all, (_, count)| all.saturating_add(*count))
    };
    for (le, most) in ends_ns()
        .map(|end_ns| (seconds(end_ns).to_string(), end_ns))
        .chain([("+Inf".to_string(), u64::MAX)])
    {
        let labels = [labels, &[("le", le.as_str())]].concat();
        family.add_part("_bucket", &labels, number(up_to(most)));
    }
    family.add_part("_sum", labels, seconds(sum_ns));
    family.add_part("_count", labels, number(up_to(u64::MAX)));
}
