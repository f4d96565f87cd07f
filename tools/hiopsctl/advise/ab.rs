// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl advise --ab`: the in-tree driver, hiops, and the in-tree driver again, on an unused
//! drive that is only read, and goes back to its driver whatever happens.

use super::answer::of_all;
use super::comparison::compare;
use super::drive::{node, Drive};
use super::fio::{self, Reads, Run, LOADS};
use super::observed::Stat;
use super::page::{Files, Page};
use super::stop::Stop;
use super::AdviseOptions;
use crate::cli::VERSION;
use crate::failure::Failure;
use crate::machine::Kind;
use crate::out::{json, Out};
use crate::root::Root;
use std::io::Write;
use std::path::PathBuf;

/// What a measurement goes by.
struct Plan<'a> {
    root: &'a Root,
    fio: PathBuf,
    loads: Vec<Reads>,
    left_out: Vec<&'static str>,
    runs: u32,
    seconds: u32,
    stop: Stop,
}

/// The runs of each load under one driver.
type Arm = Vec<Vec<Run>>;

/// Measures `disk`.
pub(crate) fn run(
    root: &Root,
    out: &Out,
    disk: &str,
    options: &AdviseOptions,
) -> Result<(), Failure> {
    // The kernel's own switch: 2 is off for all.
    let without = root.number("/proc/sys/kernel/io_uring_disabled") == Some(2);
    let (left_out, loads): (Vec<Reads>, Vec<Reads>) = LOADS
        .into_iter()
        .partition(|load| without && load.queue.is_some());
    let plan = Plan {
        root,
        fio: fio::find()?,
        loads,
        left_out: left_out.iter().map(|load| load.name).collect(),
        runs: options.runs,
        seconds: options.seconds,
        stop: Stop::new()?,
    };
    let cpus = Stat::read(root)?.cpus.len();
    let mut drive = Drive::find(root, disk)?;
    let names = driver_names(drive.kind)?;
    let files = Files::new(&options.pages, &drive.disk.name)?;
    let measured = plan.measure(&mut drive, names);
    let back = drive.give_back();
    let arms = match (measured, back) {
        (Ok(arms), Ok(())) => arms,
        (Err(failure), Ok(())) => return Err(failure),
        (Ok(_), Err(lost)) => return Err(lost),
        (Err(failure), Err(lost)) => return Err(both(&failure, lost)),
    };
    let page = plan.page(&drive, names, cpus, &arms);
    let kept = files.keep([page.text(), format!("{}\n", json(&page)?), page.svg()])?;
    out.show(&page, |page| {
        format!("{}\nKept in {}\n", page.text(), kept.join(", "))
    })
}

/// Both things that went wrong: where the drive is matters more.
fn both(failure: &Failure, lost: Failure) -> Failure {
    match lost {
        Failure::Says { what, way_out } => Failure::new(format!("{failure}; and {what}"), way_out),
        other => other,
    }
}

/// The in-tree driver's name, and that of hiops'.
fn driver_names(kind: Kind) -> Result<(&'static str, &'static str), Failure> {
    let both = kind.in_tree().zip(kind.driver());
    both.ok_or_else(|| Failure::new("it has no two drivers", "name a disk of hiopsctl list"))
}

impl Plan<'_> {
    /// The three arms, in their order.
    fn measure(
        &self,
        drive: &mut Drive<'_>,
        (in_tree, hiops): (&str, &str),
    ) -> Result<[Arm; 3], Failure> {
        let each = self.loads.len().saturating_mul(3);
        // CAST: some loads.
        let seconds = u64::from(self.runs) * u64::from(self.seconds) * each as u64;
        tell(&format!(
            "{} is read for {seconds} s, and goes back to {} then; ^C ends it, too",
            drive.disk.name, drive.first
        ));
        Ok([
            self.arm(drive, in_tree)?,
            self.arm(drive, hiops)?,
            self.arm(drive, in_tree)?,
        ])
    }

    /// All loads under `driver`, in turns, so that what changes with time changes for all.
    fn arm(&self, drive: &mut Drive<'_>, driver: &str) -> Result<Arm, Failure> {
        self.stop.check()?;
        let disk = drive.to(driver)?;
        drive.without_scheduler(&disk)?;
        let claim = drive.claim(&disk)?;
        let node = self.root.at(&node(&disk));
        let mut arm: Arm = self.loads.iter().map(|_| Vec::new()).collect();
        for run in 0..self.runs {
            for (load, ran) in self.loads.iter().zip(&mut arm) {
                tell(&format!(
                    "{driver}, run {} of {}: {}",
                    run + 1,
                    self.runs,
                    load.name
                ));
                let how = (&*node, self.seconds, run);
                ran.push(fio::run(self.root, &self.fio, load, how, &self.stop)?);
            }
        }
        drop(claim);
        Ok(arm)
    }

    fn page(
        &self,
        drive: &Drive<'_>,
        (in_tree_driver, hiops_driver): (&'static str, &'static str),
        cpus: usize,
        [before, hiops, after]: &[Arm; 3],
    ) -> Page {
        let arms = before.iter().zip(hiops).zip(after);
        let loads: Vec<_> = (self.loads.iter().zip(arms))
            .map(|(load, ((before, hiops), after))| compare(load, before, hiops, after))
            .collect();
        let answers: Vec<_> = loads.iter().map(|one| one.answer).collect();
        Page {
            answer: of_all(&answers),
            disk: drive.disk.name.clone(),
            controller: drive.address.clone(),
            model: drive.disk.model.clone(),
            bytes: drive.disk.bytes,
            in_tree_driver,
            hiops_driver,
            hiopsctl: VERSION,
            kernel: self
                .root
                .word("/proc/sys/kernel/osrelease")
                .unwrap_or_default(),
            cpus,
            runs: self.runs,
            seconds: self.seconds,
            loads,
            left_out: self.left_out.clone(),
        }
    }
}

/// What is done now. Where stderr is closed nobody wants to know.
fn tell(what: &str) {
    drop(writeln!(std::io::stderr(), "hiopsctl: {what}"));
}
