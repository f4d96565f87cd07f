// SPDX-License-Identifier: GPL-2.0
//! Whether each initramfs is as it would be made today: with the list of devices, the module, and
//! what hands devices over before udev. It is opened and looked into, whoever has made it.

use crate::attention::{Area, Finding};
use crate::cpio;
use crate::kernels::{Build, Kernel};
use crate::root::Root;
use crate::tools;

/// Where the list is in it.
const LIST: &str = "etc/hiops/devices";
/// dracut has the whole of one in an image of its own, which is not looked into.
const SQUASHED: [&str; 2] = ["squashfs-root.img", "erofs-root.img"];

/// What matters of one.
#[derive(Default)]
struct Held {
    list: Option<Vec<u8>>,
    module: Option<Vec<u8>>,
    claim: Option<Vec<u8>>,
    /// What calls it.
    hook: bool,
}

/// Whether `name` is one whose contents are compared.
fn wanted(name: &str) -> bool {
    name == LIST || name.ends_with("/hiops/claim") || is_module(name)
}

fn is_module(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    file == "hiops.ko" || file.starts_with("hiops.ko.")
}

fn is_hook(name: &str) -> bool {
    name == "scripts/init-top/hiops"
        || (name.contains("hooks/pre-udev/") && name.ends_with("-claim.sh"))
}

/// What is wrong with the initramfs of each of `kernels`.
pub(crate) fn findings(root: &Root, kernels: &[Kernel], listed: bool) -> Vec<Finding> {
    // Where there is no module nothing is handed over, and that is said already.
    let those = kernels.iter().filter(|it| !listed || it.module.is_some());
    let each = those.filter_map(|kernel| {
        let release = &kernel.release;
        let names = [
            format!("/boot/initrd.img-{release}"),
            format!("/boot/initramfs-{release}.img"),
        ];
        let image = names.into_iter().find(|image| root.has(image))?;
        let (what, way_out) = of_image(root, kernel, &image, listed)?;
        Some(Finding::new(Area::Boot, format!("{image} {what}"), way_out))
    });
    each.collect()
}

/// What is wrong with `image`, and the way out.
fn of_image(root: &Root, kernel: &Kernel, image: &str, listed: bool) -> Option<(String, String)> {
    let release = &kernel.release;
    let renew = format!("update-initramfs -u -k {release} (dracut: dracut -f --kver {release})");
    let stale = |what: &str| Some((what.to_string(), renew.clone()));
    let files = match cpio::files(&root.at(image), wanted) {
        Ok(files) => files,
        Err(error) => {
            let way_out = match error.kind() {
                std::io::ErrorKind::PermissionDenied => "run it as root (sudo)".into(),
                _ => renew,
            };
            return Some((format!("can't be looked into: {error}"), way_out));
        }
    };
    if files.iter().any(|(name, _)| SQUASHED.contains(&&**name)) {
        return None;
    }
    let held = held(files);
    let list = held.list.unwrap_or_default();
    let wanted = match listed {
        true => today(root, release)?,
        false => Vec::new(),
    };
    if list != wanted {
        return match (list.is_empty(), wanted.is_empty()) {
            (true, _) => stale("has no list of devices: its drives are nvme's and ahci's at first"),
            (_, true) => stale("still hands over drives that are listed no more"),
            _ => stale("has another list of devices than today's"),
        };
    }
    if wanted.is_empty() {
        return None;
    }
    let Some(module) = held.module else {
        return stale("has no module hiops");
    };
    let installed = kernel.module.as_ref().and_then(|file| root.bytes(file));
    // dracut may have stripped it.
    if installed.is_some_and(|file| file != module && Build::of(&file) != Build::of(&module)) {
        return stale("has another build of the module than the installed one");
    }
    if !held.hook {
        return stale("does not call what hands drives over (init-top/hiops, or dracut's claim)");
    }
    let claim = tools::helper_file(root, "claim").ok();
    let claim = claim.and_then(|file| std::fs::read(file).ok());
    if claim.is_some() && claim != held.claim {
        return stale("has another script claim than the installed one");
    }
    None
}

fn held(files: Vec<cpio::File>) -> Held {
    let mut held = Held::default();
    for (name, contents) in files {
        held.hook |= is_hook(&name);
        if name == LIST {
            held.list = Some(contents);
        } else if is_module(&name) {
            held.module = Some(contents);
        } else if name.ends_with("/hiops/claim") {
            held.claim = Some(contents);
        }
    }
    held
}

/// The list that it would have if it were made now; none: that can't be told.
fn today(root: &Root, release: &str) -> Option<Vec<u8>> {
    let mut command = tools::helper(root, "devices").ok()?;
    let ran = command.arg(release).output().ok()?;
    ran.status.success().then_some(ran.stdout)
}
