// SPDX-License-Identifier: GPL-2.0
//! What is shown of a machine: `list`, `status`, `get`, `metrics`, `smartd`, completions and
//! pages.
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::{Machine, NOBODYS, OTHER, OURS, THEIRS};
use serde_json::{json, Value};

/// Disks that are mounted, swapped to, held by another disk, and open.
fn in_use() -> Machine {
    let machine = Machine::new();
    machine.partition("hiops0n1", "hiops0n1p1", "259:7");
    machine.put(
        "proc/100/mountinfo",
        "36 35 259:7 / /srv/my\\040data rw - ext4 /dev/disk/by-uuid/x rw\n\
         37 35 259:7 / /bind rw - ext4 /dev/hiops0n1p1 rw\n\
         38 35 0:22 / /proc rw - proc proc rw\n",
    );
    machine.put("proc/101/mountinfo", &machine.read("proc/100/mountinfo"));
    machine.put(
        "proc/swaps",
        "Filename Type\n/dev/hiops0n2 partition 1 0 -2\n",
    );
    machine.put("sys/block/nvme0n1/holders/dm-0/dm/name", "vg-root\n");
    machine.put("proc/102/comm", "fio\n");
    machine.link("/dev/hiops_ram0", "proc/102/fd/5");
    machine.link("/data/x", "proc/102/fd/6");
    machine.put("proc/103/comm", "(udev-worker)\n");
    machine.link("/dev/hiops_ram0", "proc/103/fd/5");
    machine
}

#[test]
fn list_has_controllers_and_disks() {
    let list = in_use().json(&["list"]);
    let controllers = list["controllers"].as_array().unwrap();
    let names: Vec<_> = controllers
        .iter()
        .map(|it| it["address"].as_str().unwrap())
        .collect();
    assert_eq!(names, [NOBODYS, OURS, THEIRS, "hiops_ram0"]);
    assert_eq!(controllers[0]["driver"], Value::Null);
    assert_eq!(controllers[1]["driver"], "hiops_nvme");
    assert_eq!(controllers[3]["kind"], "ram");
    let theirs = &controllers[2]["disks"][0];
    assert_eq!(
        (&theirs["model"], &theirs["serial"]),
        (&json!("Their model"), &json!("THEIRS001"))
    );
    assert_eq!(
        (&theirs["hiops"], &theirs["bytes"]),
        (&json!(false), &json!(512_110_190_592u64))
    );
}

#[test]
fn list_has_users() {
    let list = in_use().json(&["list"]);
    let controllers = list["controllers"].as_array().unwrap();
    let uses = |controller: usize, disk: usize| {
        let uses = &controllers[controller]["disks"][disk]["in_use"];
        let uses = uses.as_array().unwrap().iter();
        let short = uses.map(|it| format!("{} {} {}", it["device"], it["how"], it["by"]));
        short.collect::<Vec<_>>().join("; ").replace('"', "")
    };
    // Both places, each once, though two processes have them.
    assert_eq!(
        uses(1, 0),
        "hiops0n1p1 mount /bind; hiops0n1p1 mount /srv/my data"
    );
    assert_eq!(uses(1, 1), "hiops0n2 swap swap");
    assert_eq!(uses(2, 0), "nvme0n1 holder vg-root");
    assert_eq!(uses(3, 0), "hiops_ram0 open fio (102)");
}

#[test]
fn list_is_sorted_by_addresses_which_are_hexadecimal() {
    let machine = Machine::new();
    for address in [
        "0000:0a:00.0",
        "0000:10:00.0",
        "0000:1a:00.0",
        "10000:01:00.0",
    ] {
        machine.other_disk(address, &format!("x{}", &address[5..7]), "259:99");
    }
    let list = machine.json(&["list"]);
    let names = list["controllers"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|it| it["address"].as_str().unwrap()).collect();
    let wanted = [
        "0000:02:00.0",
        "0000:0a:00.0",
        "0000:10:00.0",
        "0000:1a:00.0",
        "10000:01:00.0",
    ];
    assert_eq!(names[2..7], wanted);
}

