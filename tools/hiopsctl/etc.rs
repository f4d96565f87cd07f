// SPDX-License-Identifier: GPL-2.0
//! A file of `/etc/hiops` that operators write, too: what is theirs in it stays, byte for byte,
//! when some of its lines are changed.

use crate::failure::Failure;
use crate::identity;
use crate::replace::replace;
use crate::root::Root;
use std::io;

/// Its lines, without their ends.
#[derive(Debug)]
pub(crate) struct Lines(Vec<Vec<u8>>);

impl Lines {
    /// Those of `file`; none where it is not there.
    ///
    /// # Errors
    /// It is there, and can't be read.
    pub(crate) fn read(root: &Root, file: &str) -> Result<Self, Failure> {
        let bytes = match std::fs::read(root.at(file)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Failure::io(file, &error)),
        };
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(Vec::from).collect();
        // Behind the last line's end there is none.
        if lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        Ok(Self(lines))
    }

    /// Each as ASCII, in which a byte that is none is a `?`.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(|line| identity::ascii(line)).collect()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a line.
    pub(crate) fn push(&mut self, line: impl Into<Vec<u8>>) {
        self.0.push(line.into());
    }

    /// Takes out the lines whose texts are `gone`; whether there were some.
    pub(crate) fn remove(&mut self, gone: impl Fn(&str) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|line| !gone(&identity::ascii(line)));
        self.0.len() != before
    }

    /// Has `file` be these lines.
    ///
    /// # Errors
    /// It can't be written, and is what it was.
    pub(crate) fn write(&self, root: &Root, file: &str) -> Result<(), Failure> {
        let mut bytes = self.0.join(&b'\n');
        bytes.push(b'\n');
        let at = root.at(file);
        let folder = at.parent().map_or(Ok(()), std::fs::create_dir_all);
        let wrote = folder.and_then(|()| replace(&at, &bytes));
        wrote.map_err(|error| Failure::io(file, &error))
    }
}
