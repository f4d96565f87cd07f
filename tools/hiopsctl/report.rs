// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl report`: all that a bug report needs, in one file, without secrets.

use crate::cmdline;
use crate::devices;
use crate::failure::Failure;
use crate::kmsg;
use crate::machine::{controllers, Controller, Disk};
use crate::out::Out;
use crate::redact::Redactor;
use crate::root::Root;
use crate::secrets::secrets;
use crate::show;
use crate::usage::Usage;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// So many lines of the kernel's log at most, the newest.
const MOST_LINES: usize = 3000;

/// Files of a PCI function that tell what it is and how it is connected.
const FUNCTION: [&str; 16] = [
    "class",
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "driver_override",
    "enable",
    "irq",
    "numa_node",
    "power_state",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "broken_parity_status",
];

/// Files in a disk's own folder.
const DISK: [&str; 9] = [
    "size",
    "ro",
    "model",
    "serial",
    "firmware_rev",
    "wwid",
    "nsid",
    "inflight",
    "stat",
];

/// A piece of the report.
#[derive(Serialize)]
struct Section {
    name: String,
    text: String,
}

/// All of it.
#[derive(Serialize)]
struct Sections {
    sections: Vec<Section>,
}

#[derive(Serialize)]
struct Written {
    file: String,
}

/// Writes it to `file`.
pub(crate) fn run(root: &Root, out: &Out, file: Option<&Path>) -> Result<(), Failure> {
    let usual = match out.is_json() {
        true => "hiops-report.json",
        false => "hiops-report.txt",
    };
    let file = file.map_or_else(|| PathBuf::from(usual), Path::to_path_buf);
    let sections = sections(root)?;
    let text = match out.is_json() {
        true => format!("{}\n", crate::out::json(&Sections { sections })?),
        false => sections.iter().map(Section::text).collect(),
    };
    if file.as_os_str() == "-" {
        return out.print(&text);
    }
    let name = file.display().to_string();
    let failed = |error| Failure::io(&name, &error);
    // New, and the caller's alone: nobody else has put a link there.
    let mut options = OpenOptions::new();
    let mut to = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .map_err(failed)?;
    to.write_all(text.as_bytes()).map_err(failed)?;
    out.show(&Written { file: name.clone() }, |written| {
        format!("{}: look it through before you send it\n", written.file)
    })
}

impl Section {
    fn text(&self) -> String {
        let text = match self.text.trim_end() {
            "" => "nothing",
            text => text,
        };
        format!("== {}\n\n{text}\n\n", self.name)
    }
}

/// All sections, without secrets.
fn sections(root: &Root) -> Result<Vec<Section>, Failure> {
    let all = controllers(root);
    let mut redactor = Redactor::new(&secrets(root, &all))?;
    let command_line = root.text("/proc/cmdline").unwrap_or_default();
    let command_line = cmdline::clean(&command_line, &mut redactor);
    let mut sections = vec![
        section("hiopsctl", format!("version {}", crate::cli::VERSION)),
        section("system", system(root)),
        section("kernel command line", command_line),
        section("module", module(root)),
        section("modprobe.d", modprobe(root)),
        section(devices::FILE, boot_list(root)),
    ];
    let usage = Usage::look(root);
    for it in &all {
        sections.push(section(&it.address, function(root, it)));
        for disk in &it.disks {
            let name = format!("{} of {}", disk.name, it.address);
            sections.push(section(&name, self::disk(root, disk, &usage)));
        }
    }
    sections.push(section("interrupts", interrupts(root)));
    sections.push(section("kernel log", log(root, &all)));
    for section in &mut sections {
        section.name = redactor.clean(&section.name);
        section.text = redactor.clean(&section.text);
    }
    Ok(sections)
}

fn section(name: &str, text: String) -> Section {
    Section {
        name: name.to_string(),
        text,
    }
}

/// Lines "NAME VALUE" of files in `folder`; of several lines each on its own.
fn files<'a>(root: &Root, folder: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for name in names {
        let path = format!("{folder}/{name}");
        let value = match name {
            "model" | "serial" | "firmware_rev" => root.identity(&path),
            _ => root.text(&path),
        };
        let Some(value) = value else {
            continue;
        };
        match value.trim_end() {
            "" => {}
            one if !one.contains('\n') => text.push_str(&format!("{name} {one}\n")),
            more => text.push_str(&format!("{name}:\n  {}\n", more.replace('\n', "\n  "))),
        }
    }
    text
}

