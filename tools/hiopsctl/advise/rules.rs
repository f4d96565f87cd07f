// SPDX-License-Identifier: GPL-2.0
//! What hiops would make of a load, by the rules that `docs/results.md` found. No file is read
//! here.
//!
//! All turns on one figure, the *pressure*: how many times over the CPU work of all I/Os that are
//! under way fills the time that the drive has for them. Below one the device is what is waited
//! for, and hiops makes no difference on NVMe. Above it CPUs are what is short.

use super::answer::Answer;

/// Threads that wait are short of CPU from here on.
const SHORT: f64 = 1.25;
/// And beside threads that compute, which take what is left.
const SHORT_BESIDE: f64 = 3.0;
/// A thread that keeps a queue full is from here on.
const SHORT_QUEUE: f64 = 1.0;
/// Of the CPU that others leave it has to fill at least so much.
const LEFT: f64 = 0.5;
/// A CPU that is busy for so much of the time is full.
const FULL: f64 = 0.9;
/// Less than this computes nothing.
const COMPUTES: f64 = 0.05;
/// A drive that takes no longer, in µs, is as fast as those on which few in flight lose.
const FAST_US: f64 = 20.0;
/// From how many in flight on, and up to how many, those lose.
const FEW: std::ops::RangeInclusive<f64> = 3.5..=6.5;

/// How programs wait for their I/O.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Style {
    /// Threads, each for its own.
    Threads,
    /// One keeps many in flight (io_uring, libaio).
    Queue,
}

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
    /// Of the busiest one: what it does, and what of this is no I/O.
    pub(crate) busiest: f64,
    pub(crate) computes: f64,
}

/// What is known of a drive and its load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) bus: Bus,
    pub(crate) rotates: bool,
    pub(crate) iops: f64,
    /// The share of writes.
    pub(crate) writes: f64,
    /// I/Os under way, at the most.
    pub(crate) depth: f64,
    /// What the drive takes for one, in µs.
    pub(crate) drive_us: f64,
    pub(crate) style: Style,
    /// Of all drives together.
    pub(crate) pressure: f64,
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
    FewOnFast,
    ThreadsShort,
    ThreadsShortBeside,
    QueueShort,
    Device,
}

/// How many times over `depth` I/Os fill a CPU, each of which takes `cpu_us` of it and `drive_us`
/// of the drive.
pub(crate) fn pressure(depth: f64, cpu_us: f64, drive_us: f64) -> f64 {
    if drive_us > 0.0 {
        depth * cpu_us / drive_us
    } else {
        0.0
    }
}

/// The answer, and why.
pub(crate) fn advise(load: &Load) -> (Answer, Why) {
    let cpus = load.cpus;
    let computes = cpus.computes >= COMPUTES;
    let threads = load.style == Style::Threads;
    if load.iops < 1.0 {
        (Answer::NoDifference, Why::Idle)
    } else if load.rotates {
        (Answer::NoDifference, Why::Rotates)
    } else if load.writes > 0.5 {
        (Answer::NoDifference, Why::Writes)
    } else if threads && computes && cpus.count > 1 && cpus.busy >= FULL {
        match load.bus {
            Bus::Sata => (Answer::No, Why::AllFull),
            Bus::Nvme => (Answer::NoDifference, Why::AllFull),
        }
    } else {
        match load.bus {
            Bus::Sata if load.pressure >= SHORT => (Answer::Yes, Why::SataShort),
            Bus::Sata => (Answer::Yes, Why::Sata),
            Bus::Nvme => of_nvme(load, computes),
        }
    }
}

