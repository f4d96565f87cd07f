// SPDX-License-Identifier: GPL-2.0
//! The rules beside what was measured: each cell of the committed matrices that docs/results.md is
//! made of has to get the answer that was measured, up to what two boots differ by.

use super::answer::{self, Answer};
use super::rules::{advise, Bus, Cpus, Load, Threads};
use serde_json::Value;

/// What two boots differ by, in IOPS and in CPU time an I/O (docs/results.md, "To repeat it").
const NOISE: f64 = 0.02;

/// What a thread that only reads takes of its CPU outside the kernel, and who keeps a queue full
/// (`bench/run advise`).
const OWN: f64 = 0.22;
const OWN_OF_QUEUE: f64 = 0.35;
/// Who keeps a queue full and switches no more often, for an I/O, is said never to wait.
const NEVER: f64 = 0.1;

/// A load by its name: whether threads wait, or one keeps a queue full; how many are under way on
/// all disks together, the share of writes, and how many threads compute beside it.
fn shape(name: &str) -> (bool, f64, f64, f64) {
    let (load, beside) = name.split_once('+').unwrap_or((name, ""));
    let hogs = match beside {
        "" => 0.0,
        "hog2" => 2.0,
        "hog3" => 3.0,
        _ => 1.0,
    };
    if load == "two-disks-16" {
        return (true, 32.0, 0.0, hogs);
    }
    if load == "write-fsync" {
        return (true, 16.0, 1.0, hogs);
    }
    let (kind, many) = load.rsplit_once('-').unwrap();
    let many: f64 = many.split('x').map(|n| n.parse::<f64>().unwrap()).product();
    match kind {
        "psync" => (true, many, 0.0, hogs),
        "mix" => (true, many, 0.3, hogs),
        "uring" => (false, many, 0.0, hogs),
        _ => panic!("{name} is no load that is known here"),
    }
}

struct Matrix {
    name: String,
    bus: Bus,
    cpus: usize,
    scale: f64,
    rows: Vec<Value>,
}

impl Matrix {
    fn read(name: &str) -> Option<Self> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/timed");
        let text = std::fs::read_to_string(format!("{folder}/timed-{name}.json")).ok()?;
        let all: Value = serde_json::from_str(&text).unwrap();
        Some(Self {
            name: name.into(),
            bus: match all["kind"].as_str().unwrap() {
                "sata" => Bus::Sata,
                _ => Bus::Nvme,
            },
            cpus: all["cpus"].as_u64().unwrap().try_into().unwrap(),
            scale: all["scale"].as_f64().unwrap(),
            rows: all["rows"].as_array().unwrap().clone(),
        })
    }

    fn figure(&self, load: &str, driver: &str, figure: &str) -> Option<f64> {
        let is = |row: &&Value| row["load"] == load && row["driver"] == driver;
        self.rows.iter().find(is)?[figure].as_f64()
    }

    fn drivers(&self) -> (&'static str, &'static str) {
        match self.bus {
            Bus::Nvme => ("nvme", "hiops_nvme"),
            Bus::Sata => ("ahci", "hiops_ahci"),
        }
    }

    fn loads(&self) -> Vec<String> {
        let own = |row: &&Value| row["driver"] == self.drivers().0;
        let names = self.rows.iter().filter(own);
        names
            .map(|row| row["load"].as_str().unwrap().into())
            .collect()
    }

    /// What advise would see under the in-tree driver. The CPUs take turns on one clock: together
    /// they have the time of one, and where a thread computes none of it is idle.
    fn seen(&self, name: &str) -> Load {
        let (threads, many, writes, hogs) = shape(name);
        let of = |figure| self.figure(name, self.drivers().0, figure).unwrap();
        let own = if threads { OWN } else { OWN_OF_QUEUE };
        // CAST: a few CPUs, each of which counts the others' turns as its own time.
        let cpu_us = of("cpu_ns_per_io") / 1e3 / self.scale * self.cpus as f64;
        let alone = self.figure("psync-1", self.drivers().0, "mean_us").unwrap();
        let drive_us = alone / self.scale;
        let io = of("iops") * of("cpu_ns_per_io") / 1e9;
        let others = if hogs > 0.0 { 1.0 - io } else { 0.0 };
        let waits = match threads {
            true => many.min(of("iops") * self.scale * drive_us / 1e6),
            false if of("switches") < NEVER => 0.0,
            false => 1.0,
        };
        let there = if threads { many } else { 1.0 };
        Load {
            bus: self.bus,
            rotates: false,
            iops: of("iops") * self.scale,
            writes,
            drive_us,
            threads: Threads {
                blocked: waits,
                runnable: (there - waits).max(0.0) + hogs,
                switches: of("switches"),
                cpu_us: cpu_us * (1.0 - own),
                program_us: cpu_us * own,
                drive_us,
            },
            cpus: Cpus {
                count: self.cpus,
                busy: io + others,
                busiest: io + others,
                computes: match (hogs > 0.0, self.cpus) {
                    // One CPU does nothing else.
                    (true, 2..) => 1.0,
                    _ => others + io * own,
                },
            },
        }
    }

    /// hiops over the in-tree driver: IOPS, and CPU time an I/O.
    fn ratios(&self, name: &str) -> (f64, f64) {
        let (old, new) = self.drivers();
        let of = |figure| {
            let (old, new) = (
                self.figure(name, old, figure),
                self.figure(name, new, figure),
            );
            new.unwrap() / old.unwrap()
        };
        (of("iops"), of("cpu_ns_per_io"))
    }
}

