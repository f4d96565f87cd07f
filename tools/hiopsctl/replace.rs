// SPDX-License-Identifier: GPL-2.0
//! A file that is replaced as a whole: whoever reads it at any time finds the old one or the new
//! one. What is no regular file (a device, a pipe, stdout by its name) is written instead.
//!
//! A symbolic link stays, and what it leads to is replaced: the kernel decides whether it may be
//! followed (`fs.protected_symlinks`).

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{fchown, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Whoever collects such files is another user.
const READABLE: u32 = 0o644;
/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
/// Names that are tried, as somebody may have taken them.
const TRIES: usize = 8;

/// Has `bytes` in `path`.
///
/// # Errors
/// Nothing is left behind, and what was there is as it was.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = match fs::metadata(path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let path = end_of_links(path)?;
    // What /proc and /dev name is somebody's open file, or a device.
    let is_open = path.starts_with("/proc") || path.starts_with("/dev");
    if is_open || there.as_ref().is_some_and(|there| !there.is_file()) {
        let mut to = OpenOptions::new().append(true).open(path)?;
        return to.write_all(bytes);
    }
    let (mut to, beside) = new_beside(&path)?;
    let written = to
        .write_all(bytes)
        .and_then(|()| as_before(&to, there.as_ref()))
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written
}

/// Where `path` leads; it need not be there.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let folder = path.parent().unwrap_or(Path::new(""));
        // A link in there is to what is open, which may have no name.
        if folder
            .canonicalize()
            .is_ok_and(|at| at.starts_with("/proc"))
        {
            return Ok(path);
        }
        match fs::read_link(&path) {
            Ok(to) => path = folder.join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A new file in the folder of `path`, its writer's alone, of a name that nobody can know before.
fn new_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    let Some(name) = path.file_name() else {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    };
    for _ in 0..TRIES {
        let random = RandomState::new().build_hasher().finish();
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{random:016x}"));
        let beside = path.with_file_name(beside);
        let mut options = OpenOptions::new();
        match options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)
        {
            Ok(file) => return Ok((file, beside)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// Owner and permissions are those of what `was` there.
fn as_before(file: &File, was: Option<&fs::Metadata>) -> io::Result<()> {
    let Some(was) = was else {
        return file.set_permissions(Permissions::from_mode(READABLE));
    };
    match fchown(file, Some(was.uid()), Some(was.gid())) {
        // Only root gives files away; whoever may replace it may own it.
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
        _ => {}
    }
    file.set_permissions(Permissions::from_mode(was.mode() & 0o7777))
}
