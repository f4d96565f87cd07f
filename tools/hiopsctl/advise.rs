// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl advise`: whether hiops is worth it for a drive's load.
//!
//! * `rules` decides from what `observed` saw, as docs/results.md has it; `matrix_test` holds them
//!   beside all that was measured there. `answer` is the measure of both.
//! * `ab` measures: `drive` finds an unused disk, lends it and gives it back, `fio` reads it,
//!   `comparison` is what comes of it, `page` what is kept, with a picture by `svg`. `stop` is how
//!   it ends early.

mod ab;
mod answer;
mod comparison;
mod drive;
mod fio;
#[cfg(test)]
mod matrix_test;
mod observed;
mod options;
mod page;
mod rules;
mod stop;
mod svg;

use crate::failure::Failure;
use crate::machine::{controllers, Controller, Disk, Kind};
use crate::out::Out;
use crate::root::Root;
use crate::show::share;
use crate::table::Table;
use crate::usage::{Usage, Use};
use answer::Answer;
use observed::{observe, Observed, Seen, Ticks, TICKS};
pub(crate) use options::AdviseOptions;
use rules::{Bus, Cpus, Load, Threads, Why};
use serde::Serialize;

/// What is told of the machine and of each drive.
#[derive(Serialize)]
struct Advice {
    seconds: f64,
    cpus: usize,
    /// Shares of all CPUs' time.
    kernel: f64,
    programs: f64,
    iowait: f64,
    /// The busiest CPU's.
    busiest: f64,
    /// Threads that waited for I/O, and that ran or wanted a CPU.
    blocked: f64,
    runnable: f64,
    /// A second.
    context_switches: f64,
    drives: Vec<DriveAdvice>,
    /// Why it can't be told who uses the disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_users: Option<String>,
}

#[derive(Serialize)]
struct DriveAdvice {
    disk: String,
    controller: String,
    driver: Option<String>,
    kind: &'static str,
    rotational: bool,
    /// What its queue holds at the most.
    nr_requests: Option<u64>,
    iops: f64,
    depth: f64,
    deepest: u64,
    us_per_io: Option<f64>,
    in_use: Option<Vec<Use>>,
    answer: Answer,
    why: &'static str,
}

/// Tells it, or measures.
pub(crate) fn run(root: &Root, out: &Out, options: &AdviseOptions) -> Result<(), Failure> {
    if let Some(disk) = &options.ab {
        return ab::run(root, out, disk, options);
    }
    let mut all = controllers(root);
    all.retain(|one| matches!(one.kind, Kind::Nvme | Kind::Ahci) && !one.disks.is_empty());
    let disks = all.iter().flat_map(|one| &one.disks);
    let names: Vec<String> = disks.map(|disk| disk.name.clone()).collect();
    let observed = observe(root, &names, options.interval)?;
    let usage = Usage::look(root);
    let advice = advice(root, &all, &observed, &usage);
    out.show(&advice, text)
}

/// What of the CPUs the rules are about.
fn cpus(observed: &Observed) -> Cpus {
    let all = &observed.cpus;
    let most = |of: fn(&Ticks) -> u64| all.iter().map(|cpu| cpu.share(of(cpu))).fold(0.0, f64::max);
    let busy: f64 = all.iter().map(|cpu| cpu.share(cpu.busy())).sum();
    Cpus {
        count: all.len(),
        // CAST: some thousands of CPUs.
        busy: busy / all.len().max(1) as f64,
        busiest: most(|cpu| cpu.busy()),
        computes: most(|cpu| cpu.user),
    }
}

/// What a drive takes for an I/O, in µs.
fn drive_us(seen: &Seen) -> Option<f64> {
    let ios = seen.ios();
    // CAST: counts of some minutes.
    (ios > 0).then(|| seen.in_queue_ms as f64 * 1e3 / ios as f64)
}

/// What the threads of this machine do, who are not told apart by the drive that they use.
fn threads(observed: &Observed) -> Threads {
    let mut all = Seen::default();
    for seen in observed.disks.values() {
        all.reads = all.reads.saturating_add(seen.ios());
        all.in_queue_ms = all.in_queue_ms.saturating_add(seen.in_queue_ms);
    }
    // CAST: as above.
    let ios = all.ios().max(1) as f64;
    let us = |of: fn(&Ticks) -> u64| {
        let ticks = observed.cpus.iter().map(of).fold(0, u64::saturating_add);
        ticks as f64 / TICKS * 1e6 / ios
    };
    Threads {
        blocked: observed.blocked,
        runnable: observed.runnable,
        switches: observed.switches as f64 / ios,
        cpu_us: us(|cpu| cpu.kernel),
        program_us: us(|cpu| cpu.user),
        drive_us: drive_us(&all).unwrap_or(0.0),
    }
}