fn names_and_files(root: &Root, folder: &str) -> String {
    let names = root.names(folder);
    files(root, folder, names.iter().map(String::as_str))
}

fn system(root: &Root) -> String {
    let mut text = String::new();
    let find = |file: &str, key: &str| {
        let text = root.text(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key));
        line.map_or_else(String::new, |line| format!("{line}\n"))
    };
    text.push_str(&files(
        root,
        "/proc/sys/kernel",
        ["osrelease", "version", "tainted"],
    ));
    text.push_str(&find("/etc/os-release", "PRETTY_NAME="));
    text.push_str(&find("/proc/cpuinfo", "model name"));
    text.push_str(&find("/proc/meminfo", "MemTotal"));
    text.push_str(&files(
        root,
        "/sys/devices/system/cpu",
        ["online", "isolated", "nohz_full"],
    ));
    text.push_str(&files(root, "/proc", ["uptime", "loadavg"]));
    text.push_str(&files(
        root,
        "/sys/class/dmi/id",
        ["sys_vendor", "product_name", "bios_version"],
    ));
    for patch in root.names("/sys/kernel/livepatch") {
        text.push_str(&format!("livepatch {patch}\n"));
    }
    text
}

fn module(root: &Root) -> String {
    let folder = "/sys/module/hiops";
    if !root.has(folder) {
        return "it is not loaded".into();
    }
    let text = files(
        root,
        folder,
        ["version", "srcversion", "refcnt", "taint", "initstate"],
    );
    format!(
        "{text}{}",
        names_and_files(root, &format!("{folder}/parameters"))
    )
}

/// What the machine's settings say of hiops.
fn modprobe(root: &Root) -> String {
    let mut text = String::new();
    for name in root.names("/etc/modprobe.d") {
        let all = root
            .text(&format!("/etc/modprobe.d/{name}"))
            .unwrap_or_default();
        for line in all.lines().filter(|line| line.contains("hiops")) {
            text.push_str(&format!("{name}: {line}\n"));
        }
    }
    text
}

fn boot_list(root: &Root) -> String {
    let text = root.text(devices::FILE);
    text.unwrap_or_else(|| "it is not there".into())
}

fn function(root: &Root, controller: &Controller) -> String {
    let Controller {
        address,
        kind,
        driver,
        ..
    } = controller;
    let folder = format!("/sys/bus/pci/devices/{address}");
    let driver = driver.as_deref().unwrap_or("none");
    let interrupts = root.names(&format!("{folder}/msi_irqs")).len();
    let text = files(root, &folder, FUNCTION);
    format!("kind {kind:?}\ndriver {driver}\nmsi_irqs {interrupts}\n{text}")
}

fn disk(root: &Root, disk: &Disk, usage: &Result<Usage, Failure>) -> String {
    let folder = format!("/sys/block/{}", disk.name);
    let mut text = files(root, &folder, DISK);
    // By whom is nobody's business, how is.
    match usage {
        Ok(usage) => {
            for used in usage.of(root, &disk.name) {
                let fs = used.fs.unwrap_or_default();
                text.push_str(format!("in use {} {} {fs}", used.device, used.how).trim_end());
                text.push('\n');
            }
        }
        Err(why) => text.push_str(&format!("in use ? {why}\n")),
    }
    let queues = root.names(&format!("{folder}/mq")).len();
    text.push_str(&format!("hardware queues {queues}\n\nqueue/\n"));
    text.push_str(&names_and_files(root, &format!("{folder}/queue")));
    text.push_str("\nhiops/\n");
    text.push_str(&names_and_files(root, &format!("{folder}/hiops")));
    text
}

fn interrupts(root: &Root) -> String {
    let text = root.text("/proc/interrupts").unwrap_or_default();
    let mut lines = text.lines();
    let head = lines.next().into_iter();
    let ours = lines.filter(|line| line.contains("hiops"));
    show::lines(head.chain(ours))
}

fn log(root: &Root, all: &[Controller]) -> String {
    let lines = match kmsg::read(root) {
        Ok(lines) => lines,
        Err(error) => return format!("it can't be read ({error}): run hiopsctl as root"),
    };
    let ours = all.iter().filter(|it| it.is_hiops());
    let addresses: Vec<String> = ours.map(|it| it.address.clone()).collect();
    let mut lines = kmsg::concerning(lines, &addresses);
    let left_out = lines.len().saturating_sub(MOST_LINES);
    lines.drain(..left_out);
    show::lines(lines)
}