#[test]
fn list_as_text_says_what_a_disk_is_in_use_by() {
    let text = in_use().says(&["list"]);
    for words in [
        "IN USE BY",
        "/srv/my data (ext4 on hiops0n1p1)",
        "512.1 GB",
        "swap on hiops0n2",
    ] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    assert!(!text.contains(OTHER));
    assert!(Machine::bare()
        .says(&["list"])
        .contains("no NVMe or AHCI controller"));
}

#[test]
fn a_disk_of_several_paths_is_listed_and_a_hidden_one_is_not() {
    let machine = Machine::new();
    machine.put("sys/block/nvme0n1/hidden", "1\n");
    let subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    machine.put(&format!("{subsystem}/nvme9n1/size"), "8\n");
    machine.link(
        "../devices/virtual/nvme-subsystem/nvme-subsys0/nvme9n1",
        "sys/block/nvme9n1",
    );
    machine.link(
        "../../devices/virtual/nvme-subsystem/nvme-subsys0",
        "sys/class/nvme-subsystem/nvme-subsys0",
    );
    let path = format!("../../../pci0000:00/{THEIRS}/nvme/nvme0");
    machine.link(&path, &format!("{subsystem}/nvme0"));
    let list = machine.json(&["list"]);
    let disks = list["controllers"][2]["disks"].as_array().unwrap();
    assert_eq!(disks.len(), 1, "{disks:?}");
    assert_eq!(disks[0]["name"], "nvme9n1");
}

#[test]
fn status_shows_settings() {
    let machine = Machine::new();
    let text = machine.says(&["status"]);
    assert!(
        text.starts_with("hiops is loaded, on Linux 7.3.4-test\n"),
        "{text}"
    );
    assert!(text.contains("Nothing asks for attention"), "{text}");
    assert!(
        text.contains("hiops0n2") && text.contains("hybrid"),
        "{text}"
    );
    machine.put("sys/module/hiops/version", "0.1.0+abc\n");
    machine.put("sys/module/hiops/parameters/ram_disks", "0\n");
    let text = machine.says(&["status"]);
    assert!(
        text.starts_with("hiops 0.1.0+abc is loaded, on Linux"),
        "{text}"
    );
    assert!(text.contains("\nparameters: mode=2\n"), "{text}");
    assert!(Machine::bare()
        .tells(&["status"], 4)
        .contains("the module is not loaded: hiopsctl bind"));
}

#[test]
fn status_says_what_to_look_at() {
    let machine = Machine::new();
    let stats = common::stats(1, 1).replace("errors 0", "errors 7");
    machine.put("sys/block/hiops0n2/hiops/stats", &stats);
    machine.put("sys/block/hiops_ram0/size", "0\n");
    machine.put("sys/block/hiops0n1/hiops/lazy", "unavailable\n");
    machine.put(
        "etc/hiops/devices",
        &format!("{THEIRS} hiops_nvme\n{OURS}\nrubbish\n"),
    );
    // Drives, and the list that binds them.
    let status = machine.tells(&["status", "--json"], 64 + 8);
    let status: Value = serde_json::from_str(&status).unwrap();
    let attention = status["attention"].as_array().unwrap();
    let what: Vec<_> = attention
        .iter()
        .map(|it| it["what"].as_str().unwrap())
        .collect();
    let wanted = [
        "hiops0n1 can't hand completions",
        "hiops0n2 has had 7 errors",
        "hiops_ram0 takes no I/O",
        "0000:02:00.0 is with 'nvme', not as /etc/hiops/devices:1 says",
        "/etc/hiops/devices:3: 'rubbish'",
    ];
    assert_eq!(what.len(), wanted.len(), "{what:?}");
    for (is, wanted) in what.iter().zip(wanted) {
        assert!(is.starts_with(wanted), "{is}: not {wanted}");
    }
    assert!(attention
        .iter()
        .all(|it| !it["way_out"].as_str().unwrap().is_empty()));
    // Of one disk: its controller alone, and not the list.
    let one = machine.tells(&["status", "/dev/hiops_ram0", "--json"], 64);
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["controllers"].as_array().unwrap().len(), 1);
    assert_eq!(one["attention"].as_array().unwrap().len(), 1);
}

