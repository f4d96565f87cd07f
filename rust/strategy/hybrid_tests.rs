// SPDX-License-Identifier: GPL-2.0
//! Whether a hybrid queue polls, drain by drain.

use super::*;
use core::cell::Cell;
use engine::{Batching, Interrupted, Polling};

const COSTS: Costs = Costs {
    sleep_ns: 5_600,
    yield_ns: 3_000,
    tick_ns: 2_500,
    interrupt_ns: 2_600,
};
/// Four registers are read.
const DEAR_NS: u64 = 12_600;
const INTERVAL_NS: u64 = 32_000;
const US: u64 = 1_000;

/// A queue, its clock and how it is looked at.
struct Line {
    watch: LoadWindow,
    account: Account,
    batching: Batching,
    polling: Polling,
    now_ns: Cell<u64>,
    costs: Costs,
}

fn line(interrupt_ns: u64) -> Line {
    Line {
        watch: LoadWindow::default(),
        account: Account::default(),
        batching: Batching::new(1, 1023),
        polling: Polling::new(),
        now_ns: Cell::new(0),
        costs: Costs {
            interrupt_ns,
            ..COSTS
        },
    }
}

struct Seen<'a>(&'a Line);

impl View for Seen<'_> {
    fn outstanding(&self) -> u64 {
        0
    }
    fn batching(&self) -> &Batching {
        &self.0.batching
    }
    fn polling(&self) -> &Polling {
        &self.0.polling
    }
    fn is_predicting(&self) -> bool {
        false
    }
    fn costs(&self) -> Costs {
        self.0.costs
    }
    fn is_crowded(&self) -> bool {
        false
    }
    fn interrupted(&self) -> Interrupted {
        Interrupted::Waiter
    }
    fn now_ms(&self) -> u64 {
        self.0.now_ns.get() / NS_PER_MS
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
    }
}

impl Line {
    /// A drain after `after_ns`; whether the queue is polled from then on.
    fn drain(&mut self, after_ns: u64, by: Source, ended: usize, cpu: CpuUser, depth: u64) -> bool {
        self.now_ns.set(self.now_ns.get() + after_ns);
        let sample = Sample {
            by,
            cpu,
            ended,
            depth,
            drains: 1,
        };
        let mut watch = core::mem::take(&mut self.watch);
        let polled = watch.note(sample, &self.account, &Seen(self));
        self.watch = watch;
        self.polling.turn(polled);
        polled
    }

    /// A window of interrupts for one completion each.
    fn interrupts(&mut self, after_ns: u64, cpu: CpuUser, depth: u64) -> bool {
        (0..WINDOW).fold(false, |_, _| {
            self.drain(after_ns, Source::Interrupt, 1, cpu, depth)
        })
    }

    /// Windows of them until it is polled.
    fn windows_until_polled(&mut self) -> u32 {
        let mut windows = 1;
        while !self.interrupts(12 * US, CpuUser::Io, 8) {
            windows += 1;
            assert!(windows < 1_000_000, "it is never polled");
        }
        windows
    }

    /// Ticks that find nothing until that is given up; how many there were.
    fn empty_ticks(&mut self) -> u64 {
        let mut ticks = 1;
        while self.drain(INTERVAL_NS, Source::Tick, 0, CpuUser::Io, 8) {
            ticks += 1;
            assert!(ticks < 1_000_000, "it is never given up");
        }
        ticks
    }
}

fn polled(interrupt_ns: u64) -> Line {
    let mut line = line(interrupt_ns);
    assert!(line.interrupts(12 * US, CpuUser::Io, 8));
    line
}

#[test]
fn interrupts_that_come_faster_than_ticks_are_turned_off() {
    assert!(line(COSTS.interrupt_ns).interrupts(12 * US, CpuUser::Io, 8));
    assert!(!line(COSTS.interrupt_ns).interrupts(40 * US, CpuUser::Io, 8));
    assert!(line(DEAR_NS).interrupts(40 * US, CpuUser::Io, 8));
    assert!(!line(DEAR_NS).interrupts(400 * US, CpuUser::Io, 8));
}

