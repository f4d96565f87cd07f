// SPDX-License-Identifier: GPL-2.0
//! An unused drive, which is lent from its driver and given back.
//!
//! It may be known by another name under each driver, so it is found again by what it calls itself.

use super::stop::apart;
use crate::failure::Failure;
use crate::handover::refusal;
use crate::machine::{controllers, driver_of, Controller, Disk, Kind};
use crate::root::Root;
use crate::tools;
use crate::usage::{Usage, Use};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// `O_EXCL`, with which the kernel gives a block device to one at a time: a mount, swap, or this.
const EXCLUSIVE: i32 = 0o200;
/// As often a drive is given back, if somebody has it open for a moment.
const TRIES: u32 = 10;
/// And the time between.
const PAUSE: Duration = Duration::from_millis(300);

/// The drive, and the driver that it goes back to.
#[derive(Debug)]
pub(crate) struct Drive<'a> {
    root: &'a Root,
    pub(crate) address: String,
    pub(crate) kind: Kind,
    /// As it was called at first.
    pub(crate) disk: Disk,
    namespace: Option<u64>,
    pub(crate) first: String,
    /// The scheduler that it had under that.
    scheduler: Option<String>,
    back: bool,
}

impl<'a> Drive<'a> {
    /// The unused one that is called `named`.
    ///
    /// # Errors
    /// There is none, it is none that both drivers could have, or it is in use.
    pub(crate) fn find(root: &'a Root, named: &str) -> Result<Self, Failure> {
        let name = named.strip_prefix("/dev/").unwrap_or(named);
        let known = "name a disk of hiopsctl list, like nvme1n1";
        let (controller, disk) = controllers(root)
            .into_iter()
            .find_map(|one| {
                let disk = one.disks.iter().find(|disk| disk.name == name)?.clone();
                Some((one, disk))
            })
            .ok_or_else(|| {
                Failure::new(
                    format!("'{named}' is no disk of an NVMe or AHCI controller"),
                    known,
                )
            })?;
        let (Some(ours), Some(theirs)) = (controller.kind.driver(), controller.kind.in_tree())
        else {
            let what = format!("{name} is on no NVMe or AHCI controller");
            return Err(Failure::new(what, known));
        };
        let first = controller.driver.clone().unwrap_or_default();
        if first != ours && first != theirs {
            let what = format!("{} is with {first}", controller.address);
            let way_out = format!("hiopsctl bind {} {theirs} first", controller.address);
            return Err(Failure::new(what, way_out));
        }
        let drive = Self {
            root,
            namespace: namespace(root, name),
            scheduler: scheduler(root, name),
            address: controller.address.clone(),
            kind: controller.kind,
            first,
            disk,
            back: true,
        };
        drive.refuse_in_use(&controller)?;
        Ok(drive)
    }

    /// All disks of its controller are handed over with it: none may be in use.
    fn refuse_in_use(&self, controller: &Controller) -> Result<(), Failure> {
        let usage = Usage::look(self.root).map_err(|failure| {
            let what = format!("{} is not touched: {failure}", self.address);
            Failure::new(what, "who uses its disks has to be told")
        })?;
        for disk in &controller.disks {
            if let Some(user) = usage.of(self.root, &disk.name).first() {
                return Err(in_use(&self.address, user));
            }
        }
        Ok(())
    }

    /// Hands it to `driver`, and finds it there.
    ///
    /// # Errors
    /// It is in use by now, or `driver` does not take it.
    pub(crate) fn to(&mut self, driver: &str) -> Result<Disk, Failure> {
        if driver_of(self.root, &self.address).as_deref() != Some(driver) {
            // Whatever comes of it.
            self.back = false;
            self.bind(driver)?;
            self.back = driver == self.first;
        }
        let controller = self.controller()?;
        self.refuse_in_use(&controller)?;
        self.among(&controller.disks).ok_or_else(|| {
            let what = format!("{} is not among the disks of {driver}", self.disk.name);
            Failure::new(
                what,
                "it has to have a serial number of its own; dmesg may say more",
            )
        })
    }

    fn controller(&self) -> Result<Controller, Failure> {
        let mut all = controllers(self.root).into_iter();
        let gone = || Failure::new(format!("{} is gone", self.address), "plug it in again");
        all.find(|one| one.address == self.address).ok_or_else(gone)
    }

    /// The same namespace, or what is at the same port.
    fn among(&self, disks: &[Disk]) -> Option<Disk> {
        let is = |disk: &&Disk| {
            disk.serial == self.disk.serial
                && disk.bytes == self.disk.bytes
                && namespace(self.root, &disk.name) == self.namespace
        };
        let mut same = disks.iter().filter(is);
        match (same.next(), same.next(), disks) {
            (Some(one), None, _) => Some(one.clone()),
            _ => None,
        }
    }