#[test]
fn status_does_not_count_resets_that_an_operator_asked_for() {
    let machine = Machine::new();
    let asked = |all: u32, asked: u32| {
        let stats = common::stats(1, 1).replace("resets 0", &format!("resets {all}"));
        let stats = stats.replace("resets_asked 0", &format!("resets_asked {asked}"));
        machine.put("sys/block/hiops0n2/hiops/stats", &stats);
        machine.run(&["status", "hiops0n2"])
    };
    assert!(!asked(2, 2).out.contains("resets"));
    assert!(asked(3, 2).out.contains("hiops0n2 has had 1 resets"));
}

#[test]
fn get_reads_what_set_writes() {
    let machine = Machine::new();
    let all = machine.says(&["get", "hiops0n1"]);
    assert_eq!(
        all,
        "coop 1\nlazy 0\nmode hybrid\npoll_interval_us 32\npredict 0\npredict_window_us 16\n\
         strategy coop\n"
    );
    assert_eq!(machine.says(&["get", "/dev/hiops0n1", "mode"]), "hybrid\n");
    assert_eq!(
        machine.json(&["get", "hiops0n1", "mode"]),
        json!({ "mode": "hybrid" })
    );
    assert_eq!(
        machine.says(&["get", "hiops0n1", "stats"]),
        machine.read("sys/block/hiops0n1/hiops/stats")
    );
    // A plain file keeps what a longer value has behind a shorter one; sysfs does not.
    let change = machine.json(&["set", "hiops0n1", "poll_interval_us", "64"]);
    assert_eq!(
        change,
        json!({ "disk": "hiops0n1", "name": "poll_interval_us", "before": "32", "value": "64" })
    );
    assert_eq!(
        machine.read("sys/block/hiops0n1/hiops/poll_interval_us"),
        "64\n"
    );
    let stats = machine.json(&["get", "hiops0n1", "stats"]);
    assert_eq!(stats["stats"]["completed_irq"], 100);
    let learned = machine.json(&["get", "hiops0n1", "learned"]);
    assert_eq!(learned["learned"]["costs"]["sleep_ns"], 4100);
    machine.put("sys/block/hiops0n2/hiops/strategy", "plain\n");
    for name in ["lazy", "predict"] {
        let said = machine.says(&["set", "hiops0n2", name, "1"]);
        let why = format!("{name} has no effect with the strategy plain: hiopsctl set hiops0n2");
        assert!(said.contains(&why), "{said}");
        let status = machine.tells(&["status"], 64);
        assert!(
            status.contains(&format!("hiops0n2: {name} has no effect")),
            "{status}"
        );
    }
    assert!(!machine
        .says(&["set", "hiops0n2", "lazy", "0"])
        .contains("no effect"));
    let said = machine.says(&["set", "hiops0n1", "coop", "0"]);
    assert_eq!(said, "hiops0n1: coop is 0 (was 1)\n");
    assert_eq!(
        machine.says(&["set", "hiops0n1", "stats", "reset"]),
        "hiops0n1: stats took reset\n"
    );
    assert!(machine
        .read("sys/block/hiops0n1/hiops/stats")
        .starts_with("reset"));
}

#[test]
fn metrics_tell_controllers_once_and_disks_each() {
    let machine = Machine::new();
    let text = machine.says(&["metrics"]);
    for line in [
        "# TYPE hiops_completed_total counter",
        "hiops_up 1",
        "hiops_completed_total{disk=\"hiops0n2\",controller=\"0000:01:00.0\",context=\"coop\"} 100",
        "hiops_interrupts_total{controller=\"0000:01:00.0\"} 10",
        "hiops_interrupts_total{controller=\"hiops_ram0\"} 10",
        "hiops_interrupt_max_seconds{controller=\"0000:01:00.0\"} 0.000012345",
        "hiops_inflight{disk=\"hiops0n1\",controller=\"0000:01:00.0\",operation=\"write\"} 4",
        "hiops_queue_pays{controller=\"0000:01:00.0\",queue=\"0\",what=\"napping\"} 0",
        "hiops_disk_size_bytes{disk=\"hiops0n1\",controller=\"0000:01:00.0\"} 512110190592",
    ] {
        assert!(text.lines().any(|is| is == line), "no '{line}' in:\n{text}");
    }
    assert!(text.contains("model=\"Our \\\"model\\\"\""), "{text}");
    let count = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    // Two disks are one controller, and a RAM disk is its own.
    assert_eq!(
        (count("hiops_resets_total{"), count("hiops_errors_total{")),
        (2, 3)
    );
    let mut family = "";
    for line in text.lines() {
        // Each family in one piece, headed by HELP and TYPE.
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split(' ').next().unwrap();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let kind = if family.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            assert_eq!(rest, format!("{family} {kind}"));
        } else {
            assert_eq!(line.split(['{', ' ']).next().unwrap(), family, "{line}");
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        }
    }
    let json = machine.json(&["metrics"]);
    assert_eq!(json["families"][0]["name"], "hiops_up");
    let path = machine.path("hiops.prom");
    assert_eq!(machine.says(&["metrics", "-o", path.to_str().unwrap()]), "");
    assert_eq!(machine.read("hiops.prom"), text);
    assert!(!machine.path("hiops.prom.new").exists());
    let bare = Machine::bare().says(&["metrics"]);
    let values: Vec<_> = bare.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(values.len(), 2, "{bare}");
    let (up, build) = (values[0], values[1]);
    assert_eq!(up, "hiops_up 0");
    assert!(
        build.starts_with("hiops_build_info{version=\"\","),
        "{build}"
    );
}