/// Interrupts are dear, and the CPU is idle now and then: ticks save CPU time, but nobody waits for
/// that.
#[test]
fn who_polls_is_no_slower_beside_an_idle_cpu() {
    let windows = |cpu, after_ns| {
        let mut line = polled(DEAR_NS);
        let ticks = 2 * WINDOW / 4;
        (0..ticks).all(|_| line.drain(after_ns, Source::Tick, 4, cpu, 8))
    };
    let usual_ns = 4 * 12 * US;
    assert!(windows(CpuUser::Idle, usual_ns));
    assert!(!windows(CpuUser::Idle, usual_ns + usual_ns / 16));
    assert!(
        windows(CpuUser::Io, usual_ns + usual_ns / 16),
        "the load's own"
    );
}

/// A trial loses no more commands' time than it takes to see that; what has saved something before
/// is given its windows.
#[test]
fn a_trial_of_commands_that_are_much_slower_is_over_early() {
    let ticks = |saved: u32| {
        let mut line = polled(DEAR_NS);
        let passing = |line: &mut Line| line.drain(12 * US, Source::Passing, 1, CpuUser::Io, 8);
        assert!((0..saved * WINDOW).all(|_| passing(&mut line)));
        let usual_ns = 4 * 12 * US;
        let tick = |line: &mut Line| {
            line.drain(usual_ns + usual_ns / 4, Source::Tick, 4, CpuUser::Idle, 8)
        };
        (1..).find(|_| !tick(&mut line)).unwrap_or(0)
    };
    assert_eq!(ticks(0), EARLY / 4);
    assert!(ticks(1) >= WINDOW / 4, "{}", ticks(1));
}

#[test]
fn an_idle_cpu_is_interrupted() {
    assert!(!line(COSTS.interrupt_ns).interrupts(12 * US, CpuUser::Idle, 8));
    assert!(!line(COSTS.interrupt_ns).interrupts(350 * US, CpuUser::Idle, 1));
    assert!(!line(DEAR_NS).interrupts(350 * US, CpuUser::Idle, 1));
}

#[test]
fn it_stays_polled_while_passers_by_find_the_completions() {
    let mut line = polled(COSTS.interrupt_ns);
    assert!((0..50 * WINDOW).all(|_| line.drain(12 * US, Source::Passing, 1, CpuUser::Io, 8)));
}

#[test]
fn it_stays_polled_while_ticks_cost_less_than_interrupts_did() {
    let mut line = polled(COSTS.interrupt_ns);
    assert!((0..50 * WINDOW).all(|_| line.drain(INTERVAL_NS, Source::Tick, 2, CpuUser::Io, 32)));
}

#[test]
fn it_goes_back_where_ticks_are_late_for_few() {
    // Half an interval of each command is an eighth of what they do, and the interrupts that are
    // saved took less.
    let mut line = polled(COSTS.interrupt_ns);
    let ticks = (1..).find(|_| !line.drain(INTERVAL_NS, Source::Tick, 2, CpuUser::Io, 8));
    let most = TRIAL * u64::from(WINDOW) * COSTS.interrupt_ns / COSTS.tick_ns * 2;
    assert!(ticks.is_some_and(|ticks| ticks < most), "{ticks:?}");
}

#[test]
fn it_goes_back_where_ticks_keep_an_idle_cpu_from_its_work() {
    let mut line = polled(COSTS.interrupt_ns);
    let ticks = (1..).find(|_| !line.drain(INTERVAL_NS, Source::Tick, 1, CpuUser::Idle, 8));
    assert!(ticks.is_some_and(|ticks| ticks < 2 * WINDOW), "{ticks:?}");
}

