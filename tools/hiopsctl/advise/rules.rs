// SPDX-License-Identifier: GPL-2.0
//! What hiops would make of a load, by the rules that `docs/results.md` found. No file is read
//! here.
//!
//! Threads that wait turn on one figure, the *pressure*: how many times over the CPU work of all
//! I/Os that they would have under way fills the time that the drive has for them. Below one the
//! device is what is waited for, and hiops makes no difference on NVMe. Above it CPUs are what is
//! short. How many they would have is how many there are, asleep or runnable: of those that want a
//! CPU the drive knows nothing.
//!
//! Of a thread that keeps a queue full nobody outside sees how full: where it never waits, a CPU
//! is what it is short of.

use super::answer::Answer;

/// Threads that wait are short of CPU from here on.
const SHORT: f64 = 1.25;
/// And beside programs that compute, which take what is left.
const SHORT_BESIDE: f64 = 3.0;
/// A CPU that is busy for so much of the time is full.
const FULL: f64 = 0.9;
/// Programs that take so much of a CPU compute: threads that only read had up to 0.27 of one, and
/// eight beside three that compute 0.41 and more (`bench/run advise`, as for the two below).
const COMPUTES: f64 = 0.35;
/// Threads that wait switch to another at least so often for an I/O; who keeps a queue full, and
/// finds its next answers there, does not.
const SWITCHES: f64 = 0.9;
/// Who waits for I/O for no more of the time keeps a CPU busy: it was 0.12 at the most of it.
const NEVER: f64 = 0.25;
/// A drive that takes no longer than so many times what an I/O takes of a CPU is one on which few
/// in flight gain nothing.
const FAST: f64 = 7.0;

/// The interface that a drive is behind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Bus {
    Nvme,
    Sata,
}

/// What the CPUs do, as shares of their time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cpus {
    pub(crate) count: usize,
    /// Busy time of all, as a share of all of theirs.
    pub(crate) busy: f64,
    /// Of the busiest one.
    pub(crate) busiest: f64,
    /// What programs take of a CPU, at the most.
    pub(crate) computes: f64,
}

/// What threads do, of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Threads {
    /// How many wait for I/O.
    pub(crate) blocked: f64,
    /// How many run or want a CPU.
    pub(crate) runnable: f64,
    /// Context switches an I/O.
    pub(crate) switches: f64,
    /// CPU time an I/O in the kernel, and in programs, in µs.
    pub(crate) cpu_us: f64,
    pub(crate) program_us: f64,
    /// What the drives take for one, in µs.
    pub(crate) drive_us: f64,
}

/// What is known of a drive and its load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) bus: Bus,
    pub(crate) rotates: bool,
    pub(crate) iops: f64,
    /// The share of writes.
    pub(crate) writes: f64,
    /// What the drive takes for one I/O, in µs.
    pub(crate) drive_us: f64,
    pub(crate) threads: Threads,
    pub(crate) cpus: Cpus,
}

/// Why an answer is what it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    Idle,
    Rotates,
    Writes,
    AllFull,
    SataShort,
    Sata,
    FewOrMany,
    ThreadsShort,
    ThreadsShortBeside,
    QueueShort,
    Device,
}

impl Load {
    /// Each waits for its own I/O; else few keep many in flight (io_uring, libaio).
    fn are_threads(&self) -> bool {
        self.threads.switches >= SWITCHES
    }

    fn computes(&self) -> bool {
        self.cpus.computes >= COMPUTES
    }

    /// How many times over those threads fill the CPUs that are busy, as a load that runs on one
    /// is short of that one. Programs' own time counts where none computes; where one does, as many
    /// of those that want a CPU compute as CPU time goes into that.
    fn pressure(&self) -> f64 {
        let all = &self.threads;
        let (computing, cpu_us) = match self.computes() {
            true => (all.runnable * self.cpus.computes.min(1.0), all.cpu_us),
            false => (0.0, all.cpu_us + all.program_us),
        };
        let many = all.blocked + all.runnable - computing;
        if all.drive_us > 0.0 {
            // CAST: some thousands of CPUs.
            let busy = self.cpus.busy * self.cpus.count as f64;
            many * cpu_us / all.drive_us / busy.max(1.0)
        } else {
            0.0
        }
    }
}

