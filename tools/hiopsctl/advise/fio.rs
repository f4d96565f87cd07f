// SPDX-License-Identifier: GPL-2.0
//! fio, which reads: loads are these and no others, and none of them writes.

use super::observed::Stat;
use super::stop::{apart, Stop};
use crate::failure::Failure;
use crate::root::Root;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A load of 4 KiB random reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reads {
    pub(crate) name: &'static str,
    pub(crate) threads: u32,
    /// In flight with io_uring; none: each thread waits for its own.
    pub(crate) queue: Option<u32>,
}

/// Those of which README.md tells, and the one that has lost most.
pub(crate) const LOADS: [Reads; 5] = [
    Reads::waiting("1 thread", 1),
    Reads::waiting("16 threads", 16),
    Reads::waiting("64 threads", 64),
    Reads::queued("io_uring, 5 in flight", 5),
    Reads::queued("io_uring, 32 in flight", 32),
];

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) iops: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Of all CPUs: hiops' work is done by others, too.
    pub(crate) cpu_us: f64,
}

impl Reads {
    const fn waiting(name: &'static str, threads: u32) -> Self {
        Self {
            name,
            threads,
            queue: None,
        }
    }

    const fn queued(name: &'static str, depth: u32) -> Self {
        Self {
            name,
            threads: 1,
            queue: Some(depth),
        }
    }

    /// What fio is told; `run` chooses the places, alike under each driver.
    fn arguments(&self, node: &Path, seconds: u32, run: u32) -> Vec<String> {
        let (engine, depth) = match self.queue {
            Some(depth) => ("io_uring", depth),
            None => ("psync", 1),
        };
        vec![
            "--name=advise".into(),
            format!("--filename={}", node.display()),
            "--readonly".into(),
            "--rw=randread".into(),
            "--allow_file_create=0".into(),
            "--bs=4k".into(),
            "--direct=1".into(),
            format!("--ioengine={engine}"),
            format!("--iodepth={depth}"),
            format!("--numjobs={}", self.threads),
            "--thread".into(),
            "--group_reporting".into(),
            "--norandommap".into(),
            format!("--randseed={}", run.saturating_add(1)),
            "--time_based".into(),
            format!("--runtime={seconds}"),
            "--output-format=json".into(),
        ]
    }
}

/// fio itself.
///
/// # Errors
/// It is not there.
pub(crate) fn find() -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("fio"))
        .find(|fio| fio.is_file())
        .ok_or_else(|| {
            let way_out = "install it (apt install fio, dnf install fio, pacman -S fio)";
            Failure::new("fio, which --ab measures with, is not installed", way_out)
        })
}

/// Runs `load` on `node` for `seconds`.
///
/// # Errors
/// fio fails, or it is to end.
pub(crate) fn run(
    root: &Root,
    fio: &Path,
    load: &Reads,
    (node, seconds, run): (&Path, u32, u32),
    stop: &Stop,
) -> Result<Run, Failure> {
    stop.check()?;
    let failed = |error| Failure::io("fio can't be run", &error);
    let mut command = Command::new(fio);
    command.args(load.arguments(node, seconds, run));
    let first = Stat::read(root)?;
    let begin = Instant::now();
    let mut child = apart(&mut command).spawn().map_err(failed)?;
    // What it does before and after its reads is not theirs: the middle half of its time counts.
    let quarter = Duration::from_secs(seconds.into()) / 4;
    let mut middle = Vec::new();
    let outputs = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = stop.wait(&mut child, || {
        // CAST: 0, 1 and 2.
        let due = quarter.saturating_mul(if middle.is_empty() { 1 } else { 3 });
        if middle.len() < 2 && begin.elapsed() >= due {
            middle.extend(Stat::read(root).ok().map(|stat| (begin.elapsed(), stat)));
        }
    })?;
    let (whole, last) = (begin.elapsed(), Stat::read(root)?);
    let said = outputs.0.join().unwrap_or_default();
    let complaint = outputs.1.join().unwrap_or_default();
    let mut ran = status
        .success()
        .then(|| parse(&said))
        .flatten()
        .ok_or_else(|| not_run(load, &complaint))?;
    let (from, to, time) = match &middle[..] {
        [(begin, from), (end, to)] => (from, to, end.saturating_sub(*begin)),
        _ => (&first, &last, whole),
    };
    let ios = ran.iops * time.as_secs_f64();
    ran.cpu_us = to.busy_seconds(from) * 1e6 / ios.max(1.0);
    Ok(ran)
}

/// All that comes from a pipe, which is read while its writer is waited for.
fn reader(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            drop(pipe.read_to_end(&mut text));
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

fn not_run(load: &Reads, complaint: &str) -> Failure {
    let said = complaint.lines().find(|line| !line.trim().is_empty());
    let said = said.unwrap_or("it said no figures").trim();
    let way_out = match load.queue {
        Some(_) => "it needs io_uring (fio --enghelp, sysctl kernel.io_uring_disabled)",
        None => "the kernel's log may say more (dmesg)",
    };
    Failure::new(format!("fio fails with {}: {said}", load.name), way_out)
}

/// What fio's JSON says, of which warnings may stand above; none: it read nothing, or had errors.
fn parse(text: &str) -> Option<Run> {
    let (_, rest) = text.split_once('{')?;
    let all: Value = serde_json::from_str(&format!("{{{rest}")).ok()?;
    let job = all.get("jobs")?.get(0)?;
    if job.get("error").and_then(Value::as_i64) != Some(0) {
        return None;
    }
    let read = job.get("read")?;
    let times = read.get("clat_ns")?.get("percentile")?;
    let us = |per_cent: &str| Some(times.get(per_cent)?.as_f64()? / 1e3);
    let run = Run {
        iops: read.get("iops")?.as_f64()?,
        p50_us: us("50.000000")?,
        p99_us: us("99.000000")?,
        cpu_us: 0.0,
    };
    (run.iops > 0.0).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_load_writes() {
        for load in LOADS {
            let all = load.arguments(Path::new("/dev/it"), 5, 0);
            assert!(all.contains(&"--readonly".into()), "{all:?}");
            let ways: Vec<_> = all.iter().filter(|word| word.starts_with("--rw")).collect();
            assert_eq!(ways, ["--rw=randread"]);
            assert!(!all
                .iter()
                .any(|word| word.contains("write") || word.contains("trim")));
        }
    }

    #[test]
    fn figures_are_read_below_warnings() {
        let text = r#"fio: a warning
            {"jobs": [{"error": 0, "read": {"iops": 1000.5, "clat_ns": {"percentile":
                {"50.000000": 80000, "99.000000": 99500}}}}]}"#;
        let run = parse(text).unwrap();
        assert_eq!((run.iops, run.p50_us, run.p99_us), (1000.5, 80.0, 99.5));
        for (from, to) in [
            (r#""error": 0"#, r#""error": 5"#),
            ("1000.5", "0"),
            ("{", ""),
        ] {
            assert_eq!(parse(&text.replace(from, to)), None, "{to}");
        }
    }
}
