// SPDX-License-Identifier: GPL-2.0
//! The file system that is read: this machine's, or a test's below a folder.
//!
//! Paths are absolute and mean what they mean on the machine. A file that is not there, or can't
//! be read, is `None`: disks and processes go at any time.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder that stands for `/`.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// `folder` is the root.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Where `path` really is.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A file's text; bytes that are no UTF-8 are replaced.
    pub(crate) fn read(&self, path: &str) -> io::Result<String> {
        fs::read(self.at(path)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file's bytes, if it can be read.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.at(path)).ok()
    }

    /// What a drive calls itself in a file, as it is shown.
    pub(crate) fn identity(&self, path: &str) -> Option<String> {
        crate::identity::shown(&self.bytes(path)?)
    }

    /// A file's text, if it can be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    /// A file's first line, without blanks around it.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        text.lines().next().map(|line| line.trim().to_string())
    }

    /// As [`Self::line`], if there is anything in it.
    pub(crate) fn word(&self, path: &str) -> Option<String> {
        self.line(path).filter(|line| !line.is_empty())
    }

    /// The number in a file.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.line(path)?.parse().ok()
    }

    /// Whether there is such a file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The names in a folder, numbers in them by value; none if it can't be read.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_by(|a, b| natural(a, b));
        names
    }

    /// What a link says.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let to = fs::read_link(self.at(path)).ok()?;
        Some(to.to_string_lossy().into_owned())
    }

    /// The last name of what a link says.
    pub(crate) fn link_name(&self, path: &str) -> Option<String> {
        let to = self.link(path)?;
        Some(Path::new(&to).file_name()?.to_string_lossy().into_owned())
    }

    /// Where `path` leads, links followed, as seen from the root.
    pub(crate) fn resolve(&self, path: &str) -> Option<String> {
        let root = self.0.canonicalize().ok()?;
        let to = self.at(path).canonicalize().ok()?;
        let below = to.strip_prefix(root).ok()?;
        Some(format!("/{}", below.to_string_lossy()))
    }
}

/// Orders names as people do: `hiops2n1` before `hiops10n1`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    while let (Some((text_a, number_a, rest_a)), Some((text_b, number_b, rest_b))) =
        (split(a), split(b))
    {
        let order = text_a.cmp(text_b).then(number_a.cmp(&number_b));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.cmp(b)
}

/// What comes before the first number in `text`, that number, and what comes after it.
fn split(text: &str) -> Option<(&str, u64, &str)> {
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let (before, rest) = text.split_at_checked(from)?;
    let to = rest.find(|c: char| !c.is_ascii_digit());
    let (number, after) = rest.split_at_checked(to.unwrap_or(rest.len()))?;
    Some((before, number.parse().ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_by_value() {
        let mut names = ["hiops10n1", "hiops2n10", "hiops2n9", "hiops", "hiops_ram0"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["hiops", "hiops2n9", "hiops2n10", "hiops10n1", "hiops_ram0"]
        );
        // Too long for a number: by their letters.
        let long = "9".repeat(30);
        assert_eq!(natural(&long, &long), Ordering::Equal);
    }
}