#[test]
fn it_goes_back_where_ticks_find_those_asleep_whom_others_computed_beside() {
    let ends = |cpu: CpuUser| {
        let mut line = polled(COSTS.interrupt_ns);
        (1..20 * WINDOW).find(|_| !line.drain(INTERVAL_NS, Source::Tick, 2, cpu, 32))
    };
    assert!(ends(CpuUser::Other).is_some_and(|ticks| ticks < WINDOW));
    assert_eq!(ends(CpuUser::Io), None);
}

#[test]
fn each_that_sleeps_beside_others_is_kept_waiting() {
    // A tick in four finds those asleep, four at a time.
    let ends = |cpu: CpuUser| {
        let mut line = polled(COSTS.interrupt_ns);
        (0..20 * WINDOW).find(|n| {
            let cpu = if n % 4 == 0 { cpu } else { CpuUser::Io };
            !line.drain(INTERVAL_NS, Source::Tick, 4, cpu, 32)
        })
    };
    assert!(ends(CpuUser::Other).is_some_and(|ticks| ticks < 2 * WINDOW));
    assert_eq!(ends(CpuUser::Idle), None);
}

#[test]
fn a_trial_takes_no_more_than_interrupts_did_in_some_windows() {
    let mut line = polled(COSTS.interrupt_ns);
    let price = u64::from(WINDOW) * COSTS.interrupt_ns;
    let took = line.empty_ticks() * COSTS.tick_ns;
    assert!(
        took <= price * (MOST_SAVED + 1) + COSTS.tick_ns,
        "{took} of {price}"
    );
}

#[test]
fn a_burst_of_ticks_is_paid_for_by_the_windows_before_it() {
    let mut line = polled(COSTS.interrupt_ns);
    for _ in 0..20 {
        assert!((0..4 * WINDOW).all(|_| line.drain(12 * US, Source::Passing, 1, CpuUser::Io, 8)));
        let burst = 2 * u64::from(WINDOW) * COSTS.interrupt_ns / COSTS.tick_ns;
        assert!((0..burst).all(|_| line.drain(INTERVAL_NS, Source::Tick, 0, CpuUser::Io, 8)));
    }
}

#[test]
fn a_failed_trial_makes_the_next_one_wait_longer() {
    let mut line = polled(COSTS.interrupt_ns);
    let waits = [(); 4].map(|()| {
        line.empty_ticks();
        line.windows_until_polled()
    });
    assert!(waits.is_sorted_by(|a, b| a < b), "{waits:?}");
}

#[test]
fn a_trial_that_paid_for_long_is_not_held_against_the_next() {
    let mut line = polled(COSTS.interrupt_ns);
    let waits = [(); 4].map(|()| {
        assert!((0..10 * WINDOW).all(|_| line.drain(12 * US, Source::Passing, 1, CpuUser::Io, 8)));
        line.empty_ticks();
        line.windows_until_polled()
    });
    assert!(waits.iter().all(|&wait| wait == waits[0]), "{waits:?}");
}

#[test]
fn a_load_that_leaves_the_cpu_idle_with_less_outstanding_is_interrupted_at_once() {
    let mut line = polled(COSTS.interrupt_ns);
    assert!((0..10 * WINDOW).all(|_| line.drain(12 * US, Source::Passing, 1, CpuUser::Io, 8)));
    assert!(line.drain(INTERVAL_NS, Source::Tick, 1, CpuUser::Io, 2));
    assert!(line.drain(INTERVAL_NS, Source::Tick, 1, CpuUser::Idle, 8 / DEEPER));
    assert!(!line.drain(INTERVAL_NS, Source::Tick, 1, CpuUser::Idle, 8 / DEEPER - 1));
}

#[test]
fn a_deeper_load_is_tried_at_once() {
    let mut line = polled(COSTS.interrupt_ns);
    line.empty_ticks();
    assert!(!line.interrupts(12 * US, CpuUser::Io, DEEPER * 8));
    assert!(line.interrupts(12 * US, CpuUser::Io, DEEPER * 8 + 1));
}
