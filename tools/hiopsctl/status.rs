// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl status`: the module, how each controller is set, and what asks for attention.

use crate::check;
use crate::counters::Counters;
use crate::devices;
use crate::failure::Failure;
use crate::machine::{controllers, served_disk, Controller, Disk};
use crate::out::Out;
use crate::pairs::Pairs;
use crate::root::Root;
use crate::table::Table;
use serde::Serialize;

/// Settings that are shown, by file; all but `coop` and `lazy` are the controller's.
const SHOWN: [&str; 6] = [
    "strategy",
    "mode",
    "coop",
    "lazy",
    "predict",
    "poll_interval_us",
];

/// Counters that are 0 as long as all is well.
const BAD: [&str; 5] = [
    "errors",
    "timeouts",
    "missed_interrupts",
    "aborts",
    "resets",
];

#[derive(Serialize)]
struct Status {
    loaded: bool,
    /// Which build it is.
    srcversion: Option<String>,
    kernel: Option<String>,
    parameters: Pairs<String>,
    controllers: Vec<ControllerStatus>,
    attention: Vec<Attention>,
}

#[derive(Serialize)]
struct ControllerStatus {
    address: String,
    driver: Option<String>,
    quirks: Option<String>,
    disks: Vec<DiskStatus>,
}

#[derive(Serialize)]
struct DiskStatus {
    name: String,
    bytes: u64,
    settings: Pairs<String>,
    counters: Counters,
}

#[derive(Serialize)]
struct Attention {
    what: String,
    way_out: String,
}

/// Prints it, of all or of some disks.
pub(crate) fn run(root: &Root, out: &Out, disks: &[String]) -> Result<(), Failure> {
    let disks = disks.iter().map(|named| served_disk(root, named));
    let disks: Vec<String> = disks.collect::<Result<_, _>>()?;
    let loaded = root.has("/sys/module/hiops");
    let asked = |it: &Controller| {
        let mut served = it.served();
        disks.is_empty() || served.any(|disk| disks.contains(&disk.name))
    };
    let ours = controllers(root).into_iter();
    let ours = ours.filter(|it| it.is_hiops() && asked(it));
    let shown: Vec<_> = ours.map(|it| ControllerStatus::of(root, it)).collect();
    let mut attention: Vec<Attention> = shown.iter().flat_map(concerns).collect();
    if !loaded {
        attention.push(Attention {
            what: "the module is not loaded".into(),
            way_out: "hiopsctl bind ADDRESS loads it, or modprobe hiops".into(),
        });
    }
    if disks.is_empty() {
        attention.extend(boot_list(root));
    }
    let parameters = root.names("/sys/module/hiops/parameters").into_iter();
    let parameter = |name: String| {
        let value = root.line(&format!("/sys/module/hiops/parameters/{name}"))?;
        Some((name, value))
    };
    let status = Status {
        loaded,
        srcversion: root.word("/sys/module/hiops/srcversion"),
        kernel: root.word("/proc/sys/kernel/osrelease"),
        parameters: Pairs(parameters.filter_map(parameter).collect()),
        controllers: shown,
        attention,
    };
    out.show(&status, text)
}

impl ControllerStatus {
    fn of(root: &Root, controller: Controller) -> Self {
        let first = controller.served().next();
        let quirks = first.and_then(|disk| root.word(&file(disk, "quirks")));
        Self {
            quirks: quirks.filter(|quirks| quirks != "none"),
            disks: controller
                .served()
                .map(|disk| disk_status(root, disk))
                .collect(),
            address: controller.address,
            driver: controller.driver,
        }
    }
}

fn file(disk: &Disk, name: &str) -> String {
    format!("/sys/block/{}/hiops/{name}", disk.name)
}

fn disk_status(root: &Root, disk: &Disk) -> DiskStatus {
    let settings = SHOWN.iter().filter_map(|name| {
        let value = root.word(&file(disk, name))?;
        Some((name.to_string(), value))
    });
    let stats = root.text(&file(disk, "stats")).unwrap_or_default();
    DiskStatus {
        name: disk.name.clone(),
        bytes: disk.bytes,
        settings: Pairs(settings.collect()),
        counters: Counters::parse(&stats).unwrap_or_default(),
    }
}

