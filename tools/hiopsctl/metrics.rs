// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl metrics`: every counter for Prometheus. What belongs to a controller is told once for
//! it, not for each of its disks, so that sums are right.

use crate::cli::VERSION;
use crate::counters::CONTEXTS;
use crate::exposition::Family;
use crate::failure::Failure;
use crate::machine::controllers;
use crate::out::Out;
use crate::replace::replace;
use crate::root::Root;
use crate::sample::{ControllerSample, DiskSample, Sample};
use serde::Serialize;
use std::io;
use std::path::Path;

/// Counters of a disk: the name here, its name in `stats`, what it counts.
const DISK: [(&str, &str, &str); 11] = [
    (
        "hiops_submitted_total",
        "submitted",
        "Requests that hiops was given",
    ),
    (
        "hiops_fifo_deferred_total",
        "fifo_deferred",
        "Requests that found no tag and waited in the software FIFO",
    ),
    (
        "hiops_errors_total",
        "errors",
        "Requests that failed in the end",
    ),
    (
        "hiops_retried_total",
        "retried",
        "Requests that were tried again",
    ),
    (
        "hiops_timeouts_total",
        "timeouts",
        "Requests that were not answered in time",
    ),
    (
        "hiops_swept_total",
        "swept",
        "Requests that no thread, timer or interrupt ended: a thread they were left to (lazy) did \
         not come, or a reset, a removal or a time-out ended them",
    ),
    (
        "hiops_bytes_reads_total",
        "bytes_reads",
        "Commands that have read a disk's bytes for a caller",
    ),
    (
        "hiops_bytes_writes_total",
        "bytes_writes",
        "Commands that have written a disk's bytes",
    ),
    (
        "hiops_bytes_merged_total",
        "bytes_merged",
        "Writes of bytes for which the rest of a block was read before",
    ),
    (
        "hiops_bytes_wanted_total",
        "bytes_wanted",
        "Bytes of a disk's bytes that callers have read and written",
    ),
    (
        "hiops_bytes_moved_total",
        "bytes_moved",
        "Bytes that the device has moved for them",
    ),
];

/// Counters of a controller.
const CONTROLLER: [(&str, &str, &str); 8] = [
    (
        "hiops_interrupts_total",
        "interrupts",
        "Interrupts that were handled",
    ),
    (
        "hiops_doorbell_writes_total",
        "doorbell_writes",
        "Writes to doorbell registers",
    ),
    ("hiops_resets_total", "resets", "Resets of the controller"),
    (
        "hiops_resets_asked_total",
        "resets_asked",
        "Of these, those that an operator has asked for",
    ),
    ("hiops_ticks_total", "ticks", "Runs of the poll timer"),
    (
        "hiops_turns_total",
        "turns",
        "Times that the interrupt was turned on or off",
    ),
    (
        "hiops_missed_interrupts_total",
        "missed_interrupts",
        "Completions that only a time-out found",
    ),
    ("hiops_aborts_total", "aborts", "Commands that were aborted"),
];

/// How naps end.
const NAPS: [&str; 4] = ["hit", "late", "vain", "woken"];

/// All of them, for JSON.
#[derive(Serialize)]
struct Metrics {
    families: Vec<Family>,
}

/// Prints them, or writes them to `output`.
pub(crate) fn run(root: &Root, out: &Out, output: Option<&Path>) -> Result<(), Failure> {
    let all = Metrics {
        families: families(root)?,
    };
    let text = |all: &Metrics| all.families.iter().map(Family::text).collect::<String>();
    let Some(output) = output.filter(|output| output.as_os_str() != "-") else {
        return out.show(&all, text);
    };
    let text = match out.is_json() {
        true => format!("{}\n", crate::out::json(&all)?),
        false => text(&all),
    };
    // The collector may read at any time. It reads names that end in .prom.
    replace(output, text.as_bytes()).map_err(|error| not_written(output, &error))
}

