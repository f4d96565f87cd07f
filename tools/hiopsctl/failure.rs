// SPDX-License-Identifier: GPL-2.0
//! Why something could not be done.

use std::fmt;
use std::io;

/// What ends a command before its time.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read the output has gone: nobody wants the rest, and nothing is wrong.
    Closed,
    /// It was said already, on stderr, by whoever it happened to.
    Told,
    /// What was asked for was told, and there is something to do about it: the status to end with.
    Found(u8),
    /// It could not be done.
    Says {
        /// What is wrong, with the name of the thing.
        what: String,
        /// What the operator can do about it.
        way_out: String,
    },
}

impl Failure {
    /// `what` is wrong; `way_out` helps.
    pub(crate) fn new(what: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Says {
            what: what.into(),
            way_out: way_out.into(),
        }
    }

    /// `what` failed with `error`, for whose common kinds there is a way out.
    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        let way_out = match error.kind() {
            io::ErrorKind::PermissionDenied => "run it as root (sudo)",
            io::ErrorKind::NotFound => "check the name",
            io::ErrorKind::AlreadyExists => "name another file, or remove this one",
            io::ErrorKind::StorageFull => "make room, or name a file elsewhere",
            _ => "the kernel's log may say more (dmesg)",
        };
        Self::new(format!("{what}: {}", plain(error)), way_out)
    }
}

/// An error without the number that std appends.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_string(),
        None => text,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Says { what, way_out } => write!(f, "{what}: {way_out}"),
            Self::Closed | Self::Told | Self::Found(_) => Ok(()),
        }
    }
}
