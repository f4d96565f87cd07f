// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl`: what an operator does with hiops, from one command line.
//!
//! It reads sysfs and procfs, writes a disk's switches, and leaves the handing over of devices to
//! `hiops-bind`, which is where it is decided whether a disk is in use.
//!
//! * `cli`: the commands and their help, of which completions and manual pages are made.
//! * `machine`, `usage`: controllers and disks, and who uses them. `identity`: what drives call
//!   themselves. `counters`, `learned`,
//!   `blockstat`: what a disk's files say. `sample`, `rates`: two looks and what lies between.
//! * `latency`: histograms of how long requests take; `latencies`: what is told of them.
//! * `switches`, `list`, `status`, `stat` with `screen` and `view`, `handover`, `trace`, `report`
//!   with `kmsg`, `cmdline`, `secrets` and `redact`, `metrics` with `exposition` and `replace`,
//!   `nvme_list`, `smartd`, `check` with `devices`, `advise`, `enable` with `under`, `saved`,
//!   `pages` with `complete`: a command each.
//! * `doctor` with `kernels`, `initramfs`, `cpio` and `fstab`: what may be wrong with a machine.
//! * `named`: what an operator calls a disk. `etc`: files of /etc/hiops. `attention`: what is
//!   found, and the exit status.
//! * `root`, `failure`, `out`, `clock`, `table`, `terminal`, `pairs`, `show`, `tools`: what they
//!   share.
//!
//! Everything is read below a root folder, `/` unless a test names its own (`HIOPS_ROOT`).
#![forbid(unsafe_code)]

mod advise;
mod attention;
mod blockstat;
mod check;
mod cli;
mod clock;
mod cmdline;
mod complete;
mod counters;
mod cpio;
mod devices;
mod doctor;
mod enable;
mod etc;
mod exposition;
mod failure;
mod fstab;
mod handover;
mod identity;
mod initramfs;
mod kernels;
mod kmsg;
mod latencies;
mod latency;
mod learned;
mod list;
mod machine;
mod metrics;
mod named;
mod nvme_list;
mod out;
mod pages;
mod pairs;
mod rates;
mod redact;
mod replace;
mod report;
mod root;
mod sample;
mod saved;
mod screen;
mod secrets;
mod show;
mod smartd;
mod stat;
mod status;
mod switches;
mod table;
mod terminal;
mod tools;
mod trace;
mod under;
mod usage;
mod view;

use clap::Parser;
use cli::{Cli, Command};
use failure::Failure;
use out::Out;
use root::Root;
use std::process::ExitCode;

fn main() -> ExitCode {
    complete::answer();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage_error(&error),
    };
    let out = Out::new(cli.json);
    match run(cli, &out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => out.fail(&failure),
    }
}

/// Says what is wrong with the command line, or what was asked of it; as JSON if that is there.
fn usage_error(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|arg| arg == "--json");
    if !error.use_stderr() || !json {
        error.exit();
    }
    let text = error.to_string();
    // Behind the first paragraph comes the usage.
    let what = text.split("\n\n").next().unwrap_or_default();
    let what = what.trim_start_matches("error: ");
    let words: Vec<&str> = what.split_whitespace().collect();
    Out::new(true).fail(&Failure::new(
        words.join(" "),
        "hiopsctl --help tells the usage",
    ));
    ExitCode::from(2)
}

fn run(cli: Cli, out: &Out) -> Result<(), Failure> {
    let root = Root::new(cli.root);
    match cli.command {
        Command::List => list::run(&root, out),
        Command::Status { disks } => status::run(&root, out, &disks),
        Command::Get { disk, name } => switches::get(&root, out, &disk, name.as_deref()),
        Command::Set {
            disk,
            name,
            value,
            save,
        } => switches::set(&root, out, &disk, (&name, &value), save),
        Command::Apply { disks } => saved::apply(&root, out, &disks),
        Command::Forget { disk, name } => saved::forget(&root, out, &disk, name.as_deref()),
        Command::Stat(options) => stat::run(&root, out, &options),
        Command::Bind { device, driver } => handover::bind(&root, out, &device, driver),
        Command::Unbind { device, driver } => handover::unbind(&root, out, &device, driver),
        Command::Enable { devices } => enable::enable(&root, out, &devices),
        Command::Disable { devices } => enable::disable(&root, out, &devices),
        Command::Doctor => doctor::run(&root, out),
        Command::Check { file } => check::run(&root, out, file.as_deref()),
        Command::Advise(options) => advise::run(&root, out, &options),
        Command::Trace { disk, count } => trace::run(&root, out, &disk, count),
        Command::Report { file } => report::run(&root, out, file.as_deref()),
        Command::Metrics { output } => metrics::run(&root, out, output.as_deref()),
        Command::NvmeList { output_format } => nvme_list::run(&root, out, output_format),
        Command::Smartd => smartd::run(&root, out),
        Command::Completions { shell } => pages::completions(out, shell),
        Command::Man { folder } => pages::man(out, folder.as_deref()),
    }
}
