// SPDX-License-Identifier: GPL-2.0
//! `doctor`: nothing is wrong with a sound machine, and each fault that is planted is told, by its
//! name, once, and by the exit status.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, NOBODYS, OURS, THEIRS};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// The kernel that runs, and another one that is installed.
const RUNS: &str = "7.3.4-test";
const OTHER_KERNEL: &str = "7.2.12-test";
const LIST: &str = "0000:01:00.0 hiops_nvme SERIAL-hiops0n1\n";
const CLAIM: &str = "#!/bin/sh\n# hands over\n";

/// A module of that build.
fn module(release: &str, version: &str, signed: bool) -> String {
    let end = if signed {
        "~Module signature appended~\n"
    } else {
        ""
    };
    format!("ELF\0srcversion=S{version}\0version={version}\0vermagic={release} SMP\0{end}")
}

/// An archive of those files, as cpio writes it.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, text) in files.iter().chain(&[("TRAILER!!!", "")]) {
        let head = format!(
            "070701{:048X}{:08X}{:032X}{:08X}{:08X}",
            0,
            text.len(),
            0,
            name.len() + 1,
            0
        );
        for part in [format!("{head}{name}\0").as_bytes(), text.as_bytes()] {
            all.extend_from_slice(part);
            all.resize(all.len().next_multiple_of(4), 0);
        }
    }
    all.resize(all.len().next_multiple_of(512), 0);
    all
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut command = Command::new("gzip");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap().stdout
}

/// What an initramfs holds; a fault leaves something out, or changes it.
struct Image {
    list: &'static str,
    module: Option<String>,
    hook: &'static str,
    claim: &'static str,
}

fn image(release: &str) -> Image {
    Image {
        list: LIST,
        module: Some(module(release, "1.0", false)),
        hook: "scripts/init-top/hiops",
        claim: CLAIM,
    }
}

/// Microcode comes first and is not compressed, as on most machines.
fn put_image(machine: &Machine, release: &str, image: &Image) {
    let at = format!("usr/lib/modules/{release}/updates/hiops.ko");
    let mut files = vec![("init", "#!/bin/sh\n"), (image.hook, "calls claim\n")];
    files.push(("./etc/hiops/devices", image.list));
    files.push(("usr/libexec/hiops/claim", image.claim));
    if let Some(module) = &image.module {
        files.push((&at, module));
    }
    let mut bytes = archive(&[("kernel/x86/microcode/A.bin", "microcode")]);
    bytes.extend(gzip(&archive(&files)));
    fs::write(machine.path(&format!("boot/initrd.img-{release}")), bytes).unwrap();
}

fn install(machine: &Machine, release: &str, version: &str, signed: bool) {
    let folder = format!("lib/modules/{release}");
    machine.put(&format!("boot/vmlinuz-{release}"), "");
    machine.put(
        &format!("{folder}/modules.dep"),
        "kernel/x.ko.xz:\nupdates/hiops.ko:\n",
    );
    let module = module(release, version, signed);
    machine.put(&format!("{folder}/updates/hiops.ko"), &module);
}

