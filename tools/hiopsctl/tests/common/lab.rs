// SPDX-License-Identifier: GPL-2.0
//! A machine made of files on which `advise --ab` measures, by a fio and a hiops-bind of its own.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test states what it expects by failing loudly, and not every one uses all of it"
)]

use crate::common::{stats, Machine, Ran, THEIRS};
use std::process::Command;

/// Two CPUs that have done something.
pub const STAT: &str = "cpu  0 0 0 0\ncpu0 10 0 10 100 0 0 0 0\ncpu1 10 0 10 100 0 0 0 0\n\
                    procs_blocked 1\n";

/// fio that reads as fast as the file of its disk's name says, and writes down what it was told.
const FIO: &str = r#"
case "$*" in *dev/hiops*) disk=hiops1n1 ;; *) disk=nvme0n1 ;; esac
echo "fio $disk $(cat "$HIOPS_ROOT/sys/block/$disk/queue/scheduler") $*" >>"$HIOPS_ROOT/calls"
[ ! -e "$HIOPS_ROOT/before-$disk" ] || . "$HIOPS_ROOT/before-$disk"
iops=$(cat "$HIOPS_ROOT/iops-$disk")
echo 'fio: a note'
echo "{\"jobs\": [{\"error\": 0, \"read\": {\"iops\": $iops, \"clat_ns\": {\"percentile\":
	{\"50.000000\": 80000, \"99.000000\": 99000}}}}]}"
"#;

/// hiops-bind that moves the links.
const BIND: &str = r#"
echo "bind $*" >>"$HIOPS_ROOT/calls"
[ ! -e "$HIOPS_ROOT/before-bind" ] || . "$HIOPS_ROOT/before-bind"
cd "$HIOPS_ROOT/sys"
ln -sfn "../../../bus/pci/drivers/$2" "devices/pci0000:00/$1/driver"
rm -f block/nvme0n1 block/hiops1n1
case $2 in
hiops*) ln -s "../devices/pci0000:00/$1/block/hiops1n1" block/ ;;
*) ln -s "../devices/pci0000:00/$1/nvme/nvme0/nvme0n1" block/ ;;
esac
"#;

/// What `--ab` is told for the shortest measurement of the unused drive.
pub const SHORT: [&str; 5] = ["nvme0n1", "--runs", "3", "--seconds", "1"];

/// A machine whose unused drive can be lent, with fio.
pub struct Lab(pub Machine);

impl Lab {
    pub fn new() -> Self {
        let machine = Machine::new();
        machine.put("proc/stat", STAT);
        machine.script("bin/fio", FIO);
        machine.tool("hiops-bind", BIND);
        let ours = format!("sys/devices/pci0000:00/{THEIRS}/block/hiops1n1");
        machine.put(&format!("{ours}/size"), "1000215216\n");
        machine.put(&format!("{ours}/serial"), "THEIRS001   \n");
        machine.put(&format!("{ours}/hiops/stats"), &stats(1, 1));
        machine.put(&format!("{ours}/queue/scheduler"), "[none]\n");
        machine.put(
            "sys/block/nvme0n1/queue/scheduler",
            "none [mq-deadline] kyber\n",
        );
        for (disk, iops) in [("nvme0n1", "100000"), ("hiops1n1", "120000")] {
            machine.put(&format!("dev/{disk}"), "what is on it");
            machine.put(&format!("iops-{disk}"), iops);
        }
        machine.put("calls", "");
        Self(machine)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(&["advise", "--ab"]);
        command.args(args);
        let path = std::env::var("PATH").unwrap();
        let own = self.0.path("bin");
        command.env("PATH", format!("{}:{path}", own.display()));
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }
}
