// SPDX-License-Identifier: GPL-2.0
//! Who uses a disk: what `hiops-bind` refuses for, as far as it can be read.
//!
//! What is told here is for people. Whether a disk can be taken is decided by `hiops-bind`, which
//! asks the kernel, too.

use crate::root::Root;
use serde::Serialize;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// One user of a disk or of one of its partitions.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct Use {
    /// The disk or the partition, as in /dev.
    pub(crate) device: String,
    /// How: `mount`, `swap`, `holder`, `loop`, `export`, `open`.
    pub(crate) how: &'static str,
    /// By whom: a folder, a device, a process.
    pub(crate) by: String,
    /// A mount's file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fs: Option<String>,
}

/// What is looked up once for all disks.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    mounts: Vec<Mount>,
    /// A device node, how it is used, and by whom.
    nodes: Vec<(String, &'static str, String)>,
    /// A device number, and who has it open.
    opens: Vec<((u64, u64), String)>,
}

/// A line of a mountinfo file.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Mount {
    number: String,
    source: String,
    place: String,
    fs: String,
}

impl Mount {
    /// Reads a line, if it mounts a device.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let (number, place) = (before.next()?, before.nth(1)?);
        let mut after = after.split(' ');
        let (fs, source) = (after.next()?, after.next()?);
        source.starts_with("/dev/").then(|| Self {
            number: number.into(),
            source: unescape(source),
            place: unescape(place),
            fs: fs.into(),
        })
    }
}

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

impl Usage {
    /// Looks at all processes, swaps, loop devices and exports.
    pub(crate) fn look(root: &Root) -> Self {
        let mut usage = Self::default();
        let numeric = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
        for process in root.names("/proc").into_iter().filter(numeric) {
            let mounts = root.text(&format!("/proc/{process}/mountinfo"));
            let mounts = mounts.unwrap_or_default();
            usage.mounts.extend(mounts.lines().filter_map(Mount::parse));
            usage.look_at_files(root, &process);
        }
        usage.mounts.sort();
        usage.mounts.dedup();
        let swaps = root.text("/proc/swaps").unwrap_or_default();
        for line in swaps.lines().skip(1) {
            if let Some(node) = line.split_whitespace().next() {
                usage.nodes.push((unescape(node), "swap", "swap".into()));
            }
        }
        for name in root.names("/sys/block") {
            if let Some(file) = root.word(&format!("/sys/block/{name}/loop/backing_file")) {
                usage.nodes.push((file, "loop", format!("/dev/{name}")));
            }
        }
        usage.look_at_exports(root);
        usage
    }

    /// The block devices that a process has open. Only links that name something in /dev are
    /// followed: what else is open may be on a server that does not answer.
    fn look_at_files(&mut self, root: &Root, process: &str) {
        let folder = format!("/proc/{process}/fd");
        for file in root.names(&folder) {
            let at = format!("{folder}/{file}");
            let Some(to) = root.link(&at).filter(|to| to.starts_with("/dev/")) else {
                continue;
            };
            let comm = root.word(&format!("/proc/{process}/comm"));
            let comm = comm.unwrap_or_default();
            // Which only looks what is on it; hiops-bind does not mind it either.
            if comm == "(udev-worker)" {
                continue;
            }
            let who = format!("{comm} ({process})");
            match fs::metadata(root.at(&at)) {
                Ok(data) if data.file_type().is_block_device() => {
                    self.opens.push((split_device(data.rdev()), who));
                }
                Ok(_) => {}
                Err(_) => self.nodes.push((to, "open", who)),
            }
        }
    }

    /// What is exported over NVMe fabrics.
    fn look_at_exports(&mut self, root: &Root) {
        let folder = "/sys/kernel/config/nvmet/subsystems";
        for subsystem in root.names(folder) {
            let namespaces = format!("{folder}/{subsystem}/namespaces");
            for id in root.names(&namespaces) {
                let at = format!("{namespaces}/{id}");
                let path = root.word(&format!("{at}/device_path"));
                if let (Some(path), Some(1)) = (path, root.number(&format!("{at}/enable"))) {
                    let by = format!("nvmet {subsystem} {id}");
                    self.nodes.push((path, "export", by));
                }
            }
        }
    }

    /// Who uses `disk` and its partitions; each once.
    pub(crate) fn of(&self, root: &Root, disk: &str) -> Vec<Use> {
        let folder = format!("/sys/block/{disk}");
        let mut found = self.of_device(root, disk, &folder);
        for part in root.names(&folder) {
            let at = format!("{folder}/{part}");
            if root.has(&format!("{at}/partition")) {
                found.extend(self.of_device(root, &part, &at));
            }
        }
        found.sort();
        found.dedup();
        found
    }

    fn of_device(&self, root: &Root, name: &str, folder: &str) -> Vec<Use> {
        let device = name.replace('!', "/");
        let node = format!("/dev/{device}");
        let number = root.word(&format!("{folder}/dev")).unwrap_or_default();
        let one = |how, by: &str, fs: Option<&str>| Use {
            device: device.clone(),
            how,
            by: by.to_string(),
            fs: fs.map(str::to_string),
        };
        let mut found = Vec::new();
        for mount in &self.mounts {
            if mount.number == number || mount.source == node {
                found.push(one("mount", &mount.place, Some(&mount.fs)));
            }
        }
        for (used, how, by) in &self.nodes {
            if *used == node {
                found.push(one(how, by, None));
            }
        }
        for ((major, minor), who) in &self.opens {
            if format!("{major}:{minor}") == number {
                found.push(one("open", who, None));
            }
        }
        let holders = format!("{folder}/holders");
        for holder in root.names(&holders) {
            let mapped = root.word(&format!("{holders}/{holder}/dm/name"));
            found.push(one("holder", &mapped.unwrap_or(holder), None));
        }
        found
    }
}

/// A device number's major and minor, as stat(2) packs them.
fn split_device(number: u64) -> (u64, u64) {
    let major = ((number >> 8) & 0xfff) | ((number >> 32) & 0xffff_f000);
    let minor = (number & 0xff) | ((number >> 12) & 0xffff_ff00);
    (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_of_a_device_is_read() {
        let line =
            "36 35 259:1 / /mnt/my\\040disk rw,noatime shared:1 master:2 - ext4 /dev/hiops0n1 rw";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((&*mount.number, &*mount.place), ("259:1", "/mnt/my disk"));
        assert_eq!((&*mount.fs, &*mount.source), ("ext4", "/dev/hiops0n1"));
        // No optional fields, and no device.
        assert!(Mount::parse("36 35 0:22 / /proc rw - proc proc rw").is_none());
        assert!(Mount::parse("36 35 259:1 / / rw - xfs /dev/sda1 rw").is_some());
        assert!(Mount::parse("broken").is_none());
    }

    #[test]
    fn escapes_are_octal() {
        assert_eq!(unescape("a\\040b\\134"), "a b\\");
        assert_eq!(unescape("\\04"), "\\04");
        assert_eq!(unescape("\\999"), "\\999");
    }

    #[test]
    fn device_numbers_are_unpacked() {
        assert_eq!(split_device(0x1_0301), (259, 1));
        assert_eq!(split_device(0x11_032c), (259, 300));
        assert_eq!(split_device(0x1000_0000_0005), (4096, 5));
    }
}