/// Why `output` could not be replaced. A folder that is not there is what a timer meets where no
/// node_exporter is installed.
fn not_written(output: &Path, error: &io::Error) -> Failure {
    let named = output.parent().filter(|folder| *folder != Path::new(""));
    let Some(folder) = named.filter(|_| error.kind() == io::ErrorKind::NotFound) else {
        return Failure::io(output.display(), error);
    };
    let folder = folder.display();
    Failure::new(
        format!("{}: its folder is not there", output.display()),
        format!("install what reads it (node_exporter), or make {folder}, or name another file"),
    )
}

/// CAST: Prometheus' numbers are doubles.
fn number(value: u64) -> f64 {
    value as f64
}

fn seconds(ns: u64) -> f64 {
    number(ns) / 1e9
}

fn families(root: &Root) -> Result<Vec<Family>, Failure> {
    let sample = Sample::take(root)?;
    let mut up = Family::new("hiops_up", "Whether the module is loaded");
    up.add(&[], f64::from(u8::from(root.has("/sys/module/hiops"))));
    let mut all = vec![up, build_info(root)];
    all.extend(infos(root, &sample));
    for (name, counter, help) in DISK {
        all.push(each_disk(&sample, name, help, |disk| {
            disk.counters.get(counter)
        }));
    }
    all.extend([completed(&sample), inflight(&sample)]);
    for (name, counter, help) in CONTROLLER {
        all.push(each_controller(&sample, name, help, |it| {
            number(it.shared(counter))
        }));
    }
    all.push(naps(&sample));
    let (irq, tick) = ("hiops_interrupt_max_seconds", "hiops_tick_max_seconds");
    let help = "The longest run of the interrupt handler since the counters were zeroed";
    all.push(each_controller(&sample, irq, help, |it| {
        seconds(it.shared("max_irq_ns"))
    }));
    let help = "The longest run of the poll timer since the counters were zeroed";
    all.push(each_controller(&sample, tick, help, |it| {
        seconds(it.shared("max_tick_ns"))
    }));
    all.extend(learned(&sample));
    all.push(crate::latencies::family(root));
    Ok(all)
}

/// Which builds run together: the module's version, empty while it is not loaded, this program's,
/// and the kernel's release.
fn build_info(root: &Root) -> Family {
    let word = |path: &str| root.word(path).unwrap_or_default();
    let mut info = Family::new(
        "hiops_build_info",
        "Which builds of the module, of hiopsctl and of the kernel are at work",
    );
    let labels = [
        ("version", &*word("/sys/module/hiops/version")),
        ("hiopsctl", VERSION),
        ("kernel", &*word("/proc/sys/kernel/osrelease")),
        ("srcversion", &*word("/sys/module/hiops/srcversion")),
    ];
    info.add(&labels, 1.0);
    info
}

fn disks(sample: &Sample) -> impl Iterator<Item = (&ControllerSample, &DiskSample)> {
    let of = |it| ControllerSample::disks_with(it);
    sample.controllers.iter().flat_map(of)
}

impl ControllerSample {
    fn disks_with(&self) -> impl Iterator<Item = (&Self, &DiskSample)> {
        self.disks.iter().map(move |disk| (self, disk))
    }
}

fn each_disk(
    sample: &Sample,
    name: &'static str,
    help: &'static str,
    of: impl Fn(&DiskSample) -> u64,
) -> Family {
    let mut family = Family::new(name, help);
    for (it, disk) in disks(sample) {
        let labels = [("disk", &*disk.name), ("controller", &*it.address)];
        family.add(&labels, number(of(disk)));
    }
    family
}

fn each_controller(
    sample: &Sample,
    name: &'static str,
    help: &'static str,
    of: impl Fn(&ControllerSample) -> f64,
) -> Family {
    let mut family = Family::new(name, help);
    for it in &sample.controllers {
        family.add(&[("controller", &it.address)], of(it));
    }
    family
}

