// SPDX-License-Identifier: GPL-2.0
//! What shells offer: disks, controllers, switches and values of the machine as it is.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, Ran, OURS};
use std::path::Path;
use std::process::Command;

/// What `shell` is told of the last of `words`, without what is said about each.
fn offered(machine: &Machine, shell: &str, words: &[&str]) -> Vec<String> {
    let mut line = vec!["--", "hiopsctl"];
    line.extend(words);
    let mut command = machine.command(&line);
    command.env("HIOPSCTL_COMPLETE", shell);
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    if shell == "bash" {
        // As its script has it.
        command
            .env("_CLAP_IFS", "\n")
            .env("_CLAP_COMPLETE_COMP_TYPE", "9");
    }
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.status, &*ran.err), (0, ""), "{words:?}");
    let words = ran
        .out
        .lines()
        .map(|line| line.split('\t').next().unwrap().to_string());
    words.collect()
}

#[test]
fn words_are_those_of_the_machine() {
    let machine = Machine::new();
    let fish = |words: &[&str]| offered(&machine, "fish", words);
    let disks = ["hiops0n1", "hiops0n2", "hiops_ram0"];
    for command in ["get", "set", "trace"] {
        assert_eq!(fish(&[command, "hi"]), disks, "{command}");
    }
    assert_eq!(fish(&["stat", "hiops0n1", "hiops_"]), ["hiops_ram0"]);
    assert_eq!(
        fish(&["status", "/dev/hiops0"]),
        ["/dev/hiops0n1", "/dev/hiops0n2"]
    );
    let switches = fish(&["set", "hiops0n1", "p"]);
    assert_eq!(
        switches,
        ["poll_interval_us", "predict", "predict_window_us"]
    );
    // What can only be read is for get.
    assert_eq!(fish(&["get", "/dev/hiops0n1", "le"]), ["learned"]);
    assert!(fish(&["set", "hiops0n1", "le"]).is_empty());
    assert!(fish(&["set", "nvme0n1", "m"]).is_empty());
    for (name, values) in [
        ("mode", &["hybrid", "irq", "poll"][..]),
        ("strategy", &["coop", "plain"]),
        ("lazy", &["0", "1"]),
        ("poll_interval_us", &["32"]),
        ("stats", &["reset"]),
    ] {
        let some = fish(&["set", "hiops0n1", name, ""]);
        let some: Vec<_> = some.iter().filter(|word| !word.starts_with('-')).collect();
        assert_eq!(some, values, "{name}");
    }
    assert_eq!(fish(&["set", "--json", "hiops0n1", "mode", "p"]), ["poll"]);
    assert_eq!(fish(&["bind", "n"]), ["nvme0n1"]);
    assert!(fish(&["bind", "0000:0"]).contains(&OURS.to_string()));
    assert_eq!(fish(&["unbind", OURS, "n"]), ["nvme", "none"]);
    assert_eq!(fish(&["bind", OURS, "hiops_a"]), ["hiops_ahci"]);
    assert_eq!(fish(&["sta"]), ["status", "stat"]);
    assert_eq!(fish(&["completions", "b"]), ["bash"]);
    // A disk that goes is offered no more.
    std::fs::remove_file(machine.path("sys/block/hiops0n2")).unwrap();
    assert_eq!(fish(&["get", "hiops0"]), ["hiops0n1"]);
}

#[test]
fn each_shell_is_answered_in_its_own_way() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish"] {
        assert_eq!(
            offered(&machine, shell, &["set", "hiops0n1", "mode", "h"]),
            ["hybrid"]
        );
        let script = machine.says(&["completions", shell]);
        assert!(
            script.contains("HIOPSCTL_COMPLETE") && !script.contains("HIOPS_ROOT"),
            "{shell}"
        );
        assert_eq!(machine.json(&["completions", shell])["text"], script);
    }
    // An address has a colon, at which bash begins another word.
    assert!(offered(&machine, "bash", &["bind", "0"]).is_empty());
    assert_eq!(offered(&machine, "bash", &["bind", "n"]), ["nvme0n1"]);
}

#[test]
fn bash_takes_the_script() {
    let machine = Machine::new();
    let complete = |words: &str| {
        let line = format!(
            ". <(hiopsctl completions bash)\n\
             COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9\n\
             last=${{COMP_WORDS[COMP_CWORD]}}\n\
             function=$(complete -p hiopsctl | sed 's/.* -F \\([^ ]*\\) .*/\\1/')\n\
             $function hiopsctl \"$last\" 2>/dev/null\n\
             printf '%s ' \"${{COMPREPLY[@]}}\""
        );
        let program = Path::new(env!("CARGO_BIN_EXE_hiopsctl"));
        let path = format!("{}:{}", program.parent().unwrap().display(), env!("PATH"));
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", &line]).env("PATH", path);
        command.env("HIOPS_ROOT", machine.root());
        let ran = Ran::of(command.output().unwrap());
        assert_eq!((ran.status, &*ran.err), (0, ""), "{words}");
        ran.out.trim().to_string()
    };
    assert_eq!(complete("hiopsctl set hiops0n1 mode h"), "hybrid");
    assert_eq!(complete("hiopsctl get hiops0"), "hiops0n1 hiops0n2");
    assert_eq!(complete("hiopsctl stat --wa"), "--watch");
}
