// SPDX-License-Identifier: GPL-2.0
//! A machine made of files: what `hiopsctl` reads of one, in a folder of the test's own.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test states what it expects by failing loudly, and not every one uses all of it"
)]

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The NVMe drive that hiops has, the one that nvme has, and an AHCI controller without driver.
pub const OURS: &str = "0000:01:00.0";
pub const THEIRS: &str = "0000:02:00.0";
pub const NOBODYS: &str = "0000:00:17.0";
/// A network card.
pub const OTHER: &str = "0000:03:00.0";

/// Taken away when it is dropped.
pub struct Machine(PathBuf);

static MADE: AtomicU32 = AtomicU32::new(0);

impl Drop for Machine {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The counters, all of one size but for the sum.
pub fn stats(each: u64, interrupts: u64) -> String {
    let sum = each * 4;
    format!(
        "submitted {sum}\ncompleted {sum}\ncompleted_irq {each}\ncompleted_lazy {each}\n\
         completed_coop {each}\ncompleted_poll {each}\nfifo_deferred {each}\n\
         interrupts {interrupts}\ndoorbell_writes {interrupts}\nerrors 0\nretried 0\ntimeouts 0\n\
         resets 0\nmax_irq_ns 12345\nmax_tick_ns 678\nticks 9\nturns 2\nmissed_interrupts 0\n\
         aborts 0\nswept 0\nnaps 0\nnaps_hit 0\nnaps_late 0\nnaps_vain 0\nnaps_woken 0\n\
         resets_asked 0\nbytes_reads 0\nbytes_writes 0\nbytes_merged 0\nbytes_wanted 0\n\
         bytes_moved 0\n"
    )
}

impl Machine {
    /// One without any device.
    pub fn bare() -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("hiopsctl-test-{}-{number}", std::process::id());
        let machine = Self(std::env::temp_dir().join(name));
        machine.put("proc/sys/kernel/osrelease", "7.3.4-test\n");
        machine.put("dev/null", "");
        let users = concat!(env!("CARGO_MANIFEST_DIR"), "/../hiops-users");
        machine.link(users, "usr/local/sbin/hiops-users");
        machine
    }

