// SPDX-License-Identifier: GPL-2.0
//! The controllers of this machine that hiops serves or could serve, and their disks.
//!
//! A RAM disk is its own controller, and stands under its own name instead of an address.

use crate::failure::Failure;
use crate::identity::shown;
use crate::named::{named, Named};
use crate::root::Root;
use serde::Serialize;

/// What a controller is, by its class code.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Nvme,
    Ahci,
    Ram,
    /// Something else that a driver of hiops has been given.
    Other,
}

/// A PCI function, or a RAM disk.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Controller {
    pub(crate) address: String,
    pub(crate) kind: Kind,
    /// None: nobody has it.
    pub(crate) driver: Option<String>,
    pub(crate) disks: Vec<Disk>,
}

/// A disk of a controller.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) model: Option<String>,
    pub(crate) serial: Option<String>,
    pub(crate) firmware: Option<String>,
    /// Whether hiops serves it.
    pub(crate) hiops: bool,
}

impl Kind {
    /// Of a class code as sysfs writes it.
    pub(crate) fn of_class(class: &str) -> Self {
        match class {
            "0x010802" => Self::Nvme,
            "0x010601" => Self::Ahci,
            _ => Self::Other,
        }
    }

    /// The driver of hiops for it.
    pub(crate) fn driver(self) -> Option<&'static str> {
        match self {
            Self::Nvme => Some("hiops_nvme"),
            Self::Ahci => Some("hiops_ahci"),
            Self::Ram | Self::Other => None,
        }
    }

    /// The in-tree driver for it.
    pub(crate) fn in_tree(self) -> Option<&'static str> {
        match self {
            Self::Nvme => Some("nvme"),
            Self::Ahci => Some("ahci"),
            Self::Ram | Self::Other => None,
        }
    }
}

impl Controller {
    /// Whether a driver of hiops has it.
    pub(crate) fn is_hiops(&self) -> bool {
        self.driver.as_deref().is_some_and(is_ours)
    }

    /// Its disks that hiops serves.
    pub(crate) fn served(&self) -> impl Iterator<Item = &Disk> {
        self.disks.iter().filter(|disk| disk.hiops)
    }
}

impl Disk {
    fn of(root: &Root, name: &str) -> Self {
        let at = |file: &str| format!("/sys/block/{name}/{file}");
        // hiops has them in the disk's own folder, the in-tree drivers in the device's.
        let either = |file: &str| {
            let own = root.identity(&at(file));
            own.or_else(|| root.identity(&at(&format!("device/{file}"))))
        };
        Self {
            name: name.to_string(),
            bytes: root.number(&at("size")).unwrap_or(0).saturating_mul(512),
            model: either("model"),
            serial: either("serial")
                .or_else(|| page_serial(root, name).and_then(|page| shown(&page))),
            firmware: either("firmware_rev"),
            hiops: root.has(&at("hiops/stats")),
        }
    }
}

/// The serial number of a disk of the SCSI layer, as SATA disks are under ahci: page 0x80 of its
/// vital product data, behind four bytes of header.
pub(crate) fn page_serial(root: &Root, name: &str) -> Option<Vec<u8>> {
    let page = root.bytes(&format!("/sys/block/{name}/device/vpd_pg80"))?;
    page.get(4..).map(<[u8]>::to_vec)
}

fn is_ours(driver: &str) -> bool {
    driver.starts_with("hiops")
}

/// The driver of a PCI function.
pub(crate) fn driver_of(root: &Root, address: &str) -> Option<String> {
    root.link_name(&format!("/sys/bus/pci/devices/{address}/driver"))
}

/// Its class code.
pub(crate) fn class_of(root: &Root, address: &str) -> Option<String> {
    root.word(&format!("/sys/bus/pci/devices/{address}/class"))
}