/// The answer, and why.
pub(crate) fn advise(load: &Load) -> (Answer, Why) {
    let cpus = load.cpus;
    if load.iops < 1.0 {
        (Answer::NoDifference, Why::Idle)
    } else if load.rotates {
        (Answer::NoDifference, Why::Rotates)
    } else if load.writes > 0.5 {
        (Answer::NoDifference, Why::Writes)
    } else if load.are_threads() && load.computes() && cpus.count > 1 && cpus.busy >= FULL {
        match load.bus {
            Bus::Sata => (Answer::No, Why::AllFull),
            Bus::Nvme => (Answer::NoDifference, Why::AllFull),
        }
    } else {
        match load.bus {
            Bus::Sata if load.pressure() >= SHORT => (Answer::Yes, Why::SataShort),
            Bus::Sata => (Answer::Yes, Why::Sata),
            Bus::Nvme => of_nvme(load),
        }
    }
}

fn of_nvme(load: &Load) -> (Answer, Why) {
    let threads = &load.threads;
    if load.cpus.busiest < FULL {
        (Answer::NoDifference, Why::Device)
    } else if !load.are_threads() {
        match threads.blocked <= NEVER {
            true if load.drive_us <= FAST * (threads.cpu_us + threads.program_us) => {
                (Answer::Depends, Why::FewOrMany)
            }
            true => (Answer::Yes, Why::QueueShort),
            false => (Answer::NoDifference, Why::Device),
        }
    } else if !load.computes() && load.pressure() >= SHORT {
        (Answer::Yes, Why::ThreadsShort)
    } else if load.computes() && load.pressure() >= SHORT_BESIDE {
        (Answer::Yes, Why::ThreadsShortBeside)
    } else {
        (Answer::NoDifference, Why::Device)
    }
}

impl Why {
    /// In words, with what was measured.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Idle => "nothing was read or written meanwhile: ask again under its load",
            Self::Rotates => "it rotates: the device is what is waited for",
            Self::Writes => {
                "most of it are writes; buffered writes with fsync made no difference on any drive"
            }
            Self::AllFull => {
                "all CPUs are full, and not with I/O alone: threads that wait had 0.93 to 1.04 of \
                 the in-tree driver's IOPS there"
            }
            Self::SataShort => {
                "SATA, and CPUs are short: up to 1.9 times the IOPS there, where the link is not \
                 full, and a third less CPU an I/O"
            }
            Self::Sata => "SATA: a fifth less CPU an I/O, and 2 to 12 % more IOPS",
            Self::FewOrMany => {
                "CPUs are short, on a drive this fast: up to 1.24 times the IOPS with 8 in flight \
                 or more, and no difference with fewer (1 to 2 % less with 2 to 6)"
            }
            Self::ThreadsShort => {
                "CPUs are short, and threads wait: up to 1.4 times the IOPS for 0.7 of the CPU an \
                 I/O there, p99 a quarter; 3 to 5 % more beside threads that compute"
            }
            Self::ThreadsShortBeside => {
                "CPUs are short, but others compute: 3 to 5 % more IOPS there"
            }
            Self::QueueShort => {
                "CPUs are short, and queues are deep: up to 1.24 times the IOPS there, for 0.8 of \
                 the CPU an I/O"
            }
            Self::Device => "the device is what is waited for, not a CPU",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 threads on a drive of 80 µs, for each of whose reads a CPU works 2.5 µs, 0.5 of them
    /// outside the kernel.
    fn load() -> Load {
        Load {
            bus: Bus::Nvme,
            rotates: false,
            iops: 100_000.0,
            writes: 0.0,
            drive_us: 80.0,
            threads: Threads {
                blocked: 20.0,
                runnable: 44.0,
                switches: 1.0,
                cpu_us: 2.0,
                program_us: 0.5,
                drive_us: 80.0,
            },
            cpus: Cpus {
                count: 4,
                busy: 0.25,
                busiest: 1.0,
                computes: 0.2,
            },
        }
    }

    /// A change of the load above, the answer then, and why.
    type Case = (fn(&mut Load), Answer, Why);

    fn check(cases: &[Case]) {
        for (at, (change, answer, why)) in cases.iter().enumerate() {
            let mut load = load();
            change(&mut load);
            assert_eq!(advise(&load), (*answer, *why), "case {at}: {load:?}");
        }
    }