/// All is as it should be: a drive of hiops, which it is at every boot; two kernels that can have
/// it and one that can't.
fn sound() -> Machine {
    let machine = Machine::new();
    for release in [RUNS, OTHER_KERNEL] {
        install(&machine, release, "1.0", true);
        put_image(&machine, release, &image(release));
    }
    machine.put("boot/vmlinuz-6.12.1-test", "");
    machine.put("lib/modules/6.12.1-test/modules.dep", "");
    machine.put("sys/module/hiops/version", "1.0\n");
    machine.put("sys/module/hiops/srcversion", "S1.0\n");
    machine.put(
        "etc/hiops/devices",
        &format!("# ours\n{OURS} serial=SERIAL-hiops0n1\n"),
    );
    machine.put("etc/hiops/switches", "serial=SERIAL-hiops0n1 mode hybrid\n");
    machine.put("usr/local/libexec/hiops/claim", CLAIM);
    machine.script(
        "usr/local/libexec/hiops/devices",
        "sed -n 's/^\\(0[^ ]*\\) serial=/\\1 hiops_nvme /p' \"$HIOPS_ROOT/etc/hiops/devices\"",
    );
    for rules in ["60-hiops.rules", "61-hiops-bind.rules"] {
        machine.put(&format!("usr/lib/udev/rules.d/{rules}"), "# rules\n");
    }
    machine.put("run/udev/control", "");
    machine.put("run/systemd/system/x", "");
    let wants = "etc/systemd/system/sysinit.target.wants/hiops-bind.service";
    machine.link("/etc/systemd/system/hiops-bind.service", wants);
    machine.put(
        "etc/fstab",
        "UUID=1 / ext4 defaults 0 1\n# /dev/nvme0n1 is no more\n/dev/vda1 /x ext4\n\
         /dev/disk/by-id/nvme-x /data ext4\n/dev/sda1 /old ext4 noauto\n",
    );
    machine.put("proc/cmdline", "root=UUID=1 ro quiet\n");
    machine.put(
        "etc/smartd.conf",
        "# drives\n/dev/hiops0n1 -d nvme -a\nDEVICESCAN\n",
    );
    machine.put("dev/hiops0n1", "");
    machine
}

#[test]
fn nothing_is_wrong_with_a_sound_machine() {
    let machine = sound();
    assert_eq!(machine.says(&["doctor"]), "Nothing is wrong.\n");
    let json = machine.json(&["doctor"]);
    assert_eq!(json["kernel"], RUNS);
    assert_eq!(json["installed"][1], OTHER_KERNEL);
    assert_eq!(json["findings"].as_array().unwrap().len(), 0);
    // Nor with one that nothing of it is set up on, as after the first installation.
    assert_eq!(Machine::bare().says(&["doctor"]), "Nothing is wrong.\n");
}

/// What is done to the machine, what is said of it, and the status.
type Fault = (fn(&Machine), &'static [&'static str], i32);

/// Tells of each fault alone.
fn told(faults: &[Fault]) {
    for (plant, words, status) in faults {
        let machine = sound();
        plant(&machine);
        let said = machine.tells(&["doctor"], *status);
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
        for word in *words {
            assert!(said.contains(word), "no '{word}' in: {said}");
        }
        let (what, way_out) = said.trim_end().rsplit_once(": ").unwrap();
        assert!(!what.is_empty() && !way_out.is_empty(), "{said}");
    }
}

#[test]
fn faults_of_kernels_and_modules() {
    told(&[
        (
            |machine| machine.put("proc/sys/kernel/osrelease", "7.1.9-test\n"),
            &["kernel 7.1.9-test is older than 7.2", "boot it"],
            4,
        ),
        (
            |machine| fs::remove_dir_all(machine.path("lib/modules/7.2.12-test/updates")).unwrap(),
            &[
                "no module for kernel 7.2.12-test: a boot of it falls back to nvme",
                "hiops-modules-7.2.12-test",
            ],
            4,
        ),
        (
            |machine| machine.put("lib/modules/7.2.12-test/modules.dep", "kernel/x.ko.xz:\n"),
            &[
                "modprobe does not know",
                "updates/hiops.ko: depmod 7.2.12-test",
            ],
            4,
        ),
        (
            |machine| {
                let other = module(RUNS, "1.0", true);
                machine.put("lib/modules/7.2.12-test/updates/hiops.ko", &other);
            },
            &["is built for kernel 7.3.4-test, and won't load on 7.2.12-test"],
            4,
        ),
    ]);
}

#[test]
fn faults_of_signatures_and_of_what_runs() {
    told(&[
        (
            |machine| {
                install(machine, OTHER_KERNEL, "1.0", false);
                machine.put(
                    "sys/kernel/security/lockdown",
                    "none [integrity] confidentiality\n",
                );
            },
            &[
                "7.2.12-test/updates/hiops.ko is not signed",
                "lockdown [integrity]",
                "SIGN_KEY",
            ],
            4,
        ),
        (
            |machine| {
                install(machine, OTHER_KERNEL, "1.0", false);
                machine.put("sys/module/module/parameters/sig_enforce", "Y\n");
            },
            &["is not signed", "module.sig_enforce"],
            4,
        ),
        (
            |machine| machine.put("sys/module/hiops/srcversion", "another\n"),
            &[
                "the module that runs (1.0) is not the one that is installed (1.0)",
                "reboot",
            ],
            4,
        ),
    ]);
}

