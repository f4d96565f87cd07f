// SPDX-License-Identifier: GPL-2.0
//! What this machine does meanwhile: its CPUs (`/proc/stat`), and each disk (`stat` and `inflight`
//! in `/sys/block/DISK`).

use crate::blockstat::{BlockStat, Inflight};
use crate::failure::Failure;
use crate::root::Root;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Looks at what comes and goes.
const LOOKS: u32 = 50;
/// The clock ticks that /proc/stat counts a second in, on every architecture that hiops is for.
pub(crate) const TICKS: f64 = 100.0;

/// Ticks of a CPU since boot, by what it did (proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ticks {
    /// Programs.
    pub(crate) user: u64,
    /// The kernel: I/O, mostly.
    pub(crate) kernel: u64,
    pub(crate) idle: u64,
    pub(crate) iowait: u64,
    /// Taken by a hypervisor.
    pub(crate) steal: u64,
}

/// `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stat {
    pub(crate) cpus: Vec<Ticks>,
    /// Threads that wait for I/O.
    pub(crate) blocked: u64,
    /// Threads that run or want a CPU, the one that reads this among them.
    pub(crate) running: u64,
    /// Context switches since boot.
    pub(crate) switches: u64,
}

impl Ticks {
    fn parse(fields: &str) -> Option<Self> {
        let all: Vec<u64> = fields
            .split_whitespace()
            .map_while(|f| f.parse().ok())
            .collect();
        let of = |at: usize| all.get(at).copied();
        Some(Self {
            user: of(0)?.saturating_add(of(1)?),
            kernel: of(2)?.saturating_add(of(5)?).saturating_add(of(6)?),
            idle: of(3)?,
            iowait: of(4)?,
            steal: of(7).unwrap_or(0),
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            kernel: self.kernel.saturating_sub(before.kernel),
            idle: self.idle.saturating_sub(before.idle),
            // It is known to go back.
            iowait: self.iowait.saturating_sub(before.iowait),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    /// Busy ticks.
    pub(crate) fn busy(self) -> u64 {
        self.user.saturating_add(self.kernel)
    }

    /// All ticks.
    fn all(self) -> u64 {
        let waits = self.idle.saturating_add(self.iowait);
        self.busy().saturating_add(waits).saturating_add(self.steal)
    }

    /// `part` as a share of all.
    pub(crate) fn share(self, part: u64) -> f64 {
        // CAST: counts of a ratio that is printed with two digits.
        part as f64 / self.all().max(1) as f64
    }
}

impl Stat {
    /// Reads its lines.
    pub(crate) fn parse(text: &str) -> Self {
        let mut stat = Self::default();
        for line in text.lines() {
            let Some((name, rest)) = line.split_once(' ') else {
                continue;
            };
            let number = name.strip_prefix("cpu").unwrap_or_default();
            let count = || rest.trim().parse().unwrap_or(0);
            match name {
                _ if !number.is_empty() => stat.cpus.extend(Ticks::parse(rest)),
                "procs_blocked" => stat.blocked = count(),
                "procs_running" => stat.running = count(),
                "ctxt" => stat.switches = count(),
                _ => {}
            }
        }
        stat
    }

    /// This machine's.
    ///
    /// # Errors
    /// It can't be read, or has no CPU in it.
    pub(crate) fn read(root: &Root) -> Result<Self, Failure> {
        let text = root.read("/proc/stat");
        let text = text.map_err(|error| Failure::io("/proc/stat", &error))?;
        let stat = Self::parse(&text);
        if stat.cpus.is_empty() {
            return Err(Failure::new("/proc/stat names no CPU", "mount /proc"));
        }
        Ok(stat)
    }

    /// What each CPU did since `before`.
    pub(crate) fn since(&self, before: &Self) -> Vec<Ticks> {
        let pairs = self.cpus.iter().zip(&before.cpus);
        pairs.map(|(now, before)| now.since(*before)).collect()
    }

    /// The seconds of CPU time that all took since `before`.
    pub(crate) fn busy_seconds(&self, before: &Self) -> f64 {
        let busy = self.since(before).into_iter().map(Ticks::busy);
        // CAST: ticks of some minutes.
        busy.fold(0, u64::saturating_add) as f64 / TICKS
    }
}

/// A disk, over the time that it was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// The sum over all requests of the time that they took.
    pub(crate) in_queue_ms: u64,
    /// Requests under way, at the most of the looks, and as a mean over time.
    pub(crate) deepest: u64,
    pub(crate) depth: f64,
}

impl Seen {
    /// Reads and writes.
    pub(crate) fn ios(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }
}

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) seconds: f64,
    pub(crate) cpus: Vec<Ticks>,
    /// Threads that waited for I/O, as a mean of the looks.
    pub(crate) blocked: f64,
    /// Threads other than this one that ran or wanted a CPU, likewise.
    pub(crate) runnable: f64,
    /// Context switches.
    pub(crate) switches: u64,
    pub(crate) disks: BTreeMap<String, Seen>,
}