/// The answers that two boots could give to these ratios.
fn answers(iops: f64, cpu: f64) -> Vec<Answer> {
    let mut all = Vec::new();
    for iops in [iops - NOISE, iops, iops + NOISE] {
        for cpu in [cpu - NOISE, cpu, cpu + NOISE] {
            all.push(answer::of(iops, cpu, 0.0, 0.0));
        }
    }
    all.sort();
    all.dedup();
    all
}

/// What of `names` is answered otherwise than measured, how many cells there are, and how many of
/// them leave one answer only.
fn compare(names: &[&str], decide: impl Fn(&Load) -> Answer) -> (Vec<String>, usize, usize) {
    let (mut wrong, mut cells, mut sure) = (Vec::new(), 0, 0);
    for matrix in names.iter().filter_map(|name| Matrix::read(name)) {
        for load in matrix.loads() {
            let (iops, cpu) = matrix.ratios(&load);
            let could = answers(iops, cpu);
            let said = decide(&matrix.seen(&load));
            cells += 1;
            sure += usize::from(could.len() == 1);
            if said != Answer::Depends && !could.contains(&said) {
                let name = &matrix.name;
                wrong.push(format!(
                    "{name} {load}: {said}, not {could:?} ({iops:.3}, {cpu:.3})"
                ));
            }
        }
    }
    (wrong, cells, sure)
}

/// What was measured where the answer is that it depends.
fn depending() -> Vec<(String, Answer)> {
    let mut all = Vec::new();
    for matrix in MATRICES.iter().filter_map(|name| Matrix::read(name)) {
        for load in matrix.loads() {
            if advise(&matrix.seen(&load)).0 == Answer::Depends {
                let (iops, cpu) = matrix.ratios(&load);
                all.push((load, answer::of(iops, cpu, 0.0, 0.0)));
            }
        }
    }
    all
}

const MATRICES: [&str; 7] = [
    "tlc-1cpu",
    "lowlat-1cpu",
    "sata-1cpu",
    "worn-1cpu",
    "tlc-4cpu",
    "lowlat-4cpu",
    "sata-4cpu",
];

#[test]
fn each_cell_that_was_measured_gets_its_answer() {
    for name in ["tlc-1cpu", "lowlat-1cpu", "sata-1cpu"] {
        assert!(Matrix::read(name).is_some(), "{name} is not there");
    }
    let (wrong, cells, sure) = compare(&MATRICES, |load| advise(load).0);
    println!("{cells} cells, {sure} of them with one answer only");
    // How full its queue is can't be seen: beside two threads that compute 32 are not enough, and
    // 64 are.
    let unseen =
        |line: &String| line.starts_with("tlc-1cpu uring-32+hog2: yes, not [NoDifference]");
    assert!(wrong.len() == 1 && wrong.iter().all(unseen), "{wrong:#?}");
    // Where it is said to depend, it does: few in flight gain nothing, and none lose.
    let depends = depending();
    let has = |answer| depends.iter().any(|(_, measured)| *measured == answer);
    assert!(has(Answer::Yes) && has(Answer::NoDifference), "{depends:?}");
    assert!(!has(Answer::No), "{depends:?}");
    assert!(depends.len() * 12 <= cells, "{depends:?}");
    // The margin is not so wide that any rule would do.
    assert!(cells >= 150 && sure * 10 >= cells * 7, "{sure} of {cells}");
    for one in [Answer::Yes, Answer::No, Answer::NoDifference] {
        let (wrong, ..) = compare(&MATRICES, |_| one);
        assert!(wrong.len() * 3 > cells, "{one}: {} of {cells}", wrong.len());
    }
}

#[test]
fn the_worn_drive_on_four_cpus_has_one_cell_that_the_rules_miss() {
    // 256 threads gain nothing there, though a CPU is what they are short of.
    let (wrong, ..) = compare(&["worn-4cpu"], |load| advise(load).0);
    let about = |line: &String| line.starts_with("worn-4cpu psync-256: yes");
    assert!(wrong.len() == 1 && wrong.iter().all(about), "{wrong:?}");
}
