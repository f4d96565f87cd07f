// SPDX-License-Identifier: GPL-2.0
//! The drives that the running system itself stands on, as `hiops-users --under` has them: the
//! initramfs leaves them to the in-tree drivers.

use crate::root::Root;
use crate::tools;
use std::collections::BTreeMap;

/// As `devices`, which makes the initramfs' list, asks.
const PLACES: [&str; 5] = ["/", "/usr", "/boot", "/boot/efi", "/efi"];

/// What each of these PCI functions holds; none where it can't be told.
pub(crate) fn places(root: &Root) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Ok(mut command) = tools::command(root, "hiops-users") else {
        return found;
    };
    command.arg("--under").args(PLACES);
    let Ok(ran) = command.env("HIOPS_ROOT", root.at("/")).output() else {
        return found;
    };
    for line in String::from_utf8_lossy(&ran.stdout).lines() {
        if let Some((address, place)) = line.split_once(' ') {
            found
                .entry(address.to_string())
                .or_insert(place.to_string());
        }
    }
    found
}