    /// Two NVMe drives, one of them with two namespaces and with hiops, an AHCI controller, a
    /// network card, and a RAM disk.
    pub fn new() -> Self {
        let machine = Self::bare();
        machine.put("sys/module/hiops/parameters/mode", "2\n");
        machine.function(OURS, "0x010802", Some("hiops_nvme"));
        machine.function(THEIRS, "0x010802", Some("nvme"));
        machine.function(NOBODYS, "0x010601", None);
        machine.function(OTHER, "0x020000", Some("e1000e"));
        machine.our_disk(&format!("pci0000:00/{OURS}"), "hiops0n1", "259:1");
        machine.our_disk(&format!("pci0000:00/{OURS}"), "hiops0n2", "259:2");
        machine.our_disk("virtual", "hiops_ram0", "259:9");
        let theirs = format!("pci0000:00/{THEIRS}/nvme/nvme0");
        machine.put(&format!("sys/devices/{theirs}/serial"), "THEIRS001   \n");
        machine.put(&format!("sys/devices/{theirs}/model"), "Their model\n");
        machine.disk(&theirs, "nvme0n1", "259:3");
        let device = machine.path(&format!("sys/devices/{theirs}/nvme0n1/device"));
        symlink("..", device).unwrap();
        let nvme = machine.path(&format!("sys/devices/pci0000:00/{THEIRS}/nvme/nvme0"));
        assert!(nvme.is_dir());
        machine
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn link(&self, to: &str, path: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn function(&self, address: &str, class: &str, driver: Option<&str>) {
        let device = format!("sys/devices/pci0000:00/{address}");
        self.put(&format!("{device}/class"), &format!("{class}\n"));
        self.put(&format!("{device}/vendor"), "0x1b36\n");
        if let Some(driver) = driver {
            let to = format!("../../../bus/pci/drivers/{driver}");
            self.link(&to, &format!("{device}/driver"));
        }
        let to = format!("../../../devices/pci0000:00/{address}");
        self.link(&to, &format!("sys/bus/pci/devices/{address}"));
    }

    fn disk(&self, place: &str, name: &str, number: &str) {
        let disk = match place {
            "virtual" => format!("{place}/block/{name}"),
            _ if name.starts_with("hiops") => format!("{place}/block/{name}"),
            _ => format!("{place}/{name}"),
        };
        let file = |file: &str| format!("sys/devices/{disk}/{file}");
        self.put(&file("dev"), &format!("{number}\n"));
        self.put(&file("size"), "1000215216\n");
        self.put(&file("inflight"), "       3        4\n");
        self.put(&file("stat"), "10 0 80 5 20 0 160 6 7 50 60 0 0 0 0 0 0\n");
        self.put(&file("queue/scheduler"), "[none]\n");
        self.link(&format!("../devices/{disk}"), &format!("sys/block/{name}"));
        let to = format!("../../devices/{disk}");
        self.link(&to, &format!("sys/class/block/{name}"));
    }

    /// A partition of a disk.
    pub fn partition(&self, disk: &str, name: &str, number: &str) {
        let at = self
            .path(&format!("sys/block/{disk}"))
            .canonicalize()
            .unwrap();
        let root = self.0.canonicalize().unwrap();
        let at = at.strip_prefix(root).unwrap().to_str().unwrap();
        self.put(&format!("{at}/{name}/partition"), "1\n");
        self.put(&format!("{at}/{name}/dev"), &format!("{number}\n"));
        let at = at.strip_prefix("sys/").unwrap();
        let to = format!("../../{at}/{name}");
        self.link(&to, &format!("sys/class/block/{name}"));
    }

    /// A block device on top of others, as sysfs shows it: device mapper, md.
    pub fn on_top(&self, name: &str, number: &str, below: &[&str]) {
        let at = format!("sys/devices/virtual/block/{name}");
        self.put(&format!("{at}/dev"), &format!("{number}\n"));
        let to = format!("../devices/virtual/block/{name}");
        self.link(&to, &format!("sys/block/{name}"));
        self.link(&format!("../{to}"), &format!("sys/class/block/{name}"));
        for below in below {
            // Where each link leads is not looked at, its name is.
            let to = self.path(&format!("sys/class/block/{below}"));
            let to = to.canonicalize().unwrap();
            self.link(to.to_str().unwrap(), &format!("{at}/slaves/{below}"));
            let holders = to.join("holders");
            fs::create_dir_all(&holders).unwrap();
            symlink(self.path(&at), holders.join(name)).unwrap();
        }
    }

    /// A disk that hiops has not, at a function of its own.
    pub fn other_disk(&self, address: &str, name: &str, number: &str) {
        self.function(address, "0x010802", Some("nvme"));
        self.disk(&format!("pci0000:00/{address}/nvme/{name}c"), name, number);
    }

    /// A RAM disk.
    pub fn ram_disk(&self, name: &str, number: &str) {
        self.our_disk("virtual", name, number);
    }

    fn our_disk(&self, place: &str, name: &str, number: &str) {
        self.disk(place, name, number);
        let file = |file: &str| format!("sys/block/{name}/{file}");
        self.put(&file("model"), "Our \"model\"\n");
        self.put(&file("serial"), &format!("SERIAL-{name}\n"));
        self.put(
            &file("wwid"),
            &format!("hiops.5345-4d4f-0000000{}\n", name.len()),
        );
        self.put(&file("firmware_rev"), "1.0\n");
        for (name, text) in [
            ("strategy", "coop\n"),
            ("mode", "hybrid\n"),
            ("lazy", "0\n"),
            ("coop", "1\n"),
            ("poll_interval_us", "32\n"),
            ("predict", "0\n"),
            ("predict_window_us", "16\n"),
            ("forecast", ""),
            ("quirks", "none\n"),
            ("rescan_controller", "0\n"),
            ("reset_controller", "0\n"),
            (
                "learned",
                "sleep_ns 4100 yield_ns 900 tick_ns 2000\n\
                 queue 0 interrupt_ns 1900 polled 1 polling 50000 napping -\n",
            ),
        ] {
            self.put(&file(&format!("hiops/{name}")), text);
        }
        self.stats(name, 100, 10);
        let learned = self.path(&file("hiops/learned"));
        fs::set_permissions(learned, fs::Permissions::from_mode(0o444)).unwrap();
    }

    /// Other counters, in one step: whoever reads them finds the old or the new ones.
    pub fn stats(&self, disk: &str, each: u64, interrupts: u64) {
        let file = format!("sys/block/{disk}/hiops/stats");
        let new = self.path(&format!("{file}.new"));
        fs::write(&new, stats(each, interrupts)).unwrap();
        fs::rename(new, self.path(&file)).unwrap();
    }

    /// A tool beside the others, as a shell script, in place of the tree's own.
    pub fn tool(&self, name: &str, script: &str) {
        drop(fs::remove_file(
            self.path(&format!("usr/local/sbin/{name}")),
        ));
        self.script(&format!("usr/local/sbin/{name}"), script);
    }

    /// A shell script.
    pub fn script(&self, path: &str, script: &str) {
        self.put(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The program on this machine.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hiopsctl"));
        command.args(args).env("HIOPS_ROOT", &self.0);
        command.current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// What it prints when all is well.
    pub fn says(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.status, &*ran.err), (0, ""), "{args:?}: {}", ran.out);
        ran.out
    }

    /// What it prints when it ends with `status`, and says nothing on stderr.
    pub fn tells(&self, args: &[&str], status: i32) -> String {
        let ran = self.run(args);
        assert_eq!(
            (ran.status, &*ran.err),
            (status, ""),
            "{args:?}: {}",
            ran.out
        );
        ran.out
    }

    /// The same, as JSON, without what all JSON has: that is the schemas' test's.
    pub fn json(&self, args: &[&str]) -> serde_json::Value {
        let mut all = vec!["--json"];
        all.extend(args);
        let mut value: serde_json::Value = serde_json::from_str(&self.says(&all)).unwrap();
        let object = value.as_object_mut().unwrap();
        for name in ["schema_version", "timestamp"] {
            assert!(object.remove(name).is_some(), "{args:?}: no {name}");
        }
        value
    }

    /// It fails with `status`, and stderr has all of `words`.
    pub fn refuses(&self, args: &[&str], status: i32, words: &[&str]) {
        let ran = self.run(args);
        assert_eq!(ran.status, status, "{args:?}: {}{}", ran.out, ran.err);
        for word in words {
            assert!(
                ran.err.contains(word),
                "{args:?}: no '{word}' in: {}",
                ran.err
            );
        }
    }

    pub fn root(&self) -> &Path {
        &self.0
    }
}

/// How a run ended.
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
