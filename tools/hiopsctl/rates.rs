// SPDX-License-Identifier: GPL-2.0
//! What happened between two looks. No files are read here.

use crate::blockstat::Inflight;
use crate::counters::{Counters, Growth, CONTEXTS};
use crate::learned::Learned;
use crate::pairs::Pairs;
use crate::sample::{ControllerSample, DiskSample, Sample};
use serde::Serialize;

/// All that moved.
#[derive(Debug, Serialize)]
pub(crate) struct Rates {
    /// Between the two looks.
    pub(crate) seconds: f64,
    pub(crate) disks: Vec<DiskRates>,
    pub(crate) controllers: Vec<ControllerRates>,
}

/// A disk.
#[derive(Debug, Serialize)]
pub(crate) struct DiskRates {
    pub(crate) disk: String,
    pub(crate) controller: String,
    /// Requests that ended, in a second.
    pub(crate) iops: f64,
    pub(crate) read_bytes_per_second: f64,
    pub(crate) written_bytes_per_second: f64,
    /// Which share of them each context ended; none: nothing ended.
    pub(crate) share: Pairs<Option<f64>>,
    /// Requests that waited in the FIFO, for each that was submitted.
    pub(crate) fifo_per_io: Option<f64>,
    /// Requests with the driver on average.
    pub(crate) depth: f64,
    /// And now.
    pub(crate) inflight: Inflight,
    /// The counters as they are, and what they have grown by.
    pub(crate) counters: Counters,
    pub(crate) delta: Counters,
    /// They were zeroed meanwhile: what came before that is not in `delta`.
    pub(crate) reset: bool,
}

/// A controller.
#[derive(Debug, Serialize)]
pub(crate) struct ControllerRates {
    pub(crate) controller: String,
    pub(crate) driver: String,
    pub(crate) strategy: String,
    pub(crate) mode: String,
    /// For each request that ended on any of its disks; none: nothing did.
    pub(crate) interrupts_per_io: Option<f64>,
    pub(crate) doorbell_writes_per_io: Option<f64>,
    pub(crate) interrupts_per_second: f64,
    pub(crate) ticks_per_second: f64,
    /// The longest runs of the interrupt handler and the poll timer since the counters were zeroed.
    pub(crate) max_irq_ns: u64,
    pub(crate) max_tick_ns: u64,
    pub(crate) resets: u64,
    pub(crate) learned: Learned,
}

/// `part` for each of `all`.
fn per(part: u64, all: u64) -> Option<f64> {
    // CAST: counts of a ratio that is printed with three digits.
    (all > 0).then(|| part as f64 / all as f64)
}

impl Rates {
    /// What came from `before` to `now`: of disks that are in both, and in `wanted` if that names
    /// any; and of their controllers, with all disks of those.
    pub(crate) fn between(before: &Sample, now: &Sample, wanted: &[String]) -> Self {
        let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
        let mut rates = Self {
            seconds,
            disks: Vec::new(),
            controllers: Vec::new(),
        };
        for controller in &now.controllers {
            let mut old = before.controllers.iter();
            let Some(old) = old.find(|old| old.address == controller.address) else {
                continue;
            };
            let both = controller.disks.iter().filter_map(|disk| {
                let old = old.disks.iter().find(|old| old.name == disk.name)?;
                Some((old, disk, disk.counters.since(&old.counters)))
            });
            let pairs: Vec<(&DiskSample, &DiskSample, Growth)> = both.collect();
            let shown = |name: &String| wanted.is_empty() || wanted.contains(name);
            if !pairs.iter().any(|(_, disk, _)| shown(&disk.name)) {
                continue;
            }
            let growths: Vec<&Growth> = pairs.iter().map(|(_, _, growth)| growth).collect();
            rates
                .controllers
                .push(controller_rates(controller, &growths, seconds));
            for (old, disk, growth) in pairs {
                if shown(&disk.name) {
                    let controller = &controller.address;
                    rates
                        .disks
                        .push(disk_rates(controller, old, disk, growth, seconds));
                }
            }
        }
        rates
    }
}

fn controller_rates(now: &ControllerSample, disks: &[&Growth], seconds: f64) -> ControllerRates {
    let of_all = |name: &str| {
        let counts = disks.iter().map(|growth| growth.by.get(name));
        counts.fold(0u64, u64::saturating_add)
    };
    // Alike on all disks: the first one's.
    let shared = |name: &str| disks.first().map_or(0, |growth| growth.by.get(name));
    let ended = of_all("completed");
    ControllerRates {
        controller: now.address.clone(),
        driver: now.driver.clone(),
        strategy: now.strategy.clone(),
        mode: now.mode.clone(),
        interrupts_per_io: per(shared("interrupts"), ended),
        doorbell_writes_per_io: per(shared("doorbell_writes"), ended),
        interrupts_per_second: a_second(shared("interrupts"), seconds),
        ticks_per_second: a_second(shared("ticks"), seconds),
        max_irq_ns: now.shared("max_irq_ns"),
        max_tick_ns: now.shared("max_tick_ns"),
        resets: shared("resets"),
        learned: now.learned.clone(),
    }
}