/// All controllers: PCI functions in the order of their addresses, then RAM disks.
pub(crate) fn controllers(root: &Root) -> Vec<Controller> {
    let blocks = blocks(root);
    let mut all = Vec::new();
    let mut addresses = root.names("/sys/bus/pci/devices");
    // Hexadecimal, each part of one length but for the domain.
    addresses.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    for address in addresses {
        let driver = driver_of(root, &address);
        let kind = Kind::of_class(&class_of(root, &address).unwrap_or_default());
        if kind == Kind::Other && !driver.as_deref().is_some_and(is_ours) {
            continue;
        }
        let mut places = vec![format!("/{address}/")];
        places.extend(subsystems(root, &address));
        let below = |(_, path): &&(String, String)| places.iter().any(|at| path.contains(at));
        let disks = blocks.iter().filter(below);
        all.push(Controller {
            disks: disks.map(|(name, _)| Disk::of(root, name)).collect(),
            address,
            kind,
            driver,
        });
    }
    for (name, path) in &blocks {
        let disk = path.contains("/virtual/").then(|| Disk::of(root, name));
        if let Some(disk) = disk.filter(|disk| disk.hiops) {
            all.push(Controller {
                address: name.clone(),
                kind: Kind::Ram,
                driver: Some("hiops".into()),
                disks: vec![disk],
            });
        }
    }
    all
}

/// Disks that are seen, with the place of each below /sys/devices.
fn blocks(root: &Root) -> Vec<(String, String)> {
    let place = |name: String| {
        let at = format!("/sys/block/{name}");
        let hidden = root.number(&format!("{at}/hidden")) == Some(1);
        let path = root.resolve(&at).filter(|_| !hidden)?;
        Some((name, path))
    };
    let names = root.names("/sys/block").into_iter();
    names.filter_map(place).collect()
}

/// Where the disks of a function are that nvme shows as one of several paths to a subsystem.
fn subsystems(root: &Root, address: &str) -> Vec<String> {
    let class = "/sys/class/nvme-subsystem";
    let inside = |name: &String| {
        let at = format!("{class}/{name}");
        let links = root.names(&at).into_iter();
        links
            .filter_map(|link| root.link(&format!("{at}/{link}")))
            .any(|to| to.contains(&format!("/{address}/")))
    };
    let names = root.names(class).into_iter();
    names
        .filter(inside)
        .map(|name| format!("/{name}/"))
        .collect()
}

/// The name in /sys/block of what an operator calls a disk of hiops: itself, a partition or a link
/// of it, or its controller, if it has no other.
///
/// # Errors
/// hiops serves none of that name.
pub(crate) fn served_disk(root: &Root, text: &str) -> Result<String, Failure> {
    if let Some(Named { controller, disk }) = named(root, text) {
        let own: Vec<String> = controller.served().map(|it| it.name.clone()).collect();
        match (disk, &own[..]) {
            (Some(disk), own) if own.contains(&disk) => return Ok(disk),
            (None, [only]) => return Ok(only.clone()),
            (None, [_, ..]) => {
                let what = format!("'{text}' has several disks");
                return Err(Failure::new(what, format!("name one: {}", own.join(" "))));
            }
            _ => {}
        }
    }
    let served: Vec<String> = served_names(root);
    let way_out = if !root.has("/sys/module/hiops") {
        "the module is not loaded (modprobe hiops, or hiopsctl bind ADDRESS)".to_string()
    } else if served.is_empty() {
        "hiops serves none now (hiopsctl list, hiopsctl bind ADDRESS)".to_string()
    } else {
        format!("those are: {}", served.join(" "))
    };
    Err(Failure::new(
        format!("'{text}' is no disk of hiops"),
        way_out,
    ))
}

/// The names of all disks that hiops serves.
pub(crate) fn served_names(root: &Root) -> Vec<String> {
    let names = root.names("/sys/block").into_iter();
    names
        .filter(|name| root.has(&format!("/sys/block/{name}/hiops/stats")))
        .collect()
}
