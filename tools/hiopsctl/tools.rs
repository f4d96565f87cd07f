// SPDX-License-Identifier: GPL-2.0
//! The other tools of hiops, which this one calls.

use crate::failure::Failure;
use crate::root::Root;
use std::path::PathBuf;
use std::process::Command;

/// Where `hiops-install` puts them, and where a distribution's package does.
const PLACES: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// And what these call.
const LIBEXEC: [&str; 2] = ["/usr/local/libexec/hiops", "/usr/libexec/hiops"];

/// The tool `name`: the one beside this program, or the installed one.
///
/// # Errors
/// There is none.
pub(crate) fn find(root: &Root, name: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(name)));
    let installed = PLACES.map(|place| root.at(&format!("{place}/{name}")));
    let mut all = beside.into_iter().chain(installed);
    all.find(|path| path.is_file()).ok_or_else(|| {
        Failure::new(
            format!(
                "{name} is neither beside hiopsctl nor in {}",
                PLACES.join(" or ")
            ),
            "make install puts it there",
        )
    })
}

/// What the tools themselves call, `name` of tools/system.
///
/// # Errors
/// There is none.
pub(crate) fn helper_file(root: &Root, name: &str) -> Result<PathBuf, Failure> {
    let all = LIBEXEC.map(|place| root.at(&format!("{place}/{name}")));
    all.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Failure::new(
            format!("{name} is not in {}", LIBEXEC.join(" or ")),
            "make install, or the package hiops-tools, puts it there",
        )
    })
}

/// A command for it.
pub(crate) fn helper(root: &Root, name: &str) -> Result<Command, Failure> {
    helper_file(root, name).map(Command::new)
}

/// A command for the tool `name`.
pub(crate) fn command(root: &Root, name: &str) -> Result<Command, Failure> {
    find(root, name).map(Command::new)
}
