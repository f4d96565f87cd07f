// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl advise`: what it says of a machine made of files, and that `--ab` only reads, refuses
//! what is in use, and gives the drive back whatever happens.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects by failing loudly"
)]

mod common;
#[path = "common/lab.rs"]
mod lab;

use common::{Machine, Ran, NOBODYS, OTHER, OURS, THEIRS};
use lab::{Lab, SHORT, STAT};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

impl Lab {
    /// What was called, in order, without what fio was told.
    fn calls(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for line in self.0.read("calls").lines() {
            let words: Vec<&str> = line.split(' ').take(3).collect();
            let call = words.join(" ");
            if all.last() != Some(&call) {
                all.push(call);
            }
        }
        all
    }

    /// It fails, says all of `words`, and has changed nothing.
    fn refuses(&self, args: &[&str], words: &[&str]) {
        self.0.put("calls", "");
        let ran = self.run(args);
        assert_eq!(ran.status, 1, "{args:?}: {}{}", ran.out, ran.err);
        for word in words {
            assert!(ran.err.contains(word), "no '{word}' in: {}", ran.err);
        }
        assert_eq!(self.0.read("calls"), "", "{args:?}");
        self.has_no_page();
    }

    fn has_no_page(&self) {
        let names = std::fs::read_dir(self.0.root()).unwrap().flatten();
        let pages: Vec<_> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("hiops-advise"))
            .collect();
        assert_eq!(pages, Vec::<String>::new());
    }

    /// The drive is with nvme, under its name, and has its scheduler; what is on it is as it was.
    fn is_back(&self) {
        let link = format!("sys/devices/pci0000:00/{THEIRS}/driver");
        let driver = std::fs::read_link(self.0.path(&link)).unwrap();
        assert_eq!(driver.file_name().unwrap(), "nvme");
        assert!(self.0.path("sys/block/nvme0n1").exists());
        assert!(!self.0.path("sys/block/hiops1n1").exists());
        let scheduler = self.0.read("sys/block/nvme0n1/queue/scheduler");
        assert_eq!(scheduler.trim(), "mq-deadline");
        for disk in ["nvme0n1", "hiops1n1"] {
            assert_eq!(self.0.read(&format!("dev/{disk}")), "what is on it");
        }
    }

    /// Begun, as from a terminal: in a process group of its own.
    fn begin(&self) -> Child {
        let mut command = self.command(&["nvme0n1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).spawn().unwrap()
    }

    fn await_file(&self, name: &str) {
        while !self.0.path(name).exists() {
            std::thread::yield_now();
        }
    }
}

fn bind(driver: &str) -> String {
    format!("bind {THEIRS} {driver}")
}

#[test]
fn a_drive_is_compared_read_only_and_given_back() {
    let lab = Lab::new();
    let ran = lab.run(&SHORT);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let reads = |disk: &str| format!("fio {disk} none");
    let order = [
        reads("nvme0n1"),
        bind("hiops_nvme"),
        // Its own file says [none].
        "fio hiops1n1 none".into(),
        bind("nvme"),
        reads("nvme0n1"),
    ];
    assert_eq!(lab.calls(), order);
    lab.is_back();
    let calls = lab.0.read("calls");
    let runs: Vec<&str> = calls
        .lines()
        .filter(|line| line.starts_with("fio"))
        .collect();
    assert_eq!(runs.len(), 3 * 5 * 3);
    for run in runs {
        assert!(run.contains(" --readonly --rw=randread "), "{run}");
        assert!(run.contains(" --runtime=1 ") && run.contains("--allow_file_create=0"));
    }
    assert!(ran.out.contains("100000"), "{}", ran.out);
    assert!(ran.out.contains("x1.20"), "{}", ran.out);
    let says = "Is hiops worth it for reads of this drive? yes.";
    assert!(ran.out.contains(says), "{}", ran.out);
    assert!(ran.err.contains("is read for 45 s"), "{}", ran.err);
}

/// What its JSON has of its own, beside what all JSON has.
fn own(text: &str) -> serde_json::Value {
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    for name in ["schema_version", "timestamp"] {
        assert!(value.as_object_mut().unwrap().remove(name).is_some());
    }
    value
}

#[test]
fn a_page_is_kept_without_serial_numbers() {
    let lab = Lab::new();
    let ran = lab.run(&SHORT);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let page = lab.0.read("hiops-advise-nvme0n1.txt");
    assert!(ran.out.starts_with(&page), "{page}");
    assert!(!page.contains("THEIRS001"));
    let kept = lab.0.read("hiops-advise-nvme0n1.json");
    assert!(!kept.contains("THEIRS001"), "{kept}");
    let kept = own(&kept);
    assert_eq!((&kept["answer"], &kept["cpus"]), (&"yes".into(), &2.into()));
    let first = &kept["loads"][0];
    assert_eq!(
        (&first["load"], &first["agree"]),
        (&"1 thread".into(), &true.into())
    );
    assert_eq!(first["hiops"]["iops"]["median"], 120_000.0);
    assert_eq!(first["iops_ratio"], 1.2);
    let svg = lab.0.read("hiops-advise-nvme0n1.svg");
    assert!(
        svg.starts_with("<svg") && svg.contains("x1.20: yes"),
        "{svg}"
    );

    // Another one doesn't take its place; elsewhere there is room, and JSON is printed, too.
    let ran = lab.run(&SHORT);
    assert!(
        ran.err.contains("hiops-advise-nvme0n1.txt: File exists"),
        "{}",
        ran.err
    );
    lab.0.put("elsewhere/is", "");
    let mut args = SHORT.to_vec();
    args.extend(["--pages", "elsewhere", "--json"]);
    let ran = lab.run(&args);
    assert_eq!(own(&ran.out), kept);
    assert!(lab.0.path("elsewhere/hiops-advise-nvme0n1.svg").exists());
}

#[test]
fn a_drive_of_hiops_goes_back_to_hiops() {
    let lab = Lab::new();
    let to = lab.0.path("usr/local/sbin/hiops-bind");
    let mut first = Command::new(to);
    first
        .args([THEIRS, "hiops_nvme"])
        .env("HIOPS_ROOT", lab.0.root());
    assert!(first.status().unwrap().success());
    lab.0.put("calls", "");
    let ran = lab.run(&["/dev/hiops1n1", "--runs", "3"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let binds: Vec<String> = lab
        .calls()
        .into_iter()
        .filter(|c| c.starts_with("bind"))
        .collect();
    assert_eq!(
        binds,
        [
            bind("nvme"),
            bind("hiops_nvme"),
            bind("nvme"),
            bind("hiops_nvme")
        ]
    );
}

#[test]
fn what_can_not_be_told_is_not_told() {
    let lab = Lab::new();
    // The second half of the in-tree driver's runs is slower, or hiops is no faster.
    lab.0.put(
        "before-hiops1n1",
        "echo 90000 >\"$HIOPS_ROOT/iops-nvme0n1\"",
    );
    let ran = lab.run(&SHORT);
    assert!(
        ran.out.contains("of this drive? too noisy to say."),
        "{}",
        ran.out
    );
    let why = "1 thread: nvme before and after differ by 10.5 %, more than 3 %";
    assert!(ran.out.contains(why), "{}", ran.out);

    let lab = Lab::new();
    lab.0.put("iops-hiops1n1", "101000");
    let ran = lab.run(&SHORT);
    assert!(
        ran.out.contains("of this drive? no difference."),
        "{}",
        ran.out
    );

    // Faster with some, slower with others; and without io_uring.
    let lab = Lab::new();
    let turns = "case $* in *numjobs=64*) echo 50000 ;; *) echo 150000 ;; esac \
                 >\"$HIOPS_ROOT/iops-hiops1n1\"";
    lab.0.put("before-hiops1n1", turns);
    lab.0.put("proc/sys/kernel/io_uring_disabled", "2\n");
    let ran = lab.run(&SHORT);
    let depends = "it depends: yes with 1 thread; 16 threads; no with 64 threads.";
    assert!(ran.out.contains(depends), "{}", ran.out);
    let out = "io_uring, 5 in flight: left out, as the kernel has io_uring switched off";
    assert!(ran.out.contains(out), "{}", ran.out);
    assert!(!lab.0.read("calls").contains("io_uring"));
}

#[test]
fn what_is_in_use_is_refused_and_untouched() {
    let not = format!("{THEIRS} is not touched: /dev/nvme0n1");
    let lab = Lab::new();
    let row = "30 1 259:3 / /my\\040disk rw - ext4 /dev/nvme0n1 rw\n";
    lab.0.put("proc/1/mountinfo", row);
    lab.refuses(&SHORT, &[&not, "is mounted on /my disk", "umount it first"]);

    let lab = Lab::new();
    let row = "Filename Type Size Used Priority\n/dev/nvme0n1 partition 1 0 -2\n";
    lab.0.put("proc/swaps", row);
    lab.refuses(
        &SHORT,
        &[&not, "is swapped on", "swapoff /dev/nvme0n1 first"],
    );

    let lab = Lab::new();
    lab.0.on_top("dm-0", "253:0", &["nvme0n1"]);
    lab.0.put("sys/class/block/dm-0/dm/name", "vault\n");
    lab.refuses(&SHORT, &[&not, "is held by vault", "take that apart first"]);

    let lab = Lab::new();
    lab.0.put("proc/77/comm", "postgres\n");
    lab.0.link("/dev/nvme0n1", "proc/77/fd/5");
    lab.refuses(
        &SHORT,
        &[&not, "is open in postgres (77)", "end that first"],
    );

    // A partition; and who uses it can't be told.
    let lab = Lab::new();
    lab.0.partition("nvme0n1", "nvme0n1p1", "259:30");
    lab.0.put(
        "proc/1/mountinfo",
        "30 1 259:30 / /p rw - xfs /dev/nvme0n1p1 rw\n",
    );
    lab.refuses(&SHORT, &["/dev/nvme0n1p1 is mounted on /p"]);
    std::fs::remove_file(lab.0.path("usr/local/sbin/hiops-users")).unwrap();
    lab.0.tool("hiops-users", "echo broken >&2; exit 1");
    lab.refuses(
        &SHORT,
        &[
            &format!("{THEIRS} is not touched"),
            "hiops-users fails: broken",
        ],
    );

    // Another disk of the same controller.
    let lab = Lab::new();
    lab.0.put(
        "proc/1/mountinfo",
        "30 1 259:2 / /other rw - ext4 /dev/hiops0n2 rw\n",
    );
    let words = [OURS, "is not touched: /dev/hiops0n2 is mounted on /other"];
    lab.refuses(&["hiops0n1"], &words);
}

#[test]
fn what_it_can_not_be_done_with_is_named() {
    let lab = Lab::new();
    for name in ["nvme9n1", "", "..", NOBODYS, "/dev/nvme0n1p1"] {
        lab.refuses(
            &[name],
            &["is no disk of an NVMe or AHCI controller", "hiopsctl list"],
        );
    }
    lab.refuses(
        &["hiops_ram0"],
        &["hiops_ram0 is on no NVMe or AHCI controller"],
    );
    lab.0.put("hiops-advise-nvme0n1.json/a-folder", "");
    let ran = lab.run(&SHORT);
    assert!(
        ran.err.contains("hiops-advise-nvme0n1.json: File exists"),
        "{}",
        ran.err
    );
    assert!(!lab.0.path("hiops-advise-nvme0n1.txt").exists());
    std::fs::remove_dir_all(lab.0.path("hiops-advise-nvme0n1.json")).unwrap();
    lab.refuses(
        &["nvme0n1", "--pages", "none"],
        &["none/hiops-advise", "check the name"],
    );

    let driver = format!("sys/devices/pci0000:00/{THEIRS}/driver");
    std::fs::remove_file(lab.0.path(&driver)).unwrap();
    lab.0.link("../../../bus/pci/drivers/vfio-pci", &driver);
    let way_out = format!("hiopsctl bind {THEIRS} nvme first");
    lab.refuses(&SHORT, &[&format!("{THEIRS} is with vfio-pci"), &way_out]);

    // Without fio, before anything else.
    let lab = Lab::new();
    let mut command = lab.command(&SHORT);
    command.env("PATH", lab.0.path("nothing"));
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.status, 1);
    assert!(
        ran.err
            .contains("fio, which --ab measures with, is not installed"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("apt install fio"), "{}", ran.err);
    assert_eq!(lab.0.read("calls"), "");
    lab.has_no_page();
}

#[test]
fn a_wrong_command_line_is_named() {
    let lab = Lab::new();
    for (args, words) in [
        (&["advise", "--runs", "5"][..], "--ab"),
        (&["advise", "--seconds", "5"], "--ab"),
        (&["advise", "--pages", "x"], "--ab"),
        (
            &["advise", "--ab", "nvme0n1", "-i", "5"],
            "cannot be used with",
        ),
        (
            &["advise", "--ab", "nvme0n1", "--runs", "2"],
            "2 is not in 3..=99",
        ),
        (
            &["advise", "--ab", "nvme0n1", "--seconds", "0"],
            "0 is not in 1..=3600",
        ),
        (&["advise", "-i", "0"], "between 0.1 and 3600"),
    ] {
        lab.0.refuses(args, 2, &[words]);
    }
    let bare = Machine::bare();
    bare.refuses(&["advise", "-i", "0.1"], 1, &["/proc/stat: No such file"]);
    bare.put("proc/stat", "intr 1\n");
    bare.refuses(&["advise", "-i", "0.1"], 1, &["/proc/stat names no CPU"]);
}

#[test]
fn a_failure_in_the_middle_gives_the_drive_back() {
    // fio, under hiops.
    let lab = Lab::new();
    lab.0.put(
        "before-hiops1n1",
        "echo 'fio: io_u error on file' >&2; exit 1",
    );
    let ran = lab.run(&SHORT);
    assert_eq!((ran.status, &*ran.out), (1, ""));
    let words = "fio fails with 1 thread: fio: io_u error on file";
    assert!(ran.err.contains(words), "{}", ran.err);
    lab.is_back();
    lab.has_no_page();

    // fio has errors, which it tells in its figures only.
    let lab = Lab::new();
    lab.0.put(
        "before-hiops1n1",
        "echo '{\"jobs\": [{\"error\": 5}]}'; exit 0",
    );
    let ran = lab.run(&SHORT);
    assert!(ran.err.contains("it said no figures"), "{}", ran.err);
    lab.is_back();

    // hiops does not take it.
    let lab = Lab::new();
    let refuses = "case $2 in hiops*) echo \"hiops-bind: hiops_nvme does not take it: as \
                   before\" >&2; exit 1 ;; esac";
    lab.0.put("before-bind", refuses);
    let ran = lab.run(&SHORT);
    assert!(
        ran.err.contains("hiops_nvme does not take it: as before"),
        "{}",
        ran.err
    );
    lab.is_back();
    lab.has_no_page();
}

#[test]
fn what_comes_is_looked_at_anew() {
    // It is used as soon as hiops has it.
    let lab = Lab::new();
    lab.0.put(
        "sys/devices/pci0000:00/0000:02:00.0/block/hiops1n1/dev",
        "259:40\n",
    );
    let mounted = "case $2 in hiops*) mkdir -p $HIOPS_ROOT/proc/9\nln -s \
                   ../../devices/pci0000:00/$1/block/hiops1n1 $HIOPS_ROOT/sys/class/block/\n\
                   echo '3 1 259:40 / /m rw - ext4 /dev/hiops1n1 rw' \
                   >$HIOPS_ROOT/proc/9/mountinfo ;; esac";
    lab.0.put("before-bind", mounted);
    let ran = lab.run(&SHORT);
    assert!(
        ran.err.contains("/dev/hiops1n1 is mounted on /m"),
        "{}",
        ran.err
    );
    assert!(!lab.0.read("calls").contains("fio hiops1n1"));
    lab.is_back();

    // It is another drive that comes.
    let lab = Lab::new();
    lab.0.put(
        "sys/devices/pci0000:00/0000:02:00.0/block/hiops1n1/serial",
        "ELSE\n",
    );
    let ran = lab.run(&SHORT);
    assert!(
        ran.err
            .contains("nvme0n1 is not among the disks of hiops_nvme"),
        "{}",
        ran.err
    );
    assert!(!lab.0.read("calls").contains("fio hiops1n1"));
    lab.is_back();
}

#[test]
fn a_drive_that_does_not_go_back_at_once_is_tried_again_and_told_of() {
    let lab = Lab::new();
    lab.0.put("before-hiops1n1", "exit 1");
    let busy = "case $2 in nvme) echo >>\"$HIOPS_ROOT/tries\"; \
                [ $(wc -l <\"$HIOPS_ROOT/tries\") -ge MANY ] || { \
                echo 'hiops-bind: it is open: end that' >&2; exit 1; } ;; esac";
    lab.0.put("before-bind", &busy.replace("MANY", "3"));
    let ran = lab.run(&SHORT);
    assert_eq!(ran.status, 1);
    lab.is_back();

    let lab = Lab::new();
    lab.0.put("before-hiops1n1", "exit 1");
    lab.0.put("before-bind", &busy.replace("MANY", "999"));
    let ran = lab.run(&SHORT);
    for words in [
        "fio fails with 1 thread",
        &format!("{THEIRS} could not be given back to nvme, it is with hiops_nvme"),
        "it is open: end that",
        &format!("hiops-bind {THEIRS} nvme"),
    ] {
        assert!(ran.err.contains(words), "no '{words}' in {}", ran.err);
    }
    lab.has_no_page();
}

/// Sends `signal` to a process, or to the group if that is below zero.
fn send(signal: &str, to: &str) {
    let sent = Command::new("kill").args([signal, "--", to]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn signals_end_it_and_give_the_drive_back() {
    for signal in ["-INT", "-TERM", "-HUP", "-QUIT"] {
        let lab = Lab::new();
        lab.0.put(
            "before-hiops1n1",
            "cd \"$HIOPS_ROOT\"; echo $$ >new; mv new begun; exec sleep 1000",
        );
        let child = lab.begin();
        lab.await_file("begun");
        // As a terminal does it.
        send(signal, &format!("-{}", child.id()));
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!((ran.status, &*ran.out), (1, ""), "{}", ran.err);
        assert!(ran.err.contains("it was interrupted"), "{}", ran.err);
        lab.is_back();
        lab.has_no_page();
        // fio is gone: it would hold the drive.
        let fio = lab.0.read("begun");
        assert!(!std::path::Path::new(&format!("/proc/{}", fio.trim())).exists());
    }
}

#[test]
fn a_signal_while_it_is_handed_over_waits_for_that() {
    let lab = Lab::new();
    let slow = "case $2 in hiops*) : >\"$HIOPS_ROOT/begun\"; \
                until [ -e \"$HIOPS_ROOT/go\" ]; do sleep 0.01; done ;; esac";
    lab.0.put("before-bind", slow);
    let child = lab.begin();
    lab.await_file("begun");
    send("-INT", &format!("-{}", child.id()));
    lab.0.put("go", "");
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert!(ran.err.contains("it was interrupted"), "{}", ran.err);
    // The one that was under way did not end half way.
    let binds: Vec<String> = lab
        .calls()
        .into_iter()
        .filter(|c| c.starts_with("bind"))
        .collect();
    assert_eq!(binds, [bind("hiops_nvme"), bind("nvme")]);
    assert!(!lab.0.read("calls").contains("fio hiops1n1"));
    lab.is_back();
}

/// A disk of an AHCI controller.
fn sata_disk(machine: &Machine, name: &str, rotates: bool) {
    let at = format!("sys/devices/pci0000:00/{NOBODYS}/ata1/host0/{name}");
    machine.put(&format!("{at}/size"), "1000\n");
    machine.put(
        &format!("{at}/queue/rotational"),
        if rotates { "1\n" } else { "0\n" },
    );
    let to = format!("../devices/pci0000:00/{NOBODYS}/ata1/host0/{name}");
    machine.link(&to, &format!("sys/block/{name}"));
}

/// Two drives of a machine, one of them in use, and two of SATA.
fn drives() -> Machine {
    let machine = Machine::new();
    machine.put("proc/stat", STAT);
    sata_disk(&machine, "sda", false);
    sata_disk(&machine, "sdb", true);
    machine.put("sys/block/nvme0n1/queue/nr_requests", "1023\n");
    let row = "30 1 259:3 / /data rw - ext4 /dev/nvme0n1 rw\n";
    machine.put("proc/1/mountinfo", row);
    machine
}

#[test]
fn idle_drives_tell_nothing() {
    let machine = drives();
    let idle = machine.says(&["advise", "-i", "0.1"]);
    for line in ["nvme0n1", "sda"] {
        let line = format!("{line}: no difference: nothing was read or written meanwhile");
        assert!(idle.contains(&line), "{idle}");
    }
    assert!(idle.contains("/data") && !idle.contains(OTHER), "{idle}");
    let without = Machine::new().run(&["advise", "-i", "0.1"]);
    assert_eq!(without.status, 1);
}

/// Puts what files say after `count` steps, each as a whole: reads of 80 us, and CPUs that are idle
/// half of the time.
fn step(machine: &Machine, count: u64) {
    let all = count * 1000;
    let fields = format!(
        "{all} 0 {} {} 0 0 0 0 3 50 {}\n",
        all * 8,
        all / 12,
        all / 12
    );
    let cpus = format!("cpu0 0 0 {all} {all} 0 0 0\ncpu1 0 0 {all} {all} 0 0 0\n");
    for (file, text) in [
        ("proc/stat", &cpus),
        ("sys/block/nvme0n1/stat", &fields),
        ("sys/block/sda/stat", &fields),
        ("sys/block/sdb/stat", &fields),
    ] {
        machine.put("new", text);
        std::fs::rename(machine.path("new"), machine.path(file)).unwrap();
    }
}

#[test]
fn each_drive_is_told_of() {
    let machine = drives();
    let mut child = machine.command(&["advise", "-i", "1", "--json"]);
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let mut count = 0;
    while child.try_wait().unwrap().is_none() {
        count += 1;
        step(&machine, count);
    }
    let ran = Ran::of(child.wait_with_output().unwrap());
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let of = |disk: &str| {
        let drives = told["drives"].as_array().unwrap();
        drives.iter().find(|one| one["disk"] == disk).unwrap()
    };
    assert_eq!(told["cpus"], 2);
    let device = "the device is what is waited for, not a CPU";
    for (disk, answer, why) in [
        ("nvme0n1", "no_difference", device),
        ("sda", "yes", "SATA"),
        ("sdb", "no_difference", "it rotates"),
        ("hiops0n1", "no_difference", "nothing was read"),
    ] {
        let one = of(disk);
        assert_eq!(one["answer"], answer, "{one}");
        assert!(one["why"].as_str().unwrap().starts_with(why), "{one}");
    }
    let nvme = of("nvme0n1");
    assert_eq!(
        (&nvme["kind"], &nvme["driver"]),
        (&"NVMe".into(), &"nvme".into())
    );
    assert_eq!(
        (&nvme["nr_requests"], &nvme["deepest"]),
        (&1023.into(), &7.into())
    );
    assert!(nvme["iops"].as_f64().unwrap() > 0.0, "{nvme}");
    assert_eq!(nvme["in_use"][0]["by"], "/data");
}

/// Puts what a machine says after `count` steps whose one CPU is full: of 1,000 reads of 80 us
/// each, with so many `switches`, and so many threads that run or want to (this program among them)
/// or wait for I/O.
fn full(machine: &Machine, count: u64, switches: u64, running: u64, blocked: u64) {
    let reads = count * 1000;
    let cpu = format!("cpu0 {count} 0 {} 0 0 0 0\n", count * 3);
    let threads = format!(
        "ctxt {}\nprocs_running {running}\nprocs_blocked {blocked}\n",
        count * switches
    );
    for (file, text) in [
        ("proc/stat", cpu + &threads),
        (
            "sys/block/nvme0n1/stat",
            format!("{reads} 0 {} 0 0 0 0 0 3 50 {}\n", reads * 8, count * 80),
        ),
    ] {
        machine.put("new", &text);
        std::fs::rename(machine.path("new"), machine.path(file)).unwrap();
    }
}

#[test]
fn threads_that_want_a_cpu_are_told_from_a_queue() {
    // 40 us of a CPU and 80 of the drive an I/O.
    let short = "CPUs are short, and threads wait";
    for (switches, running, blocked, answer, why) in [
        (1000, 3, 1, "yes", short),
        (1000, 2, 1, "no_difference", "the device is what"),
        (10, 2, 0, "depends", "CPUs are short, on a drive this fast"),
        (10, 2, 1, "no_difference", "the device is what"),
    ] {
        let machine = drives();
        full(&machine, 0, switches, running, blocked);
        let mut command = machine.command(&["advise", "-i", "0.5", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut count = 0;
        while child.try_wait().unwrap().is_none() {
            count += 1;
            full(&machine, count, switches, running, blocked);
        }
        let ran = Ran::of(child.wait_with_output().unwrap());
        let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let mut drives = told["drives"].as_array().unwrap().iter();
        let one = drives.find(|one| one["disk"] == "nvme0n1").unwrap();
        assert_eq!(one["answer"], answer, "{told}");
        assert!(one["why"].as_str().unwrap().starts_with(why), "{one}");
    }
}

#[test]
fn a_machine_without_drives_says_so() {
    let machine = Machine::bare();
    machine.put("proc/stat", STAT);
    let said = machine.says(&["advise", "-i", "0.1"]);
    assert!(
        said.contains("There is no disk of an NVMe or AHCI controller here."),
        "{said}"
    );
}