/// The other kernel's initramfs, with a change.
fn other(machine: &Machine, change: impl Fn(&mut Image)) {
    let mut image = image(OTHER_KERNEL);
    change(&mut image);
    put_image(machine, OTHER_KERNEL, &image);
}

#[test]
fn faults_of_an_initramfs() {
    told(&[
        (
            |machine| other(machine, |image| image.list = ""),
            &[
                "/boot/initrd.img-7.2.12-test has no list of devices",
                "update-initramfs -u -k 7.2",
            ],
            8,
        ),
        (
            |machine| other(machine, |image| image.list = "0000:09:00.0 hiops_nvme -\n"),
            &["initrd.img-7.2.12-test has another list of devices than today's"],
            8,
        ),
        (
            |machine| other(machine, |image| image.module = None),
            &["initrd.img-7.2.12-test has no module hiops"],
            8,
        ),
        (
            |machine| {
                other(machine, |image| {
                    image.module = Some(module(OTHER_KERNEL, "0.9", true))
                })
            },
            &["initrd.img-7.2.12-test has another build of the module"],
            8,
        ),
    ]);
}

#[test]
fn faults_of_what_an_initramfs_calls() {
    told(&[
        (
            |machine| other(machine, |image| image.hook = "scripts/init-top/x"),
            &["initrd.img-7.2.12-test does not call what hands drives over"],
            8,
        ),
        (
            |machine| other(machine, |image| image.claim = "#!/bin/sh\n# older\n"),
            &["initrd.img-7.2.12-test has another script claim"],
            8,
        ),
        (
            |machine| machine.put("boot/initrd.img-7.2.12-test", "rubbish"),
            &["initrd.img-7.2.12-test can't be looked into: it is no initramfs"],
            8,
        ),
        (
            |machine| {
                machine.put("etc/hiops/devices", "# none\n");
                let mut image = image(RUNS);
                image.list = "";
                put_image(machine, RUNS, &image);
            },
            &["initrd.img-7.2.12-test still hands over drives that are listed no more"],
            8,
        ),
    ]);
    // dracut's is as good.
    let machine = sound();
    other(&machine, |image| {
        image.hook = "usr/lib/dracut/hooks/pre-udev/10-claim.sh"
    });
    machine.says(&["doctor"]);
}

#[test]
fn faults_of_the_list() {
    told(&[
        (
            |machine| {
                let list = machine.read("etc/hiops/devices");
                machine.put("etc/hiops/devices", &format!("{list}drive nine\n"));
            },
            &["/etc/hiops/devices:3: 'drive' is not the address"],
            8,
        ),
        (
            |machine| {
                let link = machine.path(&format!("sys/devices/pci0000:00/{OURS}/driver"));
                fs::remove_file(link).unwrap();
                let link = format!("sys/devices/pci0000:00/{OURS}/driver");
                machine.link("../../../bus/pci/drivers/nvme", &link);
            },
            &[
                "0000:01:00.0 is with 'nvme', not as /etc/hiops/devices:2 says",
                "hiopsctl bind",
            ],
            64,
        ),
        (
            |machine| {
                machine.put("etc/hiops/devices", &format!("{OURS} serial=THEIRS001\n"));
                for release in [RUNS, OTHER_KERNEL] {
                    let mut image = image(release);
                    image.list = "0000:01:00.0 hiops_nvme THEIRS001\n";
                    put_image(machine, release, &image);
                }
            },
            &[
                "/etc/hiops/devices:1: the drive THEIRS001 is at 0000:02:00.0 now",
                "enable",
            ],
            8,
        ),
        (
            |machine| machine.tool("hiops-users", &format!("echo {OURS} /boot")),
            &[
                "devices:2: 0000:01:00.0 holds /boot",
                "hiopsctl disable 0000:01:00.0",
            ],
            8,
        ),
    ]);
}

