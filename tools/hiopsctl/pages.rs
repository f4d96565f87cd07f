// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl completions` and `hiopsctl man`: made from the command line's own description.

use crate::cli::Cli;
use crate::complete;
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

/// Prints the completions of `shell`: by asking this program where the shell can, else as they are
/// for every machine.
pub(crate) fn completions(out: &Out, shell: Shell) -> Result<(), Failure> {
    let fixed = || {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "hiopsctl", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    };
    let page = Page {
        name: shell.to_string(),
        text: complete::script(shell).unwrap_or_else(fixed),
    };
    out.show(&page, |page| page.text.clone())
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