/// What is wrong with a controller or its disks.
fn concerns(controller: &ControllerStatus) -> Vec<Attention> {
    let mut found = Vec::new();
    let mut say = |what: String, way_out: String| found.push(Attention { what, way_out });
    let address = &controller.address;
    if controller.disks.is_empty() {
        say(
            format!("{address} has no disk"),
            format!("dmesg | grep {address} tells why"),
        );
    }
    for disk in &controller.disks {
        let name = &disk.name;
        if disk.bytes == 0 {
            say(
                format!("{name} takes no I/O: its capacity is 0"),
                "the operator's manual, 'Format, sanitize, namespaces', has the ways out".into(),
            );
        }
        if disk
            .settings
            .0
            .iter()
            .any(|(name, value)| name == "lazy" && value == "unavailable")
        {
            say(
                format!("{name} can't hand completions to threads that sleep (lazy, predict)"),
                "io_schedule() can't be hooked: no kernel live patch may have it".into(),
            );
        }
        let bad = BAD.iter().filter(|what| disk.counters.get(what) > 0);
        let bad: Vec<String> = bad
            .map(|what| format!("{} {what}", disk.counters.get(what)))
            .collect();
        if !bad.is_empty() {
            say(
                format!("{name} has had {}", bad.join(", ")),
                format!("dmesg | grep -e {address} -e {name} tells more"),
            );
        }
    }
    found
}

/// Devices that were to be bound at boot and are not, and lines that are wrong.
fn boot_list(root: &Root) -> Vec<Attention> {
    let text = root.text(devices::FILE).unwrap_or_default();
    let (entries, wrongs) = check::look(root, &text);
    let mut found = Vec::new();
    for entry in entries {
        let wrong = wrongs.iter().any(|wrong| wrong.line == entry.line);
        let driver = crate::machine::driver_of(root, &entry.address);
        if wrong || driver.as_ref() == Some(&entry.driver) {
            continue;
        }
        let with = driver.map_or_else(|| "nobody".into(), |driver| format!("'{driver}'"));
        let (file, line) = (devices::FILE, entry.line);
        found.push(Attention {
            what: format!(
                "{} is with {with}, not as {file}:{line} says",
                entry.address
            ),
            way_out: format!(
                "hiopsctl bind {} {}, or take the line out",
                entry.address, entry.driver
            ),
        });
    }
    found.extend(wrongs.into_iter().map(|wrong| Attention {
        what: format!("{}:{}: {}", devices::FILE, wrong.line, wrong.what),
        way_out: wrong.way_out,
    }));
    found
}

fn text(status: &Status) -> String {
    let kernel = status.kernel.as_deref().unwrap_or("?");
    let module = match (status.loaded, &status.srcversion) {
        (false, _) => "is not loaded".to_string(),
        (true, None) => "is loaded".to_string(),
        (true, Some(build)) => format!("is loaded (srcversion {build})"),
    };
    let mut text = format!("hiops {module}, on Linux {kernel}\n");
    if !status.controllers.is_empty() {
        text.push('\n');
        text.push_str(&table(&status.controllers).text());
    }
    if status.attention.is_empty() {
        text.push_str("\nNothing asks for attention.\n");
    } else {
        text.push_str("\nTo look at:\n");
        for Attention { what, way_out } in &status.attention {
            text.push_str(&format!("  {what}: {way_out}\n"));
        }
    }
    text
}

fn table(controllers: &[ControllerStatus]) -> Table {
    let mut table = Table::new(&[
        "CONTROLLER",
        "DRIVER",
        "DISK",
        "STRATEGY",
        "MODE",
        "COOP",
        "LAZY",
        "PREDICT",
        ">POLL us",
        "QUIRKS",
    ]);
    for controller in controllers {
        let cells = |disk: Option<&DiskStatus>| {
            let setting = |name: &&str| {
                let settings = disk.map(|disk| disk.settings.0.iter());
                let found = settings.and_then(|mut all| all.find(|(known, _)| known == name));
                found.map_or_else(String::new, |(_, value)| value.clone())
            };
            let mut cells = vec![
                controller.address.clone(),
                controller.driver.clone().unwrap_or_default(),
                disk.map_or_else(String::new, |disk| disk.name.clone()),
            ];
            cells.extend(SHOWN.iter().map(setting));
            cells.push(controller.quirks.clone().unwrap_or_default());
            cells
        };
        if controller.disks.is_empty() {
            table.row(cells(None));
        }
        for disk in &controller.disks {
            table.row(cells(Some(disk)));
        }
    }
    table
}