fn completed(sample: &Sample) -> Family {
    let help = "Requests that ended, by the context that ended them";
    let mut family = Family::new("hiops_completed_total", help);
    for (it, disk) in disks(sample) {
        for context in CONTEXTS {
            let value = disk.counters.get(&format!("completed_{context}"));
            let labels = [
                ("disk", &*disk.name),
                ("controller", &*it.address),
                ("context", context),
            ];
            family.add(&labels, number(value));
        }
    }
    family
}

fn inflight(sample: &Sample) -> Family {
    let mut family = Family::new("hiops_inflight", "Requests that are with the driver");
    for (it, disk) in disks(sample) {
        let (reads, writes) = (disk.inflight.reads, disk.inflight.writes);
        for (operation, value) in [("read", reads), ("write", writes)] {
            let labels = [
                ("disk", &*disk.name),
                ("controller", &*it.address),
                ("operation", operation),
            ];
            family.add(&labels, number(value));
        }
    }
    family
}

fn naps(sample: &Sample) -> Family {
    let help = "Threads that slept by a forecast, by how that ended";
    let mut family = Family::new("hiops_naps_total", help);
    for it in &sample.controllers {
        for result in NAPS {
            let value = it.shared(&format!("naps_{result}"));
            let labels = [("controller", &*it.address), ("result", result)];
            family.add(&labels, number(value));
        }
    }
    family
}

/// What doesn't change often, as labels of a 1; and sizes.
fn infos(root: &Root, sample: &Sample) -> Vec<Family> {
    let mut info = Family::new("hiops_controller_info", "How a controller is driven");
    for it in &sample.controllers {
        let labels = [
            ("controller", &*it.address),
            ("driver", &*it.driver),
            ("strategy", &*it.strategy),
            ("mode", &*it.mode),
        ];
        info.add(&labels, 1.0);
    }
    let mut disks = Family::new("hiops_disk_info", "What a disk is");
    let mut sizes = Family::new(
        "hiops_disk_size_bytes",
        "What a disk holds; 0: it takes no I/O",
    );
    for it in controllers(root) {
        for disk in it.served() {
            let (model, firmware) = (disk.model.as_deref(), disk.firmware.as_deref());
            let own = [("disk", &*disk.name), ("controller", &*it.address)];
            let [name, address] = own;
            let model = ("model", model.unwrap_or_default());
            let firmware = ("firmware", firmware.unwrap_or_default());
            disks.add(&[name, address, model, firmware], 1.0);
            sizes.add(&own, number(disk.bytes));
        }
    }
    vec![info, disks, sizes]
}

fn learned(sample: &Sample) -> Vec<Family> {
    let mut costs = Family::new("hiops_learned_seconds", "What things take on this machine");
    let help = "What an interrupt of a queue takes, as it was learnt";
    let mut interrupt = Family::new("hiops_queue_interrupt_seconds", help);
    let mut polled = Family::new("hiops_queue_polled", "Whether a queue is polled now");
    let help = "Whether something still pays on a queue, as it was learnt";
    let mut pays = Family::new("hiops_queue_pays", help);
    for it in &sample.controllers {
        let controller = ("controller", &*it.address);
        for (name, ns) in &it.learned.costs.0 {
            let what = ("what", name.trim_end_matches("_ns"));
            costs.add(&[controller, what], seconds(*ns));
        }
        for queue in &it.learned.queues {
            let name = queue.queue.to_string();
            let labels = [controller, ("queue", &*name)];
            interrupt.add(&labels, seconds(queue.interrupt_ns));
            polled.add(&labels, f64::from(u8::from(queue.polled)));
            for (what, credit) in &queue.credit_ns.0 {
                let labels = [controller, ("queue", &*name), ("what", what)];
                pays.add(&labels, f64::from(u8::from(credit.is_some())));
            }
        }
    }
    vec![costs, interrupt, polled, pays]
}