#[test]
fn faults_of_what_binds_and_sets() {
    told(&[
        (
            |machine| {
                let wants = "etc/systemd/system/sysinit.target.wants/hiops-bind.service";
                fs::remove_file(machine.path(wants)).unwrap();
            },
            &[
                "hiops-bind.service is not started at boot",
                "systemctl enable",
            ],
            8,
        ),
        (
            |machine| machine.link("/dev/null", "etc/systemd/system/hiops-bind.service"),
            &[
                "hiops-bind.service is not started at boot",
                "systemctl unmask",
            ],
            8,
        ),
        (
            |machine| machine.put("proc/cmdline", "root=UUID=1 hiops.disable=1\n"),
            &["hiops.disable=1: nothing was bound at this boot"],
            8,
        ),
        (
            |machine| machine.put("sys/block/hiops0n1/hiops/mode", "irq\n"),
            &[
                "mode of hiops0n1 is irq, not hybrid as /etc/hiops/switches:1 says",
                "apply",
            ],
            64,
        ),
        (
            |machine| machine.put("etc/hiops/switches", "mode hybrid\n"),
            &["/etc/hiops/switches:1: 'mode hybrid' is not understood"],
            64,
        ),
    ]);
}

#[test]
fn faults_of_names() {
    told(&[
        (
            |machine| machine.put("etc/fstab", "UUID=1 / ext4\n/dev/nvme0n1 /x ext4\n"),
            &[
                "/etc/fstab:2 names /dev/nvme0n1, which may be another",
                "write its UUID=",
            ],
            16,
        ),
        (
            |machine| {
                machine.link("../../nvme0n1", "dev/disk/by-uuid/77-88");
                machine.put("etc/crypttab", "# x\nsecret /dev/nvme0n1 /key luks\n");
            },
            &[
                "/etc/crypttab:2 names /dev/nvme0n1",
                "write UUID=77-88 instead",
            ],
            16,
        ),
        (
            |machine| machine.put("proc/cmdline", "ro root=/dev/nvme1n1p2\n"),
            &["/proc/cmdline names /dev/nvme1n1p2"],
            16,
        ),
    ]);
}

#[test]
fn faults_of_what_watches() {
    told(&[
        (
            |machine| fs::remove_file(machine.path("usr/lib/udev/rules.d/60-hiops.rules")).unwrap(),
            &["udev has no 60-hiops.rules"],
            32,
        ),
        (
            |machine| machine.link("/dev/null", "etc/udev/rules.d/61-hiops-bind.rules"),
            &["/etc/udev/rules.d/61-hiops-bind.rules is empty, and hides"],
            32,
        ),
        (
            |machine| machine.put("etc/smartd.conf", "DEVICESCAN\n"),
            &[
                "smartd does not watch hiops0n1",
                "DEVICESCAN: /dev/hiops0n1 -d nvme -a",
            ],
            32,
        ),
        (
            |machine| {
                let lines = machine.read("etc/smartd.conf");
                machine.put("etc/smartd.conf", &format!("{lines}/dev/nvme7n1 -a\n"));
            },
            &["/etc/smartd.conf:4 names /dev/nvme7n1, which is not there: smartd won't start"],
            32,
        ),
    ]);
}

#[test]
fn names_of_sata_disks_break_with_an_ahci_controller_only() {
    let machine = sound();
    machine.put(
        "etc/hiops/devices",
        &format!("{NOBODYS} hiops_ahci\n{THEIRS}\n"),
    );
    let ran = machine.run(&["doctor"]);
    assert!(
        ran.out.contains("/etc/fstab:5 names /dev/sda1"),
        "{}",
        ran.out
    );
}

/// The status is the sum of what they are about.
#[test]
fn faults_add_up() {
    let machine = sound();
    machine.put("proc/cmdline", "hiops.disable=1 root=/dev/nvme1n1p2\n");
    machine.put("etc/smartd.conf", "DEVICESCAN\n");
    let said = machine.tells(&["doctor", "--json"], 8 + 16 + 32);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let areas: Vec<_> = said["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["area"])
        .collect();
    assert_eq!(areas, ["boot", "names", "watching"]);
}
