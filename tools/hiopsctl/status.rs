// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl status`: the module, how each controller is set, and what asks for attention.

use crate::attention::{ended, Area, Finding};
use crate::check;
use crate::counters::Counters;
use crate::failure::Failure;
use crate::machine::{controllers, served_disk, Controller, Disk};
use crate::out::Out;
use crate::pairs::Pairs;
use crate::root::Root;
use crate::switches::without_effect;
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
    version: Option<String>,
    srcversion: Option<String>,
    kernel: Option<String>,
    parameters: Pairs<String>,
    controllers: Vec<ControllerStatus>,
    attention: Vec<Finding>,
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
    /// Settings that make no difference now, and why.
    without_effect: Vec<String>,
    counters: Counters,
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
    let mut attention: Vec<Finding> = shown.iter().flat_map(concerns).collect();
    if !loaded {
        attention.push(Finding::new(
            Area::Module,
            "the module is not loaded",
            "hiopsctl bind ADDRESS loads it, or modprobe hiops",
        ));
    }
    if disks.is_empty() {
        attention.extend(check::unbound(root));
    }
    let parameters = root.names("/sys/module/hiops/parameters").into_iter();
    let parameter = |name: String| {
        let value = root.line(&format!("/sys/module/hiops/parameters/{name}"))?;
        Some((name, value))
    };
    let status = Status {
        loaded,
        version: root.word("/sys/module/hiops/version"),
        srcversion: root.word("/sys/module/hiops/srcversion"),
        kernel: root.word("/proc/sys/kernel/osrelease"),
        parameters: Pairs(parameters.filter_map(parameter).collect()),
        controllers: shown,
        attention,
    };
    out.show(&status, |status| text(status, out))?;
    ended(&status.attention)
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
        // What coop is for is on as it comes.
        without_effect: ["lazy", "predict"]
            .iter()
            .filter_map(|name| without_effect(root, &disk.name, name))
            .collect(),
        counters: Counters::parse(&stats).unwrap_or_default(),
    }
}

/// What is wrong with a controller or its disks.
fn concerns(controller: &ControllerStatus) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut say =
        |what: String, way_out: String| found.push(Finding::new(Area::Drive, what, way_out));
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
        for why in &disk.without_effect {
            say(
                format!("{name}: {why}"),
                format!("hiopsctl set {name} strategy coop"),
            );
        }
        let count = |what: &str| match what {
            // Their own are no news to operators.
            "resets" => (disk.counters.get(what)).saturating_sub(disk.counters.get("resets_asked")),
            _ => disk.counters.get(what),
        };
        let bad = BAD.iter().map(|what| (count(what), what));
        let bad: Vec<String> = bad
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
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

fn text(status: &Status, out: &Out) -> String {
    let kernel = status.kernel.as_deref().unwrap_or("?");
    let module = match (status.loaded, &status.srcversion) {
        (false, _) => "is not loaded".to_string(),
        (true, None) => "is loaded".to_string(),
        (true, Some(build)) => format!("is loaded (srcversion {build})"),
    };
    let version = status.version.as_ref();
    let version = version.map_or_else(String::new, |version| format!(" {version}"));
    let mut text = format!("hiops{version} {module}, on Linux {kernel}\n");
    // Where there is none, the emulated disks' tell nothing.
    let ram = status.parameters.0.iter();
    let ram = ram
        .clone()
        .any(|(name, count)| name == "ram_disks" && count != "0");
    let parameters = status.parameters.0.iter();
    let parameters: Vec<String> = parameters
        .filter(|(name, _)| ram || !name.starts_with("ram_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for (at, line) in parameters.chunks(5).enumerate() {
        let head = if at == 0 {
            "parameters:"
        } else {
            "           "
        };
        text.push_str(&format!("{head} {}\n", line.join(" ")));
    }
    if !status.controllers.is_empty() {
        text.push('\n');
        text.push_str(&out.table(&table(&status.controllers)));
    }
    if status.attention.is_empty() {
        text.push_str("\nNothing asks for attention.\n");
    } else {
        text.push_str("\nTo look at:\n");
        for Finding { what, way_out, .. } in &status.attention {
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
    ])
    .for_terminal(&[0, 2], &[]);
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