fn disk_rates(
    controller: &str,
    old: &DiskSample,
    now: &DiskSample,
    growth: Growth,
    seconds: f64,
) -> DiskRates {
    let ended = growth.by.get("completed");
    let share = CONTEXTS.map(|context| {
        let by = growth.by.get(&format!("completed_{context}"));
        (context.to_string(), per(by, ended))
    });
    let grown = |of: fn(&DiskSample) -> u64| of(now).saturating_sub(of(old));
    DiskRates {
        disk: now.name.clone(),
        controller: controller.to_string(),
        iops: a_second(ended, seconds),
        read_bytes_per_second: a_second(grown(|disk| disk.block.read_bytes), seconds),
        written_bytes_per_second: a_second(grown(|disk| disk.block.written_bytes), seconds),
        share: Pairs(share.into()),
        fifo_per_io: per(growth.by.get("fifo_deferred"), growth.by.get("submitted")),
        depth: a_second(grown(|disk| disk.block.in_queue_ms), seconds) / 1e3,
        inflight: now.inflight,
        counters: now.counters.clone(),
        delta: growth.by,
        reset: growth.was_reset,
    }
}

/// `count` in each of `seconds`; 0 where no time has passed.
fn a_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        // CAST: as above.
        count as f64 / seconds
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blockstat::BlockStat;
    use std::time::{Duration, Instant};

    fn disk(name: &str, completed: u64, irq: u64, interrupts: u64) -> DiskSample {
        let text = format!(
            "submitted {completed}\ncompleted {completed}\ncompleted_irq {irq}\n\
             fifo_deferred {irq}\ninterrupts {interrupts}\nmax_irq_ns 1200\n"
        );
        DiskSample {
            name: name.into(),
            counters: Counters::parse(&text).unwrap(),
            block: BlockStat {
                in_queue_ms: completed * 2,
                read_bytes: completed * 512,
                ..BlockStat::default()
            },
            inflight: Inflight::default(),
        }
    }

    fn sample(at: Instant, disks: Vec<DiskSample>) -> Sample {
        Sample {
            at,
            controllers: vec![ControllerSample {
                address: "0000:01:00.0".into(),
                driver: "hiops_nvme".into(),
                strategy: "coop".into(),
                mode: "hybrid".into(),
                learned: Learned::default(),
                disks,
            }],
        }
    }

    #[test]
    fn a_controllers_interrupts_are_shared_by_all_its_disks() {
        let start = Instant::now();
        let before = sample(start, vec![disk("a", 100, 50, 10), disk("b", 0, 0, 10)]);
        let now = sample(
            start + Duration::from_secs(2),
            vec![disk("a", 300, 100, 110), disk("b", 200, 0, 110)],
        );
        let rates = Rates::between(&before, &now, &[]);
        assert_eq!(rates.seconds, 2.0);
        let [a, b] = &rates.disks[..] else {
            panic!("two disks: {rates:?}");
        };
        assert_eq!((a.iops, b.iops), (100.0, 100.0));
        assert_eq!(a.share.get("irq"), Some(Some(0.25)));
        assert_eq!((a.fifo_per_io, b.fifo_per_io), (Some(0.25), Some(0.0)));
        assert_eq!((a.depth, a.read_bytes_per_second), (0.2, 51_200.0));
        let [controller] = &rates.controllers[..] else {
            panic!("one controller: {rates:?}");
        };
        // 100 interrupts for 200 + 200 requests.
        assert_eq!(controller.interrupts_per_io, Some(0.25));
        assert_eq!(controller.interrupts_per_second, 50.0);
        assert_eq!(controller.max_irq_ns, 1200);
        // Its ratio stays that of all its disks where one is asked for.
        let one = Rates::between(&before, &now, &["b".into()]);
        assert_eq!(one.disks.len(), 1);
        assert_eq!(one.controllers[0].interrupts_per_io, Some(0.25));
    }

    #[test]
    fn an_idle_disk_has_no_ratios() {
        let start = Instant::now();
        let before = sample(start, vec![disk("a", 5, 5, 5)]);
        let rates = Rates::between(&before, &before, &[]);
        assert_eq!(rates.disks[0].iops, 0.0);
        assert_eq!(rates.disks[0].share.get("irq"), Some(None));
        assert_eq!(rates.controllers[0].interrupts_per_io, None);
    }

    #[test]
    fn a_disk_that_has_come_meanwhile_is_not_told_of() {
        let start = Instant::now();
        let before = sample(start, vec![disk("a", 5, 5, 5)]);
        let now = sample(start, vec![disk("a", 5, 5, 5), disk("b", 9, 9, 5)]);
        assert_eq!(Rates::between(&before, &now, &[]).disks.len(), 1);
        assert!(Rates::between(&before, &now, &["b".into()])
            .controllers
            .is_empty());
    }
}