    #[test]
    fn threads_have_to_be_short_of_a_full_cpu() {
        use Answer::{NoDifference, Yes};
        check(&[
            (|_| (), Yes, Why::ThreadsShort),
            // Those that want a CPU count as those that wait do.
            (|l| l.threads.runnable = 20.0, Yes, Why::ThreadsShort),
            (|l| l.threads.runnable = 19.9, NoDifference, Why::Device),
            (|l| l.threads.blocked = 0.0, Yes, Why::ThreadsShort),
            (|l| l.cpus.busiest = 0.9, Yes, Why::ThreadsShort),
            (|l| l.cpus.busiest = 0.89, NoDifference, Why::Device),
            // The same work of two CPUs.
            (|l| l.cpus.busy = 0.4, Yes, Why::ThreadsShort),
            (|l| l.cpus.busy = 0.41, NoDifference, Why::Device),
            (|l| l.iops = 0.9, NoDifference, Why::Idle),
            (|l| l.rotates = true, NoDifference, Why::Rotates),
            (|l| l.writes = 0.5, Yes, Why::ThreadsShort),
            (|l| l.writes = 0.51, NoDifference, Why::Writes),
        ]);
    }

    #[test]
    fn beside_others_that_compute_less_is_left() {
        use Answer::{No, NoDifference, Yes};
        /// Half of what wants a CPU computes: with 200 the pressure is three.
        fn beside(load: &mut Load, runnable: f64, busy: f64) {
            (load.cpus.computes, load.cpus.busy) = (0.5, busy);
            load.threads.runnable = runnable;
        }
        check(&[
            (|l| l.cpus.computes = 0.34, Yes, Why::ThreadsShort),
            (|l| l.cpus.computes = 0.35, NoDifference, Why::Device),
            (|l| beside(l, 200.0, 0.2), Yes, Why::ThreadsShortBeside),
            (|l| beside(l, 199.9, 0.2), NoDifference, Why::Device),
            (|l| beside(l, 900.0, 0.89), Yes, Why::ThreadsShortBeside),
            (|l| beside(l, 900.0, 0.9), NoDifference, Why::AllFull),
            (
                |l| (beside(l, 900.0, 0.9), l.cpus.count = 1).1,
                Yes,
                Why::ThreadsShortBeside,
            ),
            (
                |l| (beside(l, 900.0, 0.9), l.bus = Bus::Sata).1,
                No,
                Why::AllFull,
            ),
        ]);
    }

    #[test]
    fn sata_has_less_to_do_always() {
        use Answer::{NoDifference, Yes};
        check(&[
            (|l| l.bus = Bus::Sata, Yes, Why::SataShort),
            (
                |l| (l.bus, l.threads.runnable) = (Bus::Sata, 0.0),
                Yes,
                Why::Sata,
            ),
            (
                |l| (l.bus, l.rotates) = (Bus::Sata, true),
                NoDifference,
                Why::Rotates,
            ),
        ]);
    }

    #[test]
    fn who_keeps_a_queue_full_must_never_wait() {
        use Answer::{Depends, NoDifference, Yes};
        fn queue(load: &mut Load, blocked: f64, drive_us: f64) {
            (load.threads.switches, load.threads.blocked) = (0.89, blocked);
            load.drive_us = drive_us;
        }
        check(&[
            (|l| queue(l, 0.25, 80.0), Yes, Why::QueueShort),
            (|l| queue(l, 0.26, 80.0), NoDifference, Why::Device),
            (
                |l| (queue(l, 0.0, 80.0), l.cpus.busiest = 0.89).1,
                NoDifference,
                Why::Device,
            ),
            (
                |l| (queue(l, 0.0, 80.0), l.cpus.computes = 0.7).1,
                Yes,
                Why::QueueShort,
            ),
            // A drive that is as fast as seven I/Os' work.
            (|l| queue(l, 0.0, 17.6), Yes, Why::QueueShort),
            (|l| queue(l, 0.0, 17.5), Depends, Why::FewOrMany),
            (|l| queue(l, 0.3, 17.5), NoDifference, Why::Device),
        ]);
    }

    #[test]
    fn a_drive_of_which_nothing_is_known_has_no_pressure() {
        let mut load = load();
        assert_eq!(load.pressure(), 2.0);
        load.threads.drive_us = 0.0;
        assert_eq!(load.pressure(), 0.0);
    }
}
