// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl nvme-list`: what `nvme list` says, of all NVMe drives: it looks below
//! `/sys/class/nvme`, where those of hiops are not. The JSON has nvme-cli's keys and types, so that
//! what reads the one can read the other.

use crate::failure::Failure;
use crate::machine::{controllers, Controller, Disk, Kind};
use crate::out::Out;
use crate::root::Root;
use crate::show::bytes;
use crate::table::Table;
use clap::ValueEnum;
use serde::Serialize;
use std::process::{Command, Stdio};

/// nvme-cli's two formats.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// A table.
    Normal,
    /// As `nvme list -o json` prints it.
    Json,
}

/// Where nvme-cli is.
const NVME: [&str; 3] = ["/usr/sbin/nvme", "/usr/local/sbin/nvme", "/usr/bin/nvme"];

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct List {
    devices: Vec<Device>,
}

/// A namespace, by nvme-cli's names.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Device {
    name_space: u64,
    device_path: String,
    /// The node that takes commands besides the disk; a disk of hiops takes them itself.
    generic_path: String,
    firmware: String,
    model_number: String,
    serial_number: String,
    used_bytes: u64,
    #[serde(rename = "MaximumLBA")]
    maximum_lba: u64,
    physical_size: u64,
    sector_size: u64,
}

/// Prints it.
pub(crate) fn run(root: &Root, out: &Out, format: Format) -> Result<(), Failure> {
    let all = controllers(root).into_iter();
    let drives = all.filter(|controller| controller.kind == Kind::Nvme);
    let devices = |controller: Controller| -> Vec<Device> {
        let disks = controller.disks.iter();
        disks.map(|disk| Device::of(root, disk)).collect()
    };
    let list = List {
        devices: drives.flat_map(devices).collect(),
    };
    if out.is_json() || format == Format::Normal {
        return out.show(&list, text);
    }
    let pretty = serde_json::to_string_pretty(&list);
    let pretty = pretty.map_err(|error| Failure::new(error.to_string(), "this is a bug"))?;
    out.print(&format!("{pretty}\n"))
}

impl Device {
    fn of(root: &Root, disk: &Disk) -> Self {
        let name = &disk.name;
        let number = |file: &str| root.number(&format!("/sys/block/{name}/{file}"));
        let sector_size = number("queue/logical_block_size").unwrap_or(512).max(1);
        let used = number("nuse").or_else(|| used(root, disk));
        let path = format!("/dev/{name}");
        let generic = name.strip_prefix("nvme").filter(|_| !disk.hiops);
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            name_space: number("nsid").unwrap_or(0),
            generic_path: generic.map_or(path.clone(), |rest| format!("/dev/ng{rest}")),
            device_path: path,
            firmware: text(&disk.firmware),
            model_number: text(&disk.model),
            serial_number: text(&disk.serial),
            // A namespace uses all of its blocks, unless it is thinly provisioned.
            used_bytes: used.map_or(disk.bytes, |used| used.saturating_mul(sector_size)),
            maximum_lba: disk.bytes / sector_size,
            physical_size: disk.bytes,
            sector_size,
        }
    }
}

/// The blocks in use of a namespace that hiops serves: its sysfs does not have them, so nvme-cli
/// asks the drive. None: that is not installed, or may not ask.
fn used(root: &Root, disk: &Disk) -> Option<u64> {
    if !disk.hiops {
        return None;
    }
    let nvme = NVME.map(|path| root.at(path));
    let nvme = nvme.iter().find(|path| path.is_file())?;
    let mut command = Command::new(nvme);
    command.args(["id-ns", &format!("/dev/{}", disk.name), "-o", "json"]);
    let said = command.stdin(Stdio::null()).output().ok()?;
    let identified: serde_json::Value = serde_json::from_slice(&said.stdout).ok()?;
    identified.get("nuse")?.as_u64()
}

fn text(list: &List) -> String {
    if list.devices.is_empty() {
        return "There is no NVMe drive with a disk here.\n".into();
    }
    let mut table = Table::new(&[
        "NODE",
        "GENERIC",
        "SN",
        "MODEL",
        ">NAMESPACE",
        ">USED",
        ">SIZE",
        ">FORMAT",
        "FW REV",
    ]);
    for device in &list.devices {
        table.row([
            device.device_path.clone(),
            device.generic_path.clone(),
            device.serial_number.clone(),
            device.model_number.clone(),
            format!("{:#x}", device.name_space),
            bytes(device.used_bytes),
            bytes(device.physical_size),
            format!("{} B", device.sector_size),
            device.firmware.clone(),
        ]);
    }
    table.text()
}
