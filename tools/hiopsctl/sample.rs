// SPDX-License-Identifier: GPL-2.0
//! One look at everything that moves.

use crate::blockstat::{BlockStat, Inflight};
use crate::counters::Counters;
use crate::failure::Failure;
use crate::learned::Learned;
use crate::machine::{controllers, Controller};
use crate::root::Root;
use std::time::Instant;

/// What was seen, and when.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) controllers: Vec<ControllerSample>,
}

/// A controller of hiops.
#[derive(Debug)]
pub(crate) struct ControllerSample {
    pub(crate) address: String,
    pub(crate) driver: String,
    pub(crate) strategy: String,
    pub(crate) mode: String,
    pub(crate) learned: Learned,
    pub(crate) disks: Vec<DiskSample>,
}

/// A disk of it.
#[derive(Debug)]
pub(crate) struct DiskSample {
    pub(crate) name: String,
    pub(crate) counters: Counters,
    pub(crate) block: BlockStat,
    pub(crate) inflight: Inflight,
}

impl Sample {
    /// Looks at all disks that hiops serves.
    ///
    /// # Errors
    /// A disk's counters are not what this program knows.
    pub(crate) fn take(root: &Root) -> Result<Self, Failure> {
        let at = Instant::now();
        let all = controllers(root).into_iter();
        let looked = all.filter_map(|controller| ControllerSample::take(root, controller));
        Ok(Self {
            at,
            controllers: looked.collect::<Result<_, _>>()?,
        })
    }
}

impl ControllerSample {
    /// None: hiops serves no disk of it.
    fn take(root: &Root, controller: Controller) -> Option<Result<Self, Failure>> {
        let first = controller.served().next()?.name.clone();
        let file = |name: &str| format!("/sys/block/{first}/hiops/{name}");
        let word = |name: &str| root.word(&file(name)).unwrap_or_else(|| "?".into());
        let looked = controller.served().filter_map(|d| disk(root, &d.name));
        let disks: Result<Vec<_>, _> = looked.collect();
        Some(disks.map(|disks| Self {
            strategy: word("strategy"),
            mode: word("mode"),
            learned: Learned::parse(&root.text(&file("learned")).unwrap_or_default()),
            driver: controller.driver.unwrap_or_default(),
            address: controller.address,
            disks,
        }))
    }

    /// A counter of the controller's own, which reads alike on all its disks.
    pub(crate) fn shared(&self, name: &str) -> u64 {
        self.disks.first().map_or(0, |disk| disk.counters.get(name))
    }
}

/// None: it has gone since it was listed.
fn disk(root: &Root, name: &str) -> Option<Result<DiskSample, Failure>> {
    let file = format!("/sys/block/{name}/hiops/stats");
    let text = root.text(&file)?;
    let counters = Counters::parse(&text).map_err(|line| {
        Failure::new(
            format!("{file} has a line that is no counter: '{line}'"),
            "use the hiopsctl that came with the loaded module",
        )
    });
    Some(counters.map(|counters| DiskSample {
        name: name.to_string(),
        counters,
        block: BlockStat::of(root, name).unwrap_or_default(),
        inflight: Inflight::of(root, name).unwrap_or_default(),
    }))
}
