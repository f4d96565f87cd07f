// SPDX-License-Identifier: GPL-2.0
//! The kernels that are installed, and the module for each: what the next boot needs, whichever of
//! them it is.

use crate::attention::{Area, Finding};
use crate::root::Root;

/// The first one that hiops supports.
const OLDEST: (u64, u64) = (7, 2);
/// What ends the file of a module that is signed.
const SIGNED: &[u8] = b"~Module signature appended~\n";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
const ENFORCED: &str = "/sys/module/module/parameters/sig_enforce";

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) release: String,
    /// The file of the module, as modprobe would find it.
    pub(crate) module: Option<String>,
}

/// What a module says of its build.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Build {
    version: Option<String>,
    srcversion: Option<String>,
}

impl Build {
    /// Of the file's bytes; `None`: it tells nothing, as one that is compressed does.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let build = Self {
            version: tag(bytes, "version"),
            srcversion: tag(bytes, "srcversion"),
        };
        (build != Self::default()).then_some(build)
    }
}

/// What the module's information has for `name`: strings `NAME=VALUE`, with zeroes between.
fn tag(bytes: &[u8], name: &str) -> Option<String> {
    let wanted = format!("\0{name}=").into_bytes();
    let at = bytes.windows(wanted.len()).position(|it| it == wanted)?;
    let value = bytes.get(at.checked_add(wanted.len())?..)?;
    let value = value.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// The kernel that runs.
pub(crate) fn running(root: &Root) -> Option<String> {
    root.word("/proc/sys/kernel/osrelease")
}

/// All that are installed: those with modules and an image.
pub(crate) fn installed(root: &Root) -> Vec<Kernel> {
    let bootable = |release: &String| {
        root.has(&format!("/boot/vmlinuz-{release}"))
            || root.has(&format!("/lib/modules/{release}/vmlinuz"))
    };
    let names = root.names("/lib/modules").into_iter().filter(bootable);
    names.map(|release| kernel(root, release)).collect()
}

fn kernel(root: &Root, release: String) -> Kernel {
    let folder = format!("/lib/modules/{release}");
    let known = root.text(&format!("{folder}/modules.dep"));
    let known = known.unwrap_or_default();
    let mut files = known.lines().filter_map(|line| line.split(':').next());
    let ours = |file: &&str| {
        let name = file.rsplit('/').next().unwrap_or_default();
        name == "hiops.ko" || name.starts_with("hiops.ko.")
    };
    let module = files.find(ours).map(|file| format!("{folder}/{file}"));
    Kernel {
        module: module.filter(|file| root.has(file)),
        release,
    }
}

/// Whether hiops supports it, by its number.
fn is_old(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u64>().ok();
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) < OLDEST,
        _ => false,
    }
}

/// What is wrong with the kernels and their modules; `listed`: there are drives that are to be
/// hiops' at boot.
pub(crate) fn findings(root: &Root, kernels: &[Kernel], listed: bool) -> Vec<Finding> {
    let running = running(root).unwrap_or_default();
    let locked = locked(root);
    let mut found = Vec::new();
    if is_old(&running) {
        found.push(say(
            format!("kernel {running} is older than 7.2, the first that hiops supports"),
            "install a newer one and boot it (the operator's manual, 'Install')",
        ));
    }
    for kernel in kernels {
        // One that is too old never has it.
        if !is_old(&kernel.release) && (listed || kernel.release == running) {
            found.extend(of_kernel(
                root,
                kernel,
                kernel.release == running,
                locked.as_deref(),
            ));
        }
    }
    let loaded = Build {
        version: root.word("/sys/module/hiops/version"),
        srcversion: root.word("/sys/module/hiops/srcversion"),
    };
    let own = kernels.iter().find(|it| it.release == running);
    let file = own.and_then(|it| it.module.as_ref());
    let build = file.and_then(|file| Build::of(&root.bytes(file)?));
    if let Some(build) = build.filter(|it| loaded != Build::default() && *it != loaded) {
        let version = |build: &Build| build.version.clone().unwrap_or_else(|| "another".into());
        found.push(say(
            format!(
                "the module that runs ({}) is not the one that is installed ({})",
                version(&loaded),
                version(&build)
            ),
            "reboot; or give the drives back, rmmod hiops, and bind them again",
        ));
    }
    found
}

fn say(what: String, way_out: impl Into<String>) -> Finding {
    Finding::new(Area::Module, what, way_out)
}

/// What is wrong with one.
fn of_kernel(root: &Root, kernel: &Kernel, runs: bool, locked: Option<&str>) -> Option<Finding> {
    let release = &kernel.release;
    let folder = format!("/lib/modules/{release}");
    let Some(module) = &kernel.module else {
        let there = ["updates", "updates/dkms", "extra", "kernel/extra"];
        let mut there = there.iter().map(|it| format!("{folder}/{it}/hiops.ko"));
        if let Some(file) = there.find(|file| root.has(file)) {
            let what = format!("modprobe does not know {file}");
            return Some(say(what, format!("depmod {release}")));
        }
        let falls = match runs {
            true => "the drives of hiops are the in-tree drivers'",
            false => "a boot of it falls back to nvme and ahci",
        };
        return Some(say(
            format!("there is no module for kernel {release}: {falls}"),
            format!(
                "install hiops-modules-{release}, or hiops-dkms; or make install KVER={release}"
            ),
        ));
    };
    let bytes = root.bytes(module)?;
    let built = tag(&bytes, "vermagic");
    let built = built.as_deref().and_then(|it| it.split(' ').next());
    if built.is_some_and(|built| built != release) {
        let built = built.unwrap_or_default();
        return Some(say(
            format!("{module} is built for kernel {built}, and won't load on {release}"),
            format!("install hiops-modules-{release}, or make install KVER={release}"),
        ));
    }
    // Of one that is compressed it can't be told.
    if built.is_some() && !bytes.ends_with(SIGNED) {
        return locked.map(|by| {
            say(
                format!(
                    "{module} is not signed, and this machine takes signed modules only ({by})"
                ),
                "the operator's manual, 'Secure Boot': HIOPS_SIGN_KEY and HIOPS_SIGN_CERT",
            )
        });
    }
    None
}

/// By what the kernel takes signed modules only, if it does.
fn locked(root: &Root) -> Option<String> {
    let lockdown = root.line(LOCKDOWN).unwrap_or_default();
    let level = ["[integrity]", "[confidentiality]"];
    if let Some(level) = level.into_iter().find(|level| lockdown.contains(level)) {
        return Some(format!("lockdown {level}"));
    }
    let enforced = root.word(ENFORCED).as_deref() == Some("Y");
    enforced.then(|| "module.sig_enforce".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_old_by_their_numbers() {
        for (release, old) in [
            ("6.12.48+deb13-amd64", true),
            ("7.1.9", true),
            ("7.2.0", false),
            ("7.3.4+deb13-amd64", false),
            ("10.0-rc1", false),
            ("odd", false),
        ] {
            assert_eq!(is_old(release), old, "{release}");
        }
    }

    #[test]
    fn builds_are_told_by_whole_names() {
        let bytes = b"\x7fELF\0srcversion=ABC\0version=1.0\0vermagic=7.3 SMP\0";
        let build = Build::of(bytes).unwrap();
        assert_eq!(build.version.as_deref(), Some("1.0"));
        assert_eq!(build.srcversion.as_deref(), Some("ABC"));
        assert_eq!(Build::of(b"\x28\xb5\x2f\xfd"), None);
    }
}
