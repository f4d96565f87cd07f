// SPDX-License-Identifier: GPL-2.0
//! Who uses a disk and what a file system stands on: `hiops-users`, on which `hiops-bind`, `list`
//! and the initramfs rely, a case for each kind of file system and of device between.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, Ran, OURS, THEIRS};
use std::process::{Command, Stdio};

/// Two drives of nvme's: nvme0n1 at [`THEIRS`], nvme1n1 at this one; each with two partitions.
const SECOND: &str = "0000:04:00.0";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.other_disk(SECOND, "nvme1n1", "259:20");
    for (disk, number) in [("nvme0n1", 10), ("nvme1n1", 21)] {
        for part in 1..=2 {
            let number = format!("259:{}", number + part);
            machine.partition(disk, &format!("{disk}p{part}"), &number);
        }
    }
    machine
}

fn users(machine: &Machine, args: &[&str]) -> Ran {
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../hiops-users"));
    let path = format!(
        "{}:{}",
        machine.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    command.args(args).env("HIOPS_ROOT", machine.root());
    command.env("PATH", path).stdin(Stdio::null());
    Ran::of(command.output().unwrap())
}

/// The lines for all, blanks for tabs.
fn all(machine: &Machine) -> Vec<String> {
    let ran = users(machine, &[]);
    assert_eq!((ran.status, &*ran.err), (0, ""));
    ran.out
        .lines()
        .map(|line| line.replace('\t', " "))
        .collect()
}

/// What `place` stands on.
fn under(machine: &Machine, place: &str) -> Vec<String> {
    let ran = users(machine, &["--under", place]);
    assert_eq!((ran.status, &*ran.err), (0, ""), "{}", ran.out);
    let end = format!(" {place}");
    ran.out
        .lines()
        .map(|line| line.strip_suffix(&end).unwrap().to_string())
        .collect()
}

/// It is mounted so, for every process.
fn mounted(machine: &Machine, lines: &str) {
    machine.put("proc/7/mountinfo", lines);
    machine.put("proc/self/mountinfo", lines);
}

#[test]
fn a_partition_and_what_is_mounted_over_it() {
    let machine = machine();
    mounted(
        &machine,
        "1 0 259:11 / / rw shared:1 - ext4 /dev/root rw\n\
         2 1 0:30 / /boot rw - autofs systemd-1 rw\n\
         3 2 259:22 / /boot rw - vfat /dev/nvme1n1p1 rw\n",
    );
    assert_eq!(under(&machine, "/"), [THEIRS]);
    assert_eq!(under(&machine, "/boot"), [SECOND]);
    // Nothing of its own is mounted there.
    assert_eq!(under(&machine, "/usr"), [""; 0]);
    assert_eq!(
        all(&machine),
        ["nvme0n1p1 mount / ext4", "nvme1n1p1 mount /boot vfat"]
    );
}

#[test]
fn btrfs_has_devices_that_no_number_tells() {
    let machine = machine();
    // A RAID1 of two drives; another file system beside it.
    machine.put("sys/fs/btrfs/1111/devices/nvme0n1p1/dev", "");
    machine.put("sys/fs/btrfs/1111/devices/nvme1n1p2/dev", "");
    machine.put("sys/fs/btrfs/2222/devices/hiops0n1/dev", "");
    mounted(
        &machine,
        "1 0 0:33 /@ / rw - btrfs /dev/nvme0n1p1 rw,subvol=/@\n\
         2 1 0:34 / /data rw - btrfs /dev/hiops0n1 rw\n",
    );
    assert_eq!(under(&machine, "/"), [THEIRS, SECOND]);
    assert_eq!(under(&machine, "/data"), [OURS]);
    let wanted = [
        "hiops0n1 mount /data btrfs",
        "nvme0n1p1 mount / btrfs",
        "nvme1n1p2 mount / btrfs",
    ];
    assert_eq!(all(&machine), wanted);
    // list shows the second one, too.
    let list = machine.says(&["list"]);
    assert!(list.contains("/ (btrfs on nvme1n1p2)"), "{list}");
}

#[test]
fn btrfs_on_luks_on_lvm_on_md() {
    let machine = machine();
    machine.on_top("md127", "9:127", &["nvme0n1p2", "nvme1n1p2"]);
    machine.on_top("dm-0", "253:0", &["md127"]);
    machine.on_top("dm-1", "253:1", &["dm-0"]);
    machine.put("sys/class/block/dm-1/dm/name", "crypt-root\n");
    machine.link("../dm-1", "dev/mapper/crypt-root");
    machine.put("sys/fs/btrfs/1111/devices/dm-1/dev", "");
    mounted(
        &machine,
        "1 0 0:33 / / rw - btrfs /dev/mapper/crypt-root rw\n",
    );
    assert_eq!(under(&machine, "/"), [THEIRS, SECOND]);
    let wanted = [
        "dm-0 holder crypt-root -",
        "dm-1 mount / btrfs",
        "md127 holder dm-0 -",
        "nvme0n1p2 holder md127 -",
        "nvme1n1p2 holder md127 -",
    ];
    assert_eq!(all(&machine), wanted);
}

#[test]
fn a_pool_of_zfs_by_zpool_or_by_udev() {
    let machine = machine();
    mounted(
        &machine,
        "1 0 0:40 / / rw - zfs tank/ROOT/debian rw,xattr\n",
    );
    // Neither knows it: nothing is promised.
    let ran = users(&machine, &["--under", "/"]);
    assert_eq!((ran.status, &*ran.out), (3, ""));
    assert!(ran.err.contains("on which drives / stands"), "{}", ran.err);
    let member = "E:ID_FS_TYPE=zfs_member\nE:ID_FS_LABEL=tank\n";
    machine.put("run/udev/data/b259:11", &format!("I:1\n{member}"));
    machine.put("run/udev/data/b259:21", &member.replace("tank", "tanker"));
    machine.put("proc/spl/kstat/zfs/tank/state", "ONLINE\n");
    assert_eq!(under(&machine, "/"), [THEIRS]);
    assert_eq!(all(&machine), ["nvme0n1p1 pool tank -"]);
    machine.script(
        "bin/zpool",
        "[ \"$*\" = 'status -LP tank' ] || exit 1\n\
         printf '\\tNAME STATE\\n\\ttank ONLINE\\n\\t  /dev/nvme1n1p2  ONLINE  0\\n'",
    );
    assert_eq!(under(&machine, "/"), [THEIRS, SECOND]);
}

#[test]
fn bcachefs_names_all_its_devices() {
    let machine = machine();
    mounted(
        &machine,
        "1 0 0:41 / / rw - bcachefs /dev/nvme0n1p1:/dev/nvme1n1p1 rw\n",
    );
    assert_eq!(under(&machine, "/"), [THEIRS, SECOND]);
    assert_eq!(all(&machine).len(), 2);
}

#[test]
fn an_overlay_stands_on_its_folders_and_a_loop_on_its_file() {
    let machine = machine();
    machine.on_top("loop0", "7:0", &[]);
    machine.put(
        "sys/class/block/loop0/loop/backing_file",
        "/run/medium/live.squashfs\n",
    );
    machine.put("run/medium/live.squashfs", "");
    mounted(
        &machine,
        "1 0 0:50 / / rw - overlay overlay \
         rw,lowerdir=/run/ro,upperdir=/run/a\\040b/up,workdir=/w\n\
         2 1 7:0 / /run/ro ro - squashfs /dev/loop0 ro\n\
         3 1 259:12 / /run/medium ro - ext4 /dev/nvme0n1p2 ro\n\
         4 1 259:22 / /run/a\\040b rw - ext4 /dev/nvme1n1p1 rw\n",
    );
    assert_eq!(under(&machine, "/"), [THEIRS, SECOND]);
    // In memory: on nothing. On itself: nobody knows.
    mounted(&machine, "1 0 0:50 / / rw - tmpfs tmpfs rw\n");
    assert_eq!(under(&machine, "/"), [""; 0]);
    mounted(
        &machine,
        "1 0 0:50 / / rw - overlay overlay rw,lowerdir=/\n",
    );
    assert_eq!(users(&machine, &["--under", "/"]).status, 3);
    mounted(&machine, "1 0 0:50 / / rw - newfs what rw\n");
    assert_eq!(users(&machine, &["--under", "/"]).status, 3);
}

#[test]
fn what_fstab_would_mount_counts_too() {
    let machine = machine();
    mounted(&machine, "1 0 259:11 / / rw - ext4 /dev/nvme0n1p1 rw\n");
    machine.put(
        "etc/fstab",
        "# UUID=B /boot ext4\nUUID=A / ext4\nUUID=B\t/boot ext4 noauto 0 2\n",
    );
    machine.link("../../nvme1n1p1", "dev/disk/by-uuid/B");
    assert_eq!(under(&machine, "/boot"), [SECOND]);
}

#[test]
fn a_journal_elsewhere_is_used_and_a_users_word_is_not_believed() {
    let machine = machine();
    mounted(
        &machine,
        "1 0 259:11 / / rw - xfs /dev/nvme0n1p1 rw,logdev=/dev/nvme1n1p1,noquota\n\
         2 1 0:60 / /srv/u rw - tmpfs /dev/hiops0n1 rw\n\
         3 1 0:61 / /srv/v rw - fuse.btrfs /dev/hiops0n2 rw\n",
    );
    assert_eq!(under(&machine, "/"), [THEIRS, SECOND]);
    assert_eq!(
        all(&machine),
        ["nvme0n1p1 mount / xfs", "nvme1n1p1 mount / xfs"]
    );
}

#[test]
fn swaps_loops_exports_and_processes() {
    let machine = machine();
    machine.put(
        "proc/swaps",
        "Filename Type\n/dev/nvme0n1p1 partition 1 0 -2\n/swap/file file 1 0 -3\n",
    );
    machine.on_top("loop3", "7:3", &[]);
    machine.put("sys/block/loop3/loop/backing_file", "/dev/nvme0n1p2\n");
    for (number, enable) in [(1, 1), (2, 0)] {
        let at = format!("sys/kernel/config/nvmet/subsystems/nqn/namespaces/{number}");
        machine.put(
            &format!("{at}/device_path"),
            &format!("/dev/nvme1n1p{number}\n"),
        );
        machine.put(&format!("{at}/enable"), &format!("{enable}\n"));
    }
    machine.put("proc/102/comm", "my\tprog\n");
    machine.link("/dev/hiops0n1", "proc/102/fd/5");
    machine.put("proc/103/comm", "(udev-worker)\n");
    machine.link("/dev/hiops0n2", "proc/103/fd/5");
    // A file of bytes that is no node's.
    machine.put("proc/104/comm", "kv\n");
    machine.link("anon_inode:[hiops_bytes]", "proc/104/fd/7");
    machine.put("proc/104/fdinfo/7", "pos:\t0\nhiops_bytes:\thiops0n2\n");
    let wanted = [
        "hiops0n1 open my?prog (102) -",
        "hiops0n2 open kv (104) -",
        "nvme0n1p1 swap swap -",
        "nvme0n1p2 loop /dev/loop3 -",
        "nvme1n1p1 export nvmet/subsystems/nqn/namespaces/1 -",
    ];
    assert_eq!(all(&machine), wanted);
    let ran = users(&machine, &["nvme0n1p1", "nvme0n1"]);
    assert_eq!(ran.out, "nvme0n1p1\tswap\tswap\t-\n");
}

#[test]
fn the_initramfs_leaves_the_systems_own_drives_out() {
    let machine = machine();
    machine.put("sys/fs/btrfs/1111/devices/nvme0n1p1/dev", "");
    machine.put("sys/fs/btrfs/1111/devices/nvme1n1p2/dev", "");
    let devices = |machine: &Machine| {
        let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        // As hiops-install leaves them: what devices calls is found by PATH.
        machine.script("bin/modinfo", "echo there");
        let list = format!(
            "echo {OURS} hiops_nvme -; echo {THEIRS} hiops_nvme S; \
                            echo {SECOND} hiops_nvme -"
        );
        machine.script("bin/hiops-bind-all", &list);
        let users = machine.path("bin/hiops-users");
        drop(std::fs::remove_file(&users));
        std::os::unix::fs::symlink(format!("{tools}/hiops-users"), users).unwrap();
        machine.put("etc/hiops/devices", "listed\n");
        let mut command = Command::new(format!("{tools}/system/devices"));
        command.arg("7.3.4-test").env("HIOPS_ROOT", machine.root());
        Ran::of(command.output().unwrap())
    };
    mounted(
        &machine,
        "1 0 259:12 / / rw - ext4 /dev/nvme0n1p2 rw\n\
         2 1 0:33 / /boot rw - btrfs /dev/nvme0n1p1 rw\n",
    );
    let ran = devices(&machine);
    assert_eq!(
        (ran.status, &*ran.out),
        (0, &*format!("{OURS} hiops_nvme -\n"))
    );
    for words in [
        format!("{THEIRS} holds /"),
        format!("{SECOND} holds /boot and stays"),
    ] {
        assert!(ran.err.contains(&words), "{words}: {}", ran.err);
    }
    mounted(&machine, "1 0 0:33 / / rw - zfs tank rw\n");
    let ran = devices(&machine);
    assert_eq!((ran.status, &*ran.out), (0, ""));
    assert!(ran.err.contains("can't be told"), "{}", ran.err);
}
