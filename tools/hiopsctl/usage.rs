// SPDX-License-Identifier: GPL-2.0
//! Who uses a disk, as `hiops-users` has it: `hiops-bind`, which decides whether a disk can be
//! taken, asks the same.

use crate::failure::Failure;
use crate::root::Root;
use crate::tools;
use serde::Serialize;

/// One user of a disk or of one of its partitions.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct Use {
    /// The disk or the partition, as in /dev.
    pub(crate) device: String,
    /// How: `mount`, `swap`, `holder`, `pool`, `loop`, `export`, `open`.
    pub(crate) how: String,
    /// By whom: a folder, a device, a process.
    pub(crate) by: String,
    /// A mount's file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fs: Option<String>,
}

/// What is looked up once for all disks.
#[derive(Debug)]
pub(crate) struct Usage(Vec<Use>);

/// Blanks and their like, which procfs writes as \040.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match (byte, octal) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Use {
    /// Reads a line `DEVICE HOW BY FS`, with tabs between.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let (device, how) = (fields.next()?, fields.next()?);
        let (by, fs) = (fields.next()?, fields.next()?);
        Some(Self {
            device: device.into(),
            how: how.into(),
            by: unescape(by),
            fs: Some(fs.to_string()).filter(|fs| fs != "-"),
        })
    }
}

impl Usage {
    /// Looks at all block devices.
    ///
    /// # Errors
    /// `hiops-users` is not there, or fails.
    pub(crate) fn look(root: &Root) -> Result<Self, Failure> {
        let mut command = tools::command(root, "hiops-users")?;
        let failed = |error| Failure::io("hiops-users can't be run", &error);
        let ran = command
            .env("HIOPS_ROOT", root.at("/"))
            .output()
            .map_err(failed)?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            let what = format!("hiops-users fails: {}", said.trim());
            return Err(Failure::new(what, "run it by itself"));
        }
        let said = String::from_utf8_lossy(&ran.stdout);
        Ok(Self(said.lines().filter_map(Use::parse).collect()))
    }

    /// Who uses `disk` and its partitions; each once.
    pub(crate) fn of(&self, root: &Root, disk: &str) -> Vec<Use> {
        let folder = format!("/sys/block/{disk}");
        let part = |name: &String| root.has(&format!("{folder}/{name}/partition"));
        let mut names: Vec<String> = root.names(&folder).into_iter().filter(part).collect();
        names.push(disk.to_string());
        let names: Vec<String> = names.iter().map(|name| name.replace('!', "/")).collect();
        let mut found: Vec<Use> = (self.0.iter())
            .filter(|one| names.contains(&one.device))
            .cloned()
            .collect();
        found.sort();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let read = Use::parse("hiops0n1p1\tmount\t/my\\040disk\text4").unwrap();
        assert_eq!((&*read.device, &*read.how), ("hiops0n1p1", "mount"));
        assert_eq!((&*read.by, read.fs.as_deref()), ("/my disk", Some("ext4")));
        let read = Use::parse("hiops0n1\topen\tmy prog (7)\t-").unwrap();
        assert_eq!((&*read.by, read.fs), ("my prog (7)", None));
        assert_eq!(Use::parse("broken\tline"), None);
    }

    #[test]
    fn escapes_are_octal() {
        assert_eq!(unescape("a\\040b\\134"), "a b\\");
        assert_eq!(unescape("\\04"), "\\04");
        assert_eq!(unescape("\\999"), "\\999");
    }
}