fn advice(
    root: &Root,
    all: &[Controller],
    observed: &Observed,
    usage: &Result<Usage, Failure>,
) -> Advice {
    let cpus = cpus(observed);
    let threads = threads(observed);
    let of_disk = |one: &Controller, disk: &Disk| {
        let seen = observed.disks.get(&disk.name).copied().unwrap_or_default();
        let queue = |file: &str| root.number(&format!("/sys/block/{}/queue/{file}", disk.name));
        // CAST: as above.
        let ios = seen.ios() as f64;
        let load = Load {
            bus: bus(one.kind),
            rotates: queue("rotational") == Some(1),
            iops: ios / observed.seconds.max(1e-3),
            writes: seen.writes as f64 / ios.max(1.0),
            drive_us: drive_us(&seen).unwrap_or(0.0),
            threads,
            cpus,
        };
        let (answer, why) = rules::advise(&load);
        DriveAdvice {
            controller: one.address.clone(),
            driver: one.driver.clone(),
            kind: bus_name(one.kind),
            rotational: load.rotates,
            nr_requests: queue("nr_requests"),
            iops: load.iops,
            depth: seen.depth,
            deepest: seen.deepest,
            us_per_io: drive_us(&seen),
            in_use: usage.as_ref().ok().map(|usage| usage.of(root, &disk.name)),
            answer,
            why: Why::text(why),
            disk: disk.name.clone(),
        }
    };
    let disks = (all.iter()).flat_map(|one| one.disks.iter().map(move |disk| (one, disk)));
    let mean = |of: fn(&Ticks) -> u64| {
        let shares = observed.cpus.iter().map(|cpu| cpu.share(of(cpu)));
        shares.sum::<f64>() / observed.cpus.len().max(1) as f64
    };
    Advice {
        seconds: observed.seconds,
        cpus: cpus.count,
        kernel: mean(|cpu| cpu.kernel),
        programs: mean(|cpu| cpu.user),
        iowait: mean(|cpu| cpu.iowait),
        busiest: cpus.busiest,
        blocked: observed.blocked,
        runnable: observed.runnable,
        // CAST: as above.
        context_switches: observed.switches as f64 / observed.seconds.max(1e-3),
        drives: disks.map(|(one, disk)| of_disk(one, disk)).collect(),
        unknown_users: usage.as_ref().err().map(ToString::to_string),
    }
}

fn bus(kind: Kind) -> Bus {
    match kind {
        Kind::Ahci => Bus::Sata,
        _ => Bus::Nvme,
    }
}

/// How people call it.
fn bus_name(kind: Kind) -> &'static str {
    match bus(kind) {
        Bus::Sata => "SATA",
        Bus::Nvme => "NVMe",
    }
}

fn text(advice: &Advice) -> String {
    let of = |part| share(Some(part));
    let mut text = format!(
        "{} CPUs over {:.1} s: kernel and I/O {}, programs {}, waiting for I/O {}; the busiest is \
         {} busy\n\n",
        advice.cpus,
        advice.seconds,
        of(advice.kernel),
        of(advice.programs),
        of(advice.iowait),
        of(advice.busiest),
    );
    if advice.drives.is_empty() {
        text.push_str("There is no disk of an NVMe or AHCI controller here.\n");
        return text;
    }
    text.push_str(&table(&advice.drives).text());
    text.push('\n');
    for one in &advice.drives {
        let disk = one.disk.replace('!', "/");
        text.push_str(&format!("{disk}: {}: {}\n", one.answer, one.why));
    }
    text.push_str(
        "\nThese are rules of emulated machines (docs/results.md). An unused drive tells itself: \
         hiopsctl advise --ab DISK\n",
    );
    if let Some(why) = &advice.unknown_users {
        text.push_str(&format!("Who uses them can't be told: {why}\n"));
    }
    text
}

/// What was seen of the drives.
fn table(drives: &[DriveAdvice]) -> Table {
    let mut table = Table::new(&[
        "DISK",
        "CONTROLLER",
        "DRIVER",
        "KIND",
        ">IOPS",
        ">DEPTH",
        ">MOST",
        ">OF",
        ">us/IO",
        "IN USE BY",
    ]);
    for one in drives {
        let by = |users: &Vec<Use>| {
            let all = users.iter().map(|user| user.by.clone());
            all.collect::<Vec<_>>().join(", ")
        };
        let rotates = if one.rotational { ", rotates" } else { "" };
        let most = one.nr_requests.map(|most| most.to_string());
        table.row([
            one.disk.replace('!', "/"),
            one.controller.clone(),
            one.driver.clone().unwrap_or_default(),
            format!("{}{rotates}", one.kind),
            format!("{:.0}", one.iops),
            format!("{:.1}", one.depth),
            one.deepest.to_string(),
            most.unwrap_or_default(),
            one.us_per_io
                .map(|us| format!("{us:.1}"))
                .unwrap_or_default(),
            one.in_use.as_ref().map_or_else(|| "?".into(), by),
        ]);
    }
    table
}
