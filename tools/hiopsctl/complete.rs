// SPDX-License-Identifier: GPL-2.0
//! What a shell offers for the word that is being typed: disks, controllers, switches and their
//! values, as they are on this machine at that moment.
//!
//! The scripts of bash, zsh and fish call this program for that, with [`VARIABLE`] in its
//! environment. An argument is known by the name of its value, so that a new command has the same
//! words offered without a line here.

use crate::cli::Cli;
use crate::machine::{controllers, served_disk, served_names};
use crate::root::Root;
use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, EnvCompleter};
use clap_complete::{env, Shell};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;

/// The variable by which a shell asks for words.
const VARIABLE: &str = "HIOPSCTL_COMPLETE";

/// Answers a shell, if one asks, and ends the program then.
pub(crate) fn answer() {
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .bin("hiopsctl")
        .complete();
}

/// The script that has `shell` ask; none: such a shell can't.
pub(crate) fn script(shell: Shell) -> Option<String> {
    let asks: &dyn EnvCompleter = match shell {
        Shell::Bash => &env::Bash,
        Shell::Fish => &env::Fish,
        Shell::Zsh => &env::Zsh,
        _ => return None,
    };
    let mut script = Vec::new();
    let (program, name) = ("hiopsctl", "hiopsctl");
    let written = asks.write_registration(VARIABLE, name, program, program, &mut script);
    written.ok()?;
    let mut script = String::from_utf8_lossy(&script).trim_start().to_string();
    if shell == Shell::Zsh {
        // Loaded when it is first needed, it is to answer then, too.
        script.push_str(
            "if [ \"$funcstack[1]\" = \"_hiopsctl\" ]; then\n    \
             _clap_dynamic_completer_hiopsctl \"$@\"\nfi\n",
        );
    }
    Some(script)
}

/// The command line, in which arguments know what they may be.
fn command() -> Command {
    let offered = |arg: Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        let offers: fn(&str) -> Vec<String> = match names.first().map(|name| name.as_str()) {
            Some("DISK") => disks,
            Some("ADDRESS|DISK" | "DISK|ADDRESS") => devices,
            Some("NAME") => switches,
            Some("VALUE") => values,
            Some("DRIVER") => drivers,
            _ => return arg,
        };
        arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
            let typed = typed.to_string_lossy();
            let words = offers(&typed).into_iter();
            let fitting = words.filter(|word| word.starts_with(&*typed));
            fitting.map(CompletionCandidate::new).collect()
        }))
    };
    let mut program = Cli::command();
    // Names of values are made from those of arguments only then.
    program.build();
    program.mut_subcommands(|command| command.mut_args(offered))
}

/// The machine that is asked for.
fn root() -> Root {
    let named = std::env::var_os("HIOPS_ROOT").unwrap_or_else(|| "/".into());
    Root::new(named.into())
}

/// The words on the line but for options: the program, the command, and so on.
fn typed_words() -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let line = words.skip_while(|word| word != "--").skip(1);
    line.filter(|word| !word.starts_with('-')).collect()
}

/// As they were begun: by their names, or in /dev.
fn named(names: impl IntoIterator<Item = String>, typed: &str) -> Vec<String> {
    let names = names.into_iter().map(|name| name.replace('!', "/"));
    match typed.starts_with('/') {
        true => names.map(|name| format!("/dev/{name}")).collect(),
        false => names.collect(),
    }
}

fn disks(typed: &str) -> Vec<String> {
    named(served_names(&root()), typed)
}

/// Disks of all controllers, and the controllers' addresses; not these in bash, where a colon
/// begins another word.
fn devices(typed: &str) -> Vec<String> {
    let all = controllers(&root());
    let disks = all.iter().flat_map(|it| &it.disks);
    let mut words = named(disks.map(|disk| disk.name.clone()), typed);
    if std::env::var_os("_CLAP_COMPLETE_COMP_TYPE").is_none() {
        let functions = all.into_iter().filter(|it| it.kind.driver().is_some());
        words.extend(functions.map(|it| it.address));
    }
    words
}

fn is_writable(root: &Root, file: &str) -> bool {
    let data = root.at(file).metadata();
    data.is_ok_and(|data| data.permissions().mode() & 0o222 != 0)
}

/// The files of the disk before, for `set` those that can be written.
fn switches(_typed: &str) -> Vec<String> {
    let words = typed_words();
    let (command, disk) = (words.get(1), words.get(2));
    let root = root();
    let Some(disk) = disk.and_then(|disk| served_disk(&root, disk).ok()) else {
        return Vec::new();
    };
    let folder = format!("/sys/block/{disk}/hiops");
    let is_set = command.is_some_and(|command| command == "set");
    let is_offered = |name: &String| !is_set || is_writable(&root, &format!("{folder}/{name}"));
    root.names(&folder).into_iter().filter(is_offered).collect()
}

/// What the switch before takes: known words, or 0 and 1 where it is one of these, or what it is.
fn values(_typed: &str) -> Vec<String> {
    let words = typed_words();
    let (Some(disk), Some(name)) = (words.get(2), words.get(3)) else {
        return Vec::new();
    };
    let known: &[&str] = match name.as_str() {
        "strategy" => &["coop", "plain"],
        "mode" => &["hybrid", "irq", "poll"],
        "stats" => &["reset"],
        "rescan_controller" | "reset_controller" | "delete" => &["1"],
        "link_power_management_policy" => &[
            "max_performance",
            "med_power_with_dipm",
            "medium_power",
            "min_power",
            "min_power_with_partial",
        ],
        _ => &[],
    };
    if !known.is_empty() {
        return known.iter().map(ToString::to_string).collect();
    }
    let root = root();
    let disk = served_disk(&root, disk).ok();
    let now = disk.and_then(|disk| root.word(&format!("/sys/block/{disk}/hiops/{name}")));
    match now.as_deref() {
        Some("0" | "1") => vec!["0".into(), "1".into()],
        Some(now) => vec![now.into()],
        None => Vec::new(),
    }
}

fn drivers(_typed: &str) -> Vec<String> {
    let words = typed_words();
    let all: &[&str] = match words.get(1).map(String::as_str) {
        Some("unbind") => &["nvme", "ahci", "none"],
        _ => &["hiops_nvme", "hiops_ahci"],
    };
    all.iter().map(ToString::to_string).collect()
}