    /// Opens `disk` to read, so that nobody can mount it or swap on it meanwhile.
    ///
    /// # Errors
    /// Somebody has it by now.
    pub(crate) fn claim(&self, disk: &Disk) -> Result<File, Failure> {
        let node = node(disk);
        let mut options = OpenOptions::new();
        let opened = options
            .read(true)
            .custom_flags(EXCLUSIVE)
            .open(self.root.at(&node));
        opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::ResourceBusy => Failure::new(
                format!(
                    "{} is not touched: {node} is claimed by the kernel",
                    self.address
                ),
                "release it first (a mount, swap, LVM, RAID)",
            ),
            _ => Failure::io(node, &error),
        })
    }

    /// Has `disk` without a scheduler, as hiops has it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn without_scheduler(&self, disk: &Disk) -> Result<(), Failure> {
        self.schedule(disk, "none")
    }

    fn schedule(&self, disk: &Disk, scheduler: &str) -> Result<(), Failure> {
        let file = format!("/sys/block/{}/queue/scheduler", disk.name);
        let written = std::fs::write(self.root.at(&file), scheduler);
        written.map_err(|error| Failure::io(file, &error))
    }

    /// Gives it back to its first driver.
    ///
    /// # Errors
    /// It could not be: it is told where it is.
    pub(crate) fn give_back(&mut self) -> Result<(), Failure> {
        let mut tries = TRIES;
        while !self.back {
            match self.bind(&self.first) {
                Ok(()) => self.back = true,
                Err(_) if tries > 1 => std::thread::sleep(PAUSE),
                Err(failure) => return Err(self.not_back(&failure)),
            }
            tries = tries.saturating_sub(1);
        }
        let disk = self.among(&self.controller()?.disks);
        match (&self.scheduler, disk) {
            (Some(scheduler), Some(disk)) => self.schedule(&disk, scheduler),
            _ => Ok(()),
        }
    }

    fn not_back(&self, failure: &Failure) -> Failure {
        let (address, first) = (&self.address, &self.first);
        let with = driver_of(self.root, address).unwrap_or_else(|| "nobody".into());
        let what = format!("{address} could not be given back to {first}, it is with {with}");
        Failure::new(
            format!("{what}: {failure}"),
            format!("hiops-bind {address} {first}"),
        )
    }

    fn bind(&self, driver: &str) -> Result<(), Failure> {
        let mut command = tools::command(self.root, "hiops-bind")?;
        // It is never ended half way: it leaves a drive with a driver.
        let ended = apart(command.args([&*self.address, driver])).output();
        let ended = ended.map_err(|error| Failure::io("hiops-bind can't be run", &error))?;
        if ended.status.success() {
            Ok(())
        } else {
            Err(refusal(&ended.stderr))
        }
    }
}

impl Drop for Drive<'_> {
    /// Where nobody has given it back, as after a panic.
    fn drop(&mut self) {
        if !self.back {
            drop(self.give_back());
        }
    }
}

/// The disk's file in /dev.
pub(crate) fn node(disk: &Disk) -> String {
    format!("/dev/{}", disk.name.replace('!', "/"))
}

fn namespace(root: &Root, disk: &str) -> Option<u64> {
    root.number(&format!("/sys/block/{disk}/nsid"))
}

/// The one in brackets.
fn scheduler(root: &Root, disk: &str) -> Option<String> {
    let all = root.line(&format!("/sys/block/{disk}/queue/scheduler"))?;
    let (_, rest) = all.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

/// As `hiops-bind` would refuse it.
fn in_use(address: &str, user: &Use) -> Failure {
    let Use {
        device, how, by, ..
    } = user;
    let (what, way_out) = match how.as_str() {
        "mount" => (format!("is mounted on {by}"), "umount it first".into()),
        "swap" => (
            "is swapped on".into(),
            format!("swapoff /dev/{device} first"),
        ),
        "holder" => (
            format!("is held by {by}"),
            "take that apart first (dmsetup, vgchange -an, mdadm --stop)".into(),
        ),
        "pool" => (
            format!("is in the ZFS pool {by}"),
            format!("zpool export {by} first"),
        ),
        "loop" => (format!("is behind {by}"), format!("losetup -d {by} first")),
        "export" => (format!("is exported ({by})"), "disable that first".into()),
        "open" => (format!("is open in {by}"), "end that first".into()),
        _ => (format!("is in use ({how}, {by})"), "end that first".into()),
    };
    Failure::new(
        format!("{address} is not touched: /dev/{device} {what}"),
        way_out,
    )
}
