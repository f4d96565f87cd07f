// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl completions` and `hiopsctl man`: made from the command line's own description.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::out::Out;
use crate::show::lines;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct Page {
    name: String,
    text: String,
}

/// All of them.
#[derive(Serialize)]
struct Pages {
    pages: Vec<Page>,
}

/// The files that were written.
#[derive(Serialize)]
struct Written {
    written: Vec<String>,
}

/// Prints the completions of `shell`.
pub(crate) fn completions(out: &Out, shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "hiopsctl", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    let page = Page {
        name: shell.to_string(),
        text: match shell {
            Shell::Bash => offers_disks(&text),
            _ => text,
        },
    };
    out.show(&page, |page| page.text.clone())
}

/// bash's, in which disks stand for the words of the usage that clap offers in their place; other
/// arguments are files, or are not known.
fn offers_disks(script: &str) -> String {
    const SERVED: &str = "$(cd /sys/block && compgen -G 'hiops*')";
    const ALL: &str = "$(cd /sys/block && compgen -G 'hiops*'; compgen -G 'nvme*'; \
                       compgen -G 'sd*')";
    let word = |word: &str| match word.trim_end_matches("...") {
        "<DISK>" | "[DISK]" => Some(SERVED.to_string()),
        "<ADDRESS|DISK>" => Some(ALL.to_string()),
        // For tests.
        "--root" => None,
        other if other.starts_with(['<', '[']) => None,
        _ => Some(word.to_string()),
    };
    let line = |line: &str| {
        let opts = line.trim_start().strip_prefix("opts=\"");
        match opts.and_then(|opts| opts.strip_suffix('"')) {
            Some(opts) => {
                let words: Vec<String> = opts.split(' ').filter_map(word).collect();
                format!("            opts=\"{}\"", words.join(" "))
            }
            None => line.to_string(),
        }
    };
    lines(script.lines().map(line))
}

/// Writes a page for the program and one for each of its commands into `folder`, or prints them.
pub(crate) fn man(out: &Out, folder: Option<&Path>) -> Result<(), Failure> {
    let pages = pages().map_err(|error| Failure::io("the pages can't be made", &error))?;
    let Some(folder) = folder else {
        return out.show(&Pages { pages }, |all| {
            let first = all.pages.first();
            first.map_or_else(String::new, |page| page.text.clone())
        });
    };
    if !folder.is_dir() {
        let what = format!("{} is no folder", folder.display());
        return Err(Failure::new(what, "name one that is there, or make it"));
    }
    let mut written = Vec::new();
    for page in pages {
        let path = folder.join(page.name);
        std::fs::write(&path, page.text).map_err(|error| Failure::io(path.display(), &error))?;
        written.push(path.display().to_string());
    }
    out.show(&Written { written }, |all| lines(&all.written))
}

/// The program's page, then the commands'.
fn pages() -> std::io::Result<Vec<Page>> {
    let mut program = Cli::command();
    program.build();
    let mut pages = vec![page(&program, "hiopsctl".into())?];
    for command in program.get_subcommands() {
        if command.get_name() != "help" {
            pages.push(page(command, format!("hiopsctl-{}", command.get_name()))?);
        }
    }
    Ok(pages)
}

/// A page of section 8, administration.
fn page(command: &Command, name: String) -> std::io::Result<Page> {
    let mut text = Vec::new();
    // clap wants names that live as long as the program; the display name is what its text shows.
    let command = command.clone().display_name(name.clone());
    Man::new(command)
        .section("8")
        .source("hiops")
        .render(&mut text)?;
    Ok(Page {
        name: format!("{name}.8"),
        text: String::from_utf8_lossy(&text).into_owned(),
    })
}