#[test]
fn metrics_tell_which_builds_are_at_work() {
    let machine = Machine::new();
    machine.put("sys/module/hiops/version", "0.2.0+0123456789\n");
    machine.put("sys/module/hiops/srcversion", "ABCDEF\n");
    let version = machine.says(&["--version"]);
    let own = version.trim().strip_prefix("hiopsctl ").unwrap();
    let wanted = format!(
        "hiops_build_info{{version=\"0.2.0+0123456789\",hiopsctl=\"{own}\",\
         kernel=\"7.3.4-test\",srcversion=\"ABCDEF\"}} 1"
    );
    let text = machine.says(&["metrics"]);
    assert!(
        text.lines().any(|is| is == wanted),
        "no '{wanted}' in:\n{text}"
    );
}

#[test]
fn smartd_is_told_each_drive_once_by_a_name_that_lasts() {
    let machine = Machine::new();
    assert_eq!(machine.says(&["smartd"]), "/dev/hiops0n1 -d nvme -a\n");
    for (link, disk) in [
        ("nvme-eui.0025385b71b0f1a2", "hiops0n1"),
        ("nvme-Our_model_SERIAL-hiops0n1", "hiops0n1"),
        ("nvme-Our_model_SERIAL-hiops0n1-part1", "hiops0n1p1"),
        ("nvme-Our_model_SERIAL-hiops0n2", "hiops0n2"),
    ] {
        machine.link(&format!("../../{disk}"), &format!("dev/disk/by-id/{link}"));
    }
    let device = "/dev/disk/by-id/nvme-Our_model_SERIAL-hiops0n1";
    assert_eq!(machine.says(&["smartd"]), format!("{device} -d nvme -a\n"));
    assert_eq!(
        machine.json(&["smartd"]),
        json!({"disks": [{"disk": "hiops0n1", "device": device, "kind": "nvme"}]})
    );
    let nothing = "# hiops serves no NVMe or SATA drive\n";
    assert_eq!(Machine::bare().says(&["smartd"]), nothing);
}

#[test]
fn pages_and_fixed_completions_know_all_commands() {
    let machine = Machine::bare();
    for shell in ["elvish", "powershell"] {
        let script = machine.says(&["completions", shell]);
        assert!(
            script.contains("metrics") && script.contains("interval"),
            "{shell}"
        );
        assert!(!script.contains("HIOPS_ROOT"), "{shell}");
    }
    let folder = machine.path("man8");
    std::fs::create_dir(&folder).unwrap();
    let written = machine.says(&["man", folder.to_str().unwrap()]);
    assert_eq!(written.lines().count(), 22, "{written}");
    let first = machine.read("man8/hiopsctl.8");
    assert!(
        first.contains(".TH hiopsctl 8") && first.contains("Exit status"),
        "{first}"
    );
    assert_eq!(machine.says(&["man"]), first);
    let stat = machine.read("man8/hiopsctl-stat.8");
    assert!(
        stat.contains("\\-\\-interval") && stat.contains("hiopsctl stat"),
        "{stat}"
    );
    assert_eq!(machine.json(&["completions", "bash"])["name"], "bash");
    assert_eq!(machine.json(&["man"])["pages"][0]["name"], "hiopsctl.8");
}
