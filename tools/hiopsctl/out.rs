// SPDX-License-Identifier: GPL-2.0
//! Where results go: stdout, as text or as JSON; and where failures go.

use crate::clock;
use crate::failure::Failure;
use crate::table::Table;
use crate::terminal;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// The version of the form of all JSON. A reader may rely on what `docs/schemas` says of it: what
/// has gone, has another name or another meaning makes a new version; what is added does not.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// What every JSON begins with, and then what it is about.
#[derive(Serialize)]
struct Envelope<'a, T> {
    schema_version: u32,
    timestamp: String,
    #[serde(flatten)]
    value: &'a T,
}

/// What went wrong, for programs.
#[derive(Serialize)]
struct Wrong<'a> {
    error: &'a str,
    way_out: &'a str,
}

/// The two forms of every command's output.
#[derive(Debug)]
pub(crate) struct Out {
    json: bool,
}

impl Out {
    /// JSON, or text.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether somebody has asked for JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a screen can be drawn.
    pub(crate) fn is_screen(&self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// A table as its reader wants it: fitted to the terminal, or plain where something else reads.
    pub(crate) fn table(&self, table: &Table) -> String {
        match self.is_screen() {
            true => table.fitted(terminal::size().0),
            false => table.text(),
        }
    }

    /// Prints `text` at once.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        written.and_then(|()| stdout.flush()).map_err(|error| {
            if error.kind() == io::ErrorKind::BrokenPipe {
                Failure::Closed
            } else {
                Failure::io("stdout can't be written", &error)
            }
        })
    }

    /// Prints `value` as JSON, or what `text` makes of it.
    pub(crate) fn show<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if self.json {
            self.print(&format!("{}\n", json(value)?))
        } else {
            self.print(&text(value))
        }
    }

    /// Says why it failed; the status to end with.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        let Failure::Says { what, way_out } = failure else {
            return match failure {
                Failure::Closed => ExitCode::SUCCESS,
                Failure::Found(status) => ExitCode::from(*status),
                _ => ExitCode::FAILURE,
            };
        };
        let said = if self.json {
            let error = what;
            json(&Wrong { error, way_out }).unwrap_or_default()
        } else {
            format!("hiopsctl: {failure}")
        };
        // Where stderr is closed, too, the status is all that is left to tell it.
        drop(writeln!(io::stderr(), "{said}"));
        ExitCode::FAILURE
    }
}

/// `value`, which is an object, as one line of JSON, with the version of its form and the time.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    let envelope = Envelope {
        schema_version: SCHEMA_VERSION,
        timestamp: clock::now(),
        value,
    };
    serde_json::to_string(&envelope)
        .map_err(|error| Failure::new(format!("no JSON can be made: {error}"), "this is a bug"))
}