/// Looks at `disks` for `seconds`.
///
/// # Errors
/// /proc/stat can't be read.
pub(crate) fn observe(root: &Root, disks: &[String], seconds: f64) -> Result<Observed, Failure> {
    let pause = Duration::from_secs_f64(seconds / f64::from(LOOKS));
    let block = |disk: &String| BlockStat::of(root, disk).unwrap_or_default();
    let before: Vec<BlockStat> = disks.iter().map(block).collect();
    let first = Stat::read(root)?;
    let begin = Instant::now();
    let (mut blocked, mut runnable) = (0u64, 0u64);
    let mut deepest = vec![0u64; disks.len()];
    for _ in 0..LOOKS {
        std::thread::sleep(pause);
        let now = Stat::read(root)?;
        blocked = blocked.saturating_add(now.blocked);
        runnable = runnable.saturating_add(now.running.saturating_sub(1));
        for (disk, most) in disks.iter().zip(&mut deepest) {
            *most = (*most).max(Inflight::of(root, disk).unwrap_or_default().all());
        }
    }
    let last = Stat::read(root)?;
    let seconds = begin.elapsed().as_secs_f64();
    // CAST: means of counts of some thousands.
    let mean = |sum: u64| sum as f64 / f64::from(LOOKS);
    let seen = |((disk, before), most): ((&String, &BlockStat), &u64)| {
        let now = block(disk);
        let in_queue_ms = now.in_queue_ms.saturating_sub(before.in_queue_ms);
        let seen = Seen {
            reads: now.reads.saturating_sub(before.reads),
            writes: now.writes.saturating_sub(before.writes),
            in_queue_ms,
            deepest: *most,
            // Not of the looks: while one is taken, little is begun. CAST: ms of some minutes.
            depth: in_queue_ms as f64 / 1e3 / seconds.max(1e-3),
        };
        (disk.clone(), seen)
    };
    Ok(Observed {
        seconds,
        cpus: last.since(&first),
        blocked: mean(blocked),
        runnable: mean(runnable),
        switches: last.switches.saturating_sub(first.switches),
        disks: disks.iter().zip(&before).zip(&deepest).map(seen).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  30 0 30 300 30 0 0 0 0 0\ncpu0 10 5 20 100 7 2 3 1 0 0\n\
                          cpu1 1 1 1 1 1 1 1 1 0 0\nintr 5 6\nctxt 99\n\
                          procs_running 3\nprocs_blocked 4\n";

    #[test]
    fn ticks_are_told_by_what_they_were_for() {
        let stat = Stat::parse(BEFORE);
        let first = Ticks {
            user: 15,
            kernel: 25,
            idle: 100,
            iowait: 7,
            steal: 1,
        };
        assert_eq!((stat.cpus.len(), stat.switches), (2, 99));
        assert_eq!((stat.running, stat.blocked), (3, 4));
        assert_eq!(stat.cpus[0], first);
        let later = BEFORE.replace("cpu0 10 5 20 100 7", "cpu0 20 15 70 130 6");
        let grown = Stat::parse(&later).since(&stat)[0];
        assert_eq!((grown.user, grown.kernel, grown.idle), (20, 50, 30));
        assert_eq!((grown.iowait, grown.busy()), (0, 70));
        assert_eq!(grown.share(grown.kernel), 0.5);
        assert_eq!(Stat::parse(&later).busy_seconds(&stat), 0.7);
        assert_eq!(Stat::parse("no numbers\ncpu0 x\n"), Stat::default());
        assert_eq!(Ticks::default().share(0), 0.0);
    }
}