fn of_nvme(load: &Load, computes: bool) -> (Answer, Why) {
    let full = load.cpus.busiest >= FULL;
    match load.style {
        Style::Queue if FEW.contains(&load.depth) && load.drive_us <= FAST_US => {
            (Answer::No, Why::FewOnFast)
        }
        Style::Queue
            if full
                && load.pressure >= SHORT_QUEUE
                && load.pressure * (1.0 - load.cpus.computes) >= LEFT =>
        {
            (Answer::Yes, Why::QueueShort)
        }
        Style::Threads if full && !computes && load.pressure >= SHORT => {
            (Answer::Yes, Why::ThreadsShort)
        }
        Style::Threads if full && computes && load.pressure >= SHORT_BESIDE => {
            (Answer::Yes, Why::ThreadsShortBeside)
        }
        _ => (Answer::NoDifference, Why::Device),
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
            Self::FewOnFast => {
                "4 to 6 in flight on a drive this fast: 1 to 7 % fewer IOPS, as its completions \
                 are found later"
            }
            Self::ThreadsShort => {
                "CPUs are short, and threads wait: up to 1.4 times the IOPS for 0.7 of the CPU an \
                 I/O there, p99 a quarter"
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

    fn load() -> Load {
        Load {
            bus: Bus::Nvme,
            rotates: false,
            iops: 100_000.0,
            writes: 0.0,
            depth: 64.0,
            drive_us: 80.0,
            style: Style::Threads,
            pressure: 2.0,
            cpus: Cpus {
                count: 4,
                busy: 0.5,
                busiest: 1.0,
                computes: 0.0,
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
            (|l| l.pressure = 1.25, Yes, Why::ThreadsShort),
            (|l| l.pressure = 1.24, NoDifference, Why::Device),
            (|l| l.cpus.busiest = 0.9, Yes, Why::ThreadsShort),
            (|l| l.cpus.busiest = 0.89, NoDifference, Why::Device),
            (|l| l.iops = 0.9, NoDifference, Why::Idle),
            (|l| l.rotates = true, NoDifference, Why::Rotates),
            (|l| l.writes = 0.5, Yes, Why::ThreadsShort),
            (|l| l.writes = 0.51, NoDifference, Why::Writes),
        ]);
    }

    #[test]
    fn beside_others_that_compute_less_is_left() {
        use Answer::{No, NoDifference, Yes};
        fn beside(load: &mut Load, busy: f64) {
            (load.cpus.computes, load.cpus.busy, load.pressure) = (0.05, busy, 3.0);
        }
        check(&[
            (|l| l.cpus.computes = 0.04, Yes, Why::ThreadsShort),
            (|l| l.cpus.computes = 0.05, NoDifference, Why::Device),
            (|l| beside(l, 0.89), Yes, Why::ThreadsShortBeside),
            (|l| beside(l, 0.9), NoDifference, Why::AllFull),
            (
                |l| (beside(l, 0.9), l.cpus.count = 1).1,
                Yes,
                Why::ThreadsShortBeside,
            ),
            (|l| (beside(l, 0.9), l.bus = Bus::Sata).1, No, Why::AllFull),
            (
                |l| (beside(l, 0.9), l.style = Style::Queue).1,
                Yes,
                Why::QueueShort,
            ),
        ]);
    }

    #[test]
    fn sata_has_less_to_do_always() {
        use Answer::{NoDifference, Yes};
        check(&[
            (|l| l.bus = Bus::Sata, Yes, Why::SataShort),
            (|l| (l.bus, l.pressure) = (Bus::Sata, 0.1), Yes, Why::Sata),
            (
                |l| (l.bus, l.rotates) = (Bus::Sata, true),
                NoDifference,
                Why::Rotates,
            ),
        ]);
    }

    #[test]
    fn a_queue_has_to_fill_what_is_left_of_a_cpu() {
        use Answer::{No, NoDifference, Yes};
        fn queue(load: &mut Load, depth: f64, drive_us: f64) {
            (load.style, load.depth, load.drive_us) = (Style::Queue, depth, drive_us);
        }
        check(&[
            (|l| queue(l, 64.0, 80.0), Yes, Why::QueueShort),
            (
                |l| (l.style, l.pressure) = (Style::Queue, 1.0),
                Yes,
                Why::QueueShort,
            ),
            (
                |l| (l.style, l.pressure) = (Style::Queue, 0.99),
                NoDifference,
                Why::Device,
            ),
            (
                |l| (l.style, l.cpus.computes) = (Style::Queue, 0.74),
                Yes,
                Why::QueueShort,
            ),
            (
                |l| (l.style, l.cpus.computes) = (Style::Queue, 0.76),
                NoDifference,
                Why::Device,
            ),
            (|l| queue(l, 3.0, 20.0), Yes, Why::QueueShort),
            (|l| queue(l, 4.0, 20.0), No, Why::FewOnFast),
            (|l| queue(l, 6.0, 20.0), No, Why::FewOnFast),
            (|l| queue(l, 7.0, 20.0), Yes, Why::QueueShort),
            (|l| queue(l, 5.0, 21.0), Yes, Why::QueueShort),
        ]);
    }

    #[test]
    fn a_drive_of_which_nothing_is_known_has_no_pressure() {
        assert_eq!(pressure(16.0, 4.0, 64.0), 1.0);
        assert_eq!(pressure(16.0, 4.0, 0.0), 0.0);
    }
}
